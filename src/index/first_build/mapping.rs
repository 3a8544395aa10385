//! The first phase of a build: threads map chunks of the feed and prepare their rows; the index's thread commits them in order.
//!
//! A document that was written before the generation began, and not since, is seen once: nothing of it can be there yet, so
//! nothing is read. Later ones are compared with what the build has committed; a chunk never holds a document of another
//! chunk that is still on its way.
//!
//! Next on the walk: `sweep`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hasher;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use siphasher::sip::SipHasher13;

use super::super::context::Context;
use super::super::entry::{Entry, EntryChange, EntryChangeKind};
use super::super::faults::Subject;
use super::super::group::settled;
use super::super::loads::DocumentLoader;
use super::super::map::{Contribution, Mapped, map};
use super::super::pace::Pace;
use super::super::planned::GivenUp;
use super::super::records::{GroupRecord, GroupResult, MapDocument, decode, encode};
use super::super::run::colliding;
use super::{BuildError, helpers};
use crate::id::DocumentId;
use crate::script::{Fault, Runner, STACK_BYTES};
use crate::store::StoreError;
use crate::store::changes::Change;
use crate::store::commit::RowChange;
use crate::store::document::StoredDocument;
use crate::store::keyspace::{Family, GroupHash, map_document, map_entry, reduce_group};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Documents of a chunk, at most.
const CHUNK_DOCUMENTS_MAX: usize = 2_048;

/// Documents that a thread reads at once; fewer where those before were large, so that it holds about `READ_BYTES`.
const READ_DOCUMENTS: usize = 32;
const READ_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of rows after which a chunk is cut short: its other documents come in another one.
const CHUNK_ROW_BYTES: usize = 8 * 1024 * 1024;

/// Groups that a thread remembers to have written; at 24 bytes each and some.
const KNOWN_GROUPS_MAX: usize = 500_000;

/// A part of a feed, to be mapped.
struct Chunk {
    number: u64,
    changes: Vec<Change>,
    feed: usize,
    through: u64,
}

/// A mapped part of a feed, to be committed.
#[derive(Debug, Default)]
pub(crate) struct MappedChunk {
    number: u64,
    /// Which feed, and the etag through which this chunk takes it in.
    pub feed: usize,
    pub through: u64,
    /// Rows to write.
    pub rows: Vec<RowChange>,
    /// Documents mapped.
    pub documents: usize,
    took: Duration,
    /// How the number of entries changes.
    pub entries: i64,
    /// Calls, and those that failed.
    pub map_attempts: u64,
    pub map_faults: u64,
    /// Faults by document; `None` clears.
    pub faults: Vec<(Subject, Option<Fault>)>,
    ids: Vec<String>,
    /// What was cut off: still to be mapped, before anything that comes later in the feed is committed.
    rest: Vec<Change>,
}

/// The threads that map, and what is on its way through them.
pub(crate) struct MapPool {
    context: Context,
    chunks: Option<Sender<Chunk>>,
    mapped: Receiver<Result<MappedChunk, BuildError>>,
    threads: Vec<JoinHandle<()>>,
    sent: u64,
    taken: u64,
    early: BTreeMap<u64, MappedChunk>,
    in_flight: HashSet<String>,
    positions: Vec<u64>,
    pace: Pace,
}

impl MapPool {
    /// Starts the threads. `fresh_through`: documents with an etag up to this were never mapped by this generation unless their etag is at
    /// most their feed's watermark.
    pub(crate) fn start(
        context: &Context,
        watermarks: &[u64],
        fresh_through: u64,
        given_up: &GivenUp,
    ) -> Result<Self, BuildError> {
        let (chunks, chunk_queue) = bounded::<Chunk>(helpers());
        let (mapped_queue, mapped) = bounded(helpers() * 2);
        let given_up = Arc::new(given_up.clone());
        let mut threads = Vec::new();
        for n in 0..helpers() {
            let (context, chunk_queue, mapped_queue) = (context.clone(), chunk_queue.clone(), mapped_queue.clone());
            let given_up = Arc::clone(&given_up);
            let thread =
                std::thread::Builder::new().name(format!("map-{}-{n}", context.number)).stack_size(STACK_BYTES);
            let run = move || map_chunks(&context, fresh_through, &given_up, &chunk_queue, &mapped_queue);
            threads.push(thread.spawn(run).map_err(|_| BuildError::Thread)?);
        }
        Ok(Self {
            context: context.clone(),
            chunks: Some(chunks),
            mapped,
            threads,
            sent: 0,
            taken: 0,
            early: BTreeMap::new(),
            in_flight: HashSet::new(),
            positions: watermarks.iter().take(context.source_feeds()).copied().collect(),
            pace: Pace::new(CHUNK_DOCUMENTS_MAX),
        })
    }

