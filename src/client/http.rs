//! Requests to the server: where they go, when they go again, and what an answer that is no success means.
//!
//! Next on the walk: `retry`, `error`.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::credentials::Credentials;
use super::error::{ClientError, Refusal};
use super::retry::{RetryPolicy, chance};

/// What may stand in a path as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an unused connection is kept: less than servers do, so that a request never meets one that is being closed.
const IDLE_MAX: Duration = Duration::from_secs(30);

/// The most bytes of an error's body that are read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

pub(super) const CLIENT_CONFIGURATION: HeaderName = HeaderName::from_static("client-configuration-etag");
pub(super) const REFRESH: HeaderName = HeaderName::from_static("refresh-client-configuration");

/// A request, before it is known which server it goes to.
#[derive(Clone, Debug)]
pub(super) struct Call {
    method: Method,
    /// From `/`, percent-encoded.
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Bytes>,
    /// Whether a second run leaves what the first left.
    repeatable: bool,
    configuration: Option<i64>,
    /// How long the server may take on top of the store's own limit, because it was asked to wait.
    extra_wait: Duration,
    /// Whether the answer is read piece by piece; then the store's limit is one on each piece.
    is_streamed: bool,
}

/// The way to the servers of a store.
#[derive(Debug)]
pub(super) struct Transport {
    http: Client,
    urls: Vec<String>,
    /// The position of the URL that answered last.
    preferred: AtomicUsize,
    retry: RetryPolicy,
    timeout: Duration,
    closed: AtomicBool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    #[serde(rename = "Type")]
    type_name: String,
    #[serde(rename = "Message")]
    message: String,
}

impl Call {
    /// Prepares a request; `GET`, `HEAD`, `PUT` and `DELETE` may be repeated unless [`Call::once`] says otherwise.
    pub(super) fn new(method: Method, path: impl Into<String>) -> Self {
        let repeatable = method.is_idempotent();
        let (query, extra_wait) = (Vec::new(), Duration::ZERO);
        let is_streamed = false;
        Self { method, path: path.into(), query, body: None, repeatable, configuration: None, extra_wait, is_streamed }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    pub(super) fn body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub(super) fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Says which client configuration is held.
    pub(super) fn configuration(mut self, etag: i64) -> Self {
        self.configuration = Some(etag);
        self
    }

    pub(super) fn extra_wait(mut self, wait: Duration) -> Self {
        self.extra_wait = wait;
        self
    }

    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// An answer, read whole or not at all yet.
enum Reply {
    Whole(Answer),
    Open(Response),
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Answer {
    request: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| ClientError::Answer { request: self.request.clone(), reason: error.to_string() })
    }

    /// An error that says what is wrong with this answer.
    pub(super) fn wrong(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Answer { request: self.request.clone(), reason: reason.into() }
    }
}

impl Transport {
    /// Prepares to talk to the servers at `urls`.
    ///
    /// # Errors
    /// There is no URL, or one is none or neither `http` nor `https`; the credentials are none.
    pub(super) fn new(
        urls: &[String],
        retry: RetryPolicy,
        timeout: Duration,
        credentials: &Credentials,
    ) -> Result<Self, ClientError> {
        if urls.is_empty() {
            return Err(ClientError::Usage("a document store needs the URL of a server".to_owned()));
        }
        let urls = urls.iter().map(|url| check_url(url)).collect::<Result<Vec<_>, _>>()?;
        let http = credentials
            .apply(Client::builder())?
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_MAX)
            .no_proxy()
            .build()
            .map_err(|error| ClientError::Usage(format!("HTTP can't be set up: {}", chain(&error))))?;
        let (preferred, closed) = (AtomicUsize::new(0), AtomicBool::new(false));
        Ok(Self { http, urls, preferred, retry, timeout, closed })
    }

    pub(super) fn close(&self) -> bool {
        self.closed.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Sends a request, again where that can do no harm, and reads the answer.
    ///
    /// # Errors
    /// The store is closed, no server can be reached, or it says no.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, ClientError> {
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        self.send_always(call).await
    }

    /// Like [`Transport::send`], also when the store is closed.
    pub(super) async fn send_always(&self, call: Call) -> Result<Answer, ClientError> {
        match self.reply(&call).await? {
            Reply::Whole(answer) => Ok(answer),
            Reply::Open(_) => Err(ClientError::Usage("an answer in pieces was asked for as a whole".to_owned())),
        }
    }

