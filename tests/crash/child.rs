//! The process that is killed: this test binary, started again with the directory in its environment.
//!
//! It rebuilds an index, writes numbered batches and, from other threads, single documents and changed definitions, cleans up
//! behind, and says on standard output what was acknowledged and which etags it saw. At a step that it was asked for it says so
//! and stands still.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use treepie::database::{Database, DatabaseSettings, TombstoneSettings};
use treepie::store::commit::OperationResult;
use treepie::store::probe::{Probe, Step};

use crate::models::{SHAPES, SUMS};
use crate::workload::{MODELS, batch};
use crate::world::{definition, put};

const DIRECTORY: &str = "TREEPIE_CRASH_DIRECTORY";
const FIRST_BATCH: &str = "TREEPIE_CRASH_FIRST_BATCH";
const STEP: &str = "TREEPIE_CRASH_STEP";
const NTH: &str = "TREEPIE_CRASH_NTH";

/// How many batches one child writes.
pub(crate) const BATCHES: u64 = 40;
/// How often one child changes a definition, at least.
const CHANGES_MIN: u64 = 8;
/// What a line of the child begins with.
pub(crate) const SAID: &str = "crash-child ";

/// Where the child stands still: at the n-th time that a step is reached.
pub(crate) type Stop = (Step, u64);

/// The command that starts the child.
pub(crate) fn command(directory: &Path, first_batch: u64, stop: Option<Stop>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child::works_until_it_is_killed", "--nocapture", "--test-threads=1"]);
    command.env(DIRECTORY, directory).env(FIRST_BATCH, first_batch.to_string());
    if let Some((step, nth)) = stop {
        command.env(STEP, format!("{step:?}")).env(NTH, nth.to_string());
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

#[test]
fn works_until_it_is_killed() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        work(&PathBuf::from(directory), number(FIRST_BATCH));
    }
}

fn work(directory: &Path, first_batch: u64) {
    // Tombstones go all the time, as soon as the indexes have passed them.
    let every = Duration::from_millis(20);
    let tombstones = TombstoneSettings { kept_min: Duration::ZERO, every, ..TombstoneSettings::default() };
    let mut settings = DatabaseSettings { tombstones, ..DatabaseSettings::default() };
    if let Some(step) = std::env::var_os(STEP) {
        let step = step.into_string().unwrap();
        settings.store.probe = Some(Arc::new(StandStill { step, left: AtomicU64::new(number(NTH)) }));
    }
    let database = Database::open(directory, settings).unwrap();
    database.delete_index(SHAPES.name).unwrap();
    for model in MODELS {
        database.put_index(definition(model.name, model.script)).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| write_singles(&database, &done));
        scope.spawn(|| change_definitions(&database, &done));
        for number in first_batch..first_batch + BATCHES {
            let committed = database.write(batch(number)).unwrap();
            say(&format!("batch {number} {}", committed.last_etag));
            say(&format!("seen {}", database.store().progress().written));
        }
        done.store(true, Ordering::Release);
    });
    database.wait_for_indexes(None, Duration::from_secs(120)).unwrap();
    say("done");
    database.close().unwrap();
}

fn write_singles(database: &Database, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        let committed = database.write(vec![put("Singles", "singles/", r#"{"alone":true}"#)]).unwrap();
        if let [OperationResult::Put { id, etag, .. }] = committed.results.as_slice() {
            say(&format!("single {id} {etag}"));
        }
    }
}

/// Changes the definition of an index again and again, now and then before the change before has come to its end, and its output
/// collection with it.
fn change_definitions(database: &Database, done: &AtomicBool) {
    for number in 0_u64.. {
        let script = SUMS.script.replace("fn map(doc) {", &format!("fn map(doc) {{ let number = {number};"));
        let script = if number % 3 == 1 { script.replace(r#"output("Sums")"#, r#"output("Moved")"#) } else { script };
        database.put_index(definition(SUMS.name, &script)).unwrap();
        if number % 4 != 3 {
            database.wait_for_indexes(Some(&[SUMS.name.to_owned()]), Duration::from_secs(120)).unwrap();
        }
        if number >= CHANGES_MIN && done.load(Ordering::Acquire) {
            break;
        }
    }
}

/// Says a line in one piece, around the test harness's capture.
fn say(words: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{SAID}{words}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn number(variable: &str) -> u64 {
    std::env::var_os(variable).unwrap().into_string().unwrap().parse().unwrap()
}

#[derive(Debug)]
struct StandStill {
    step: String,
    left: AtomicU64,
}

impl Probe for StandStill {
    fn reached(&self, step: Step) {
        if format!("{step:?}") == self.step && self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            say("reached");
            loop {
                std::thread::park();
            }
        }
    }
}
