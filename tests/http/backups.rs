//! A backup is a copy of a database in use; what is made of it is a database of its own.

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::TestServer;

const TOTALS: &str = r#"source("Items"); output("Totals");
    fn map(doc) { emit(doc.k, #{ n: 1 }); } fn reduce(key, values) { #{ n: values.sum("n") } }"#;

async fn backup(server: &TestServer, query: &str) -> Value {
    let answer = server.send(Method::POST, &format!("/databases/db/admin/backup?{query}"), "").await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    answer.json()
}

async fn restore(server: &TestServer, backup: &str, name: &str) {
    let answer = server.send(Method::POST, &format!("/admin/restore?name={name}&backup={backup}"), "").await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
}

async fn item(server: &TestServer, id: &str, k: u64) -> String {
    server.must_put(id, json!({"k": k, "@metadata": {"@collection": "Items"}}).to_string()).await
}

async fn number(server: &TestServer, method: Method, path: &str, field: &str) -> u64 {
    server.send(method, path, "").await.json()[field].as_u64().unwrap()
}

/// Documents by prefix, without what differs between a database and its copy.
async fn documents(server: &TestServer, database: &str) -> Vec<Value> {
    let answer = server.get(&format!("/databases/{database}/docs?startsWith=&pageSize=10000")).await;
    let mut documents = answer.json()["Results"].as_array().unwrap().clone();
    for document in &mut documents {
        document["@metadata"].as_object_mut().unwrap().remove("@last-modified");
    }
    documents
}

fn etag(change_vector: &str) -> u64 {
    change_vector.trim_start_matches("A:").split('-').next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_has_everything_and_goes_on_with_versions_of_its_own() {
    let server = TestServer::with_database().await;
    server.put_index("Totals", TOTALS).await;
    for n in 0..100 {
        item(&server, &format!("items/{n}"), n % 7).await;
    }
    server.wait_for_indexes().await;
    let identity = "identity/next?name=orders|";
    let given = number(&server, Method::POST, &format!("/databases/db/{identity}"), "NewIdentityValue").await;
    let hilo = "hilo/next?tag=users&lastBatchSize=0&lastMax=0&identityPartsSeparator=/";
    let handed = number(&server, Method::GET, &format!("/databases/db/{hilo}"), "High").await;
    let before = documents(&server, "db").await;
    let taken = backup(&server, "verify=all").await;
    assert_eq!((&taken["Database"], &taken["Documents"]), (&json!("db"), &json!(before.len())));
    let mut after = Vec::new();
    for n in 0..50 {
        after.push(item(&server, &format!("later/{n}"), n).await);
    }

    restore(&server, taken["Name"].as_str().unwrap(), "copy").await;
    assert_eq!(documents(&server, "copy").await, before, "artificial documents and old versions included");
    let put = server.send(Method::PUT, "/databases/copy/docs?id=new", "{}").await.json();
    let new = put["ChangeVector"].as_str().unwrap();
    assert!(after.iter().all(|other| etag(other) < etag(new)), "{new} {after:?}");
    let incarnation = |vector: &str| vector.split_once('-').unwrap().1.to_owned();
    assert_ne!(incarnation(new), incarnation(&after[0]));
    assert!(number(&server, Method::POST, &format!("/databases/copy/{identity}"), "NewIdentityValue").await > given);
    assert!(number(&server, Method::GET, &format!("/databases/copy/{hilo}"), "Low").await > handed);
    let body = json!({"k": 0, "@metadata": {"@collection": "Items"}}).to_string();
    let path = "/databases/copy/docs?id=items/new&waitForIndexesTimeout=00:00:30&waitForIndexThrow=true";
    assert_eq!(server.send(Method::PUT, path, body).await.status, StatusCode::CREATED);
    let totals = server.get("/databases/copy/docs?startsWith=Totals/").await.json();
    let zero = totals["Results"].as_array().unwrap().iter().find(|total| total["Key"] == 0).unwrap();
    assert_eq!(zero["n"], 16, "the index goes on from where it was");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    server.create("db").await;
    server.must_put("a", "{}").await;
    backup(&server, "").await;
    restore(&server, "db/latest", "Copy").await;
    server.stop().await;
    let server = TestServer::start_on(directory.path(), |_| {}).await;
    let names = server.get("/databases?namesOnly=true").await.json();
    assert_eq!(names, json!({"Databases": ["Copy", "db"]}));
    assert_eq!(server.get("/databases/copy/docs?id=a").await.status, StatusCode::OK);
    server.stop().await;
    let left: Vec<_> = std::fs::read_dir(directory.path().join("removed")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_backup_copies_what_is_new_and_stands_alone() {
    let server = TestServer::with_database().await;
    let noise = |n: u64| -> Vec<u64> {
        (0..400).map(|i| (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(7) ^ (i * n)).collect()
    };
    for n in 0..200 {
        server.must_put(&format!("a/{n}"), json!({"noise": noise(n)}).to_string()).await;
    }
    let first = backup(&server, "").await;
    server.must_put("b", "{}").await;
    let second = backup(&server, "").await;
    let bytes = |backup: &Value, field: &str| backup[field].as_u64().unwrap();
    assert_eq!(bytes(&first, "CopiedBytes"), bytes(&first, "Bytes"));
    assert!(bytes(&second, "CopiedBytes") < bytes(&second, "Bytes") / 4, "{second}");
    let third = backup(&server, "keep=1").await;
    assert_eq!(third["Deleted"], json!([first["Name"], second["Name"]]));
    let listed = server.get("/databases/db/admin/backup").await.json();
    assert_eq!(listed["Backups"].as_array().unwrap().len(), 1);
    restore(&server, third["Name"].as_str().unwrap(), "copy").await;
    assert_eq!(documents(&server, "copy").await.len(), 201);
    let all = server.get("/admin/backups").await.json();
    assert_eq!(all["Backups"][0]["Name"], third["Name"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_in_the_middle_of_writes_tears_no_batch_and_no_run() {
    let server = TestServer::with_database().await;
    server.put_index("Totals", TOTALS).await;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let writes = async {
        let mut marker = 0_u64;
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            marker += 1;
            let put = |id: &str, k: u64| json!({"Type": "PUT", "Id": id, "Document": {"k": k, "marker": marker, "@metadata": {"@collection": "Items"}}});
            let commands =
                json!([put("m/1", 1), put("m/2", marker % 3), put("m/3", 2), put(&format!("n/{marker}"), marker % 5)]);
            assert_eq!(server.batch(&commands).await.status, StatusCode::CREATED);
        }
    };
    let backups = async {
        let mut taken = Vec::new();
        for _ in 0..5 {
            taken.push(backup(&server, "verify=all").await);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        taken
    };
    let ((), taken) = tokio::join!(writes, backups);
    for (number, taken) in taken.iter().enumerate() {
        let copy = format!("copy{number}");
        restore(&server, taken["Name"].as_str().unwrap(), &copy).await;
        let path = format!("/databases/{copy}/bulk_docs?waitForIndexesTimeout=00:00:30&waitForIndexThrow=true");
        assert_eq!(server.send(Method::POST, &path, "{\"Commands\":[]}").await.status, StatusCode::CREATED);
        let all = documents(&server, &copy).await;
        let id = |document: &Value| document["@metadata"]["@id"].as_str().unwrap().to_owned();
        let markers: Vec<_> = all.iter().filter(|it| id(it).starts_with("m/")).map(|it| it["marker"].clone()).collect();
        assert!(markers.windows(2).all(|pair| pair[0] == pair[1]), "{markers:?}");
        let items = all.iter().filter(|it| !id(it).starts_with("Totals/"));
        let totals = all.iter().filter(|it| id(it).starts_with("Totals/"));
        assert_eq!(totals.map(|it| it["n"].as_u64().unwrap()).sum::<u64>(), items.count() as u64);
    }
    server.stop().await;
}

fn table_file(backup: &Value) -> PathBuf {
    let directory = Path::new(backup["Directory"].as_str().unwrap());
    let mut files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.find(|file| file.extension().is_some_and(|ending| ending == "sst")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_backup_is_named_and_leaves_no_database() {
    let server = TestServer::with_database().await;
    server.must_put("a", "{}").await;
    let taken = backup(&server, "").await;
    let file = table_file(&taken);
    let whole = std::fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let restore_path = format!("/admin/restore?name=copy&backup={}", taken["Name"].as_str().unwrap());
    let name = file.file_name().unwrap().to_str().unwrap();
    for damaged in [flipped, whole[..whole.len() - 1].to_vec()] {
        std::fs::write(&file, damaged).unwrap();
        let answer = server.send(Method::POST, &restore_path, "").await;
        answer.assert_error(500, "System.IO.InvalidDataException", &["damaged", name]);
        assert_eq!(server.get("/databases?namesOnly=true").await.json(), json!({"Databases": ["db"]}));
    }
    std::fs::write(&file, whole).unwrap();
    restore(&server, "db/latest", "copy").await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_restored_is_refused() {
    let server = TestServer::with_database().await;
    backup(&server, "").await;
    for (query, status, words) in [
        ("name=copy&backup=db/none", 404, "no backup"),
        ("name=copy&backup=none/latest", 404, "main/latest"),
        ("name=copy&backup=../db", 404, "no backup"),
        ("name=copy&backup=db/..%2F..", 404, "no backup"),
        ("name=copy&backup=db", 404, "no backup"),
        ("name=db&backup=db/latest", 409, "already"),
        ("name=no%20name&backup=db/latest", 400, "can't name a database"),
        ("backup=db/latest", 400, "name"),
    ] {
        let answer = server.send(Method::POST, &format!("/admin/restore?{query}"), "").await;
        assert_eq!(answer.status.as_u16(), status, "{query}: {}", answer.text());
        assert!(answer.text().contains(words), "{query}: {}", answer.text());
    }
    let refused = server.send(Method::POST, "/databases/db/admin/backup?keep=0", "").await;
    refused.assert_error(400, "ArgumentException", &["keep"]);
    server.stop().await;
}
