//! Reads batches of the change feed and writes them as CouchDB does.
//!
//! Each batch is read from a snapshot of its own: the feed is in etag order and holds the newest version only, so what a
//! later snapshot no longer shows here stands further on.

use super::changes_request::{Asked, Filter};
use super::document::{write_deleted, write_document};
use super::seq::{Seq, Shown};
use crate::server::error::ApiError;
use crate::server::listing::documents_of;
use crate::server::registry::Lease;
use crate::server::stream::PIECE_BYTES;
use crate::server::wire::text::{write_number, write_string};
use crate::store::StoreError;
use crate::store::changes::{Change, ChangeKind};
use crate::store::document::StoredDocument;
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// Changes that one batch looks at, whether they are wanted or not.
const LOOKED_AT_MAX: u64 = 8_192;

/// Changes whose documents are read at once.
const READ_AT_ONCE: usize = 64;

/// Where a feed stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// Changes above `after`, through `until` or what is durable.
    Rising { after: u64, until: Option<u64> },
    /// Changes above `after` through `through`, the newest first.
    Falling { after: u64, through: u64 },
}

/// How rows are strung together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `{"results":[…],"last_seq":…,"pending":…}`
    Array,
    /// A row a line.
    Lines,
    /// Server-sent events.
    Events,
}

/// Reads one caller's feed.
#[derive(Debug)]
pub(crate) struct Reader {
    lease: Lease,
    filter: Filter,
    include_docs: bool,
    framing: Framing,
    /// The etag that was durable when its caller began with nothing; 0: it did not.
    begun: u64,
    node_tag: String,
}

/// A part of the feed.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) rows: u64,
    pub(crate) bytes: Vec<u8>,
    /// Where the feed stands now.
    pub(crate) position: Position,
    /// Whether there is nothing beyond, for now.
    pub(crate) is_end: bool,
}

impl Position {
    /// The etag below which nothing is to come, of a rising feed.
    pub(crate) fn etag(self) -> u64 {
        match self {
            Self::Rising { after, .. } | Self::Falling { after, .. } => after,
        }
    }

    /// What `last_seq` says: where to go on.
    pub(crate) fn last_seq(self) -> u64 {
        match self {
            Self::Rising { after, .. } => after,
            Self::Falling { through, .. } => through,
        }
    }

    /// The range to read, and its direction.
    fn range(self, durable: u64) -> (u64, u64, Direction) {
        match self {
            Self::Rising { after, until } => (after, until.unwrap_or(durable).min(durable), Direction::Forward),
            Self::Falling { after, through } => (after, through, Direction::Backward),
        }
    }

    /// The position behind the change with this etag.
    fn past(self, etag: u64) -> Self {
        match self {
            Self::Rising { until, .. } => Self::Rising { after: etag, until },
            Self::Falling { after, .. } => Self::Falling { after, through: etag.saturating_sub(1).max(after) },
        }
    }

    /// The position when everything up to `through` has been read.
    fn at_end(self, through: u64) -> Self {
        match self {
            Self::Rising { after, until } => Self::Rising { after: after.max(through), until },
            Self::Falling { after, .. } => Self::Falling { after, through: after },
        }
    }
}

impl Framing {
    pub(crate) fn head(self) -> Vec<u8> {
        match self {
            Self::Array => b"{\"results\":[\n".to_vec(),
            Self::Lines | Self::Events => Vec::new(),
        }
    }

    pub(crate) fn heartbeat(self) -> Vec<u8> {
        match self {
            Self::Array | Self::Lines => b"\n".to_vec(),
            Self::Events => b"event: heartbeat\ndata: \n\n".to_vec(),
        }
    }

    pub(crate) fn end(self, last_seq: Shown, pending: u64, into: &mut Vec<u8>) {
        match self {
            Self::Array => into.extend_from_slice(b"\n],\"last_seq\":"),
            Self::Lines => into.extend_from_slice(b"{\"last_seq\":"),
            Self::Events => return,
        }
        into.extend_from_slice(last_seq.to_string().as_bytes());
        into.extend_from_slice(b",\"pending\":");
        write_number(pending, into);
        into.extend_from_slice(b"}\n");
    }

    /// Appends a row, which must hold no line break.
    fn row(self, seq: Shown, row: &[u8], is_first: bool, into: &mut Vec<u8>) {
        match self {
            Self::Array => {
                into.extend_from_slice(if is_first { b"" } else { b",\n" });
                into.extend_from_slice(row);
            }
            Self::Lines => {
                into.extend_from_slice(row);
                into.push(b'\n');
            }
            Self::Events => {
                into.extend_from_slice(b"data: ");
                into.extend_from_slice(row);
                into.extend_from_slice(b"\nid: ");
                into.extend_from_slice(seq.bare().as_bytes());
                into.extend_from_slice(b"\n\n");
            }
        }
    }
}

impl Reader {
    pub(super) fn new(lease: Lease, asked: &Asked, node_tag: String) -> Self {
        let Asked { filter, include_docs, framing, since, .. } = asked;
        Self {
            lease,
            filter: filter.clone(),
            include_docs: *include_docs,
            framing: *framing,
            begun: since.begun,
            node_tag,
        }
    }

