//! How far a load has come: a bar on a terminal, a summary at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::output::grouped;

/// Bad lines that are shown one by one.
const BAD_LINES_SHOWN: u64 = 20;

/// Counts what became of the documents.
pub(super) struct Progress {
    bar: ProgressBar,
    begin: Instant,
    /// Bytes read from the files.
    read: Arc<AtomicU64>,
    /// Documents that are stored.
    pub(super) stored: u64,
    /// Lines that were passed over.
    pub(super) skipped: u64,
}

impl Progress {
    /// Begins to count; `bytes` is the size of all files, where known.
    pub(super) fn new(bytes: Option<u64>, read: Arc<AtomicU64>) -> Self {
        let bar = ProgressBar::new(bytes.unwrap_or(0));
        let style = match bytes {
            Some(_) => "{bar:30} {percent}%  {msg}  {eta} left",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, begin: Instant::now(), read, stored: 0, skipped: 0 }
    }

    /// Shows how far it has come.
    pub(super) fn show(&self) {
        self.bar.set_position(self.read.load(Ordering::Relaxed));
        self.bar.set_message(format!("{} documents, {} documents/s", grouped(self.stored), grouped(self.rate())));
    }

    /// Counts a line that is passed over, and tells `say` about the first ones.
    pub(super) fn skip(&mut self, text: &str, say: impl Fn(&str)) {
        self.skipped += 1;
        self.bar.suspend(|| match self.skipped {
            count if count <= BAD_LINES_SHOWN => say(text),
            count if count == BAD_LINES_SHOWN + 1 => say("more lines are skipped and only counted"),
            _ => {}
        });
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Documents a second.
    fn rate(&self) -> u64 {
        let micros = self.begin.elapsed().as_micros().max(1);
        u64::try_from(u128::from(self.stored) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }

    /// The summary, for people.
    pub(super) fn summary(&self) -> String {
        let seconds = self.begin.elapsed().as_secs_f64();
        let skipped =
            if self.skipped > 0 { format!(", {} bad lines skipped", grouped(self.skipped)) } else { String::new() };
        format!(
            "loaded {} documents in {seconds:.1} s ({} documents/s){skipped}",
            grouped(self.stored),
            grouped(self.rate())
        )
    }

    /// The summary, as JSON.
    pub(super) fn json(&self) -> String {
        let seconds = self.begin.elapsed().as_secs_f64();
        format!(
            "{{\"documents\":{},\"skipped\":{},\"seconds\":{seconds:.3},\"documents_per_second\":{}}}",
            self.stored,
            self.skipped,
            self.rate()
        )
    }
}
