//! The check of one commit, whole, before anything of it counts: what is allowed, and what has to be written for it.
//!
//! Order within a commit: conditions, claims taken, operations, tombstones removed, rows, claims released. On any refusal the state is put back.
//! Invariant of the feed: at most one row for each (collection, id); a live document has no tombstone in its collection.
//!
//! Next on the walk: `rows`.

use std::borrow::Cow;
use std::sync::Arc;

use super::state::{State, Version};
use super::{Author, ClaimChange, Commit, Condition, Expected, Operation, OperationResult, Purge, PutId, RowChange};
use crate::id::{DocumentId, IdRules, identity, lower, server_side};
use crate::store::StoreError;
use crate::store::codec::ClaimRecord;
use crate::store::collections::check_name;
use crate::store::document::Document;
use crate::store::engine::Engine;
use crate::store::keyspace::{CollectionNumber, Family, after_prefix};
use crate::store::meta;
use crate::store::previous::Keeper;

/// What has to be written for an accepted commit, in order, besides its index rows.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) effects: Vec<Effect>,
    pub(super) results: Vec<OperationResult>,
    /// The last etag that is given out with this commit.
    pub(super) last_etag: u64,
}

/// One thing to write.
#[derive(Debug)]
pub(super) enum Effect {
    /// A document and its two feed rows; `operation` holds the content.
    PutDocument { operation: usize, lower: String, version: Arc<Version>, modified_micros: i64 },
    /// A document goes.
    DeleteDocument { lower: String },
    /// Feed rows go that a newer write supersedes.
    RemoveFeedRows { collection: CollectionNumber, etag: u64 },
    /// A tombstone and its two feed rows; `former` is what was deleted.
    PutTombstone { lower: String, former: Arc<Version>, etag: u64 },
    /// A tombstone goes.
    RemoveTombstone { lower: String, collection: CollectionNumber },
    /// A version that is overwritten or deleted is kept for a reader that has seen it.
    KeepPrevious { lower: String, reader: u64, etag: u64 },
    /// A claim comes or goes.
    Claim { lower_collection: String, claim: Option<ClaimRecord> },
}

/// What a plan is made with.
pub(super) struct Planner<'p> {
    pub(super) engine: &'p Engine,
    pub(super) rules: &'p IdRules,
    pub(super) incarnation: &'p str,
    pub(super) now_micros: i64,
    /// For whom versions are kept.
    pub(super) keepers: &'p [Keeper],
}

