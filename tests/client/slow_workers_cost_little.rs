//! A worker that does not read holds its own connection up, and little of the server's memory.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use treepie::client::{Conventions, SubscriptionDefinition, WorkerOptions};

use crate::child::Server;
use crate::support::open;

const SLOW: usize = 10;
const DOCUMENTS: usize = 600;
const DOCUMENT_BYTES: usize = 64 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn workers_that_do_not_read_cost_bounded_memory() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path(), "127.0.0.1:0");
    let url = format!("http://{}", server.address);
    let store = open(&url, Conventions::new());
    store.databases().create("db").await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let text = "x".repeat(DOCUMENT_BYTES);
    for first in (0..DOCUMENTS).step_by(100) {
        let commands: Vec<Value> = (first..first + 100)
            .map(|n| {
                let document = json!({ "text": text, "@metadata": { "@collection": "Large" } });
                json!({ "Type": "PUT", "Id": format!("large/{n}"), "Document": document })
            })
            .collect();
        let body = json!({ "Commands": commands }).to_string();
        let sent = client.post(format!("{url}/databases/db/bulk_docs")).body(body).send().await.unwrap();
        assert!(sent.status().is_success());
    }
    for n in 0..=SLOW {
        let definition = SubscriptionDefinition::new(&format!("s{n}"), "from Large");
        store.subscriptions().create(&definition).await.unwrap();
    }
    drain(&store, "s0").await;
    let before = server.peak_memory_mib();
    let mut slow = Vec::new();
    for n in 1..=SLOW {
        slow.push(begin(&server, &format!("s{n}")).await);
    }
    // While they read nothing, another one gets everything twice.
    for _ in 0..2 {
        store.subscriptions().delete("s0").await.unwrap();
        store.subscriptions().create(&SubscriptionDefinition::new("s0", "from Large")).await.unwrap();
        drain(&store, "s0").await;
    }
    let grown = server.peak_memory_mib() - before;
    let all = SLOW * DOCUMENTS * DOCUMENT_BYTES / (1 << 20);
    assert!(grown < 80, "{grown} MiB more, of the {all} MiB that the slow ones did not read");
    drop(slow);
}

async fn drain(store: &treepie::client::DocumentStore, name: &str) {
    let options = WorkerOptions { ends_when_empty: true, batch_changes: 100, ..WorkerOptions::default() };
    let mut worker = store.subscriptions().worker(name, options);
    let mut count = 0;
    while let Some(batch) = worker.next().await.unwrap() {
        count += batch.changes.len();
        assert!(worker.acknowledge(&batch).await.unwrap());
    }
    assert_eq!(count, DOCUMENTS);
}

/// Opens a subscription over RavenDB's protocol and reads no more than the first bytes of the first document.
async fn begin(server: &Server, name: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).await.unwrap();
    let mut heard = Vec::new();
    for (message, answer) in [
        (json!({ "DatabaseName": "db", "Operation": "Subscription", "OperationVersion": 53_000 }), "\"Ok\""),
        (json!({ "SubscriptionName": name, "MaxDocsPerBatch": 16_384 }), "\"Data\""),
    ] {
        stream.write_all(message.to_string().as_bytes()).await.unwrap();
        while !String::from_utf8_lossy(&heard).contains(answer) {
            let mut some = [0; 256];
            let read = stream.read(&mut some).await.unwrap();
            assert!(read > 0, "the server closed the connection");
            heard.extend_from_slice(&some[..read]);
        }
    }
    stream
}
