//! A soak: writers and deleters, a chain of indexes, a server that is killed and workers that are dropped, at random. In the
//! end what each subscription delivered, folded, equals the collection; nothing was skipped, nothing that was acknowledged
//! came again, and order was kept. `TREEPIE_SOAK_SECONDS=600` makes it longer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};
use treepie::client::{
    Batch, Change, Conventions, DocumentStore, Strategy, SubscriptionDefinition, SubscriptionWorker, WorkerOptions,
};

use crate::child::Server;
use crate::support::open;

/// Sums over items, and sums over those sums.
const INDEXES: [(&str, &str); 2] = [
    (
        "Sums",
        r#"source("Items"); output("Sums");
           fn map(doc) { emit(#{ K: doc.k }, #{ N: doc.n }); }
           fn reduce(key, values) { #{ N: values.sum("N") } }"#,
    ),
    (
        "Totals",
        r#"source("Sums"); output("Totals");
           fn map(doc) { emit(#{ Odd: doc.K % 2 }, #{ N: doc.N }); }
           fn reduce(key, values) { #{ N: values.sum("N") } }"#,
    ),
];

const IDS: u32 = 300;

/// Numbers by chance that can be had again.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(bound)).unwrap()
    }
}

/// What one subscription's workers saw.
#[derive(Default)]
struct Seen {
    /// The newest of each document: its etag, and its change vector unless it was deleted.
    folded: BTreeMap<String, (u64, Option<String>)>,
    acknowledged: BTreeSet<u64>,
    deliveries: u64,
}

impl Seen {
    fn take_in(&mut self, batch: &Batch) {
        let etags: Vec<u64> = batch.changes.iter().map(|change| change.etag).collect();
        assert!(etags.windows(2).all(|pair| pair[0] < pair[1]), "out of order: {etags:?}");
        for Change { id, etag, change_vector, deleted, .. } in &batch.changes {
            assert!(!self.acknowledged.contains(etag), "{id} with etag {etag} was acknowledged and came again");
            let vector = (!deleted).then(|| change_vector.clone());
            match self.folded.get(id) {
                Some((newest, _)) if newest > etag => {}
                _ => drop(self.folded.insert(id.clone(), (*etag, vector))),
            }
            self.deliveries += 1;
        }
    }

    fn live(&self) -> BTreeMap<String, String> {
        let live = self.folded.iter().filter_map(|(id, (_, vector))| Some((id.clone(), vector.clone()?)));
        live.collect()
    }
}

/// Takes batches until told to stop, losing some on purpose.
async fn work(mut make: impl FnMut() -> SubscriptionWorker, seen: Arc<Mutex<Seen>>, stop: Arc<AtomicBool>, seed: u64) {
    let (mut chance, mut worker) = (Chance(seed), make());
    while !stop.load(Ordering::Relaxed) {
        let Ok(next) = tokio::time::timeout(Duration::from_millis(500), worker.next()).await else { continue };
        let Some(batch) = next.unwrap() else { return };
        seen.lock().take_in(&batch);
        if chance.below(8) == 0 {
            worker = make();
            continue;
        }
        if worker.acknowledge(&batch).await.unwrap_or(false) {
            seen.lock().acknowledged.extend(batch.changes.iter().map(|change| change.etag));
        }
    }
}

/// Writes and deletes until told to stop; an answer that was lost does not matter.
async fn write(url: String, stop: Arc<AtomicBool>, seed: u64) {
    let (client, mut chance) = (reqwest::Client::builder().no_proxy().build().unwrap(), Chance(seed));
    while !stop.load(Ordering::Relaxed) {
        let commands: Vec<Value> = (0..=chance.below(5)).map(|_| command(&mut chance)).collect();
        let body = json!({ "Commands": commands }).to_string();
        let sent = client.post(format!("{url}/databases/db/bulk_docs")).body(body).send().await;
        if sent.is_err() {
            tokio::task::yield_now().await;
        }
    }
}

fn command(chance: &mut Chance) -> Value {
    let id = chance.below(IDS);
    if chance.below(4) == 0 {
        return json!({ "Type": "DELETE", "Id": format!("items/{id}") });
    }
    let document = json!({ "k": id % 13, "n": chance.below(100), "@metadata": { "@collection": "Items" } });
    json!({ "Type": "PUT", "Id": format!("items/{id}"), "Document": document })
}

async fn stored(url: &str, collection: &str) -> BTreeMap<String, String> {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let path = format!("{url}/databases/db/collections/docs?name={collection}&pageSize=100000");
    let text = client.get(path).send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let text_of = |document: &Value, key: &str| document["@metadata"][key].as_str().unwrap().to_owned();
    let results = answer["Results"].as_array().unwrap().clone();
    results.iter().map(|document| (text_of(document, "@id"), text_of(document, "@change-vector"))).collect()
}

struct Subscription {
    name: &'static str,
    collection: &'static str,
    strategy: Strategy,
    workers: u64,
    seen: Arc<Mutex<Seen>>,
}

impl Subscription {
    fn all() -> Vec<Self> {
        let make =
            |name, collection, strategy, workers| Self { name, collection, strategy, workers, seen: Arc::default() };
        vec![
            make("items", "Items", Strategy::WaitForFree, 1),
            make("shared", "Items", Strategy::Concurrent, 3),
            make("sums", "Sums", Strategy::WaitForFree, 2),
            make("totals", "Totals", Strategy::WaitForFree, 1),
        ]
    }

    fn worker(&self, store: &DocumentStore, ends_when_empty: bool) -> impl FnMut() -> SubscriptionWorker + use<> {
        let (store, name, strategy) = (store.clone(), self.name, self.strategy);
        move || {
            let options = WorkerOptions { strategy, batch_changes: 20, ends_when_empty, ..WorkerOptions::default() };
            store.subscriptions().worker(name, options)
        }
    }
}

fn seconds() -> u64 {
    let asked = std::env::var_os("TREEPIE_SOAK_SECONDS").and_then(|text| text.into_string().ok()?.parse().ok());
    asked.unwrap_or(12)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folded_deliveries_equal_the_collections() {
    let data = tempfile::tempdir().unwrap();
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let url = format!("http://{listen}");
    let mut server = Server::start(data.path(), &listen);
    let store = open(&url, Conventions::new());
    store.databases().create("db").await.unwrap();
    for (name, script) in INDEXES {
        store.indexes().put_script(name, script).await.unwrap();
    }
    let subscriptions = Subscription::all();
    for it in &subscriptions {
        let definition = SubscriptionDefinition::new(it.name, &format!("from {} (Deletes = true)", it.collection));
        store.subscriptions().create(&definition).await.unwrap();
    }

    let (writers_stop, workers_stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let writers: Vec<_> =
        (1..=2).map(|seed| tokio::spawn(write(url.clone(), Arc::clone(&writers_stop), seed))).collect();
    let mut workers = Vec::new();
    for it in &subscriptions {
        for seed in 1..=it.workers {
            let (seen, stop) = (Arc::clone(&it.seen), Arc::clone(&workers_stop));
            workers.push(tokio::spawn(work(it.worker(&store, false), seen, stop, seed)));
        }
    }
    let (begun, mut chance) = (Instant::now(), Chance(7));
    while begun.elapsed() < Duration::from_secs(seconds()) {
        tokio::time::sleep(Duration::from_millis(u64::from(1_000 + chance.below(2_000)))).await;
        server.kill();
        server = Server::start(data.path(), &listen);
    }
    writers_stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.unwrap();
    }
    workers_stop.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }

    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let wait = format!("{url}/databases/db/bulk_docs?waitForIndexesTimeout=00:00:30&waitForIndexThrow=true");
    assert!(client.post(wait).body(r#"{"Commands":[]}"#).send().await.unwrap().status().is_success());
    for it in &subscriptions {
        let mut last = it.worker(&store, true)();
        while let Some(batch) = last.next().await.unwrap() {
            it.seen.lock().take_in(&batch);
            assert!(last.acknowledge(&batch).await.unwrap());
        }
        let wanted = stored(&url, it.collection).await;
        let seen = it.seen.lock();
        assert!(seen.deliveries > 0, "{} delivered nothing", it.name);
        assert_eq!(seen.live(), wanted, "{}", it.name);
    }
}
