//! Saving: everything that changed goes to the server as one batch, which is stored whole or not at all.
//!
//! Next on the walk: `bulk_insert`.

use reqwest::Method;

use super::Session;
use super::tracked::{Pending, Received};
use crate::client::batch::{BatchBody, Command, CommandResult, is_unfinished, read_results, with_metadata};
use crate::client::error::ClientError;
use crate::client::http::Answer;
use crate::client::indexes::time_span;
use crate::id::lower;

/// What a save has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Documents that were stored.
    pub stored: usize,
    /// Documents that were deleted, also those that were missing.
    pub deleted: usize,
    /// Documents that were patched, also by patches that only test.
    pub patched: usize,
}

impl Session {
    /// Saves everything that changed, all or nothing, and says how much that was. Nothing is sent when nothing changed.
    ///
    /// When it fails nothing was stored, and the session is as before, so that it can be tried again; but see
    /// [`ClientError::Unanswered`], after which nobody knows. A save is sent again by itself only where that can't store
    /// anything twice: every id is finished, and no version is expected.
    ///
    /// # Errors
    /// A document is not in the version that was expected ([`ClientError::is_conflict`]), the server refuses a document or an
    /// id, the time for indexes is up (all is stored then), or the server can't be reached.
    ///
    /// # Cancel safety
    /// Dropped on the way, nobody knows whether it was stored; the session still has everything as changed.
    ///
    /// # Cost
    /// One request; each entity of the session is written as JSON to see whether it changed.
    pub async fn save_changes(&mut self) -> Result<Saved, ClientError> {
        let mut changed = Vec::new();
        for (slot, tracked) in &self.entities {
            if let Some(pending) = tracked.pending()? {
                changed.push((*slot, pending));
            }
        }
        if changed.is_empty() && self.deletions.is_empty() && self.patches.is_empty() {
            return Ok(Saved::default());
        }
        let commands = self.commands(&changed)?;
        let separator = self.link.separator().await?;
        let repeatable = commands.iter().all(|command| match command {
            Command::Put { id, change_vector, .. } => change_vector.is_none() && !is_unfinished(id, separator),
            Command::Delete { change_vector, .. } => change_vector.is_none(),
            Command::Patch { .. } => false,
        });
        let count = commands.len();
        let mut body = BatchBody::default();
        commands.iter().try_for_each(|command| body.add(command))?;
        let mut call = self.link.call(Method::POST, "bulk_docs").body(body.finish()).repeatable(repeatable);
        if let Some(timeout) = self.wait_for_indexes {
            call = call.query("waitForIndexesTimeout", time_span(timeout)).extra_wait(timeout);
        }
        let answer = self.link.send(call).await?;
        let results = read_results(&answer, count)?;
        self.settle(changed, results, &answer)
    }

    /// The writes: deletions first, so that a document can be stored anew under the id of one that is deleted; patches last.
    fn commands(&self, changed: &[(u64, Pending)]) -> Result<Vec<Command<'_>>, ClientError> {
        let deletions = self.deletions.values();
        let mut commands: Vec<Command<'_>> = deletions
            .map(|deletion| Command::Delete { id: &deletion.id, change_vector: deletion.change_vector.as_deref() })
            .collect();
        for (slot, pending) in changed {
            let Some(tracked) = self.entities.get(slot) else { continue };
            let document = with_metadata(pending.document.clone(), &tracked.metadata)?;
            let expected = match &tracked.change_vector {
                _ if tracked.id.is_none() => None,
                Some(change_vector) => Some(change_vector.as_str()).filter(|_| self.optimistic_concurrency),
                None => Some("").filter(|_| self.optimistic_concurrency || tracked.is_made),
            };
            commands.push(Command::Put { id: &tracked.asked, change_vector: expected, document });
        }
        for (key, (id, patch)) in &self.patches {
            commands.push(Command::Patch { id, patch, return_document: self.by_id.contains_key(key) });
        }
        Ok(commands)
    }

    /// Notes what the server has stored.
    fn settle(
        &mut self,
        changed: Vec<(u64, Pending)>,
        results: Vec<CommandResult>,
        answer: &Answer,
    ) -> Result<Saved, ClientError> {
        let deleted = self.deletions.len();
        for deleted in std::mem::take(&mut self.deletions).into_keys() {
            self.included.insert(deleted, None);
        }
        let patches = std::mem::take(&mut self.patches);
        let saved = Saved { stored: changed.len(), deleted, patched: patches.len() };
        let mut outcome = Ok(saved);
        let mut results = results.into_iter().skip(deleted);
        for ((slot, pending), result) in changed.into_iter().zip(results.by_ref()) {
            let (Some(id), Some(change_vector)) = (result.id, result.change_vector) else {
                return Err(answer.wrong("the result of a write has no '@id' or no '@change-vector'"));
            };
            let Some(tracked) = self.entities.get_mut(&slot) else { continue };
            self.by_id.insert(lower(&id), slot);
            self.included.remove(&lower(&id));
            if let Err(error) = tracked.saved(pending, id, change_vector, result.last_modified) {
                outcome = Err(error);
            }
        }
        for (key, result) in patches.into_keys().zip(results) {
            self.included.remove(&key);
            let Some(document) = result.modified_document else { continue };
            let received = Received::read(&document).map_err(|reason| answer.wrong(reason))?;
            let tracked = self.by_id.get(&key).and_then(|slot| self.entities.get_mut(slot));
            if let Some(Err(error)) = tracked.map(|tracked| tracked.refresh(received)) {
                outcome = Err(error);
            }
        }
        outcome
    }
}
