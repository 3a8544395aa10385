//! A thousand readers that wait for changes: they cost the server nothing until there is one, and then each is told.

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::support::TestServer;

const READERS: usize = 1_000;

async fn reader(server: &TestServer, number: usize) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // Each waits for its own document, and all for the last one.
    let query = format!("feed=continuous&since=now&heartbeat=3600000&prefix=n/{}", number % 10);
    let request = format!("GET /databases/db/_changes?{query} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut stream = BufReader::new(stream);
    // The head of the answer: from then on the feed is open.
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
    }
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiting_readers_are_each_told_what_they_wait_for() {
    let server = TestServer::with_database().await;
    let mut readers = Vec::new();
    for number in 0..READERS {
        readers.push(reader(&server, number).await);
    }
    // Others are served as ever.
    for n in 0..10 {
        server.must_put(&format!("n/{n}"), "{}").await;
    }
    for (number, reader) in readers.iter_mut().enumerate() {
        let mut seen = Vec::new();
        while !seen.ends_with(b"}\n") {
            seen.push(reader.read_u8().await.unwrap());
        }
        let seen = String::from_utf8(seen).unwrap();
        assert!(seen.contains(&format!("\"id\":\"n/{}\"", number % 10)), "{number}: {seen}");
    }
    drop(readers);
    server.stop().await;
}