    /// Hands out chunks while there is room, and returns the next mapped chunk in feed order; `None` when all feeds have been read to
    /// the end and nothing is on its way.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<MappedChunk>, BuildError> {
        self.feed()?;
        if self.sent == self.taken {
            return Ok(None);
        }
        let chunk = loop {
            if let Some(chunk) = self.early.remove(&self.taken) {
                break chunk;
            }
            let chunk = self.mapped.recv().map_err(|_| BuildError::Thread)??;
            self.early.insert(chunk.number, chunk);
        };
        if chunk.rest.is_empty() {
            self.taken += 1;
        }
        self.pace.learn(chunk.documents, chunk.took);
        Ok(Some(chunk))
    }

    /// Forgets the documents of a chunk that was committed, and hands out what was cut off it.
    pub(crate) fn committed(&mut self, chunk: MappedChunk) -> Result<(), BuildError> {
        for id in &chunk.ids {
            self.in_flight.remove(id);
        }
        if let (Some(last), Some(chunks)) = (chunk.rest.last(), &self.chunks) {
            let (number, feed, through) = (chunk.number, chunk.feed, last.etag);
            let rest = Chunk { number, changes: chunk.rest, feed, through };
            chunks.send(rest).map_err(|_| BuildError::Thread)?;
        }
        Ok(())
    }

    /// Reads the feeds and hands out chunks, as many as there are threads and as many again.
    fn feed(&mut self) -> Result<(), StoreError> {
        let room = (helpers() as u64 * 2).saturating_sub(self.sent - self.taken);
        let store = self.context.store.clone();
        if room == 0 {
            return Ok(());
        }
        let snapshot = store.snapshot();
        for _ in 0..room {
            let Some(chunk) = self.read_chunk(&snapshot)? else { break };
            self.in_flight.extend(chunk.changes.iter().map(|change| crate::id::lower(&change.id)));
            self.sent += 1;
            if let Some(chunks) = &self.chunks
                && chunks.send(chunk).is_err()
            {
                break;
            }
        }
        Ok(())
    }

    /// Reads the next chunk of the first feed that has one. A document that is on its way already ends the chunk before it.
    fn read_chunk(&mut self, snapshot: &Snapshot<'_>) -> Result<Option<Chunk>, StoreError> {
        let written = snapshot.progress().written;
        for (feed, position) in self.positions.iter_mut().enumerate() {
            let Some(source) = self.context.feeds.get(feed) else { continue };
            let mut changes = Vec::new();
            let mut through = *position;
            for change in snapshot.changes(source, *position, written, Direction::Forward) {
                let change = change?;
                if changes.len() >= self.pace.documents() || self.in_flight.contains(&crate::id::lower(&change.id)) {
                    break;
                }
                through = change.etag;
                changes.push(change);
            }
            if !changes.is_empty() {
                *position = through;
                return Ok(Some(Chunk { number: self.sent, changes, feed, through }));
            }
        }
        Ok(None)
    }
}

