//! What can be asked about indexes: how far they have come, what a definition would do, why a value is what it is, whether all
//! rows are right.
//!
//! Next on the walk: `index::tryout`, `index::explain`, `index::verify`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Database, DatabaseError};
use crate::id::DocumentId;
use crate::index::context::feeds;
use crate::index::definition::IndexDefinition;
use crate::index::explain::{self, ExplainError, Explanation, Page};
use crate::index::progress::{IndexProgress, progress};
use crate::index::status::{IndexState, IndexStatus};
use crate::index::tryout::{SAMPLE_BYTES_MAX, SAMPLES_MAX, Sample, TryOut, TryOutError, try_out_from};
use crate::index::verify::{
    Difference, DifferenceKind, Listener, REPORT_EVERY, Verified, VerifyError, VerifyEvent, drop_generation,
    stray_generations, verify,
};
use crate::script::{Limits, Program, STACK_BYTES};
use crate::store::StoreError;
use crate::store::changes::ChangeKind;
use crate::store::commit::{Author, Commit, Operation};
use crate::store::document::StoredDocument;
use crate::store::scan::Direction;

/// Which stored documents a definition is tried on.
#[derive(Clone, Debug)]
pub enum Chosen {
    /// These; one that is not there is left out.
    Ids(Vec<String>),
    /// The newest of each source collection, at most so many in all.
    Newest(usize),
}

/// What to verify.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The index; `None`: documents, feeds and counts, and all indexes.
    pub index: Option<String>,
    /// Whether to mend what differs: artificial documents are written again, an index whose rows differ is built anew.
    pub repair: bool,
    /// How long to wait for an index that is being built.
    pub patience: Duration,
}

/// The time that an index gets to take in what it has not, before it is verified with some documents waiting.
const CATCH_UP: Duration = Duration::from_secs(5);

impl Database {
    /// Tries a definition out on stored documents. Nothing is written. Blocking.
    ///
    /// # Errors
    /// The definition is refused by itself, or a read failed. What its scripts do wrong stands in the [`TryOut`].
    ///
    /// # Cost
    /// See [`try_out`](crate::index::tryout::try_out); at most 10,000 documents of together 64 MiB are read.
    pub fn try_index(&self, definition: IndexDefinition, chosen: &Chosen) -> Result<TryOut, DatabaseError> {
        let samples = self.samples(&definition, self.script_limits(), chosen)?;
        self.try_index_on(definition, samples)
    }

    /// Tries a definition out on documents that need not be stored. Nothing is written. Blocking.
    ///
    /// # Errors
    /// The definition is refused by itself.
    ///
    /// # Cost
    /// See [`try_out`](crate::index::tryout::try_out).
    pub fn try_index_on(&self, definition: IndexDefinition, samples: Vec<Sample>) -> Result<TryOut, DatabaseError> {
        let name = definition.name.clone();
        try_out_from(definition, self.script_limits(), samples, Some(self.store.shared_snapshot())).map_err(|error| {
            match error {
                TryOutError::Script(fault) => DatabaseError::Script { name, fault },
                TryOutError::Definition(reason) => DatabaseError::Definition { name, reason },
                TryOutError::Thread(detail) => DatabaseError::Store(StoreError::Closed(detail)),
            }
        })
    }

