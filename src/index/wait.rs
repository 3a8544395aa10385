//! Waiting until indexes have taken in what was written, along the whole chain of indexes.

use std::sync::Arc;
use std::time::Duration;

use super::graph;
use super::live::{Index, Reached};
use super::registry::Registry;
use super::status::IndexState;
use crate::store::StoreError;
use crate::store::changes::{ChangeKind, Feed};
use crate::store::commit::{Committed, OperationResult};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Which indexes are waited for.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// Every one that is not turned off.
    All,
    /// Those named, all they feed on, and all that feed on them.
    Connected(Vec<String>),
    /// Those named and no other, as far as they are not turned off.
    Exactly(Vec<String>),
}

/// The indexes that a commit may concern, and all that feed on them, by name.
pub(crate) fn touched(registry: &Registry, committed: &Committed) -> Result<Vec<String>, StoreError> {
    let indexes = registry.all();
    let snapshot = registry.snapshot();
    let Some(first_etag) = first_etag(&snapshot, committed)? else { return Ok(Vec::new()) };
    let mut touched = Vec::new();
    for (n, index) in indexes.iter().enumerate() {
        for feed in index.context.feeds.iter() {
            let last = match feed {
                Feed::All => snapshot.progress().written,
                Feed::Collection(name) => snapshot.collection(name)?.map_or(0, |count| count.last_etag),
            };
            if last >= first_etag {
                touched.push(n);
                break;
            }
        }
    }
    let nodes: Vec<_> = indexes.iter().map(|index| index.checked.node()).collect();
    let concerned = graph::behind(&nodes, &touched).into_iter();
    Ok(concerned.filter_map(|n| indexes.get(n)).map(|index| index.context.name.to_string()).collect())
}

/// The first etag that a commit gave out. A document that left another collection has two: that of its tombstone comes before.
fn first_etag(snapshot: &Snapshot<'_>, committed: &Committed) -> Result<Option<u64>, StoreError> {
    let etags = committed.results.iter().filter_map(|result| match result {
        OperationResult::Put { id, etag, .. } => Some((*etag, id)),
        OperationResult::Delete { id, etag, .. } => etag.map(|etag| (etag, id)),
        OperationResult::Checked { .. } => None,
    });
    let Some((first, id)) = etags.min() else { return Ok(None) };
    let before = first.saturating_sub(1);
    for change in snapshot.changes(&Feed::All, before.saturating_sub(1), before, Direction::Forward) {
        let change = change?;
        if change.kind == ChangeKind::Delete && crate::id::lower(&change.id) == crate::id::lower(id) {
            return Ok(Some(before));
        }
    }
    Ok(Some(first))
}

/// Waits until indexes have taken in everything written before the call. Returns the names of those that have not in time; empty
/// when all have. One that was stopped for its faults is not waited for, and is among those that have not; one that is deleted
/// meanwhile no longer counts. Of an index whose definition is changing the generation that serves counts, and with
/// `settles` the new one, which must have taken over. What they wrote is durable when this returns.
///
/// # Cancel safety
/// Dropping the future has no effect on the indexes.
pub(crate) async fn wait(registry: &Registry, scope: Scope, settles: bool, timeout: Duration) -> Vec<String> {
    let indexes = registry.all();
    let nodes: Vec<_> = indexes.iter().map(|index| index.checked.node()).collect();
    let skips_disabled = !matches!(scope, Scope::Connected(_));
    let is_wanted = |n: &usize| match &scope {
        Scope::All => true,
        Scope::Connected(names) => graph::connected(&nodes, names).contains(n),
        Scope::Exactly(names) => {
            indexes.get(*n).is_some_and(|index| names.iter().any(|name| **name == *index.context.name))
        }
    };
    let ordered = graph::order(&nodes).into_iter().filter(is_wanted);
    let ordered: Vec<Arc<Index>> = ordered.filter_map(|n| indexes.get(n).cloned()).collect();
    let deadline = tokio::time::Instant::now() + timeout;
    let mut stale = Vec::new();
    for index in &ordered {
        if skips_disabled && index.state() == IndexState::Disabled {
            continue;
        }
        let one = wait_for_one(registry, Arc::clone(index), settles);
        if !tokio::time::timeout_at(deadline, one).await.unwrap_or(false) {
            stale.push(index.context.name.to_string());
        }
    }
    if stale.is_empty() && tokio::time::timeout_at(deadline, registry.durable()).await.is_err() {
        stale.extend(ordered.iter().map(|index| index.context.name.to_string()));
    }
    stale
}

/// Waits until an index, or what takes its place, has taken in everything written before the call. `false`: it does not go on.
async fn wait_for_one(registry: &Registry, index: Arc<Index>, settles: bool) -> bool {
    // Indexes before this one have written their outputs by now.
    let through = registry.written();
    let name = Arc::clone(&index.context.name);
    let newest = |index: Arc<Index>| if settles { registry.newest(&name).unwrap_or(index) } else { index };
    let mut index = newest(index);
    loop {
        let mut reached = index.reached.subscribe();
        let is_over = |reached: &Reached| reached.through >= Some(through) || reached.is_errored || reached.is_gone;
        let Ok(reached) = reached.wait_for(is_over).await.map(|reached| *reached) else { return false };
        if reached.through >= Some(through) || !reached.is_gone {
            return reached.through >= Some(through);
        }
        match registry.get(&name).map(newest) {
            Some(next) if !Arc::ptr_eq(&next, &index) => index = next,
            _ => return true,
        }
    }
}