impl Planner<'_> {
    /// Plans a commit and moves the state on; a refused commit leaves the state as it was.
    pub(super) fn plan(&self, state: &mut State, commit: &Commit, internal: bool) -> Result<Plan, StoreError> {
        state.begin();
        let plan = self.plan_all(state, commit, internal);
        match &plan {
            Ok(_) => commit.rows.iter().for_each(|row| state.note_row(row)),
            Err(_) => state.undo(),
        }
        plan
    }

    fn plan_all(&self, state: &mut State, commit: &Commit, internal: bool) -> Result<Plan, StoreError> {
        let mut plan = Plan::default();
        for condition in &commit.conditions {
            self.check_condition(state, condition)?;
        }
        for claim in &commit.claims {
            if let ClaimChange::Take { collection, owner, owner_name } = claim {
                let claim =
                    ClaimRecord { owner: *owner, owner_name: owner_name.clone(), collection: collection.clone() };
                take_claim(state, &mut plan, claim)?;
            }
        }
        for (index, operation) in commit.operations.iter().enumerate() {
            match operation {
                Operation::Put { id, document, expected, .. } => {
                    let author = Writer { author: commit.author, operation: index };
                    self.put(state, &mut plan, author, id, document, expected)?;
                }
                Operation::Delete { id, expected } => {
                    let author = Writer { author: commit.author, operation: index };
                    self.delete(state, &mut plan, author, id, expected)?;
                }
                Operation::Check { id, expected } => {
                    let present = state.version(self.engine, id.lower())?;
                    check_expected(id, expected, present.as_deref())?;
                    plan.results.push(OperationResult::Checked { id: id.as_str().to_owned() });
                }
            }
        }
        if !internal {
            commit.rows.iter().try_for_each(check_row)?;
            check_purges(&commit.purges)?;
        }
        for purge in &commit.purges {
            self.purge(state, &mut plan, purge)?;
        }
        for claim in &commit.claims {
            if let ClaimChange::Release { collection } = claim {
                let lower_collection = lower(collection);
                state.set_claim(&lower_collection, None);
                plan.effects.push(Effect::Claim { lower_collection, claim: None });
            }
        }
        plan.last_etag = state.totals.last_etag;
        Ok(plan)
    }

    fn check_condition(&self, state: &State, condition: &Condition) -> Result<(), StoreError> {
        let Condition::MetaIs { name, value } = condition;
        if state.meta(self.engine, name.as_bytes())? == *value {
            return Ok(());
        }
        Err(StoreError::Condition(format!("'{name}' was changed in the meantime; look again and repeat the change")))
    }

    fn put(
        &self,
        state: &mut State,
        plan: &mut Plan,
        writer: Writer,
        id: &PutId,
        document: &Document,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        let collection = state.collection(&document.collection)?;
        let id = self.finish(state, id, writer.operation)?;
        let former = state.version(self.engine, id.lower())?;
        writer.may_write(state, &id, Some(collection), former.as_deref())?;
        check_expected(&id, expected, former.as_deref())?;

        let lower = || id.lower().to_owned();
        let mut documents = 1;
        if let Some(former) = former {
            self.keep(state, plan, id.lower(), &former);
            plan.effects.push(Effect::RemoveFeedRows { collection: former.collection, etag: former.etag });
            if former.collection == collection {
                documents = 0;
            } else {
                let etag = state.next_etag();
                state.count(former.collection, -1, 1, Some(etag));
                state.set_tombstone(former.collection, id.lower(), Some(etag));
                plan.effects.push(Effect::PutTombstone { lower: lower(), former, etag });
            }
        }
        let mut tombstones = 0;
        if documents == 1
            && let Some(etag) = state.tombstone(self.engine, collection, id.lower())?
        {
            tombstones = -1;
            state.set_tombstone(collection, id.lower(), None);
            plan.effects.push(Effect::RemoveTombstone { lower: lower(), collection });
            plan.effects.push(Effect::RemoveFeedRows { collection, etag });
        }
        let etag = state.next_etag();
        state.count(collection, documents, tombstones, Some(etag));
        let change_vector = self.change_vector(etag);
        let version = Version { etag, collection, id: id.as_str().to_owned(), change_vector: change_vector.clone() };
        let (version, modified_micros) = (Arc::new(version), self.now_micros);
        state.set_version(id.lower(), Some(Arc::clone(&version)));
        plan.effects.push(Effect::PutDocument {
            operation: writer.operation,
            lower: lower(),
            version,
            modified_micros,
        });
        plan.results.push(OperationResult::Put {
            id: id.as_str().to_owned(),
            etag,
            change_vector,
            collection: document.collection.clone(),
            modified_micros,
        });
        Ok(())
    }

    fn delete(
        &self,
        state: &mut State,
        plan: &mut Plan,
        writer: Writer,
        id: &DocumentId,
        expected: &Expected,
    ) -> Result<(), StoreError> {
        let former = state.version(self.engine, id.lower())?;
        writer.may_write(state, id, None, former.as_deref())?;
        check_expected(id, expected, former.as_deref())?;
        let written = id.as_str().to_owned();
        let Some(former) = former else {
            let result = OperationResult::Delete { id: written, existed: false, etag: None, change_vector: None };
            plan.results.push(result);
            return Ok(());
        };
        self.keep(state, plan, id.lower(), &former);
        let (etag, lower) = (state.next_etag(), id.lower().to_owned());
        state.count(former.collection, -1, 1, Some(etag));
        state.set_version(&lower, None);
        state.set_tombstone(former.collection, &lower, Some(etag));
        plan.effects.push(Effect::RemoveFeedRows { collection: former.collection, etag: former.etag });
        plan.effects.push(Effect::DeleteDocument { lower: lower.clone() });
        plan.effects.push(Effect::PutTombstone { lower, former, etag });
        let change_vector = Some(self.change_vector(etag));
        plan.results.push(OperationResult::Delete { id: written, existed: true, etag: Some(etag), change_vector });
        Ok(())
    }

    /// Takes a tombstone away, with its rows in the feed. Takes no etag.
    fn purge(&self, state: &mut State, plan: &mut Plan, purge: &Purge) -> Result<(), StoreError> {
        let Purge { collection, lower, etag } = purge;
        if state.tombstone(self.engine, *collection, lower)? != Some(*etag) {
            return Ok(());
        }
        state.count(*collection, 0, -1, None);
        state.set_tombstone(*collection, lower, None);
        plan.effects.push(Effect::RemoveTombstone { lower: lower.clone(), collection: *collection });
        plan.effects.push(Effect::RemoveFeedRows { collection: *collection, etag: *etag });
        Ok(())
    }

    /// Keeps a version that is about to go for those who have seen it.
    fn keep(&self, state: &State, plan: &mut Plan, lower: &str, former: &Version) {
        for keeper in self.keepers {
            if former.etag <= keeper.seen_through
                && keeper.collection == state.collections.lower_name(former.collection)
            {
                let (lower, etag) = (lower.to_owned(), former.etag);
                plan.effects.push(Effect::KeepPrevious { lower, reader: keeper.reader, etag });
            }
        }
    }

    /// Finishes the id of a put.
    fn finish<'i>(
        &self,
        state: &mut State,
        id: &'i PutId,
        operation: usize,
    ) -> Result<Cow<'i, DocumentId>, StoreError> {
        match id {
            PutId::Given(id) => Ok(Cow::Borrowed(id)),
            PutId::MustBeNew(id) => match state.version(self.engine, id.lower())? {
                None => Ok(Cow::Borrowed(id)),
                Some(present) => Err(StoreError::Taken { id: present.id.clone(), operation }),
            },
            PutId::ServerSide(prefix) => {
                // The etag of this write; where somebody has taken its id by hand, a later one. A document that is new to its
                // id takes no etag before its own.
                let last = state.totals.last_etag;
                let is_taken = |etag| {
                    let id = server_side::finish(prefix, etag, self.rules)?;
                    Ok::<_, StoreError>(state.version(self.engine, id.lower())?.is_some())
                };
                let etag = identity::free_number(last, is_taken)?
                    .ok_or_else(|| StoreError::Condition("the database has no etags left".to_owned()))?;
                state.totals.last_etag = etag - 1;
                Ok(Cow::Owned(server_side::finish(prefix, etag, self.rules)?))
            }
        }
    }

    fn change_vector(&self, etag: u64) -> String {
        format!("{}:{etag}-{}", self.rules.node_tag, self.incarnation)
    }
}