    /// Sends a request, again where that can do no harm, and leaves the answer to be read with [`Transport::next_chunk`].
    ///
    /// # Errors
    /// As [`Transport::send`].
    pub(super) async fn open(&self, mut call: Call) -> Result<Response, ClientError> {
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        call.is_streamed = true;
        match self.reply(&call).await? {
            Reply::Open(response) => Ok(response),
            Reply::Whole(answer) => Err(answer.wrong("it was read as a whole")),
        }
    }

    /// The next piece of an answer; `None` at its end.
    ///
    /// # Errors
    /// The server breaks off, or is silent for as long as one request may take.
    pub(super) async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, ClientError> {
        let url = response.url().origin().ascii_serialization();
        match tokio::time::timeout(self.timeout, response.chunk()).await {
            Ok(chunk) => chunk.map_err(|error| unanswered(&url, &error)),
            Err(_) => Err(too_slow(&url, self.timeout)),
        }
    }

    async fn reply(&self, call: &Call) -> Result<Reply, ClientError> {
        let mut attempt = 1;
        loop {
            let position = self.preferred.load(Ordering::Relaxed);
            let (error, asked) = match self.try_once(call, position).await {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            if !may_repeat(&error, call.repeatable) || attempt >= self.retry.attempts_max {
                return Err(error);
            }
            if matches!(error, ClientError::NotSent { .. } | ClientError::Unanswered { .. }) {
                let next = (position + 1) % self.urls.len();
                let _ = self.preferred.compare_exchange(position, next, Ordering::Relaxed, Ordering::Relaxed);
            }
            let pause = self.retry.pause(attempt, asked, chance());
            tracing::debug!(name: "client.request.repeated", request = %call.name(), %error, attempt, "a request is sent again");
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }

    /// Opens a long answer, which may take as long as it likes once it has begun. Never sent again by itself: the next call
    /// goes to the next server.
    pub(super) async fn stream(&self, call: &Call) -> Result<Response, ClientError> {
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        let position = self.preferred.load(Ordering::Relaxed);
        let url = self.url_at(position).to_owned();
        let wait = self.timeout.saturating_add(call.extra_wait);
        let error = match tokio::time::timeout(wait, self.request(call, &url).send()).await {
            Ok(Ok(response)) if response.status().is_success() => return Ok(response),
            Ok(Ok(response)) => return Err(refused(response, &call.name()).await.0),
            Ok(Err(error)) => unanswered(&url, &error),
            Err(_) => ClientError::Unanswered { url, reason: format!("no answer within {wait:?}") },
        };
        let next = (position + 1) % self.urls.len();
        let _ = self.preferred.compare_exchange(position, next, Ordering::Relaxed, Ordering::Relaxed);
        Err(error)
    }

    /// Sends a request once, with a body that is made while it is sent; nothing bounds its time.
    ///
    /// # Errors
    /// The store is closed, the server can't be reached, or it says no.
    pub(super) async fn send_stream(&self, call: &Call, body: reqwest::Body) -> Result<Answer, ClientError> {
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        let url = self.url();
        let request = self.request(call, &url).header(reqwest::header::CONTENT_TYPE, "application/json").body(body);
        answered(request, call, &url).await.map_err(|(error, _)| error)
    }

    /// The URL that answered last.
    pub(super) fn url(&self) -> String {
        self.url_at(self.preferred.load(Ordering::Relaxed)).to_owned()
    }

    /// How long one request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    fn url_at(&self, position: usize) -> &str {
        self.urls.get(position).or(self.urls.first()).map_or("", String::as_str)
    }

    fn request(&self, call: &Call, url: &str) -> RequestBuilder {
        let mut request = self.http.request(call.method.clone(), format!("{url}{}", call.path));
        if !call.query.is_empty() {
            request = request.query(&call.query);
        }
        if let Some(etag) = call.configuration {
            request = request.header(CLIENT_CONFIGURATION, format!("\"{etag}\""));
        }
        request
    }

    async fn try_once(&self, call: &Call, position: usize) -> Result<Reply, (ClientError, Option<Duration>)> {
        let (url, limit) = (self.url_at(position), self.timeout.saturating_add(call.extra_wait));
        let mut request = self.request(call, url);
        if let Some(body) = &call.body {
            request = request.header(reqwest::header::CONTENT_TYPE, "application/json").body(body.clone());
        }
        if call.is_streamed {
            return opened(request, call, url, limit).await.map(Reply::Open);
        }
        answered(request.timeout(limit), call, url).await.map(Reply::Whole)
    }
}

/// Sends a request and reads the answer, or the refusal with the pause that the server asks for.
async fn answered(request: RequestBuilder, call: &Call, url: &str) -> Result<Answer, (ClientError, Option<Duration>)> {
    let response = request.send().await.map_err(|error| (unanswered(url, &error), None))?;
    if !response.status().is_success() {
        return Err(refused(response, &call.name()).await);
    }
    let headers = response.headers().clone();
    let body = response.bytes().await.map_err(|error| (unanswered(url, &error), None))?;
    Ok(Answer { request: call.name(), headers, body })
}

/// Sends a request and leaves the answer, once it has begun within `limit`, to be read.
async fn opened(
    request: RequestBuilder,
    call: &Call,
    url: &str,
    limit: Duration,
) -> Result<Response, (ClientError, Option<Duration>)> {
    let response = tokio::time::timeout(limit, request.send()).await.map_err(|_| (too_slow(url, limit), None))?;
    let response = response.map_err(|error| (unanswered(url, &error), None))?;
    if response.status().is_success() { Ok(response) } else { Err(refused(response, &call.name()).await) }
}

/// The path of something below a database.
pub(super) fn database_path(database: &str, below: &str) -> String {
    format!("/databases/{}/{below}", encode(database))
}

/// Percent-encodes one segment of a path.
pub(super) fn encode(segment: &str) -> String {
    utf8_percent_encode(segment, PATH).to_string()
}

fn check_url(url: &str) -> Result<String, ClientError> {
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| ClientError::Usage(format!("'{url}' is no URL ({error}); write http://host:port")))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.query().is_some() {
        return Err(ClientError::Usage(format!("'{url}' can't be the URL of a server; write http://host:port")));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Whether a request that failed so may be sent again.
fn may_repeat(error: &ClientError, repeatable: bool) -> bool {
    match error {
        ClientError::NotSent { .. } => true,
        ClientError::Unanswered { .. } => repeatable,
        ClientError::Refused(refusal) if refusal.database_missing => false,
        // The server did not begin.
        ClientError::Refused(refusal) => match refusal.status {
            429 | 503 => true,
            // Something between here and the server does not know.
            502 | 504 => repeatable,
            _ => false,
        },
        _ => false,
    }
}

fn unanswered(url: &str, error: &reqwest::Error) -> ClientError {
    let (url, reason) = (url.to_owned(), chain(error));
    if error.is_connect() || error.is_builder() {
        return ClientError::NotSent { url, reason };
    }
    ClientError::Unanswered { url, reason }
}

fn too_slow(url: &str, limit: Duration) -> ClientError {
    ClientError::Unanswered { url: url.to_owned(), reason: format!("it sent nothing for {limit:?}") }
}

async fn refused(mut response: Response, request: &str) -> (ClientError, Option<Duration>) {
    let status = response.status();
    let asked = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let database_missing = response.headers().contains_key("Database-Missing");
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece);
        if body.len() > ERROR_BYTES_MAX {
            break;
        }
    }
    let ErrorBody { type_name, mut message } = serde_json::from_slice(&body).unwrap_or_default();
    if message.is_empty() {
        let what = if status == StatusCode::NOT_FOUND { "there is nothing at" } else { "the server refused" };
        message = format!("{what} {request}: {status}");
    }
    let refusal = Refusal { status: status.as_u16(), type_name, message, database_missing };
    (ClientError::Refused(refusal), asked.map(Duration::from_secs))
}

/// An error and what lies beneath it, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_with(status: u16) -> ClientError {
        let (type_name, message) = (String::new(), String::new());
        ClientError::Refused(Refusal { status, type_name, message, database_missing: false })
    }

    #[test]
    fn only_what_can_do_no_harm_is_repeated() {
        let lost = || ClientError::Unanswered { url: String::new(), reason: String::new() };
        assert!(may_repeat(&lost(), true) && !may_repeat(&lost(), false));
        assert!(may_repeat(&refused_with(503), false) && !may_repeat(&refused_with(502), false));
        for status in [400, 404, 409, 500, 501] {
            assert!(!may_repeat(&refused_with(status), true), "{status}");
        }
    }

    #[test]
    fn a_url_is_http_or_https_and_nothing_more_than_a_place() {
        assert_eq!(check_url("http://localhost:8080/").ok().as_deref(), Some("http://localhost:8080"));
        for url in ["localhost:8080", "ftp://x", "", "http://x/?a=b"] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
