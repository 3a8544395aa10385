//! One database of a store: what all of its sessions share, which is the way to it, its client configuration and its HiLo
//! generators.
//!
//! Next on the walk: `hilo`, then `http`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use reqwest::{Method, Response};

use super::configuration::HeldConfiguration;
use super::conventions::{Conventions, IdGeneration, id_prefix};
use super::error::{ClientError, ErrorKind};
use super::hilo::Generator;
use super::http::{Answer, Call, REFRESH, Transport, database_path};
use crate::id::guid;

/// One database of a store.
#[derive(Debug)]
pub(super) struct Link {
    transport: Arc<Transport>,
    database: String,
    pub(super) conventions: Arc<Conventions>,
    configuration: Mutex<Held>,
    /// Whether the server said that its configuration is another one.
    outdated: AtomicBool,
    fetching: tokio::sync::Mutex<()>,
    /// By prefix and separator.
    generators: Mutex<HashMap<(String, char), Arc<Generator>>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    etag: i64,
    separator: Option<char>,
}

impl Link {
    pub(super) fn new(transport: Arc<Transport>, database: String, conventions: Arc<Conventions>) -> Self {
        Self {
            transport,
            database,
            conventions,
            configuration: Mutex::default(),
            outdated: AtomicBool::new(true),
            fetching: tokio::sync::Mutex::default(),
            generators: Mutex::default(),
        }
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// Prepares a request below the database: `docs`, `indexes/stats`.
    pub(super) fn call(&self, method: Method, below: &str) -> Call {
        let etag = self.configuration.lock().etag;
        Call::new(method, database_path(&self.database, below)).configuration(etag)
    }

    /// Sends a request, and notes when the server says that its configuration has changed.
    pub(super) async fn send(&self, call: Call) -> Result<Answer, ClientError> {
        let answer = self.transport.send(call).await?;
        if answer.headers.contains_key(REFRESH) {
            self.outdated.store(true, Ordering::Release);
        }
        Ok(answer)
    }

    /// Sends a request whose answer is read piece by piece.
    pub(super) async fn open(&self, call: Call) -> Result<Response, ClientError> {
        self.transport.open(call).await
    }

    /// The next piece of an answer; `None` at its end.
    pub(super) async fn next_chunk(&self, response: &mut Response) -> Result<Option<Bytes>, ClientError> {
        self.transport.next_chunk(response).await
    }

    /// Opens a long answer, once.
    pub(super) async fn stream(&self, call: Call) -> Result<reqwest::Response, ClientError> {
        self.transport.stream(&call).await
    }

    /// Sends a long request once, with a body that is made while it is sent; nothing bounds its time.
    pub(super) async fn send_stream(&self, call: Call, body: reqwest::Body) -> Result<Answer, ClientError> {
        self.transport.send_stream(&call, body).await
    }

    /// How long one request may take.
    pub(super) fn timeout(&self) -> Duration {
        self.transport.timeout()
    }

    /// An error that says that the server does not go on.
    pub(super) fn stalled(&self, reason: &str) -> ClientError {
        ClientError::Unanswered { url: self.transport.url(), reason: reason.to_owned() }
    }

    /// The character between a prefix and a number: the server's, or else that of the conventions.
    pub(super) async fn separator(&self) -> Result<char, ClientError> {
        if self.outdated.load(Ordering::Acquire) {
            let _one = self.fetching.lock().await;
            if self.outdated.load(Ordering::Acquire) {
                let answer = self.transport.send(self.call(Method::GET, "configuration/client")).await?;
                let read: HeldConfiguration = answer.json()?;
                let separator = read.separator().map_err(|reason| answer.wrong(reason))?;
                *self.configuration.lock() = Held { etag: read.etag, separator };
                self.outdated.store(false, Ordering::Release);
            }
        }
        Ok(self.configuration.lock().separator.unwrap_or_else(|| self.conventions.own_separator()))
    }

    /// Makes the id of a new document, as far as the client makes it: the server finishes `users/` and `users|`.
    pub(super) async fn generate(&self, collection: &str, how: IdGeneration) -> Result<String, ClientError> {
        let prefix = id_prefix(collection);
        match how {
            IdGeneration::Guid => Ok(guid::guid(false)),
            IdGeneration::ServerSide => Ok(format!("{prefix}{}", self.separator().await?)),
            IdGeneration::Identity => Ok(format!("{prefix}|")),
            IdGeneration::HiLo => {
                let separator = self.separator().await?;
                let generator = {
                    let mut generators = self.generators.lock();
                    let entry = generators.entry((prefix.clone(), separator));
                    Arc::clone(entry.or_insert_with(|| Arc::new(Generator::new(prefix, separator))))
                };
                generator.next(self).await
            }
        }
    }

    /// Gives the unused rest of each range back.
    pub(super) async fn give_back(&self) -> Result<(), ClientError> {
        let generators: Vec<Arc<Generator>> = self.generators.lock().drain().map(|(_, generator)| generator).collect();
        let mut outcome = Ok(());
        for generator in generators {
            if let Some(call) = generator.give_back(self) {
                let sent = match self.transport.send_always(call).await {
                    // With its database a range is gone too.
                    Err(error) if error.kind() != ErrorKind::Missing => Err(error),
                    _ => Ok(()),
                };
                outcome = outcome.and(sent);
            }
        }
        outcome
    }
}
