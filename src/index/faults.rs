//! The faults of one generation: the last 500, in memory and in `meta`; one for each document or group, cleared when it is mended.
//!
//! And the rule that stops an index which fails too often.

use std::collections::VecDeque;

use super::context::same_name;
use super::records::{FaultRow, decode, encode, fault_name, faults_prefix};
use crate::script::{Fault, Phase};
use crate::store::StoreError;
use crate::store::commit::RowChange;
use crate::store::keyspace::{Family, Generation, KeyRange};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Faults kept of each generation.
pub(crate) const FAULTS_MAX: usize = 500;

/// What a fault is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A source document, by its id, compared without regard to case.
    Document(String),
    /// A group, by its reduce key as JSON.
    Group(String),
    /// A reference document, by its id, compared without regard to case.
    Reference(String),
}

impl Subject {
    /// Who it is, in words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Document(text) | Self::Group(text) | Self::Reference(text) => text,
        }
    }

    fn is_of(&self, row: &FaultRow) -> bool {
        match (self, row.fault.phase) {
            (Self::Document(id), Phase::Map) | (Self::Reference(id), Phase::Reference) => same_name(id, &row.subject),
            (Self::Group(key), Phase::Reduce | Phase::Finish) => *key == row.subject,
            _ => false,
        }
    }
}

/// The faults of one generation, oldest first.
#[derive(Debug, Default)]
pub(crate) struct FaultLog {
    rows: VecDeque<(u64, FaultRow)>,
    next: u64,
}

impl FaultLog {
    /// Reads what `meta` has kept.
    pub(crate) fn load(snapshot: &Snapshot<'_>, generation: Generation) -> Result<Self, StoreError> {
        let prefix = faults_prefix(generation);
        let mut scan = snapshot.rows(Family::Meta, KeyRange::prefix(prefix.as_bytes()), Direction::Forward);
        let mut log = Self::default();
        while let Some((key, value)) = scan.next_row()? {
            let number = key.get(prefix.len()..).and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
                log.rows.push_back((number, decode("meta", value)?));
                log.next = number + 1;
            }
        }
        Ok(log)
    }

    /// Takes in what a run found, and appends the rows that keep it.
    pub(crate) fn take(
        &mut self,
        generation: Generation,
        faults: &[(Subject, Option<Fault>)],
        now: i64,
        rows: &mut Vec<RowChange>,
    ) {
        let family = Family::Meta;
        for (subject, fault) in faults {
            if let Some(at) = self.rows.iter().position(|(_, row)| subject.is_of(row))
                && let Some((number, _)) = self.rows.remove(at)
            {
                rows.push(RowChange::Delete { family, key: fault_name(generation, number).into_bytes() });
            }
            if let Some(fault) = fault {
                let row = FaultRow { at_micros: now, subject: subject.text().to_owned(), fault: fault.clone() };
                let key = fault_name(generation, self.next).into_bytes();
                rows.push(RowChange::Put { family, key, value: encode(&row) });
                self.rows.push_back((self.next, row));
                self.next += 1;
            }
            if self.rows.len() > FAULTS_MAX
                && let Some((number, _)) = self.rows.pop_front()
            {
                rows.push(RowChange::Delete { family, key: fault_name(generation, number).into_bytes() });
            }
        }
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }

    /// The kept faults, oldest first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &FaultRow> {
        self.rows.iter().map(|(_, row)| row)
    }
}

/// The share of failures among the last attempts.
#[derive(Debug, Default)]
pub(crate) struct FaultRate {
    runs: VecDeque<(u64, u64)>,
    attempts: u64,
    faults: u64,
}

impl FaultRate {
    /// The attempts that are looked at; whole runs, so it may be a few more.
    const WINDOW: u64 = 1_000;
    /// The attempts before which nothing is judged.
    const ATTEMPTS_MIN: u64 = 100;
    /// The share, in percent, above which an index stops.
    const FAULTS_MAX_PERCENT: u64 = 15;

    /// Takes in one run.
    pub(crate) fn add(&mut self, attempts: u64, faults: u64) {
        self.runs.push_back((attempts, faults));
        self.attempts += attempts;
        self.faults += faults;
        while let Some(&(attempts, faults)) = self.runs.front()
            && self.attempts - attempts >= Self::WINDOW
        {
            self.runs.pop_front();
            self.attempts -= attempts;
            self.faults -= faults;
        }
    }

    /// Whether more than 15 % of at least 100 attempts failed.
    pub(crate) fn is_too_high(&self) -> bool {
        self.attempts >= Self::ATTEMPTS_MIN && self.faults * 100 > self.attempts * Self::FAULTS_MAX_PERCENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_percent_is_not_yet_too_many_and_one_more_is() {
        let mut rate = FaultRate::default();
        rate.add(100, 15);
        assert!(!rate.is_too_high());
        rate.add(0, 1);
        assert!(rate.is_too_high());
    }

    #[test]
    fn under_a_hundred_attempts_nothing_is_judged() {
        let mut rate = FaultRate::default();
        rate.add(99, 99);
        assert!(!rate.is_too_high());
    }

    #[test]
    fn old_attempts_are_forgotten() {
        let mut rate = FaultRate::default();
        rate.add(1_000, 300);
        assert!(rate.is_too_high());
        rate.add(1_000, 0);
        assert!(!rate.is_too_high());
    }
}
