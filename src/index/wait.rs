//! Waiting until indexes have taken in what was written, along the whole chain of indexes.

use std::sync::Arc;
use std::time::Duration;

use super::graph;
use super::live::{Index, Reached};
use super::registry::Registry;

/// Waits until the indexes (all, or those named with all they feed on and that feed on them) have taken in everything written before the
/// call. Returns the names of those that have not in time; empty when all have. One that was stopped for its faults is not waited for, and
/// is among those that have not; where a definition changes meanwhile its build is waited for, and one that is deleted no longer counts.
/// What they wrote is durable when this returns.
///
/// # Cancel safety
/// Dropping the future has no effect on the indexes.
pub(crate) async fn wait(registry: &Registry, names: Option<Vec<String>>, timeout: Duration) -> Vec<String> {
    let indexes = registry.all();
    let nodes: Vec<_> = indexes.iter().map(|index| index.checked.node()).collect();
    let wanted = names.map(|names| graph::connected(&nodes, &names));
    let ordered = graph::order(&nodes).into_iter().filter(|n| wanted.as_ref().is_none_or(|wanted| wanted.contains(n)));
    let ordered: Vec<Arc<Index>> = ordered.filter_map(|n| indexes.get(n).cloned()).collect();
    let deadline = tokio::time::Instant::now() + timeout;
    let mut stale = Vec::new();
    for index in &ordered {
        if !tokio::time::timeout_at(deadline, wait_for_one(registry, Arc::clone(index))).await.unwrap_or(false) {
            stale.push(index.context.name.to_string());
        }
    }
    if stale.is_empty() && tokio::time::timeout_at(deadline, registry.durable()).await.is_err() {
        stale.extend(ordered.iter().map(|index| index.context.name.to_string()));
    }
    stale
}

/// Waits until an index, or what takes its place, has taken in everything written before the call. `false`: it does not go on.
async fn wait_for_one(registry: &Registry, mut index: Arc<Index>) -> bool {
    // Indexes before this one have written their outputs by now.
    let through = registry.written();
    loop {
        let mut reached = index.reached.subscribe();
        let is_over = |reached: &Reached| reached.through >= Some(through) || reached.is_errored || reached.is_gone;
        let Ok(reached) = reached.wait_for(is_over).await.map(|reached| *reached) else { return false };
        if reached.through >= Some(through) || !reached.is_gone {
            return reached.through >= Some(through);
        }
        match registry.get(&index.context.name) {
            Some(next) if !Arc::ptr_eq(&next, &index) => index = next,
            _ => return true,
        }
    }
}
