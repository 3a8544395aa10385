//! A changed definition: how long the generation that serves stands still until the new one has taken its place, and what is written.
//!
//! In this process, through the library: a probe notes when the swap begins and when it has flipped.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use treepie::database::{Database, DatabaseSettings, Write};
use treepie::index::definition::IndexDefinition;
use treepie::store::commit::Expected;
use treepie::store::document::Document;
use treepie::store::probe::{Probe, Step};

use crate::Result;
use crate::report::{Figure, Report};

/// Artificial documents, and those that the second change changes.
const OUTPUTS: usize = 100_000;
const CHANGED: usize = 1_000;
/// Source documents of one write.
const BATCH: usize = 5_000;
const PATIENCE: Duration = Duration::from_secs(600);

/// When the last swap began and flipped.
#[derive(Debug, Default)]
struct Watch {
    begun: Mutex<Option<Instant>>,
    took: Mutex<Option<Duration>>,
}

impl Probe for Watch {
    fn reached(&self, step: Step) {
        let (Ok(mut begun), Ok(mut took)) = (self.begun.lock(), self.took.lock()) else { return };
        match step {
            Step::SwapFrozen => *begun = Some(Instant::now()),
            Step::SwapFlipped => *took = begun.take().map(|begun| begun.elapsed()),
            _ => {}
        }
    }
}

/// Measures the swap of unchanged and of changed outputs.
pub(crate) fn measure(directory: &Path, report: &mut Report) -> Result<()> {
    let watch = Arc::new(Watch::default());
    let mut settings = DatabaseSettings::default();
    settings.store.probe = Some(Arc::clone(&watch) as Arc<dyn Probe>);
    let database = Database::open(directory, settings)?;
    let numbers: Vec<usize> = (0..OUTPUTS).collect();
    for batch in numbers.chunks(BATCH) {
        database.write(batch.iter().map(|&n| order(n)).collect::<Result<_>>()?)?;
    }
    swap(&database, "doc.v")?;
    for (name, value, changed) in [
        ("swap, 100,000 unchanged outputs", "doc.v + 0", 0),
        ("swap, 1,000 of 100,000 changed", "if doc.k < 1000 { doc.v + 1 } else { doc.v }", CHANGED),
    ] {
        let before = database.store().progress().written;
        swap(&database, value)?;
        let written = usize::try_from(database.store().progress().written - before)?;
        if written != changed {
            return Err(format!("{name}: {written} documents were written, and {changed} should have been").into());
        }
        let took = watch.took.lock().map_err(|_| "a thread panicked")?.ok_or("no swap has flipped")?;
        report.add(Figure::new(name, took.as_secs_f64() * 1000.0, "ms"));
        report.add(Figure::new("  documents written", written as f64, ""));
    }
    Ok(database.close()?)
}

fn swap(database: &Database, value: &str) -> Result<()> {
    let script = format!(
        "source(\"Orders\");\noutput(\"Sums\");\nfn map(doc) {{ emit(doc.k, #{{ v: {value} }}); }}\n\
         fn reduce(key, values) {{ #{{ v: values.sum(\"v\") }} }}\n"
    );
    database.put_index(IndexDefinition::from_script("Sums", script))?;
    Ok(database.wait_for_indexes(None, PATIENCE)?)
}

fn order(n: usize) -> Result<Write> {
    let body = format!("{{\"k\":{n},\"v\":{n},\"@metadata\":{{\"@collection\":\"Orders\"}}}}");
    let document = Document::parse(body.as_bytes())?.document;
    Ok(Write::Put { id: Some(format!("orders/{n}")), document, expected: Expected::Any })
}
