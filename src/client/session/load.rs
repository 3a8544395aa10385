//! Loading: by id, many ids at once, with what they name, and by prefix. What a session has already is not asked for again.
//!
//! Next on the walk: `save`.

use std::collections::{HashMap, HashSet};
use std::marker::PhantomData;

use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::tracked::{Received, Tracked};
use super::{Entity, Session};
use crate::client::conventions::Document;
use crate::client::error::ClientError;
use crate::client::held::{Held, mismatch};
use crate::id::lower;

/// The most ids that one request asks for.
const IDS_MAX: usize = 4_096;

/// Loads documents together with those that they name.
#[derive(Debug)]
pub struct Loader<'a> {
    session: &'a mut Session,
    paths: Vec<String>,
}

#[derive(Serialize)]
struct Ids<'a> {
    #[serde(rename = "Ids")]
    ids: &'a [&'a str],
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Documents {
    results: Vec<Option<Box<RawValue>>>,
    #[serde(default)]
    includes: HashMap<String, Option<Box<RawValue>>>,
}

impl Loader<'_> {
    /// Names another path.
    #[must_use]
    pub fn include(mut self, path: &str) -> Self {
        self.paths.push(path.to_owned());
        self
    }

    /// Loads a document; `None` where there is none of that id.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub async fn load<T: Document>(self, id: &str) -> Result<Option<Entity<T>>, ClientError> {
        Ok(self.load_many(&[id]).await?.pop().flatten())
    }

    /// Loads documents, in the order of their ids.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub async fn load_many<T: Document>(self, ids: &[&str]) -> Result<Vec<Option<Entity<T>>>, ClientError> {
        self.session.load_with(ids, &self.paths).await
    }
}

impl Session {
    /// Loads a document; `None` where there is none of that id, or where it is to be deleted. A document that is in the
    /// session already is not asked for again, and its changes stay.
    ///
    /// # Errors
    /// The document does not fit the type, it is in the session as another type, or the server can't be reached.
    ///
    /// # Cancel safety
    /// Dropped on the way, the session is as before.
    ///
    /// # Cost
    /// At most one request.
    pub async fn load<T: Document>(&mut self, id: &str) -> Result<Option<Entity<T>>, ClientError> {
        Ok(self.load_many(&[id]).await?.pop().flatten())
    }

    /// Loads documents, in the order of their ids.
    ///
    /// # Errors
    /// As [`Session::load`].
    ///
    /// # Cost
    /// One request for each 4,096 ids that the session has not yet.
    pub async fn load_many<T: Document>(&mut self, ids: &[&str]) -> Result<Vec<Option<Entity<T>>>, ClientError> {
        self.load_with(ids, &[]).await
    }