    fn samples(
        &self,
        definition: &IndexDefinition,
        limits: &Limits,
        chosen: &Chosen,
    ) -> Result<Vec<Sample>, DatabaseError> {
        let snapshot = self.store.snapshot();
        let mut samples = Samples::default();
        match chosen {
            Chosen::Ids(ids) => {
                for id in ids {
                    let id = DocumentId::existing(id).map_err(StoreError::from)?;
                    if !samples.take(snapshot.get(&id)?, SAMPLES_MAX) {
                        break;
                    }
                }
            }
            Chosen::Newest(count) => {
                let program = Program::compile(definition.texts.clone(), limits.clone());
                let program = program
                    .map_err(|fault| DatabaseError::Script { name: definition.name.clone(), fault: Box::new(fault) })?;
                let feeds = feeds(&program);
                let each = count.div_ceil(feeds.len().max(1));
                for (n, feed) in feeds.iter().enumerate() {
                    let through = snapshot.progress().written;
                    for change in snapshot.changes(feed, 0, through, Direction::Backward) {
                        let change = change?;
                        if change.kind == ChangeKind::Put
                            && !samples.take(snapshot.get(&DocumentId::stored(&change.id))?, each * (n + 1))
                        {
                            break;
                        }
                    }
                }
            }
        }
        Ok(samples.documents)
    }

    /// How far the indexes have come, in the order of [`Database::index_status`]: done and to do, what failed last, whether they are stuck.
    ///
    /// # Errors
    /// Where the storage fails.
    ///
    /// # Cost
    /// That of [`Database::index_status`], and a look-up for each source.
    pub fn index_progress(&self) -> Result<Vec<IndexProgress>, DatabaseError> {
        let snapshot = self.store.snapshot();
        let look = |status: IndexStatus| progress(self.registry.get(&status.name).as_deref(), status, &snapshot);
        Ok(self.index_status()?.into_iter().map(look).collect::<Result<_, _>>()?)
    }

    /// Explains a document: what it was made of, and what it feeds. Blocking.
    ///
    /// # Errors
    /// [`ExplainError`].
    ///
    /// # Cost
    /// One page of entries and their documents; a look-up in every index for each document on the way up, 1,000 groups at most.
    pub fn explain(&self, id: &str, page: &Page) -> Result<Explanation, ExplainError> {
        let id = DocumentId::existing(id).map_err(StoreError::from)?;
        explain::document(&self.store, &self.registry, &id, page)
    }

    /// Explains the group of an index that has this reduce key, given as JSON. Blocking.
    ///
    /// # Errors
    /// [`ExplainError`].
    ///
    /// # Cost
    /// That of [`Database::explain`].
    pub fn explain_group(&self, index: &str, key: &str, page: &Page) -> Result<Explanation, ExplainError> {
        let missing = || ExplainError::Missing(format!("there is no index '{index}'"));
        let index = self.registry.get(index).ok_or_else(missing)?;
        explain::key(&self.store, &self.registry, &index, key, page)
    }

    /// Verifies everything, or one index, while it serves, and tells the listener of each difference. Blocking. Returns the
    /// number of differences that are left; `None` where the listener ended it.
    ///
    /// # Errors
    /// [`DatabaseError::NoIndex`]; [`DatabaseError::StillStale`] where an index is not built in time; a read failed.
    ///
    /// # Cost
    /// Reads every document and all rows of the index, and runs its scripts on all of them, in one thread. A snapshot is held
    /// meanwhile, which keeps deleted data on disk.
    pub fn verify(&self, options: &VerifyOptions, listener: Listener<'_>) -> Result<Option<u64>, DatabaseError> {
        let thread = std::thread::Builder::new().name("verify".to_owned()).stack_size(STACK_BYTES);
        std::thread::scope(|scope| {
            let verifying = thread.spawn_scoped(scope, || Verifier { database: self, options, listener }.run());
            let verifying =
                verifying.map_err(|error| StoreError::Closed(format!("no thread could be started: {error}")))?;
            verifying.join().map_err(|_| StoreError::Closed("the verification ended early".to_owned()))?
        })
    }
}

/// Documents to try a definition on, within bounds.
#[derive(Default)]
struct Samples {
    documents: Vec<Sample>,
    bytes: usize,
}

impl Samples {
    /// Takes a document; `false` where there is no room for another.
    fn take(&mut self, document: Option<StoredDocument>, most: usize) -> bool {
        if let Some(document) = document {
            let StoredDocument { id, collection, metadata, body, .. } = document;
            self.bytes += body.len();
            self.documents.push(Sample { id, collection, metadata, body });
        }
        self.documents.len() < most.min(SAMPLES_MAX) && self.bytes < SAMPLE_BYTES_MAX
    }
}

