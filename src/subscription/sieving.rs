//! Runs a subscription's script on a thread of its own, which has the stack that scripts need.
//!
//! The thread begins with the first documents and ends when there were none for a while, so that idle subscriptions cost
//! no thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};

use crate::script::sieve::{Sieve, Sifted, Sifter};
use crate::script::{Fault, MapInput, STACK_BYTES};
use crate::store::StoreError;
use crate::store::document::StoredDocument;

/// How long a thread waits for more documents.
const IDLE_MAX: Duration = Duration::from_secs(10);

/// A document to look at, and the version before it.
pub(super) type Pair = (StoredDocument, Option<StoredDocument>);

/// What the script says about a document, and how it shapes the version before it.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) document: Result<Sifted, Fault>,
    pub(super) previous: Option<Result<Sifted, Fault>>,
}

struct Job {
    pairs: Vec<Pair>,
    answer: Sender<(Vec<Pair>, Vec<Said>)>,
}

/// One worker's script.
#[derive(Debug)]
pub(super) struct Sieving {
    sieve: Arc<Sieve>,
    stop: Arc<AtomicBool>,
    jobs: Option<Sender<Job>>,
}

impl Sieving {
    pub(super) fn new(sieve: Arc<Sieve>) -> Self {
        Self { sieve, stop: Arc::default(), jobs: None }
    }

    /// Runs the script on documents; hands them back with what it said. Blocking.
    ///
    /// # Errors
    /// No thread could be started, or the script was stopped.
    pub(super) fn sift(&mut self, mut pairs: Vec<Pair>) -> Result<(Vec<Pair>, Vec<Said>), StoreError> {
        // The thread may just have ended for want of work: then another one is started.
        for _ in 0..2 {
            let jobs = match &self.jobs {
                Some(jobs) => jobs.clone(),
                None => self.start()?,
            };
            let (answer, answered) = crossbeam_channel::bounded(1);
            match jobs.send(Job { pairs, answer }) {
                Ok(()) => {
                    if let Ok(said) = answered.recv() {
                        return Ok(said);
                    }
                    break;
                }
                Err(refused) => (self.jobs, pairs) = (None, refused.into_inner().pairs),
            }
        }
        Err(StoreError::Closed("the thread that ran a subscription's script has ended".to_owned()))
    }

    fn start(&mut self) -> Result<Sender<Job>, StoreError> {
        let (sender, jobs) = crossbeam_channel::bounded(0);
        let (sieve, stop) = (Arc::clone(&self.sieve), Arc::clone(&self.stop));
        std::thread::Builder::new()
            .name("treepie-sieve".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || run(&sieve, &stop, &jobs))
            .map_err(|source| StoreError::System { action: "starting a script's thread".to_owned(), source })?;
        self.jobs = Some(sender.clone());
        Ok(sender)
    }
}

impl Drop for Sieving {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn run(sieve: &Arc<Sieve>, stop: &Arc<AtomicBool>, jobs: &Receiver<Job>) {
    let mut sifter = Sifter::new(Arc::clone(sieve), Arc::clone(stop));
    while let Ok(Job { pairs, answer }) = jobs.recv_timeout(IDLE_MAX) {
        let said = pairs.iter().map(|pair| say(&mut sifter, pair)).collect();
        // Where nobody waits any more the worker has gone.
        drop(answer.send((pairs, said)));
    }
}

fn say(sifter: &mut Result<Sifter, Fault>, (document, previous): &Pair) -> Said {
    match sifter {
        Err(fault) => Said { document: Err(fault.clone()), previous: None },
        Ok(sifter) => {
            let mut found = sifter.sift(&input(document));
            if matches!(&found, Err(fault) if fault.transient) {
                found = sifter.sift(&input(document));
            }
            let wanted = !matches!(found, Ok(Sifted::Dropped));
            let previous = previous.as_ref().filter(|_| wanted).map(|previous| sifter.project(&input(previous)));
            Said { document: found, previous }
        }
    }
}

fn input(document: &StoredDocument) -> MapInput<'_> {
    MapInput { id: &document.id, collection: &document.collection, metadata: &document.metadata, body: &document.body }
}
