//! HTTP towards a server: paths, and what its answers mean for a command.
//!
//! A server that says no answers with `{"Url","Type","Message","Error"}`; its message already names the thing, the rule and
//! the way out, so it is passed on as it is.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;

use super::failure::Exit;
use super::output::notice;
use super::{Failure, Target};

/// What may stand in a path as it is.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a server may think about one answer: deleting a large index takes minutes.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(900);

/// One database of one server.
#[derive(Clone, Debug)]
pub(crate) struct Api {
    http: Client,
    url: String,
    database: String,
}

/// A server's refusal.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// The server's own words.
    pub(crate) message: String,
    /// There is no such database.
    pub(crate) database_missing: bool,
}

/// Why a request did not do what it should.
#[derive(Clone, Debug)]
pub(crate) enum CallError {
    /// No connection: the request was not carried out.
    NotSent(String),
    /// The connection broke before the answer: nobody knows whether the request was carried out.
    Unanswered(String),
    /// The server said no.
    Refused(Refusal),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ErrorBody {
    #[serde(rename = "Message")]
    message: String,
}

impl Api {
    /// Prepares to talk to `target`; an answer must begin, or go on, within `silence`.
    ///
    /// # Errors
    /// The URL is none, or is neither `http` nor `https`; the credentials can't be read.
    pub(crate) fn new(target: &Target, silence: Duration) -> Result<Self, Failure> {
        let parsed = reqwest::Url::parse(&target.url)
            .map_err(|error| Failure::usage(format!("--url '{}' is no URL: {error}", target.url)))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            let message = format!("--url '{}' must begin with http:// or https://", target.url);
            return Err(Failure::usage(message));
        }
        let http = target
            .credentials
            .apply(Client::builder())?
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(silence)
            .no_proxy()
            .build()
            .map_err(|error| Failure::failed(format!("cannot set up HTTP: {}", chain(&error))))?;
        Ok(Self { http, url: target.url.trim_end_matches('/').to_owned(), database: target.database.clone() })
    }

    /// Begins a request below the database: `docs`, `indexes/stats`.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/databases/{}/{path}", self.url, encode(&self.database)))
    }

    /// Begins a request to the server itself: `admin/backups`.
    pub(crate) fn server_request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}/{path}", self.url))
    }

    /// Sends a request; an answer that is no success is an error.
    ///
    /// # Errors
    /// The server can't be reached, breaks off, or says no.
    pub(crate) async fn send(&self, request: RequestBuilder) -> Result<Response, CallError> {
        let response = request.send().await.map_err(|error| unanswered(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let database_missing = response.headers().contains_key("Database-Missing");
        let body = response.text().await.unwrap_or_default();
        let message = match serde_json::from_str::<ErrorBody>(&body) {
            Ok(error) if !error.message.is_empty() => error.message,
            _ => format!("the server answered {status}"),
        };
        Err(CallError::Refused(Refusal { status, message, database_missing }))
    }

    /// Sends a request and reads the whole answer.
    ///
    /// # Errors
    /// As a [`Failure`]: the server can't be reached, breaks off, or says no.
    pub(crate) async fn text(&self, request: RequestBuilder) -> Result<String, Failure> {
        let response = self.send(request).await.map_err(|error| self.failure(error))?;
        response.text().await.map_err(|error| self.failure(unanswered(&error)))
    }

    /// Creates the database where there is none, and says so.
    ///
    /// # Errors
    /// The server can't be reached, or refuses the name.
    pub(crate) async fn ensure_database(&self) -> Result<(), Failure> {
        let body = serde_json::json!({ "DatabaseName": self.database }).to_string();
        let url = format!("{}/admin/databases", self.url);
        let request = self.http.put(url).query(&[("name", &self.database)]).body(body);
        match self.send(request).await {
            Ok(_) => {
                notice(&format!("created database '{}'", self.database));
                Ok(())
            }
            // Whoever may not create databases may write to one that is there; if none is, the next request says so.
            Err(CallError::Refused(refusal))
                if matches!(refusal.status, StatusCode::CONFLICT | StatusCode::FORBIDDEN) =>
            {
                Ok(())
            }
            Err(error) => Err(self.failure(error)),
        }
    }

    /// What a failed call means for the command.
    pub(crate) fn failure(&self, error: CallError) -> Failure {
        match error {
            CallError::NotSent(cause) => Failure::new(Exit::Unreachable, format!("cannot reach {}: {cause}", self.url))
                .way_out("start a server with `treepie serve`, or name another with --url"),
            CallError::Unanswered(cause) => Failure::new(Exit::Unreachable, format!("{} broke off: {cause}", self.url)),
            CallError::Refused(refusal) if refusal.database_missing => {
                let message = format!("there is no database '{}' on {}", self.database, self.url);
                Failure::new(Exit::NotFound, message)
                    .way_out("`treepie load`, `put` and `index put` create it; --database names another")
            }
            CallError::Refused(refusal) if refusal.status == StatusCode::NOT_FOUND => {
                Failure::new(Exit::NotFound, refusal.message)
            }
            CallError::Refused(refusal) => Failure::failed(refusal.message),
        }
    }
}

/// Encodes one segment of a path.
pub(crate) fn encode(segment: &str) -> String {
    utf8_percent_encode(segment, PATH).to_string()
}

/// What an error on the wire says about the request.
pub(crate) fn unanswered(error: &reqwest::Error) -> CallError {
    let cause = chain(error);
    if error.is_connect() || error.is_builder() { CallError::NotSent(cause) } else { CallError::Unanswered(cause) }
}

/// An error with its causes; the outermost names only the URL.
fn chain(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        causes.push(cause.to_string());
        source = cause.source();
    }
    match causes.pop() {
        Some(innermost) => innermost,
        None => error.to_string(),
    }
}
