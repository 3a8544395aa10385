//! A batch is applied in order, whole or not at all, with one result for each command.

use std::io::Write;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::TestServer;

#[tokio::test(flavor = "multi_thread")]
async fn each_command_has_its_result_in_order() {
    let server = TestServer::with_database().await;
    server.must_put("items/6", "{}").await;
    let answer = server
        .batch(&json!([
            {"Type": "PUT", "Id": "b/1", "ChangeVector": null, "Document": {"N": 1, "@metadata": {"@collection": "Bs"}}},
            {"Type": "PUT", "Id": "b/", "Document": {"N": 2}},
            {"Type": "DELETE", "Id": "items/6", "ChangeVector": null, "OriginalChangeVector": "A:1-x"},
            {"Type": "DELETE", "Id": "items/nope"},
        ]))
        .await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let results = answer.json()["Results"].as_array().unwrap().clone();
    let put = results[0].as_object().unwrap();
    assert_eq!((&put["Type"], &put["@id"], &put["@collection"]), (&json!("PUT"), &json!("b/1"), &json!("Bs")));
    assert!(put["@change-vector"].as_str().unwrap().starts_with("A:2-"));
    assert_eq!(put["@last-modified"].as_str().unwrap().len(), 28);
    assert_eq!(put.len(), 5);
    assert_eq!((&results[1]["@id"], &results[1]["@collection"]), (&json!("b/0000000000000000003-A"), &json!("@empty")));
    assert_eq!(results[2], json!({"Type": "DELETE", "Id": "items/6", "Deleted": true, "ChangeVector": null}));
    assert_eq!(results[3], json!({"Type": "DELETE", "Id": "items/nope", "Deleted": false, "ChangeVector": null}));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_on_one_id_are_applied_in_order() {
    let server = TestServer::with_database().await;
    let put = |v: u32| json!({"Type": "PUT", "Id": "a", "Document": {"v": v}});
    let delete = json!({"Type": "DELETE", "Id": "a"});
    for (commands, expected) in [
        (json!([put(1), put(2)]), Some(2)),
        (json!([put(1), delete]), None),
        (json!([delete, put(3)]), Some(3)),
        (json!([{"Type": "DELETE", "Id": "missing"}]), Some(3)),
    ] {
        let answer = server.batch(&commands).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        assert_eq!(answer.json()["Results"].as_array().unwrap().len(), commands.as_array().unwrap().len());
        assert_eq!(server.document("a").await.map(|found| found["v"].clone()), expected.map(Value::from));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_with_attachments_is_refused_by_name() {
    let server = TestServer::with_database().await;
    let request = server.request(Method::POST, "/databases/db/bulk_docs");
    let request = request.header("Content-Type", "multipart/mixed; boundary=x").body("--x\r\n\r\n{}\r\n--x--");
    let answer = crate::support::Answer::read(request.send().await.unwrap()).await;
    answer.assert_error(501, "NotSupportedException", &["attachments"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_batch_is_fine() {
    let server = TestServer::with_database().await;
    let answer = server.batch(&json!([])).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::CREATED, json!({"Results": []})));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_invalid_command_refuses_all_and_is_named_by_position() {
    let server = TestServer::with_database().await;
    let good = json!({"Type": "PUT", "Id": "good", "Document": {}});
    for (bad, status, words) in [
        (json!({"Id": "b/1"}), 400, "'Type'"),
        (json!({"Type": "FROB", "Id": "b/1"}), 400, "'FROB'"),
        (json!({"Type": "PATCH", "Id": "b/1", "Patch": {"Script": "this.N++"}}), 501, "JSON Patch"),
        (json!({"Type": "DELETE", "Id": "b/", "IdPrefixed": true}), 501, "IdPrefixed"),
        (json!({"Type": "DELETE"}), 400, "'Id'"),
        (json!({"Type": "PUT", "Id": "b/9"}), 400, "'Document'"),
        (json!({"Type": "PUT", "Id": "b/9", "Document": [1]}), 400, ""),
        (json!({"Type": "PUT", "Id": "b/9", "Document": {"@metadata": 5}}), 400, ""),
        (json!({"Type": "PUT", "Id": 7, "Document": {}}), 400, "string"),
        (json!(7), 400, ""),
    ] {
        let answer = server.batch(&json!([good, good, bad, good])).await;
        answer.assert_error(status, "Exception", &["command 2", words]);
    }
    let long = json!([good, {"Type": "PUT", "Id": "x".repeat(513), "Document": {}}]);
    server.batch(&long).await.assert_error(400, "ArgumentException", &["1", "512"]);
    assert_eq!(server.document("good").await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_no_batch_are_refused() {
    let server = TestServer::with_database().await;
    for body in ["", "{", "[]", "{}", r#"{"Commands":{}}"#, r#"{"Commands":null}"#, r#"{"Commands":[],"Commands":[]}"#]
    {
        let answer = server.send(Method::POST, "/databases/db/bulk_docs", body).await;
        answer.assert_error(400, "InvalidDataException", &["Commands"]);
    }
    let body = r#"{"Commands":[],"TransactionMode":"ClusterWide"}"#;
    let answer = server.send(Method::POST, "/databases/db/bulk_docs", body).await;
    answer.assert_error(501, "NotSupportedException", &["ClusterWide"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_commands_are_one_batch() {
    let server = TestServer::with_database().await;
    let mut body = b"{\"Commands\":[".to_vec();
    for n in 0..100_000 {
        let comma = if n == 0 { "" } else { "," };
        write!(
            body,
            r#"{comma}{{"Type":"PUT","Id":"n/{n}","Document":{{"n":{n},"@metadata":{{"@collection":"Ns"}}}}}}"#
        )
        .unwrap();
    }
    body.extend_from_slice(b"]}");
    let answer = server.send(Method::POST, "/databases/db/bulk_docs??&", body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    let results = answer.json()["Results"].as_array().unwrap().clone();
    assert_eq!(results.len(), 100_000);
    assert_eq!(results[99_999]["@id"], "n/99999");
    let stats = server.get("/databases/db/collections/stats").await.json();
    assert_eq!(stats["Collections"], json!({"Ns": 100_000}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_may_be_compressed() {
    let server = TestServer::with_database().await;
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(br#"{"Commands":[{"Type":"PUT","Id":"zip","Document":{"N":1}}]}"#).unwrap();
    let packed = packer.finish().unwrap();
    let send = |body: Vec<u8>, encoding: &str| {
        let request = server.request(Method::POST, "/databases/db/bulk_docs").header("Content-Encoding", encoding);
        async move { crate::support::Answer::read(request.body(body).send().await.unwrap()).await }
    };
    assert_eq!(send(packed.clone(), "gzip").await.status, StatusCode::CREATED);
    assert_eq!(server.document("zip").await.unwrap()["N"], 1);
    send(packed[..packed.len() / 2].to_vec(), "gzip").await.assert_error(400, "InvalidDataException", &["gzip"]);
    send(packed, "br").await.assert_error(415, "NotSupportedException", &["br"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_text_may_be_laid_out_over_lines() {
    let server = TestServer::with_database().await;
    let body = "{\n \"Commands\" : [\n {\n \"Document\":\n{\n\"a\" :\n [1,\n2]\n},\"Id\":\"\\u0061\",\"Type\":\"P\\u0055T\"}\n]\n}\n";
    let answer = server.send(Method::POST, "/databases/db/bulk_docs", body).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text());
    assert_eq!(server.document("a").await.unwrap()["a"], json!([1, 2]));
}