impl Drop for MapPool {
    fn drop(&mut self) {
        self.chunks = None;
        while self.mapped.recv().is_ok() {}
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}

/// The life of a mapping thread.
fn map_chunks(
    context: &Context,
    fresh_through: u64,
    given_up: &GivenUp,
    chunks: &Receiver<Chunk>,
    mapped: &Sender<Result<MappedChunk, BuildError>>,
) {
    let mut runner = match context.runner() {
        Ok(runner) => runner,
        Err(fault) => {
            drop(
                mapped.send(Err(BuildError::Interrupted { subject: context.name.to_string(), fault: Box::new(fault) })),
            );
            return;
        }
    };
    let mut known = KnownGroups::default();
    while let Ok(chunk) = chunks.recv() {
        let mut work = ChunkWork {
            context,
            given_up,
            runner: &mut runner,
            known: &mut known,
            row_bytes: 0,
            out: MappedChunk {
                number: chunk.number,
                feed: chunk.feed,
                through: chunk.through,
                ..MappedChunk::default()
            },
        };
        let result = work.map(chunk.changes, fresh_through);
        if mapped.send(result.map(|()| work.out)).is_err() {
            return;
        }
    }
}

/// One chunk being mapped.
struct ChunkWork<'a> {
    context: &'a Context,
    given_up: &'a GivenUp,
    runner: &'a mut Runner,
    known: &'a mut KnownGroups,
    out: MappedChunk,
    /// Of keys and values in `out.rows`.
    row_bytes: usize,
}

