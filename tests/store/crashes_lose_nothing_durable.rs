//! A process killed at any step reopens whole; a power cut loses nothing that was acknowledged as durable.
//!
//! A kill keeps what the operating system has: a copy of the files as they are at the step. A power cut may lose everything
//! since the last sync: in the copy the log is cut at the length it had when that sync was done.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tempfile::TempDir;
use treepie::store::commit::Commit;
use treepie::store::probe::{Probe, Step};
use treepie::store::{Store, StoreSettings};

use crate::stops_are_told_apart::log;
use crate::world::{World, copy_into, put};

/// Copies the directory whenever a step is reached.
#[derive(Debug)]
struct Killer {
    directory: PathBuf,
    taken: Mutex<Vec<(Step, TempDir)>>,
}

impl Probe for Killer {
    fn reached(&self, step: Step) {
        let to = tempfile::tempdir().unwrap();
        copy_into(&self.directory, to.path());
        self.taken.lock().unwrap().push((step, to));
    }
}

#[test]
fn a_kill_at_any_step_leaves_whole_commits() {
    let directory = tempfile::tempdir().unwrap();
    let killer = Arc::new(Killer { directory: directory.path().to_owned(), taken: Mutex::default() });
    let probe: Arc<dyn Probe> = killer.clone();
    let settings = StoreSettings { probe: Some(probe), ..StoreSettings::default() };
    let store = Store::open(directory.path(), &settings).unwrap();
    for version in 0..5 {
        let body = format!("{{\"v\":{version}}}");
        let operations = ["a", "b", "c"].map(|id| put(id, "C", &body)).into();
        store.commit(Commit { operations, ..Commit::default() }).unwrap();
    }
    drop(store);
    let taken = std::mem::take(&mut *killer.taken.lock().unwrap());
    let mut seen = Vec::new();
    for (position, (step, killed)) in taken.into_iter().enumerate() {
        let world = World { store: Store::open(killed.path(), &StoreSettings::default()).unwrap(), directory: killed };
        world.assert_sound();
        let bodies = ["a", "b", "c"].map(|id| world.get(id).map(|document| document.body));
        assert!(bodies.iter().all(|body| *body == bodies[0]), "torn at {step:?}: {bodies:?}");
        let written = bodies[0].as_ref().map_or(0, |body| body[5..6].parse::<usize>().unwrap() + 1);
        let before = position / Step::OF_COMMIT.len();
        let expected = if step == Step::BeforeWrite { before } else { before + 1 };
        assert_eq!(written, expected, "at {step:?}, commit {before}");
        assert!(world.put("d", "C") > 65_536, "etags go on above the gap");
        seen.push(step);
    }
    assert_eq!(seen[..5], Step::OF_COMMIT);
}

/// Notes how long the log was when a sync of it was done.
#[derive(Debug)]
struct Meter {
    directory: PathBuf,
    synced: Mutex<u64>,
    syncs: AtomicU64,
}

impl Meter {
    fn length(directory: &Path) -> u64 {
        fs::metadata(log(directory)).unwrap().len()
    }
}

impl Probe for Meter {
    fn reached(&self, step: Step) {
        if step == Step::AfterSync {
            *self.synced.lock().unwrap() = Self::length(&self.directory);
            self.syncs.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let meter = Arc::new(Meter {
        directory: directory.path().to_owned(),
        synced: Mutex::default(),
        syncs: AtomicU64::default(),
    });
    let probe: Arc<dyn Probe> = meter.clone();
    let settings = StoreSettings { probe: Some(probe), ..StoreSettings::default() };
    let world = World { store: Store::open(directory.path(), &settings).unwrap(), directory };
    let syncs = world.store.counters().wal_syncs;

    // Each acknowledgement with what was surely on disk at that moment.
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (world, meter, acknowledged) = (&world, &meter, &acknowledged);
            scope.spawn(move || {
                for number in 0..25 {
                    let id = format!("{writer}/{number}");
                    world.put(&id, "C");
                    let synced = *meter.synced.lock().unwrap();
                    acknowledged.lock().unwrap().push((id, synced));
                }
            });
        }
    });
    let steps = meter.syncs.load(Ordering::Relaxed);
    assert!(steps > 0 && world.store.counters().wal_syncs - syncs == steps, "RocksDB has counted each sync");

    let acknowledged = acknowledged.into_inner().unwrap();
    for cut in [9, 49, 99].map(|position| acknowledged[position].1) {
        let after = tempfile::tempdir().unwrap();
        copy_into(world.directory.path(), after.path());
        fs::OpenOptions::new().write(true).open(log(after.path())).unwrap().set_len(cut).unwrap();
        let reopened = World { store: Store::open(after.path(), &StoreSettings::default()).unwrap(), directory: after };
        reopened.assert_sound();
        for (id, _) in acknowledged.iter().filter(|(_, synced)| *synced <= cut) {
            assert!(reopened.get(id).is_some(), "'{id}' was acknowledged and is lost");
        }
    }
}