    /// Asks for the documents that loaded ones name at `path` (`customer`, `lines.product`) to be sent along, so that
    /// loading them later takes no request.
    #[must_use]
    pub fn include(&mut self, path: &str) -> Loader<'_> {
        Loader { session: self, paths: vec![path.to_owned()] }
    }

    /// Loads the documents whose ids begin with `prefix`, in id order: `count` of them after the first `start`.
    ///
    /// # Errors
    /// As [`Session::load`].
    pub async fn load_starting_with<T: Document>(
        &mut self,
        prefix: &str,
        start: u64,
        count: u64,
    ) -> Result<Vec<Entity<T>>, ClientError> {
        let call = self
            .link
            .call(Method::GET, "docs")
            .query("startsWith", prefix)
            .query("start", start.to_string())
            .query("pageSize", count.to_string());
        let answer = self.link.send(call).await?;
        let mut entities = Vec::new();
        for document in answer.json::<Documents>()?.results.into_iter().flatten() {
            let received = Received::read(&document).map_err(|reason| answer.wrong(reason))?;
            if !self.deletions.contains_key(&lower(&received.id)) {
                entities.push(self.take_in(received)?);
            }
        }
        Ok(entities)
    }

    /// Loads an entity anew: it is as the server has it then, and changes that were not saved are lost.
    ///
    /// # Errors
    /// The handle is not of this session, the entity was never stored or its document is gone ([`ClientError::kind`] is
    /// `Missing`), or the server can't be reached.
    ///
    /// # Cancel safety
    /// Dropped on the way, the session is as before.
    pub async fn refresh<T: Document>(&mut self, entity: &Entity<T>) -> Result<(), ClientError> {
        let Some(id) = self.tracked(entity)?.id.clone() else {
            return Err(ClientError::Usage(
                "an entity that was never stored can't be loaded anew; save it first".to_owned(),
            ));
        };
        let answer = self.link.send(self.link.call(Method::GET, "docs").query("id", id)).await?;
        let Some(document) = answer.json::<Documents>()?.results.into_iter().flatten().next() else {
            return Err(answer.wrong("there is no document in it"));
        };
        let received = Received::read(&document).map_err(|reason| answer.wrong(reason))?;
        self.tracked_mut(entity)?.refresh(received)
    }

    async fn load_with<T: Document>(
        &mut self,
        ids: &[&str],
        paths: &[String],
    ) -> Result<Vec<Option<Entity<T>>>, ClientError> {
        if ids.iter().any(|id| id.trim().is_empty()) {
            return Err(ClientError::Usage("an empty id names no document; give the id to load".to_owned()));
        }
        self.fetch(ids, paths).await?;
        let mut entities = Vec::with_capacity(ids.len());
        for id in ids {
            entities.push(self.find(id)?);
        }
        Ok(entities)
    }

    /// Makes sure that each id is tracked, included or to be deleted.
    async fn fetch(&mut self, ids: &[&str], paths: &[String]) -> Result<(), ClientError> {
        let mut asked = HashSet::new();
        let missing: Vec<&str> = ids
            .iter()
            .copied()
            .filter(|id| {
                let key = lower(id);
                let known = self.by_id.contains_key(&key)
                    || self.deletions.contains_key(&key)
                    || self.included.contains_key(&key);
                // What is named by a document must come from the server, also when the document itself is here.
                (!known || !paths.is_empty()) && asked.insert(key)
            })
            .collect();
        for some in missing.chunks(IDS_MAX) {
            let body = serde_json::to_vec(&Ids { ids: some }).map_err(|error| ClientError::Usage(error.to_string()))?;
            let mut call = self.link.call(Method::POST, "docs").body(body).repeatable(true);
            for path in paths {
                call = call.query("include", path.clone());
            }
            let answer = self.link.send(call).await?;
            let Documents { results, includes } = answer.json()?;
            if results.len() != some.len() {
                return Err(answer.wrong(format!("{} documents for {} ids", results.len(), some.len())));
            }
            let named = includes.into_iter().map(|(id, document)| (lower(&id), document));
            for (key, document) in named.chain(some.iter().map(|id| lower(id)).zip(results)) {
                // What the session has already stays as it is.
                if !self.by_id.contains_key(&key) {
                    self.included.insert(key, document);
                }
            }
        }
        Ok(())
    }

    fn find<T: Document>(&mut self, id: &str) -> Result<Option<Entity<T>>, ClientError> {
        let key = lower(id);
        if self.deletions.contains_key(&key) && !self.by_id.contains_key(&key) {
            return Ok(None);
        }
        if let Some(slot) = self.by_id.get(&key).copied() {
            return self.known(slot, id).map(Some);
        }
        let Some(Some(document)) = self.included.get(&key) else { return Ok(None) };
        let received = Received::read(document).map_err(|reason| mismatch::<T>(id, reason))?;
        let entity = self.take_in(received)?;
        self.included.remove(&key);
        Ok(Some(entity))
    }

    /// Tracks a document that was received, unless it is tracked already.
    fn take_in<T: Document>(&mut self, received: Received) -> Result<Entity<T>, ClientError> {
        if let Some(slot) = self.by_id.get(&lower(&received.id)).copied() {
            return self.known(slot, &received.id);
        }
        let id = received.id.clone();
        let info = self.link.conventions.describe::<T>();
        let held =
            Held::<T>::read(&received.document, &received.id, &info).map_err(|reason| mismatch::<T>(&id, reason))?;
        let tracked = Tracked::loaded(Box::new(held), received).map_err(|reason| mismatch::<T>(&id, reason))?;
        Ok(self.add(tracked))
    }

    fn known<T: Document>(&self, slot: u64, id: &str) -> Result<Entity<T>, ClientError> {
        match self.entities.get(&slot) {
            Some(tracked) if tracked.get::<T>().is_none() => Err(mismatch::<T>(
                id,
                format!(
                    "it is in this session as a {}; use that type, or let it go with forget first",
                    tracked.type_name()
                ),
            )),
            _ => Ok(Entity { session: self.number, slot, of: PhantomData }),
        }
    }
}