/// Whose operation it is.
#[derive(Clone, Copy)]
struct Writer {
    author: Author,
    operation: usize,
}

impl Writer {
    /// Checks a write against the claims: into `collection` (`None`: a delete), over `former`.
    fn may_write(
        self,
        state: &State,
        id: &DocumentId,
        collection: Option<CollectionNumber>,
        former: Option<&Version>,
    ) -> Result<(), StoreError> {
        let claim = |number| state.claims.of_collection(state.collections.lower_name(number));
        match self.author {
            Author::User if state.claims.is_empty() => Ok(()),
            Author::User => {
                // A user's own document that stood under the id before the claim can still be deleted: it is in the way.
                let may_clear = collection.is_none() && former.is_some();
                let owner = collection
                    .and_then(claim)
                    .or_else(|| claim(former?.collection))
                    .or_else(|| state.claims.of_id(id.lower()).filter(|_| !may_clear));
                owner.map_or(Ok(()), |claim| Err(owned(id, claim)))
            }
            Author::Index(index) => {
                // A reference document must not take an id that another index's results may need.
                let artificial =
                    state.claims.of_id(id.lower()).filter(|claim| collection.is_some() && claim.owner != index);
                if let Some(claim) = artificial {
                    return Err(owned(id, claim));
                }
                if let Some(number) = collection {
                    match claim(number) {
                        Some(claim) if claim.owner == index => {}
                        Some(claim) => return Err(owned(id, claim)),
                        None => {
                            return Err(StoreError::Condition(format!(
                                "an index may write only into a collection that it has claimed, and '{}' is not claimed",
                                state.collections.name(number)
                            )));
                        }
                    }
                }
                let foreign = former.filter(|former| claim(former.collection).is_none_or(|claim| claim.owner != index));
                match foreign {
                    None => Ok(()),
                    Some(former) => Err(StoreError::Foreign {
                        id: former.id.clone(),
                        collection: state.collections.name(former.collection).to_owned(),
                        operation: self.operation,
                    }),
                }
            }
        }
    }
}

