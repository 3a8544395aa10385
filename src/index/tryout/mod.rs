//! Trying a definition out on some documents: what it maps, what comes of each group, what fails, what each call costs, and
//! which fields it reads that nothing has. Nothing is written, and no index need exist.
//!
//! Scripts, order of values and shape of the reduce tree are those of a real build. All of it is held in memory, so documents,
//! entries and time are bounded.
//!
//! Next on the walk: `loader`, `reduce`.

mod loader;
mod reduce;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::context::sources_of;
use super::definition::{Checked, IndexDefinition, Refused, check};
use super::entry::number;
use super::explain::json;
use crate::script::{Fault, Limits, MapInput, Program, Runner, STACK_BYTES, SourceCollection, UnknownField};
use crate::store::keyspace::entry;
use crate::store::snapshot::SharedSnapshot;
use loader::SampleLoader;

/// Documents of one trial.
pub const SAMPLES_MAX: usize = 10_000;

/// Bytes of the documents of one trial.
pub const SAMPLE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of keys and values that one trial holds.
const ENTRY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The time after which a trial begins no further call.
const TIME_MAX: Duration = Duration::from_secs(10);

/// A document to try a definition on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its id.
    pub id: String,
    /// Its collection.
    pub collection: String,
    /// The user's own metadata, JSON text of an object.
    pub metadata: String,
    /// JSON text of the object, without `@metadata`.
    pub body: String,
}

/// What came of a trial.
#[derive(Clone, Debug, Default)]
pub struct TryOut {
    /// The documents that a source takes, in the order of the samples.
    pub documents: Vec<TriedDocument>,
    /// The groups of their entries, in the order of their encoded keys; none in a map-only index.
    pub groups: Vec<TriedGroup>,
    /// Samples that no source takes.
    pub not_taken: u64,
    /// Calls of map functions, of `reduce` and of `finish`.
    pub map: Cost,
    /// See `map`.
    pub reduce: Cost,
    /// See `map`.
    pub finish: Cost,
    /// Fields that were read and that nothing had.
    pub unknown_fields: Vec<UnknownField>,
    /// The limit that ended the trial before its end, in words.
    pub cut_short: Option<String>,
}

/// One document of a trial.
#[derive(Clone, Debug)]
pub struct TriedDocument {
    /// Its id.
    pub id: String,
    /// Its collection.
    pub collection: String,
    /// What it emitted, in order: key and value as JSON.
    pub entries: Vec<(String, String)>,
    /// Why it contributes nothing.
    pub fault: Option<Fault>,
    /// What mapping it took.
    pub cost: Cost,
}

/// One group of a trial.
#[derive(Clone, Debug)]
pub struct TriedGroup {
    /// The reduce key as JSON.
    pub key: String,
    /// The id its artificial document would have; `None` without an output collection.
    pub id: Option<String>,
    /// Its entries.
    pub entries: u64,
    /// The body of its document, or why there is none; `Ok(None)` where the script gave `()`.
    pub result: Result<Option<String>, Fault>,
    /// What `reduce` took.
    pub reduce: Cost,
    /// What `finish` took.
    pub finish: Cost,
}

/// What calls took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Calls.
    pub calls: u64,
    /// Those that failed.
    pub faults: u64,
    /// Operations of all, and of the most expensive one.
    pub operations: u64,
    /// See `operations`.
    pub operations_most: u64,
    /// Time of all, and of the longest one.
    pub time: Duration,
    /// See `time`.
    pub time_most: Duration,
}

impl Cost {
    /// Takes in one call that began at `begun`.
    fn add_call(&mut self, runner: &Runner, begun: Instant, failed: bool) {
        let (operations, time) = (runner.operations(), begun.elapsed());
        let call = Self {
            calls: 1,
            faults: u64::from(failed),
            operations,
            operations_most: operations,
            time,
            time_most: time,
        };
        self.absorb(&call);
    }

