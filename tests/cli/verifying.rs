//! `verify`: damage done to the files is found while the server serves, and mended when asked.

use serde_json::Value;
use treepie::id::DocumentId;
use treepie::store::commit::{Author, Commit, Operation, RowChange};
use treepie::store::commit::{Expected, PutId};
use treepie::store::document::{Document, DocumentFlags};
use treepie::store::keyspace::{Family, KeyRange};
use treepie::store::scan::Direction;
use treepie::store::snapshot::IdRange;
use treepie::store::{Store, StoreSettings};

use crate::program::{Server, lines};

const SUMS: &str = "source(\"Things\"); output(\"Sums\");\nfn map(thing) { emit(thing.kind, #{ n: thing.n }); }\n\
    fn reduce(key, values) { #{ n: values.sum(\"n\") } }";

fn server() -> Server {
    let server = Server::start();
    let things = lines(0..300, |n| format!("{{\"kind\":{},\"n\":1}}", n % 3));
    server.run_with(&["load", "-", "--collection", "Things", "--id", "things/"], things).json();
    server.run_with(&["index", "put", "-", "--name", "Sums"], SUMS).json();
    server.run(&["index", "status", "--wait"]).json();
    server
}

/// Stops the server, does something to its files, and starts it again.
fn damage(server: &mut Server, what: impl FnOnce(&Store)) {
    server.signal("TERM");
    assert_eq!(server.wait(), Some(0));
    let store = Store::open(&server.files.path().join("data/databases/main"), &StoreSettings::default()).unwrap();
    what(&store);
    store.close().unwrap();
    drop(store);
    server.restart();
}

#[test]
fn a_sound_database_is_verified_with_one_line_for_each_index() {
    let server = server();
    let ran = server.run(&["verify", "--text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let parts =
        "Sums: all as it should be; 300 documents, 300 entries, 3 groups, 3 artificial documents, through etag 30";
    assert!(ran.stdout.starts_with(parts) && ran.stdout.lines().count() == 1, "{ran:?}");
    let told = server.run(&["verify", "sums"]).json();
    assert_eq!(told.last().unwrap()["Differences"], 0);
    let ran = server.run(&["verify", "none"]);
    assert!(ran.code == Some(3) && ran.stderr.contains("'none'"), "{ran:?}");
}

#[test]
fn a_damaged_row_and_a_changed_document_are_named_and_mended() {
    let mut server = server();
    let sound = server.run(&["list", "--prefix", "Sums/", "--text"]).stdout;
    damage(&mut server, |store| {
        let key = {
            let snapshot = store.snapshot();
            let mut scan = snapshot.rows(Family::MapEntries, KeyRange::all(), Direction::Forward);
            scan.next_row().unwrap().unwrap().0.to_vec()
        };
        let rows = vec![RowChange::Delete { family: Family::MapEntries, key }];
        store.commit(Commit { rows, ..Commit::default() }).unwrap();
    });
    let ran = server.run(&["verify", "Sums", "--text"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.contains("Sums: missing in map_entries: things/0000000000000000"), "{ran:?}");
    assert!(ran.stderr.contains("--repair"), "{ran:?}");
    let ran = server.run(&["verify", "Sums", "--repair", "--text"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("Sums: mended: builds it anew\nSums: all as it should be"), "{ran:?}");
    damage(&mut server, |store| {
        let id = store.snapshot().documents(&IdRange::default()).map(Result::unwrap).next().unwrap().id;
        let document =
            Document { collection: "Sums".to_owned(), metadata: "{}".to_owned(), body: "{\"n\":7}".to_owned() };
        let put = Operation::Put {
            id: PutId::Given(DocumentId::existing(&id).unwrap()),
            document,
            flags: DocumentFlags { artificial: true },
            expected: Expected::Any,
        };
        store.commit(Commit { author: Author::Index(1), operations: vec![put], ..Commit::default() }).unwrap();
    });
    let told = server.run(&["verify", "--repair"]).json();
    let is = |event: &str, it: &Value| it["Event"] == event;
    assert_eq!(told.iter().filter(|it| is("Difference", it)).count(), 1, "{told:?}");
    assert!(told.iter().any(|it| is("Mended", it) && it["What"].as_str().unwrap().contains("documents")), "{told:?}");
    assert_eq!(server.run(&["list", "--prefix", "Sums/", "--text"]).stdout, sound);
}

#[test]
fn of_many_differences_some_are_named_and_all_counted() {
    let mut server = server();
    damage(&mut server, |store| {
        let keys: Vec<Vec<u8>> = {
            let snapshot = store.snapshot();
            let mut scan = snapshot.rows(Family::MapDocuments, KeyRange::all(), Direction::Forward);
            let mut keys = Vec::new();
            while let Some((key, _)) = scan.next_row().unwrap() {
                keys.push(key.to_vec());
            }
            keys
        };
        let rows = keys.into_iter().map(|key| RowChange::Delete { family: Family::MapDocuments, key }).collect();
        store.commit(Commit { rows, ..Commit::default() }).unwrap();
    });
    let ran = server.run(&["verify", "--limit", "5", "--text"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stdout.lines().filter(|line| line.contains("missing in map_documents")).count(), 5);
    assert!(
        ran.stdout.contains("and 295 differences more") && ran.stderr.contains("300 differences are left"),
        "{ran:?}"
    );
}
