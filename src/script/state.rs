//! What one call of a script shares with the native functions it calls: its phase, what it emitted, its budget.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rhai::Dynamic;

use super::functions::load::Loads;
use super::host::{List, Object};
use super::problem::{Failure, limit};
use super::watch::Watch;
use super::{Emitted, Limits, Phase};

/// Operations between two looks at the clock and the stop flag; a power of two.
const CHECK_EVERY: u64 = 1024;

/// Bytes of text that are worked through for the price of one operation.
const BYTES_PER_OPERATION: usize = 64;

/// Elements that are worked through for the price of one operation.
const ELEMENTS_PER_OPERATION: usize = 16;

/// Why a call was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Too many operations.
    Operations,
    /// Too much wall time.
    Wall,
    /// The stop flag.
    Stopped,
    /// A document to be loaded could not be read.
    Unread,
}

/// The state of the call that an engine is running, if any.
#[derive(Debug)]
pub(super) struct State {
    pub(super) limits: Limits,
    stop: Arc<AtomicBool>,
    pub(super) phase: Cell<Phase>,
    operations: Cell<u64>,
    deadline: Cell<Option<Instant>>,
    ended: Cell<Option<Ended>>,
    pub(super) emitted: RefCell<Vec<Emitted>>,
    pub(super) emitted_bytes: Cell<usize>,
    pub(super) settings: RefCell<Settings>,
    pub(super) loads: Loads,
    /// Notes what is read, where somebody wants to know.
    pub(super) watch: OnceCell<Rc<Watch>>,
}

/// What the top level of a text has declared.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    /// Collection (`None` for all documents) and function.
    pub(super) sources: Vec<(Option<String>, String)>,
    pub(super) output: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) reference_collection: Option<String>,
}

impl State {
    pub(super) fn new(limits: Limits, stop: Arc<AtomicBool>) -> Self {
        Self {
            limits,
            stop,
            phase: Cell::new(Phase::Definition),
            operations: Cell::new(0),
            deadline: Cell::new(None),
            ended: Cell::new(None),
            emitted: RefCell::default(),
            emitted_bytes: Cell::new(0),
            settings: RefCell::default(),
            loads: Loads::default(),
            watch: OnceCell::new(),
        }
    }

    /// A state like a new one, with the same limits, stop flag, loader and watch.
    pub(super) fn renewed(&self) -> Self {
        let (loads, watch) = (self.loads.clone(), self.watch.clone());
        Self { loads, watch, ..Self::new(self.limits.clone(), Arc::clone(&self.stop)) }
    }

    /// A field of an object is about to be read.
    pub(super) fn note_read(&self, object: &Object, name: &str) {
        if let Some(watch) = self.watch.get() {
            watch.field(self, object, name);
        }
    }

    /// An aggregate is about to read a path of every element.
    pub(super) fn note_path(&self, values: &Dynamic, path: Option<&str>) {
        if let (Some(watch), Some(path)) = (self.watch.get(), path)
            && let Some(list) = values.read_lock::<List>()
        {
            watch.elements(self, &list, path);
        }
    }

    /// Begins a call: a new budget, nothing emitted.
    pub(super) fn begin(&self, phase: Phase) {
        self.phase.set(phase);
        self.operations.set(0);
        self.deadline.set(Instant::now().checked_add(self.limits.wall_max));
        self.ended.set(None);
        self.emitted.borrow_mut().clear();
        self.emitted_bytes.set(0);
        self.loads.begin();
    }

    /// Operations of this call so far.
    pub(super) fn operations(&self) -> u64 {
        self.operations.get()
    }

    /// Why the call was ended from outside, if it was.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.get()
    }

    /// One operation of the engine; something where the call must end.
    pub(super) fn step(&self) -> Option<Dynamic> {
        let operations = self.operations.get() + 1;
        self.operations.set(operations);
        if operations > self.limits.operations_max {
            self.ended.set(Some(Ended::Operations));
        } else if operations.is_multiple_of(CHECK_EVERY) {
            self.look();
        }
        self.ended.get().map(|_| Dynamic::UNIT)
    }

    fn look(&self) {
        if self.stop.load(Ordering::Relaxed) {
            self.ended.set(Some(Ended::Stopped));
        } else if self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            self.ended.set(Some(Ended::Wall));
        }
    }

    /// Charges work that a native function does in one step.
    pub(super) fn charge(&self, operations: usize) -> Result<(), Failure> {
        if operations == 0 {
            return Ok(());
        }
        let before = self.operations.get();
        let after = before.saturating_add(operations as u64);
        self.operations.set(after);
        if after > self.limits.operations_max {
            self.ended.set(Some(Ended::Operations));
        } else if before / CHECK_EVERY != after / CHECK_EVERY {
            self.look();
        }
        match self.ended.get() {
            Some(_) => Err(limit("the call was ended", "")),
            None => Ok(()),
        }
    }

    /// Ends the call because a document could not be read; the caller's failure then does not matter.
    pub(super) fn interrupt(&self) {
        self.ended.set(Some(Ended::Unread));
    }

    /// Charges work on text.
    pub(super) fn charge_bytes(&self, bytes: usize) -> Result<(), Failure> {
        self.charge(bytes / BYTES_PER_OPERATION)
    }

    /// Charges work on elements or fields.
    pub(super) fn charge_elements(&self, elements: usize) -> Result<(), Failure> {
        self.charge(elements / ELEMENTS_PER_OPERATION)
    }

    /// Checks the length of a string that a script is about to make, and charges for it.
    pub(super) fn text(&self, bytes: usize) -> Result<(), Failure> {
        let max = self.limits.string_bytes_max;
        if bytes > max {
            return Err(limit(
                format!("a string would be {bytes} bytes long, the limit is {max} (string_bytes_max)"),
                "keep texts that a script builds short",
            ));
        }
        self.charge_bytes(bytes)
    }
}