    fn absorb(&mut self, other: &Self) {
        self.calls += other.calls;
        self.faults += other.faults;
        self.operations += other.operations;
        self.operations_most = self.operations_most.max(other.operations_most);
        self.time += other.time;
        self.time_most = self.time_most.max(other.time_most);
    }
}

/// Why a trial could not begin.
#[derive(Debug, thiserror::Error)]
pub enum TryOutError {
    /// The script is refused.
    #[error("{0}")]
    Script(Box<Fault>),
    /// A name or a setting is refused.
    #[error("{0}")]
    Definition(String),
    /// No thread could be started.
    #[error("no thread could be started: {0}")]
    Thread(String),
}

/// Tries a definition out on samples. Of two samples with one id the later counts. Blocking.
///
/// # Cost
/// A thread, all calls of the scripts, at most 10 seconds and one call; memory for the samples and 32 MiB of entries.
///
/// # Errors
/// The definition is refused by itself. What its scripts do wrong stands in the [`TryOut`].
///
/// ```
/// use treepie::index::definition::IndexDefinition;
/// use treepie::index::tryout::{Sample, try_out};
/// use treepie::script::Limits;
///
/// let script = r#"source("Items"); output("Sums");
///     fn map(item) { emit(#{ k: item.k }, #{ n: item.nn ?? 1 }); }
///     fn reduce(key, values) { #{ n: values.sum("n") } }"#;
/// let sample = |id: &str| Sample {
///     id: id.to_owned(),
///     collection: "Items".to_owned(),
///     metadata: "{}".to_owned(),
///     body: r#"{"k":"a","n":7}"#.to_owned(),
/// };
/// let definition = IndexDefinition::from_script("Sums", script);
/// let tried = try_out(definition, &Limits::default(), vec![sample("items/1"), sample("items/2")])?;
/// assert_eq!(tried.groups[0].result, Ok(Some(r#"{"k":"a","n":2}"#.to_owned())));
/// assert_eq!(tried.unknown_fields[0].path, "nn");
/// # Ok::<(), treepie::index::tryout::TryOutError>(())
/// ```
pub fn try_out(definition: IndexDefinition, limits: &Limits, samples: Vec<Sample>) -> Result<TryOut, TryOutError> {
    try_out_from(definition, limits, samples, None)
}

/// The same; scripts load what is stored, where it is not among the samples.
pub(crate) fn try_out_from(
    definition: IndexDefinition,
    limits: &Limits,
    samples: Vec<Sample>,
    stored: Option<SharedSnapshot>,
) -> Result<TryOut, TryOutError> {
    let checked = check(definition, limits).map_err(|refused| match refused {
        Refused::Script(fault) => TryOutError::Script(Box::new(fault)),
        Refused::Rule(reason) => TryOutError::Definition(reason),
    })?;
    let thread = std::thread::Builder::new().name("index-trial".to_owned()).stack_size(STACK_BYTES);
    std::thread::scope(|scope| {
        let trial = thread.spawn_scoped(scope, || Trial::run(&checked, samples, stored));
        let trial = trial.map_err(|error| TryOutError::Thread(error.to_string()))?;
        trial.join().map_err(|_| TryOutError::Thread("it ended early".to_owned()))?
    })
}

/// The collection of samples that name none: the only one that the definition maps.
pub fn only_source(definition: &IndexDefinition, limits: &Limits) -> Option<String> {
    let program = Program::compile(definition.texts.clone(), limits.clone()).ok()?;
    let mut names = program.sources.iter().map(|source| match &source.collection {
        SourceCollection::Named(name) => Some(name.clone()),
        SourceCollection::All => None,
    });
    let first = names.next().flatten()?;
    names.all(|name| name.as_ref().is_some_and(|name| super::context::same_name(name, &first))).then_some(first)
}

/// The entries of a trial: by encoded key, then by source id and ordinal.
type Groups = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>>;

