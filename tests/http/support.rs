//! A server on a free port with a data directory of its own, and requests to it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use reqwest::{Method, Response, StatusCode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use treepie::database::DatabaseSettings;
use treepie::server::{Server, ServerLimits, ServerSettings};

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) client: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    running: JoinHandle<std::io::Result<()>>,
    data: PathBuf,
    directory: Option<TempDir>,
}

/// An answer, read whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl TestServer {
    /// Starts a server on an empty data directory.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts a server with other limits.
    pub(crate) async fn start_with(change: impl FnOnce(&mut ServerLimits)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let mut server = Self::start_on(&data, change).await;
        server.directory = Some(directory);
        server
    }

    /// Starts a server on a data directory that its caller keeps.
    pub(crate) async fn start_on(data: &Path, change: impl FnOnce(&mut ServerLimits)) -> Self {
        Self::start_as(data, |settings| change(&mut settings.limits)).await
    }

    /// Starts a server with other settings.
    pub(crate) async fn start_as(data: &Path, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = ServerSettings::new(data.to_owned(), listen, DatabaseSettings::default());
        change(&mut settings);
        let server = Server::bind(settings).await.unwrap();
        let address = server.local_address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { address, client, stop: Some(stop), running, data: data.to_owned(), directory: None }
    }

    /// Starts a server with an empty database `db`.
    pub(crate) async fn with_database() -> Self {
        let server = Self::start().await;
        server.create("db").await;
        server
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Gives the signal to stop.
    pub(crate) fn tell_to_stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has stopped.
    pub(crate) async fn stopped(self) {
        self.running.await.unwrap().unwrap();
        drop(self.directory);
    }

    /// Stops the server in good order.
    pub(crate) async fn stop(mut self) {
        self.tell_to_stop();
        self.stopped().await;
    }

    pub(crate) async fn create(&self, name: &str) {
        let answer = self.send(Method::PUT, &format!("/admin/databases?name={name}"), "{}").await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, self.url(path))
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: impl Into<reqwest::Body>) -> Answer {
        Answer::read(self.request(method, path).body(body).send().await.unwrap()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::read(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        Answer::read(self.request(Method::DELETE, path).send().await.unwrap()).await
    }

    /// Puts a document into `db`.
    pub(crate) async fn put(&self, id: &str, document: impl Into<reqwest::Body>) -> Answer {
        self.send(Method::PUT, &format!("/databases/db/docs?id={}", escape(id)), document).await
    }

    /// Puts a document into `db`, which must take it, and returns its change vector.
    pub(crate) async fn must_put(&self, id: &str, document: impl Into<reqwest::Body>) -> String {
        let answer = self.put(id, document).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        answer.json()["ChangeVector"].as_str().unwrap().to_owned()
    }

    /// Reads one document of `db`.
    pub(crate) async fn document(&self, id: &str) -> Option<Value> {
        let answer = self.get(&format!("/databases/db/docs?id={}", escape(id))).await;
        match answer.status {
            StatusCode::NOT_FOUND => None,
            StatusCode::OK => Some(answer.json()["Results"][0].clone()),
            _ => panic!("{answer:?}"),
        }
    }

    /// The ids of a list of `db`.
    pub(crate) async fn ids(&self, query: &str) -> Vec<String> {
        let answer = self.get(&format!("/databases/db/docs?{query}")).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        ids_of(&answer.json()["Results"])
    }

    /// Runs a batch on `db`.
    pub(crate) async fn batch(&self, commands: &Value) -> Answer {
        let body = serde_json::json!({ "Commands": commands }).to_string();
        self.send(Method::POST, "/databases/db/bulk_docs", body).await
    }

    /// Puts an index script into `db`.
    pub(crate) async fn put_index(&self, name: &str, script: &str) -> Answer {
        self.send(Method::PUT, &format!("/databases/db/indexes/{}", escape(name)), script.to_owned()).await
    }

    /// Runs an empty batch that waits for all indexes of `db`.
    pub(crate) async fn wait_for_indexes(&self) {
        let path = "/databases/db/bulk_docs?waitForIndexesTimeout=00:00:30&waitForIndexThrow=true";
        let answer = self.send(Method::POST, path, "{\"Commands\":[]}").await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    }
}

impl Answer {
    pub(crate) async fn read(response: Response) -> Self {
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// Checks the shape of an error and that its message has `words`.
    pub(crate) fn assert_error(&self, status: u16, type_ending: &str, words: &[&str]) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        let body = self.json();
        let (kind, message) = (body["Type"].as_str().unwrap(), body["Message"].as_str().unwrap());
        assert!(kind.ends_with(type_ending), "{kind}");
        assert!(body["Url"].as_str().unwrap().starts_with('/'));
        assert!(body["Error"].as_str().unwrap().starts_with(&format!("{kind}: {message}")));
        for word in words {
            assert!(message.contains(word), "no '{word}' in: {message}");
        }
    }
}

/// Percent-encodes everything but letters and digits.
pub(crate) fn escape(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(crate) fn ids_of(results: &Value) -> Vec<String> {
    let results = results.as_array().unwrap();
    results.iter().map(|document| document["@metadata"]["@id"].as_str().unwrap().to_owned()).collect()
}