/// A verification under way.
struct Verifier<'a> {
    database: &'a Database,
    options: &'a VerifyOptions,
    listener: Listener<'a>,
}

impl Verifier<'_> {
    fn run(mut self) -> Result<Option<u64>, DatabaseError> {
        let names = match &self.options.index {
            Some(name) => vec![name.clone()],
            None => self.database.registry.all().iter().map(|index| index.context.name.to_string()).collect(),
        };
        let mut left = Some(0);
        if self.options.index.is_none() {
            left = self.documents()?;
        }
        for name in names {
            let Some(before) = left else { return Ok(None) };
            left = self.index(&name)?.map(|more| before + more);
        }
        if self.options.index.is_none()
            && let Some(before) = left
        {
            left = self.stray_generations()?.map(|more| before + more);
        }
        Ok(left)
    }

    /// Documents, feeds and counts: the store's own invariants, which nothing can mend.
    fn documents(&mut self) -> Result<Option<u64>, DatabaseError> {
        let (snapshot, mut is_over, mut last) = (self.database.store.snapshot(), false, Instant::now());
        let details = snapshot.verify_while(&mut |rows| {
            if last.elapsed() >= REPORT_EVERY {
                last = Instant::now();
                let index = "documents, feeds and counts".to_owned();
                let found = Verified { index, documents: rows, ..Verified::default() };
                is_over = (self.listener)(VerifyEvent::Progress(found)).is_break();
            }
            !is_over
        })?;
        if is_over {
            return Ok(None);
        }
        let mut count = 0;
        for detail in details {
            count += 1;
            let (kind, family, place) = (DifferenceKind::Changed, "documents", String::new());
            let difference = Difference { index: None, kind, family, place, detail };
            if self.tell(VerifyEvent::Difference(difference)).is_break() {
                return Ok(None);
            }
        }
        Ok(Some(count))
    }

    fn stray_generations(&mut self) -> Result<Option<u64>, DatabaseError> {
        let store = &self.database.store;
        let strays = stray_generations(&store.snapshot())?;
        let mut left = 0;
        for (generation, families) in strays {
            left += families.len() as u64;
            for family in &families {
                let difference = Difference {
                    index: None,
                    kind: DifferenceKind::Foreign,
                    family: family.name(),
                    place: format!("generation {}", generation.0),
                    detail: "no index knows this generation".to_owned(),
                };
                if self.tell(VerifyEvent::Difference(difference)).is_break() {
                    return Ok(None);
                }
            }
            if self.options.repair {
                drop_generation(store, generation)?;
                left -= families.len() as u64;
                let what = format!("deleted the rows of generation {}", generation.0);
                if self.tell(VerifyEvent::Mended { index: None, done: true, what }).is_break() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(left))
    }

    /// Verifies one index; where something is mended it is verified again.
    fn index(&mut self, name: &str) -> Result<Option<u64>, DatabaseError> {
        let first_wait = CATCH_UP.min(self.options.patience);
        let Some(found) = self.round(name, self.options.repair, first_wait)? else { return Ok(None) };
        let (rows_differ, differences) = (found.rows_differ, found.differences());
        if !self.options.repair || differences == 0 {
            return Ok(Some(differences));
        }
        let (done, what) = match (rows_differ, self.state(name)?) {
            (0, _) => (true, "wrote its documents again".to_owned()),
            (_, IndexState::Normal | IndexState::Error) => {
                self.database.reset_index(name)?;
                (true, "builds it anew".to_owned())
            }
            (_, state) => (false, format!("it is {state:?} and can't be built anew; let it run first")),
        };
        let told = self.tell(VerifyEvent::Mended { index: Some(name.to_owned()), done, what });
        match (told, done) {
            (ControlFlow::Break(()), _) => Ok(None),
            (_, false) => Ok(Some(differences)),
            (_, true) => self.second_round(name),
        }
    }

    /// Verifies an index that was mended: where it is built anew, when that has taken its place.
    fn second_round(&mut self, name: &str) -> Result<Option<u64>, DatabaseError> {
        let begun = Instant::now();
        if !self.catch_up(name, self.options.patience)? {
            return Ok(None);
        }
        let registry = &self.database.registry;
        if let (Some(newest), Some(serving)) = (registry.newest(name), registry.get(name))
            && !Arc::ptr_eq(&newest, &serving)
        {
            return Err(DatabaseError::StillStale { waited: begun.elapsed(), indexes: vec![name.to_owned()] });
        }
        Ok(self.round(name, false, CATCH_UP.min(self.options.patience))?.map(|found| found.differences()))
    }

    /// Verifies an index once, as soon as it is built; before, it gets some time to take in what it has not.
    fn round(&mut self, name: &str, mends: bool, wait: Duration) -> Result<Option<Verified>, DatabaseError> {
        let begun = Instant::now();
        if !self.catch_up(name, wait)? {
            return Ok(None);
        }
        loop {
            let missing = || DatabaseError::NoIndex { name: name.to_owned() };
            let index = self.database.registry.get(name).ok_or_else(missing)?;
            let watermarks = index.progress.lock().watermarks.clone();
            let store = &self.database.store;
            let snapshot = store.shared_snapshot();
            let number = index.context.number;
            let mut mend = |operation: Operation| {
                let author = Author::Index(number);
                match store.commit(Commit { author, operations: vec![operation], ..Commit::default() }) {
                    Ok(_) => Ok(true),
                    Err(StoreError::Concurrency { .. }) => Ok(false),
                    Err(error) => Err(error),
                }
            };
            let mend = if mends { Some(&mut mend as _) } else { None };
            let verified = verify(&index, watermarks, &snapshot, mend, &mut *self.listener);
            drop(snapshot);
            match verified {
                Ok(found) => {
                    let told = self.tell(VerifyEvent::Verified(found.clone()));
                    return Ok(told.is_continue().then_some(found));
                }
                Err(VerifyError::Ended) => return Ok(None),
                Err(VerifyError::Store(error)) => return Err(error.into()),
                Err(VerifyError::Script(fault)) => return Err(DatabaseError::Script { name: name.to_owned(), fault }),
                Err(VerifyError::Building(_)) => {
                    let left = self.options.patience.saturating_sub(begun.elapsed());
                    if left.is_zero() || self.state(name)? != IndexState::Normal {
                        let indexes = vec![name.to_owned()];
                        return Err(DatabaseError::StillStale { waited: begun.elapsed(), indexes });
                    }
                    if !self.catch_up(name, left)? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Waits for an index that runs, not for ever. `false`: the listener has heard enough.
    fn catch_up(&mut self, name: &str, patience: Duration) -> Result<bool, DatabaseError> {
        let begun = Instant::now();
        while self.state(name)? == IndexState::Normal {
            let left = patience.saturating_sub(begun.elapsed());
            match self.database.wait_for_indexes(Some(&[name.to_owned()]), left.min(REPORT_EVERY)) {
                Err(DatabaseError::StillStale { .. }) if !left.is_zero() => {
                    let found = Verified { index: name.to_owned(), took: begun.elapsed(), ..Verified::default() };
                    if self.tell(VerifyEvent::Progress(found)).is_break() {
                        return Ok(false);
                    }
                }
                Err(DatabaseError::StillStale { .. }) | Ok(()) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn state(&self, name: &str) -> Result<IndexState, DatabaseError> {
        let index = self.database.registry.get(name);
        Ok(index.ok_or_else(|| DatabaseError::NoIndex { name: name.to_owned() })?.state())
    }

    fn tell(&mut self, event: VerifyEvent) -> ControlFlow<()> {
        (self.listener)(event)
    }
}
