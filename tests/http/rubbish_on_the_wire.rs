//! Whatever bytes arrive, the server answers 4xx or closes the connection, and goes on serving the others.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::TestServer;

/// Sends bytes on a connection of their own and reads what comes back until it is closed.
async fn exchange(server: &TestServer, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(server.address).await.unwrap();
    // The server may close while this is still being sent.
    let _ = connection.write_all(bytes).await;
    let _ = connection.shutdown().await;
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn put(body: &str) -> Vec<u8> {
    format!("PUT /databases/db/docs?id=a HTTP/1.1\r\nHost: x\r\n{body}").into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_no_http_are_refused() {
    let server = TestServer::with_database().await;
    let noise: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in [
        b"".to_vec(),
        b"\0\0\0\0\0\0\0\0".to_vec(),
        b"{\"DatabaseName\":\"db\",\"Operation\":\"Subscription\"}".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET /databases/db/docs?id=\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish".to_vec(),
        noise,
        put("Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}"),
        put("Content-Length: -1\r\n\r\n{}"),
        put("Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
        put("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n"),
        put("Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        put("Content-Length: 10\r\n\r\n{}"),
    ] {
        let answer = exchange(&server, &bytes).await;
        let shown = String::from_utf8_lossy(bytes.get(..80).unwrap_or(&bytes)).into_owned();
        assert!(!answer.starts_with("HTTP/1.1 2") && !answer.starts_with("HTTP/1.1 5"), "{shown}: {answer}");
    }
    assert_eq!(server.document("a").await, None);
    server.must_put("b", "{}").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_cut_off_anywhere_writes_nothing() {
    let server = TestServer::with_database().await;
    let whole =
        r#"{"Commands":[{"Type":"PUT","Id":"a","Document":{"x":[1,"y",{"z":null}]}},{"Type":"DELETE","Id":"b"}]}"#;
    for end in 0..whole.len() {
        let answer = server.send(reqwest::Method::POST, "/databases/db/bulk_docs", &whole[..end]).await;
        answer.assert_error(400, "InvalidDataException", &[]);
    }
    assert_eq!(server.document("a").await, None);
    let indexes = r#"{"Indexes":[{"Name":"a","Maps":["source(\"A\"); fn map(d) { emit(1, 1); }"]}]}"#;
    for end in 0..indexes.len() {
        let answer = server.send(reqwest::Method::PUT, "/databases/db/indexes", &indexes[..end]).await;
        answer.assert_error(400, "InvalidDataException", &[]);
    }
    assert_eq!(server.get("/databases/db/indexes?namesOnly=true").await.json(), serde_json::json!({"Results": []}));
}
