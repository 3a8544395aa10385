//! Collections and statistics have the fields that clients read.

use serde_json::json;

use crate::support::{TestServer, ids_of};

async fn with_documents() -> TestServer {
    let server = TestServer::with_database().await;
    for n in 1..=3 {
        server.must_put(&format!("items/{n}"), r#"{"@metadata":{"@collection":"Items"}}"#).await;
    }
    server.must_put("plain", "{}").await;
    server.delete("/databases/db/docs?id=items/2").await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn collections_are_counted() {
    let server = with_documents().await;
    let stats = server.get("/databases/db/collections/stats").await.json();
    assert_eq!(stats["Collections"], json!({"Items": 2, "@empty": 1}));
    assert_eq!((&stats["CountOfDocuments"], &stats["CountOfTombstones"]), (&json!(3), &json!(1)));
    for field in [
        "CountOfDocumentsConflicts",
        "CountOfConflicts",
        "CountOfRevisionDocuments",
        "CountOfTimeSeriesDeletedRanges",
        "CountOfAttachments",
        "CountOfCounterEntries",
        "CountOfTimeSeriesSegments",
    ] {
        assert_eq!(stats[field], 0, "{field}");
    }
    for id in ["items/1", "items/3"] {
        server.delete(&format!("/databases/db/docs?id={id}")).await;
    }
    let emptied = server.get("/databases/db/collections/stats").await.json();
    assert_eq!((&emptied["Collections"], &emptied["CountOfTombstones"]), (&json!({"@empty": 1}), &json!(3)));
    server.must_put("items/1", r#"{"@metadata":{"@collection":"Items"}}"#).await;
    let detailed = server.get("/databases/db/collections/stats/detailed").await.json();
    assert_eq!(detailed["Collections"]["Items"]["CountOfDocuments"], 1);
    assert_eq!(detailed["Collections"]["Items"]["Name"], "Items");
    assert!(detailed["Collections"]["Items"]["Size"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collection_is_listed_newest_first() {
    let server = with_documents().await;
    let page = |query: &str| {
        let path = format!("/databases/db/collections/docs?{query}");
        let server = &server;
        async move { server.get(&path).await.json() }
    };
    assert_eq!(ids_of(&page("name=Items&start=0&pageSize=2").await["Results"]), ["items/3", "items/1"]);
    assert_eq!(ids_of(&page("name=ITEMS&start=1").await["Results"]), ["items/1"]);
    assert_eq!(page("name=Nope&start=0&pageSize=2").await, json!({"Results": []}));
    server.get("/databases/db/collections/docs").await.assert_error(400, "ArgumentException", &["'name'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn statistics_have_every_field_of_the_recording() {
    let server = TestServer::with_database().await;
    let empty = server.get("/databases/db/stats").await.json();
    assert_eq!((&empty["DatabaseChangeVector"], &empty["LastDatabaseEtag"]), (&json!(""), &json!(0)));
    let server = with_documents().await;
    let stats = server.get("/databases/db/stats?wait-for-indexing").await.json();
    assert_eq!((&stats["CountOfDocuments"], &stats["CountOfTombstones"]), (&json!(3), &json!(1)));
    assert_eq!((&stats["LastDocEtag"], &stats["LastDatabaseEtag"]), (&json!(5), &json!(5)));
    let incarnation = stats["DatabaseId"].as_str().unwrap();
    assert_eq!(incarnation.len(), 22);
    assert_eq!(stats["DatabaseChangeVector"], json!(format!("A:5-{incarnation}")));
    assert_eq!((&stats["Indexes"], &stats["CountOfIndexes"]), (&json!([]), &json!(0)));
    assert_eq!((&stats["Is64Bit"], &stats["LastIndexingTime"]), (&json!(true), &json!(null)));
    assert!(stats["SizeOnDisk"]["SizeInBytes"].is_u64() && stats["SizeOnDisk"]["HumaneSize"].is_string());
    assert_eq!(stats["@metadata"]["NodeTag"], "A");
    assert_eq!(stats["@metadata"]["WebUrl"], json!(server.url("")));
    for field in [
        "CountOfRevisionDocuments",
        "CountOfDocumentsConflicts",
        "CountOfConflicts",
        "CountOfAttachments",
        "CountOfUniqueAttachments",
        "CountOfCounterEntries",
        "CountOfTimeSeriesSegments",
        "NumberOfTransactionMergerQueueOperations",
    ] {
        assert_eq!(stats[field], 0, "{field}");
    }
    let detailed = server.get("/databases/db/stats/detailed").await.json();
    for field in ["CountOfIdentities", "CountOfCompareExchange", "CountOfCompareExchangeTombstones", "LastDocEtag"] {
        assert!(detailed[field].is_u64(), "{field}");
    }
    assert_eq!(server.get("/databases/db/stats/essential").await.json()["CountOfDocuments"], 3);
}
