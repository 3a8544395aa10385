//! Queries, for programs that embed a database and for the server.
//!
//! Next on the walk: `query`.

use super::Database;
use crate::index::ranges::{self, Answered, Asked, Go};
use crate::index::standing::Standing;
use crate::query::{Prepared, QueryError, Request, Summary};
use crate::script::Fault;
use crate::store::StoreError;

impl Database {
    /// Asks a query, in RQL, and calls `each` with every row as JSON text, documents with their `@metadata`. Blocking; read
    /// from one snapshot. Results of indexes are as current as the indexes are: see [`Database::wait_for_indexes`].
    ///
    /// # Errors
    /// The query is refused, with the place of the fault; it needs more memory than it may have; the storage fails.
    ///
    /// # Cost
    /// [`Summary::plan`] and [`Summary::read`] tell it afterwards.
    pub fn query(&self, request: &Request, mut each: impl FnMut(&str)) -> Result<Summary, QueryError> {
        let prepared = self.prepare_query(request)?;
        let mut text = Vec::new();
        prepared.run(&self.store().snapshot(), &|| false, &mut |row| {
            text.clear();
            prepared.write(row, false, &mut text);
            each(&String::from_utf8_lossy(&text));
            Ok::<(), QueryError>(())
        })
    }

    /// Reads a query and checks all that can be checked without the documents.
    pub(crate) fn prepare_query(&self, request: &Request) -> Result<Prepared, QueryError> {
        let registry = &self.registry;
        Prepared::prepare(request, |name| registry.queried(name), |collection| registry.secondary(collection))
    }

    /// The index whose results a query reads: the one it names, or the one that owns the collection.
    pub(crate) fn index_behind(&self, prepared: &Prepared) -> Result<Option<String>, StoreError> {
        if let Some(name) = &prepared.index {
            return Ok(Some(name.clone()));
        }
        let Some(collection) = prepared.collection() else { return Ok(None) };
        let claim = self.store().snapshot().claim(collection)?;
        Ok(claim.map(|claim| claim.owner_name))
    }

    /// Whether an index has a reduce. `None`: there is no such index.
    pub(crate) fn index_reduces(&self, name: &str) -> Option<bool> {
        self.registry.get(name).map(|index| index.context.program.has_reduce)
    }

    /// Gives what is asked of an index by keys to `each`, from one snapshot.
    ///
    /// # Errors
    /// A read failed, or `each` did. An index that has gone has no rows.
    pub(crate) fn index_rows<E: From<StoreError> + From<Fault>>(
        &self,
        name: &str,
        asked: &Asked,
        each: &mut dyn FnMut(Answered) -> Result<Go, E>,
    ) -> Result<(), E> {
        match self.registry.get(name) {
            Some(index) => ranges::answer(&index.context, &self.store().snapshot(), asked, each),
            None => Ok(()),
        }
    }

    /// How an index stands now; to be asked before the snapshot is taken that is read.
    pub(crate) fn index_standing(&self, name: &str) -> Result<Option<Standing>, StoreError> {
        self.registry.standing(name, &self.store().snapshot())
    }
}
