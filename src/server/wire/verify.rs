//! The lines of `/indexes/verify`: one JSON object each, told apart by `Event`.

use serde::Serialize;

use crate::index::verify::{Difference, DifferenceKind, Verified, VerifyEvent};

#[derive(Debug, Serialize)]
#[serde(tag = "Event", rename_all_fields = "PascalCase")]
pub(crate) enum VerifyLine {
    Progress(VerifiedBody),
    Difference {
        index: Option<String>,
        kind: &'static str,
        family: &'static str,
        place: String,
        detail: String,
    },
    Verified(VerifiedBody),
    Mended {
        index: Option<String>,
        done: bool,
        what: String,
    },
    /// The last line: all is told.
    Done {
        /// Differences that are left.
        differences: u64,
        /// Differences that were counted, and not named.
        not_named: u64,
    },
    /// The last line: it could not go on.
    Failed {
        message: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct VerifiedBody {
    index: String,
    through_etag: u64,
    documents: u64,
    documents_waiting: u64,
    entries: u64,
    groups: u64,
    artificial_documents: u64,
    interrupted: u64,
    rows_differ: u64,
    artificial_documents_differ: u64,
    seconds: f64,
}

impl VerifyLine {
    pub(crate) fn new(event: VerifyEvent) -> Self {
        match event {
            VerifyEvent::Progress(found) => Self::Progress(VerifiedBody::new(found)),
            VerifyEvent::Verified(found) => Self::Verified(VerifiedBody::new(found)),
            VerifyEvent::Mended { index, done, what } => Self::Mended { index, done, what },
            VerifyEvent::Difference(Difference { index, kind, family, place, detail }) => {
                let kind = match kind {
                    DifferenceKind::Missing => "Missing",
                    DifferenceKind::Changed => "Changed",
                    DifferenceKind::Foreign => "Foreign",
                    DifferenceKind::Unreadable => "Unreadable",
                };
                Self::Difference { index, kind, family, place, detail }
            }
        }
    }
}

impl VerifiedBody {
    fn new(found: Verified) -> Self {
        Self {
            index: found.index,
            through_etag: found.through,
            documents: found.documents,
            documents_waiting: found.waiting,
            entries: found.entries,
            groups: found.groups,
            artificial_documents: found.outputs,
            interrupted: found.interrupted,
            rows_differ: found.rows_differ,
            artificial_documents_differ: found.outputs_differ,
            seconds: found.took.as_secs_f64(),
        }
    }
}
