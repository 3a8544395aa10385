//! Holds one thread of an index at one step until the test lets it go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use treepie::database::{Database, DatabaseSettings};
use treepie::store::probe::{Probe, Step};

/// How long a thread may take to get there: a safety net.
const PATIENCE: Duration = Duration::from_secs(60);

/// The side of the thread.
#[derive(Debug)]
pub(crate) struct Gate {
    step: Step,
    thread: &'static str,
    is_open: Arc<AtomicBool>,
    at: Sender<()>,
    go: Receiver<()>,
}

/// The side of the test.
#[derive(Debug)]
pub(crate) struct Gated {
    is_open: Arc<AtomicBool>,
    at: Receiver<()>,
    go: Mutex<Option<Sender<()>>>,
}

impl Gate {
    /// Holds `thread` at `step`, the first time and every time until it is opened.
    pub(crate) fn new(step: Step, thread: &'static str) -> (Self, Gated) {
        let (at, arrived) = bounded(1);
        let (open, go) = bounded(0);
        let is_open = Arc::new(AtomicBool::new(false));
        let gate = Self { step, thread, is_open: Arc::clone(&is_open), at, go };
        (gate, Gated { is_open, at: arrived, go: Mutex::new(Some(open)) })
    }

    /// Settings of a database with this gate.
    pub(crate) fn into_settings(self) -> DatabaseSettings {
        let mut settings = DatabaseSettings::default();
        settings.store.probe = Some(Arc::new(self));
        settings
    }
}

impl Probe for Gate {
    fn reached(&self, step: Step) {
        let is_here = step == self.step && std::thread::current().name() == Some(self.thread);
        if is_here && !self.is_open.load(Ordering::Acquire) {
            let _ = self.at.try_send(());
            // Returns when the gate is opened: the sender goes.
            let _ = self.go.recv();
        }
    }
}

impl Gated {
    /// Returns when the thread stands at the gate.
    pub(crate) fn arrived(&self) {
        self.at.recv_timeout(PATIENCE).unwrap();
    }

    /// Whether the thread has come to the gate.
    pub(crate) fn has_arrived(&self) -> bool {
        self.at.try_recv().is_ok()
    }

    /// Lets everybody through, now and later.
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Release);
        drop(self.go.lock().unwrap().take());
    }

    /// Does something that has the thread stop, and opens the gate as soon as the thread has been told to.
    pub(crate) fn stopping<T: Send>(&self, database: &Database, deed: impl FnOnce() -> T + Send) -> T {
        let wakes = database.store().wakes();
        std::thread::scope(|scope| {
            let deed = scope.spawn(deed);
            while database.store().wakes() == wakes && !deed.is_finished() {
                std::thread::yield_now();
            }
            self.open();
            deed.join().unwrap()
        })
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        self.open();
    }
}