fn owned(id: &DocumentId, claim: &ClaimRecord) -> StoreError {
    StoreError::Owned {
        id: id.as_str().to_owned(),
        collection: claim.collection.clone(),
        index: claim.owner_name.clone(),
    }
}

fn check_expected(id: &DocumentId, expected: &Expected, former: Option<&Version>) -> Result<(), StoreError> {
    let expected = match (expected, former) {
        (Expected::Any, _) | (Expected::New, None) => return Ok(()),
        (Expected::ChangeVector(expected), Some(former)) if *expected == former.change_vector => return Ok(()),
        (Expected::New, Some(_)) => String::new(),
        (Expected::ChangeVector(expected), _) => expected.clone(),
    };
    Err(StoreError::Concurrency {
        id: id.as_str().to_owned(),
        expected,
        actual: former.map(|former| former.change_vector.clone()),
    })
}

fn take_claim(state: &mut State, plan: &mut Plan, claim: ClaimRecord) -> Result<(), StoreError> {
    let ClaimRecord { owner, owner_name, collection } = &claim;
    check_name(collection)?;
    let refused = |reason: String| {
        Err(StoreError::Condition(format!("index '{owner_name}' can't write the collection '{collection}': {reason}")))
    };
    if collection.starts_with('@') {
        return refused("names that begin with '@' are reserved; choose another one".to_owned());
    }
    let lower_collection = lower(collection);
    match state.claims.of_collection(&lower_collection) {
        Some(present) if present.owner != *owner => {
            let index = present.owner_name.clone();
            return refused(format!("it belongs to index '{index}'; choose another one, or delete that index"));
        }
        Some(_) => {}
        None => {
            let documents =
                state.collections.find(&lower_collection).map_or(0, |it| state.collections.counts(it).documents);
            if documents > 0 {
                return refused(format!(
                    "it holds {documents} document{}; delete or move them first, or choose another collection",
                    if documents == 1 { "" } else { "s" }
                ));
            }
        }
    }
    state.set_claim(&lower_collection, Some(claim.clone()));
    plan.effects.push(Effect::Claim { lower_collection, claim: Some(claim) });
    Ok(())
}

fn check_purges(purges: &[Purge]) -> Result<(), StoreError> {
    if purges.is_empty() {
        return Ok(());
    }
    Err(StoreError::Condition("tombstones are removed by the store itself; call Store::purge_tombstones".to_owned()))
}

/// Rows of other rooms may stand in the families of generations, and in `meta` under names that are not the store's own.
fn check_row(row: &RowChange) -> Result<(), StoreError> {
    let own = meta::OWN.as_bytes();
    let (family, touches_own) = match row {
        RowChange::Put { family, key, .. } | RowChange::Delete { family, key } => (*family, key.starts_with(own)),
        RowChange::DeleteRange { family, range } => {
            let ends_before = range.before.as_ref().is_some_and(|before| before.as_slice() <= own);
            let begins_after = after_prefix(own).is_some_and(|end| end <= range.from);
            (*family, !ends_before && !begins_after)
        }
    };
    if Family::OF_GENERATIONS.contains(&family) || (family == Family::Meta && !touches_own) {
        return Ok(());
    }
    Err(StoreError::Condition(format!(
        "rows of the family '{}'{} are the store's own; a commit changes them by its operations and claims",
        family.name(),
        if family == Family::Meta { " that begin with 'store/'" } else { "" }
    )))
}