struct Trial<'a> {
    checked: &'a Checked,
    runner: Runner,
    begun: Instant,
    entry_bytes: usize,
    groups: Groups,
    out: TryOut,
}

impl<'a> Trial<'a> {
    fn run(checked: &'a Checked, samples: Vec<Sample>, stored: Option<SharedSnapshot>) -> Result<TryOut, TryOutError> {
        let stop = Arc::new(AtomicBool::new(false));
        let runner = Runner::new(Arc::clone(&checked.program), stop).map_err(|f| TryOutError::Script(Box::new(f)))?;
        runner.watch_fields();
        if !checked.program.loads.is_empty() {
            runner.load_from(Some(Rc::new(SampleLoader::new(&samples, stored))));
        }
        let (begun, groups, out) = (Instant::now(), Groups::new(), TryOut::default());
        let mut trial = Self { checked, runner, begun, entry_bytes: 0, groups, out };
        let last: BTreeMap<String, usize> =
            samples.iter().enumerate().map(|(n, sample)| (crate::id::lower(&sample.id), n)).collect();
        for (n, sample) in samples.into_iter().enumerate() {
            let lower = crate::id::lower(&sample.id);
            if last.get(&lower) == Some(&n) && trial.goes_on() {
                trial.map(&lower, sample);
            }
        }
        for (key, entries) in std::mem::take(&mut trial.groups) {
            if !trial.goes_on() {
                break;
            }
            let group = reduce::group(
                trial.checked.output.as_deref(),
                &trial.checked.program,
                &mut trial.runner,
                &key,
                &entries,
            );
            trial.out.reduce.absorb(&group.reduce);
            trial.out.finish.absorb(&group.finish);
            trial.out.groups.push(group);
        }
        trial.out.unknown_fields = trial.runner.unknown_fields();
        Ok(trial.out)
    }

    /// Whether the limits allow another call; notes the one that does not.
    fn goes_on(&mut self) -> bool {
        if self.out.cut_short.is_none() && self.begun.elapsed() > TIME_MAX {
            self.out.cut_short = Some(format!("it took more than {} seconds; try fewer documents", TIME_MAX.as_secs()));
        }
        self.out.cut_short.is_none()
    }

    fn map(&mut self, lower_id: &str, sample: Sample) {
        let Sample { id, collection, metadata, body } = sample;
        let (mut cost, mut emitted, mut fault, mut is_taken) = (Cost::default(), Vec::new(), None, false);
        for (source, spelled) in sources_of(&self.checked.program, &collection) {
            is_taken = true;
            let input = MapInput { id: &id, collection: spelled, metadata: &metadata, body: &body };
            let begun = Instant::now();
            let mapped = self.runner.map(source, &input);
            cost.add_call(&self.runner, begun, mapped.is_err());
            match mapped {
                Ok(entries) => emitted.extend(entries),
                Err(failed) => {
                    fault = Some(failed);
                    emitted.clear();
                    break;
                }
            }
        }
        if !is_taken {
            self.out.not_taken += 1;
            return;
        }
        self.out.map.absorb(&cost);
        self.entry_bytes += emitted.iter().map(|entry| entry.key.len() + entry.value.len()).sum::<usize>();
        if self.entry_bytes > ENTRY_BYTES_MAX {
            let limit = ENTRY_BYTES_MAX >> 20;
            self.out.cut_short = Some(format!("its entries took more than {limit} MiB; try fewer documents"));
            return;
        }
        let entries = emitted.iter().map(|entry| (json(&entry.key), json(&entry.value))).collect();
        let emitted = if self.checked.program.has_reduce { emitted } else { Vec::new() };
        for numbered in number(emitted) {
            let group = self.groups.entry(numbered.key).or_default();
            group.insert(entry(lower_id, numbered.ordinal), numbered.value);
        }
        self.out.documents.push(TriedDocument { id, collection, entries, fault, cost });
    }
}
