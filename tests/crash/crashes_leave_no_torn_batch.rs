//! Kills the child at every named step and at random, reopens what it left, and looks.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use treepie::database::{Database, DatabaseSettings};
use treepie::store::changes::Feed;
use treepie::store::commit::OperationResult;
use treepie::store::probe::Step;

use crate::child::{BATCHES, SAID, Stop, command};
use crate::workload::{MARKERS, MODELS, mixed, orders_after};
use crate::world::{assert_equals, definition, documents, generations, put};

const PATIENCE: Duration = Duration::from_secs(120);
const SIGKILL: i32 = 9;

/// When the parent kills.
#[derive(Clone, Copy, Debug)]
enum Kill {
    At(Stop),
    AfterLines(u64),
}

/// A directory that lives through many crashes, and what was promised about it.
struct Survivor {
    directory: TempDir,
    /// The batch whose number the markers hold.
    batch: u64,
    acknowledged_batch: u64,
    acknowledged_singles: BTreeSet<String>,
    highest_etag: u64,
}

impl Survivor {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            batch: 0,
            acknowledged_batch: 0,
            acknowledged_singles: BTreeSet::new(),
            highest_etag: 0,
        }
    }

    /// Starts a child, kills it, and takes note of what it said. Tells whether it was killed, and not done before.
    fn crash(&mut self, kill: Kill) -> bool {
        let stop = if let Kill::At(stop) = kill { Some(stop) } else { None };
        let mut child = command(self.directory.path(), self.batch + 1, stop).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut heard = 0;
        for line in lines {
            let line = line.unwrap();
            // The harness writes "test … ... " without a new line before the first of ours.
            let Some(words) = line.split_once(SAID).map(|(_, words)| words) else { continue };
            heard += 1;
            self.note(words);
            if words == "reached" || matches!(kill, Kill::AfterLines(count) if heard == count) {
                child.kill().unwrap();
            }
        }
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal() == Some(SIGKILL), "the child failed by itself: {status}");
        status.signal() == Some(SIGKILL)
    }

    fn note(&mut self, words: &str) {
        let words: Vec<&str> = words.split(' ').collect();
        let fresh = match words.as_slice() {
            ["batch", number, etag] => {
                self.acknowledged_batch = number.parse().unwrap();
                etag
            }
            ["single", id, etag] => {
                assert!(self.acknowledged_singles.insert((*id).to_owned()), "the id {id} came twice");
                etag
            }
            ["seen", etag] => etag,
            _ => return,
        };
        self.highest_etag = self.highest_etag.max(fresh.parse().unwrap());
    }

    /// Reopens the directory and checks every promise.
    fn assert_whole(&mut self) {
        let highest_etag = self.highest_etag;
        let database = Database::open(self.directory.path(), DatabaseSettings::default()).unwrap();
        self.batch = marker(&database);
        assert!(self.batch >= self.acknowledged_batch, "batch {} is lost", self.acknowledged_batch);
        assert_eq!(orders(&database), orders_after(self.batch), "after batch {}", self.batch);
        let singles: BTreeSet<String> = documents(&database.store().snapshot(), "Singles").into_keys().collect();
        let lost: Vec<&String> = self.acknowledged_singles.difference(&singles).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        assert!(database.store().progress().written >= highest_etag);
        self.highest_etag = assert_etags_go_on(&database, highest_etag);
        assert_indexes(&database);
        database.close().unwrap();
    }

    /// Cuts some bytes off the write-ahead log in a copy: acknowledged writes may be lost there, but nothing may be torn.
    fn assert_whole_without_tail(&self, bytes: u64) {
        let copy = tempfile::tempdir().unwrap();
        let mut log = None;
        for file in std::fs::read_dir(self.directory.path()).unwrap().map(Result::unwrap) {
            let to = copy.path().join(file.file_name());
            std::fs::copy(file.path(), &to).unwrap();
            if to.extension().is_some_and(|extension| extension == "log") {
                log = log.max(Some(to));
            }
        }
        let log = std::fs::File::options().write(true).open(log.unwrap()).unwrap();
        log.set_len(log.metadata().unwrap().len().saturating_sub(bytes)).unwrap();
        let database = Database::open(copy.path(), DatabaseSettings::default()).unwrap();
        assert_eq!(orders(&database), orders_after(marker(&database)));
        assert_indexes(&database);
        database.close().unwrap();
    }
}