    /// Reads at most `room` rows, and no more than about a piece's bytes.
    ///
    /// # Errors
    /// 410 where deletions between the position and what is there are no longer known.
    pub(crate) fn read(&self, position: Position, room: u64, is_first: bool) -> Result<Batch, ApiError> {
        let snapshot = self.lease.store().snapshot();
        let (after, through, direction) = position.range(snapshot.progress().durable);
        let purged = snapshot.check_reader(&self.filter.feed, after, self.begun)?;
        let mut batch = Batch { rows: 0, bytes: Vec::new(), position, is_end: false };
        let (mut waiting, mut looked_at) = (Vec::new(), 0);
        if after < through {
            for change in snapshot.changes(&self.filter.feed, after, through, direction) {
                let change = change?;
                looked_at += 1;
                let etag = change.etag;
                if self.filter.wants(&change.id) {
                    waiting.push(change);
                }
                let is_full = batch.rows + waiting.len() as u64 >= room;
                if is_full || waiting.len() >= READ_AT_ONCE || looked_at >= LOOKED_AT_MAX {
                    self.write(&snapshot, purged, &mut waiting, is_first, &mut batch)?;
                    batch.position = position.past(etag);
                    if is_full || batch.bytes.len() >= PIECE_BYTES || looked_at >= LOOKED_AT_MAX {
                        return Ok(batch);
                    }
                }
            }
        }
        self.write(&snapshot, purged, &mut waiting, is_first, &mut batch)?;
        batch.position = position.at_end(through);
        batch.is_end = true;
        Ok(batch)
    }

    /// The place to go on from, and the number of rows beyond it, of which `max` are looked at.
    pub(crate) fn end(&self, position: Position, max: u64) -> Result<(Shown, u64), ApiError> {
        let snapshot = self.lease.store().snapshot();
        let (after, through, direction) = position.range(snapshot.progress().durable);
        let last_seq = self.place(position.last_seq(), snapshot.purged_through(&self.filter.feed)?);
        if after >= through || max == 0 {
            return Ok((last_seq, 0));
        }
        let (mut count, mut looked_at) = (0, 0);
        for change in snapshot.changes(&self.filter.feed, after, through, direction) {
            count += u64::from(self.filter.wants(&change?.id));
            looked_at += 1;
            if looked_at >= max {
                break;
            }
        }
        Ok((last_seq, count))
    }

    fn place(&self, etag: u64, purged: u64) -> Shown {
        Seq { etag, begun: self.begun }.show(purged)
    }

    fn write(
        &self,
        snapshot: &Snapshot<'_>,
        purged: u64,
        changes: &mut Vec<Change>,
        is_first: bool,
        batch: &mut Batch,
    ) -> Result<(), StoreError> {
        let documents = documents_of(snapshot, changes)?;
        let mut row = Vec::new();
        for (change, document) in changes.drain(..).zip(documents) {
            row.clear();
            let seq = self.place(change.etag, purged);
            self.write_row(&change, seq, document.as_ref(), &mut row)?;
            self.framing.row(seq, &row, is_first && batch.rows == 0, &mut batch.bytes);
            batch.rows += 1;
        }
        Ok(())
    }

    fn write_row(
        &self,
        change: &Change,
        seq: Shown,
        document: Option<&StoredDocument>,
        into: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        into.extend_from_slice(b"{\"seq\":");
        into.extend_from_slice(seq.to_string().as_bytes());
        into.extend_from_slice(b",\"id\":");
        write_string(&change.id, into);
        // A tombstone keeps no change vector; it would have been this one.
        let of_deletion = || format!("{}:{}-{}", self.node_tag, change.etag, self.lease.store().incarnation());
        let rev = document.map_or_else(of_deletion, |document| document.change_vector.clone());
        into.extend_from_slice(b",\"changes\":[{\"rev\":");
        write_string(&rev, into);
        into.extend_from_slice(b"}]");
        if change.kind == ChangeKind::Delete {
            into.extend_from_slice(b",\"deleted\":true");
        }
        into.extend_from_slice(b",\"collection\":");
        write_string(&change.collection, into);
        if self.include_docs {
            into.extend_from_slice(b",\"doc\":");
            match document {
                Some(document) => write_document(document, into)?,
                None => write_deleted(&change.id, &rev, into),
            }
        }
        into.push(b'}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_feed_moves_on_also_where_nothing_was_wanted() {
        let start = Position::Rising { after: 3, until: None };
        assert_eq!(start.at_end(9).etag(), 9);
        assert_eq!(start.at_end(2).etag(), 3);
        assert_eq!(start.past(5).last_seq(), 5);
        assert_eq!(start.range(9).1, 9);
        assert_eq!(Position::Rising { after: 3, until: Some(7) }.range(9).1, 7);
    }

    #[test]
    fn a_falling_feed_ends_where_it_was_to_begin() {
        let start = Position::Falling { after: 3, through: 9 };
        assert_eq!(start.past(7), Position::Falling { after: 3, through: 6 });
        assert_eq!(start.at_end(9).last_seq(), 3);
    }

    #[test]
    fn every_framing_keeps_rows_apart() {
        let frame = |framing: Framing| {
            let mut out = framing.head();
            let place = |etag, purged| Seq { etag, begun: 9 }.show(purged);
            framing.row(place(1, 2), b"{}", true, &mut out);
            framing.row(place(2, 2), b"{}", false, &mut out);
            framing.end(place(2, 2), 0, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(frame(Framing::Array), "{\"results\":[\n{},\n{}\n],\"last_seq\":2,\"pending\":0}\n");
        assert_eq!(frame(Framing::Lines), "{}\n{}\n{\"last_seq\":2,\"pending\":0}\n");
        assert_eq!(frame(Framing::Events), "data: {}\nid: 1-9\n\ndata: {}\nid: 2\n\n");
    }
}
