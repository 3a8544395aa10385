//! A snapshot that borrows from nobody: it holds the store it looks at.

use std::sync::Arc;

use super::Snapshot;
use crate::store::Store;

self_cell::self_cell!(
    struct Held {
        owner: Store,
        #[covariant]
        dependent: Snapshot,
    }
);

/// A consistent view of a database that can be kept where nothing can be borrowed. Cheap to clone; deleted data stays on
/// disk until the last clone goes.
#[derive(Clone)]
pub struct SharedSnapshot {
    held: Arc<Held>,
}

impl SharedSnapshot {
    /// Takes the view.
    pub(in crate::store) fn new(store: Store) -> Self {
        Self { held: Arc::new(Held::new(store, Store::snapshot)) }
    }

    /// The snapshot.
    #[must_use]
    pub fn get(&self) -> &Snapshot<'_> {
        self.held.borrow_dependent()
    }
}

impl std::fmt::Debug for SharedSnapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}