/// The number in the three marker documents, which must be equal.
fn marker(database: &Database) -> u64 {
    let markers = documents(&database.store().snapshot(), "Markers");
    let read = |id: &&str| {
        markers
            .get(*id)
            .map_or(0, |document| serde_json::from_str::<Value>(&document.body).unwrap()["marker"].as_u64().unwrap())
    };
    let numbers: Vec<u64> = MARKERS.iter().map(read).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "a torn batch: {numbers:?}");
    numbers[0]
}

fn orders(database: &Database) -> BTreeMap<String, (String, String)> {
    let snapshot = database.store().snapshot();
    let all = ["Orders", "Returns"].map(|collection| documents(&snapshot, collection));
    all.into_iter().flatten().map(|(id, document)| (id, (document.collection, document.body))).collect()
}

/// Writes one more document: its etag must be new. Returns it.
fn assert_etags_go_on(database: &Database, highest: u64) -> u64 {
    let committed = database.write(vec![put("Others", "others/1", "{}")]).unwrap();
    let [OperationResult::Put { etag, .. }] = committed.results.as_slice() else { panic!("{committed:?}") };
    assert!(*etag > highest, "etag {etag} after {highest}");
    *etag
}

/// Completes what a crash may have cut short (a put of an index was not answered), and compares with plain folding.
fn assert_indexes(database: &Database) {
    for model in MODELS {
        database.put_index(definition(model.name, model.script)).unwrap();
    }
    database.wait_for_indexes(None, PATIENCE).unwrap();
    for model in MODELS {
        assert_equals(database, &model);
    }
    assert_eq!(documents(&database.store().snapshot(), "Moved").len(), 0, "left of a definition that is no more");
    let generations = generations(&database.store().snapshot());
    assert_eq!(generations.len(), MODELS.len(), "rows of other generations are left: {generations:?}");
    assert_eq!(database.store().snapshot().verify().unwrap(), Vec::<String>::new());
}

/// Kills at the n-th time of a step, for several n. A step may come fewer times than asked, but must come once.
fn assert_survives(steps: &[Step]) {
    for &step in steps {
        let mut survivor = Survivor::new();
        let mut killed = 0;
        for nth in [1, 2, 9, 40].into_iter().cycle().take(4 * rounds()) {
            killed += u64::from(survivor.crash(Kill::At((step, nth))));
            survivor.assert_whole();
        }
        assert!(killed > 0, "{step:?} was never reached");
    }
}

/// A factor for the number of rounds.
fn rounds() -> usize {
    let factor = std::env::var_os("TREEPIE_CRASH_ROUNDS");
    factor.and_then(|factor| factor.into_string().ok()).and_then(|factor| factor.parse().ok()).unwrap_or(1)
}

#[test]
fn a_kill_at_any_step_of_a_commit_loses_nothing() {
    assert_survives(&Step::OF_COMMIT);
}

#[test]
fn a_kill_at_any_step_of_an_index_run_loses_nothing() {
    assert_survives(&Step::OF_INDEX);
}

#[test]
fn a_kill_at_any_step_of_a_changed_definition_loses_nothing() {
    assert_survives(&Step::OF_SWAP);
}

#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let mut survivor = Survivor::new();
    for round in 0..20 * rounds() as u64 {
        survivor.crash(Kill::AfterLines(1 + mixed(round) % (2 * BATCHES)));
        if round % 4 == 0 {
            survivor.assert_whole_without_tail(1 + mixed(round) % 3_000);
        }
        survivor.assert_whole();
    }
    let database = Database::open(survivor.directory.path(), DatabaseSettings::default()).unwrap();
    let purged = database.store().snapshot().purged_through(&Feed::All).unwrap();
    assert!(purged > 0, "no tombstone was cleaned up");
    database.close().unwrap();
}

#[test]
fn a_database_that_was_closed_goes_on_without_a_gap_in_its_etags() {
    let directory = tempfile::tempdir().unwrap();
    let last = write_one(directory.path());
    assert_eq!(write_one(directory.path()), last + 1);
}

fn write_one(directory: &Path) -> u64 {
    let database = Database::open(directory, DatabaseSettings::default()).unwrap();
    let last = database.write(vec![put("Others", "others/1", "{}")]).unwrap().last_etag;
    database.close().unwrap();
    last
}
