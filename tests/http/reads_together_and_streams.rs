//! Several reads in one request, streams of documents, and answers that are compressed.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{Answer, TestServer};

async fn with_users(count: u64) -> TestServer {
    let server = TestServer::with_database().await;
    let put = |n| json!({"Type": "PUT", "Id": format!("users/{n:04}"), "Document": {"n": n, "@metadata": {"@collection": "Users"}}});
    let commands: Vec<Value> = (0..count).map(put).collect();
    assert_eq!(server.batch(&json!(commands)).await.status, StatusCode::CREATED);
    server
}

async fn multi_get(server: &TestServer, requests: Value) -> Answer {
    server.send(Method::POST, "/databases/db/multi_get", json!({ "Requests": requests }).to_string()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn several_reads_are_answered_in_order() {
    let server = with_users(3).await;
    let known = server.get("/databases/db/docs?id=users/0001").await.header("etag").unwrap().to_owned();
    let answer = multi_get(
        &server,
        json!([
            {"Url": "/databases/db/docs", "Query": "?&id=users%2F0000", "Method": "GET", "Headers": {}},
            {"Url": "/databases/db/docs", "Query": "?&id=none", "Method": null, "Content": null},
            {"Url": "/databases/db/docs", "Query": "?startsWith=users/&pageSize=2"},
            {"Url": "/databases/db/docs", "Query": "", "Method": "POST", "Content": "{\"Ids\":[\"users/0002\",\"x\"]}"},
            {"Url": "/databases/db/docs", "Query": "?id=users/0001", "Headers": {"If-None-Match": known}},
            {"Url": "/databases/db/docs", "Query": "?id="},
            {"Url": "/databases/none/docs", "Query": "?id=a"},
            {"Url": "/databases/db/queries", "Query": "?queryHash=1", "Method": "POST", "Content": "{}"},
            {"Url": "/databases/db/docs", "Query": "?id=a", "Method": "DELETE"},
        ]),
    )
    .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    let results = answer.json()["Results"].as_array().unwrap().clone();
    let statuses: Vec<u64> = results.iter().map(|it| it["StatusCode"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [200, 404, 200, 200, 304, 400, 503, 400, 404]);
    assert_eq!(results[0]["Result"]["Results"][0]["n"], 0);
    assert!(results[0]["Headers"]["ETag"].as_str().unwrap().starts_with("\"A:"));
    assert_eq!((&results[1]["Result"], &results[4]["Result"]), (&Value::Null, &Value::Null));
    assert_eq!(results[2]["Result"]["Results"].as_array().unwrap().len(), 2);
    assert_eq!(results[3]["Result"]["Results"][1], Value::Null);
    assert!(results[7]["Result"]["Message"].as_str().unwrap().contains("Query"));
    assert_eq!(multi_get(&server, json!([])).await.json(), json!({"Results": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_of_several_reads_is_whole() {
    let server = with_users(2_000).await;
    let all = json!({"Url": "/databases/db/docs", "Query": "?startsWith=users/"});
    let answer = multi_get(&server, json!([all, all, all])).await.json();
    for result in answer["Results"].as_array().unwrap() {
        assert_eq!(result["Result"]["Results"].as_array().unwrap().len(), 2_000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_can_not_be_requests_are_refused_by_their_place() {
    let server = TestServer::with_database().await;
    for (asked, word) in [
        (json!({"Url": "no path"}), "Url"),
        (json!({"Url": "/databases/db/docs", "Method": "G ET"}), "Method"),
        (json!({"Url": "/databases/db/docs", "Headers": {"a b": "c"}}), "header"),
    ] {
        multi_get(&server, json!([asked])).await.assert_error(400, "ArgumentException", &["Request 0", word]);
    }
    let many = vec![json!({"Url": "/databases/db/docs"}); 1_025];
    multi_get(&server, json!(many)).await.assert_error(400, "ArgumentException", &["1024"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_streamed_one_a_line() {
    let server = with_users(1_000).await;
    let answer = server.get("/databases/db/streams/docs?format=jsonl&startsWith=users%2F&start=10&pageSize=500").await;
    let documents: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((documents.len(), &documents[0]["n"], &documents[499]["n"]), (500, &json!(10), &json!(509)));
    assert_eq!(documents[0]["@metadata"]["@id"], "users/0010");
    assert!(answer.text().ends_with("}\n"));
    let page = "startsWith=users/&matches=000*&exclude=*5&startAfter=users/0002";
    let answer = server.get(&format!("/databases/db/streams/docs?format=jsonl&{page}")).await;
    assert_eq!(answer.text().lines().count(), 6);
    let answer = server.get("/databases/db/streams/docs?pageSize=3").await.json();
    assert_eq!(answer["Results"].as_array().unwrap().len(), 3);
    assert_eq!(server.get("/databases/db/streams/docs?format=jsonl&startsWith=none").await.text(), "");
    let answer = server.get("/databases/db/streams/docs?format=xml").await;
    answer.assert_error(400, "ArgumentException", &["'format'"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_are_compressed_for_those_who_ask() {
    let server = with_users(500).await;
    let ask = async |path: &str, encoding: &str| {
        let request = server.request(Method::GET, &format!("/databases/db/{path}")).header("Accept-Encoding", encoding);
        Answer::read(request.send().await.unwrap()).await
    };
    let plain = ask("docs?startsWith=users/", "identity").await;
    assert_eq!(plain.header("content-encoding"), None);
    let packed = ask("docs?startsWith=users/", "gzip, deflate").await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() / 4);
    let unpacked = std::io::read_to_string(flate2::read::GzDecoder::new(&packed.body[..])).unwrap();
    assert_eq!(unpacked.as_bytes(), plain.body);
    for path in ["docs?id=users/0001", "_changes?feed=longpoll"] {
        assert_eq!(ask(path, "gzip").await.header("content-encoding"), None, "{path}");
    }
}
