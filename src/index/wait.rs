//! Waiting until indexes have taken in what was written, along the whole chain of indexes.

use std::sync::Arc;
use std::time::Duration;

use super::graph;
use super::live::Index;
use crate::store::Store;

/// Waits until the indexes (all, or those named with all they feed on and that feed on them) have taken in everything written before the
/// call. Returns the names of those that have not in time; empty when all have. One that was stopped for its faults is not waited for, and
/// is among those that have not.
///
/// # Cancel safety
/// Dropping the future has no effect on the indexes.
pub(crate) async fn wait(
    store: &Store,
    indexes: Vec<Arc<Index>>,
    names: Option<Vec<String>>,
    timeout: Duration,
) -> Vec<String> {
    let nodes: Vec<_> = indexes.iter().map(|index| index.checked.node()).collect();
    let wanted = names.map(|names| graph::connected(&nodes, &names));
    let ordered = graph::order(&nodes).into_iter().filter(|n| wanted.as_ref().is_none_or(|wanted| wanted.contains(n)));
    let ordered: Vec<Arc<Index>> = ordered.filter_map(|n| indexes.get(n).cloned()).collect();
    let deadline = tokio::time::Instant::now() + timeout;
    let mut stale = Vec::new();
    for index in ordered {
        // Indexes before this one have written their outputs by now.
        let through = store.progress().written;
        let mut reached = index.reached.subscribe();
        let is_there = reached.wait_for(|reached| reached.through >= Some(through) || reached.is_errored);
        match tokio::time::timeout_at(deadline, is_there).await {
            Ok(Ok(reached)) if reached.through >= Some(through) => {}
            _ => stale.push(index.context.name.to_string()),
        }
    }
    stale
}