impl ChunkWork<'_> {
    /// Maps the changes in order, until all are mapped or the rows are too many for one commit.
    fn map(&mut self, mut changes: Vec<Change>, fresh_through: u64) -> Result<(), BuildError> {
        let started = Instant::now();
        let snapshot = self.context.store.shared_snapshot();
        let (mut done, mut page) = (0, READ_DOCUMENTS);
        let loader = DocumentLoader::lend(&snapshot, self.runner);
        while done < changes.len() && self.row_bytes < CHUNK_ROW_BYTES {
            let some = changes.get(done..changes.len().min(done + page)).unwrap_or_default();
            let (mapped, bytes) = self.map_some(snapshot.get(), &loader, some, fresh_through)?;
            done += mapped;
            page = (READ_BYTES * mapped).checked_div(bytes).unwrap_or(READ_DOCUMENTS).clamp(1, READ_DOCUMENTS);
        }
        self.runner.load_from(None);
        self.out.rest = changes.split_off(done);
        self.out.through = self.out.rest.first().and(changes.last()).map_or(self.out.through, |last| last.etag);
        self.out.documents = changes.len();
        self.out.took = started.elapsed();
        // In the order of the keys, neighbours in the write buffer are found in the processor's cache.
        self.out.rows.sort_by(|a, b| a.place().cmp(&b.place()));
        self.out.ids = changes.iter().map(|change| crate::id::lower(&change.id)).collect();
        Ok(())
    }

    /// Maps a few changes, fewer where the rows become too many; returns how many, and the bytes of their documents.
    fn map_some(
        &mut self,
        snapshot: &Snapshot<'_>,
        loader: &DocumentLoader,
        changes: &[Change],
        fresh_through: u64,
    ) -> Result<(usize, usize), BuildError> {
        let ids: Vec<DocumentId> = changes.iter().map(|change| DocumentId::stored(&change.id)).collect();
        let (mut mapped, mut bytes) = (0, 0);
        for ((id, change), document) in ids.iter().zip(changes).zip(snapshot.get_many(&ids)?) {
            if self.row_bytes >= CHUNK_ROW_BYTES {
                break;
            }
            mapped += 1;
            bytes += document.as_ref().map_or(0, |document| document.body.len());
            let is_fresh = change.etag <= fresh_through;
            let is_newest = document.as_ref().is_some_and(|document| document.etag == change.etag);
            if is_fresh && !is_newest {
                continue; // nothing of it is there yet, and what it is now comes later in the feed
            }
            let before = self.out.rows.len();
            self.map_document(snapshot, loader, id, document.as_ref(), is_fresh)?;
            self.row_bytes += self.out.rows.iter().skip(before).map(RowChange::bytes).sum::<usize>();
        }
        Ok((mapped, bytes))
    }

    fn map_document(
        &mut self,
        snapshot: &Snapshot<'_>,
        loader: &DocumentLoader,
        id: &DocumentId,
        document: Option<&StoredDocument>,
        is_fresh: bool,
    ) -> Result<(), BuildError> {
        let row = map_document(self.context.generation, id.lower());
        let stored = if is_fresh { None } else { snapshot.row(Family::MapDocuments, &row)? };
        let before: Option<MapDocument> = stored.map(|bytes| decode("map_documents", &bytes)).transpose()?;
        let mapped = match document {
            Some(document) => self.run_map(snapshot, loader, document)?,
            None => Mapped::default(),
        };
        let contribution = Contribution::new(self.context.generation, id, before, mapped);
        self.out.map_faults += u64::from(contribution.is_fault());
        self.out.rows.extend(contribution.rows);
        self.out.faults.extend(contribution.fault);
        self.out.entries += contribution.keyed;
        self.write_entries(id.lower(), contribution.changes);
        Ok(())
    }

    fn run_map(
        &mut self,
        snapshot: &Snapshot<'_>,
        loader: &DocumentLoader,
        document: &StoredDocument,
    ) -> Result<Mapped, BuildError> {
        let mapped = map(self.context, self.runner, loader, document, &mut self.out.map_attempts)?;
        match &mapped.fault {
            Some(fault) if fault.transient && !self.given_up.contains(&document.id) => {
                Err(BuildError::Interrupted { subject: document.id.clone(), fault: Box::new(fault.clone()) })
            }
            Some(fault) => {
                let fault = settled(fault.clone());
                Ok(mapped.failed(fault))
            }
            None => {
                for entry in &mapped.entries {
                    if let Some(fault) = self.announce_group(snapshot, entry)? {
                        return Ok(mapped.failed(fault));
                    }
                }
                Ok(mapped)
            }
        }
    }

    /// Writes the row of a group that this thread has not met yet. A fault where its hash belongs to another key.
    fn announce_group(&mut self, snapshot: &Snapshot<'_>, entry: &Entry) -> Result<Option<Fault>, StoreError> {
        match self.known.check(entry) {
            Known::Same => return Ok(None),
            Known::Other => return Ok(Some(colliding(entry.group))),
            Known::New => {}
        }
        let row = reduce_group(self.context.generation, &entry.group);
        if let Some(stored) = snapshot.row(Family::ReduceGroups, &row)? {
            let record: GroupRecord = decode("reduce_groups", &stored)?;
            if record.key != entry.key {
                return Ok(Some(colliding(entry.group)));
            }
        } else {
            let record = GroupRecord { key: entry.key.clone(), count: 0, height: 0, result: GroupResult::Pending };
            self.out.rows.push(RowChange::Put { family: Family::ReduceGroups, key: row, value: encode(&record) });
        }
        self.known.insert(entry);
        Ok(None)
    }

    fn write_entries(&mut self, lower_id: &str, changes: Vec<EntryChange>) {
        for change in changes {
            let key = map_entry(self.context.generation, &change.group, lower_id, change.ordinal);
            let family = Family::MapEntries;
            self.out.rows.push(match change.kind {
                EntryChangeKind::Added { value, .. } => {
                    self.out.entries += 1;
                    RowChange::Put { family, key, value }
                }
                EntryChangeKind::Replaced { value } => RowChange::Put { family, key, value },
                EntryChangeKind::Removed => {
                    self.out.entries -= 1;
                    RowChange::Delete { family, key }
                }
            });
        }
    }
}

/// Groups whose rows a thread has written, with a second hash of their keys.
#[derive(Default)]
struct KnownGroups {
    checks: HashMap<GroupHash, u64>,
}

enum Known {
    New,
    Same,
    Other,
}

impl KnownGroups {
    fn check(&self, entry: &Entry) -> Known {
        match self.checks.get(&entry.group) {
            None => Known::New,
            Some(check) if *check == second_hash(&entry.key) => Known::Same,
            Some(_) => Known::Other,
        }
    }

    fn insert(&mut self, entry: &Entry) {
        if self.checks.len() >= KNOWN_GROUPS_MAX {
            self.checks.clear();
        }
        self.checks.insert(entry.group, second_hash(&entry.key));
    }
}

/// A hash of a key that shares nothing with the group hash; lives in memory only.
fn second_hash(key: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(key);
    hasher.finish()
}
