//! A server on a free port, entities, and a middleman that counts requests and spoils some.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tokio::sync::oneshot;
use treepie::client::{Conventions, DocumentStore, RetryPolicy, StoreSettings};
use treepie::database::DatabaseSettings;
use treepie::server::{Server, ServerSettings};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct User {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) employer: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Company {
    pub(crate) name: String,
}

pub(crate) fn user(name: &str) -> User {
    User { name: name.to_owned(), ..User::default() }
}

/// A running server with the database `db`, and a store for it.
pub(crate) struct World {
    pub(crate) store: DocumentStore,
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    _data: TempDir,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Conventions::new(), |_| {}).await
    }

    pub(crate) async fn start_with(conventions: Conventions, change: impl FnOnce(&mut ServerSettings)) -> Self {
        let data = tempfile::tempdir().unwrap();
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut settings = ServerSettings::new(data.path().join("data"), listen, DatabaseSettings::default());
        change(&mut settings);
        let server = Server::bind(settings).await.unwrap();
        let url = format!("http://{}", server.local_address().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(server.run(async move {
            let _ = stopped.await;
        }));
        let store = open(&url, conventions);
        store.databases().create("db").await.unwrap();
        Self { store, url, stop: Some(stop), _data: data }
    }

    /// A store of its own on the same database.
    pub(crate) fn another_store(&self) -> DocumentStore {
        open(&self.url, Conventions::new())
    }

    /// What is stored, as the server sends it.
    pub(crate) async fn raw(&self, id: &str) -> Option<serde_json::Value> {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.get(format!("{}/databases/db/docs", self.url)).query(&[("id", id)]);
        let text = request.send().await.unwrap().text().await.unwrap();
        let answer: Option<serde_json::Value> = serde_json::from_str(&text).ok();
        answer.map(|answer| answer["Results"][0].clone())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// Opens a store that does not wait long between attempts.
pub(crate) fn open(url: &str, conventions: Conventions) -> DocumentStore {
    let first_pause = std::time::Duration::from_millis(1);
    let retry = RetryPolicy { first_pause, pause_max: first_pause * 10, ..RetryPolicy::default() };
    let settings = StoreSettings { conventions, retry, ..StoreSettings::default() };
    DocumentStore::with_settings(&[url.to_owned()], "db", settings).unwrap()
}

/// What the middleman does with a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Deed {
    Forward,
    /// Answers with a status and does not forward.
    Answer(u16),
    /// Forwards, and breaks off in the answer.
    LoseAnswer,
}

/// Stands between the client and a server.
pub(crate) struct Middleman {
    pub(crate) url: String,
    inner: Arc<Inner>,
}

struct Inner {
    target: String,
    client: reqwest::Client,
    /// The next deeds for requests whose path ends so; then all are forwarded.
    plan: Mutex<Vec<(&'static str, Deed)>>,
    seen: Mutex<Vec<String>>,
}

impl Middleman {
    pub(crate) async fn before(target: &str) -> Self {
        let inner = Arc::new(Inner {
            target: target.to_owned(),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            plan: Mutex::default(),
            seen: Mutex::default(),
        });
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(pass_on).with_state(Arc::clone(&inner));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inner }
    }

    /// Plans what is done with the next request whose path ends so.
    pub(crate) fn plan(&self, path_end: &'static str, deed: Deed) {
        self.inner.plan.lock().push((path_end, deed));
    }

    /// How many requests there were whose path ends so.
    pub(crate) fn count(&self, path_end: &str) -> usize {
        self.inner.seen.lock().iter().filter(|path| path.ends_with(path_end)).count()
    }
}

async fn pass_on(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    inner.seen.lock().push(path.clone());
    let deed = {
        let mut plan = inner.plan.lock();
        match plan.iter().position(|(end, _)| path.ends_with(end)) {
            Some(position) => plan.remove(position).1,
            None => Deed::Forward,
        }
    };
    if let Deed::Answer(status) = deed {
        return StatusCode::from_u16(status).unwrap().into_response();
    }
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let url = format!("{}{}", inner.target, parts.uri.path_and_query().unwrap());
    let mut headers = parts.headers;
    headers.remove("host");
    let sent = inner.client.request(parts.method, url).headers(headers).body(body).send().await.unwrap();
    let (status, headers) = (sent.status(), sent.headers().clone());
    let body = sent.bytes().await.unwrap();
    if deed == Deed::LoseAnswer {
        let broken = Err::<Vec<u8>, _>(std::io::Error::other("lost on purpose"));
        return Body::from_stream(futures_util::stream::iter([Ok(b"{".to_vec()), broken])).into_response();
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response.headers_mut().remove("content-length");
    response.headers_mut().remove("transfer-encoding");
    response
}
