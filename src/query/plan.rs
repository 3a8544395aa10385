//! How a query's rows are read: by id, by a range of ids, in etag order, by the keys of an index, or all of them.
//!
//! Documents come in id order and results of indexes in key order, unless the query asks for another one, so that pages stay put
//! while documents change. Conditions that chose the way of reading are asked again of each row; what they leave out is never read.
//!
//! A map-only index stands in for a scan of its collection. What it has not taken in yet is read from the feed beside it, so the
//! answer is as current as a scan's.
//!
//! Next: `run`.

use std::fmt;

use super::bind::Bound;
use super::error::QueryError;
use super::filter::Test;
use super::key_range::{self, KeyFields, KeyRanges, all_keys, is_key_order};
use super::number::Number;
use super::path::{Path, Step};
use super::syntax::{Comparison, Order, Reading, Subject};
use super::value::Value;
use crate::id::{DocumentId, lower};
use crate::index::queried::QueriedIndex;
use crate::index::read::KeyBounds;
use crate::store::keyspace::{KeyRange, after_prefix};
use crate::store::scan::Direction;
use crate::store::snapshot::Snapshot;

/// A collection with less than this part of all documents is read through its feed when the order does not matter.
const FEED_SHARE: u64 = 4;
/// A collection with less than this part of all documents is read by its ids, gathered and put in order, when it does.
const GATHER_SHARE: u64 = 16;
/// The most ids that are gathered.
const GATHERED_MAX: u64 = 100_000;

/// What is queried, where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The documents of a collection.
    Collection(String),
    /// All documents.
    AllDocs,
    /// The results of an index that writes no documents.
    Results(QueriedIndex),
    /// The results of an index that writes documents, into this collection.
    Outputs(QueriedIndex, String),
    /// The entries of a map-only index, with their documents.
    Entries(QueriedIndex),
}

/// The way rows are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Nothing can match.
    Nothing,
    /// These documents, in id order.
    ById(Vec<DocumentId>),
    /// The documents whose lower-cased ids are in the range.
    Ids(KeyRange),
    /// The documents of the collection, whose ids are gathered from its feed.
    Gathered,
    /// The documents last written with an etag above the first, through the second.
    Feed { after: u64, through: u64 },
    /// What an index holds under these keys, in key order.
    Keys { index: Box<QueriedIndex>, held: Held, ranges: Vec<KeyBounds> },
}

/// What is read under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Results that stand in the index.
    Results,
    /// Results that are documents of the collection.
    Outputs(String),
    /// Entries, each with its document.
    Entries,
    /// Documents of the collection; those that have changed after the etag are read from the feed.
    Documents { after: u64 },
}

/// How a query is run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) access: Access,
    pub(crate) direction: Direction,
    /// Only documents of this collection.
    pub(crate) collection: Option<String>,
    /// Whether rows come in another order than the one wanted.
    pub(crate) must_sort: bool,
    /// How many rows there are in all, where that is known beforehand.
    pub(crate) total: Option<u64>,
}

/// What the conditions say about ids and etags.
#[derive(Debug)]
struct Spans {
    ids: Option<Vec<String>>,
    id_range: KeyRange,
    has_id_range: bool,
    after: u64,
    through: u64,
    has_etags: bool,
}

/// Chooses how to read the rows of a query. Orders by etag where the conditions choose by etag and nothing else says how.
///
/// # Errors
/// The counts can't be read.
pub(crate) fn plan(
    bound: &mut Bound,
    source: &Source,
    secondary: &[QueriedIndex],
    snapshot: &Snapshot<'_>,
) -> Result<Plan, QueryError> {
    let spans = Spans::of(&bound.filter);
    let documents = snapshot.count()?.documents;
    let count = |name: &str| Ok::<_, QueryError>(snapshot.collection(name)?.map_or(0, |count| count.documents));
    let (collection, of_collection) = match source {
        Source::Results(index) => return Ok(held(bound, index, Held::Results)),
        Source::Entries(index) => return Ok(held(bound, index, Held::Entries)),
        Source::AllDocs => (None, documents),
        Source::Outputs(index, name) => {
            let plan = held(bound, index, Held::Outputs(name.clone()));
            if matches!(&plan.access, Access::Keys { ranges, .. } if *ranges != [all_keys()]) {
                return Ok(plan);
            }
            (Some(name.clone()), count(name)?)
        }
        Source::Collection(name) => (Some(name.clone()), count(name)?),
    };
    let chosen_by_etag = spans.has_etags && spans.ids.is_none() && !spans.has_id_range;
    if chosen_by_etag && bound.order.is_empty() && bound.group.is_none() {
        bound.order.push(super::syntax::Order { by: Subject::Etag, reading: Reading::Typed, descending: false });
    }
    let wanted = wanted_order(bound);
    let access = if of_collection == 0 {
        Access::Nothing
    } else if let Some(ids) = spans.ids {
        Access::ById(documents_by_id(&ids))
    } else if spans.has_id_range {
        Access::Ids(spans.id_range)
    } else if spans.has_etags || matches!(wanted, Wanted::Etag(_)) {
        Access::Feed { after: spans.after, through: spans.through.min(snapshot.progress().written) }
    } else if let Some(keys) = by_secondary(bound, secondary, snapshot)? {
        keys
    } else if wanted == Wanted::Any && of_collection.saturating_mul(FEED_SHARE) < documents {
        Access::Feed { after: 0, through: snapshot.progress().written }
    } else if wanted != Wanted::Any
        && of_collection.saturating_mul(GATHER_SHARE) < documents
        && of_collection <= GATHERED_MAX
    {
        Access::Gathered
    } else {
        Access::Ids(KeyRange::all())
    };
    let (must_sort, direction) = match (&access, wanted) {
        (Access::Nothing, _) => (false, Direction::Forward),
        (Access::Feed { .. }, Wanted::Etag(direction))
        | (Access::ById(_) | Access::Ids(_) | Access::Gathered, Wanted::Id(direction)) => (false, direction),
        (Access::Keys { index, held: Held::Documents { after }, .. }, _) if bound.group.is_none() => {
            let is_current = snapshot.progress().written <= *after;
            (!(is_current && is_whole_key_order(&bound.order, &fields(index))), Direction::Forward)
        }
        _ => (bound.group.is_none(), Direction::Forward),
    };
    let is_whole = matches!(bound.filter, Test::Always(true)) && bound.group.is_none();
    let is_distinct = bound.select.as_ref().is_some_and(|select| select.distinct);
    Ok(Plan { access, direction, collection, must_sort, total: (is_whole && !is_distinct).then_some(of_collection) })
}

/// Reads what an index holds, in ranges of keys where the conditions allow it.
fn held(bound: &Bound, index: &QueriedIndex, held: Held) -> Plan {
    let names = index.key_names.iter().flatten();
    let fields: Vec<_> = names.map(|name| key_range::field(name)).collect();
    let found = KeyRanges::of(bound.filter.conjuncts(), &fields);
    let is_ordered = match held {
        // Equal rows stand in key order, and those of documents in the order of their ids.
        Held::Results | Held::Entries => bound.order.is_empty() || is_key_order(&bound.order, &fields),
        Held::Outputs(_) | Held::Documents { .. } => is_whole_key_order(&bound.order, &fields),
    };
    Plan {
        access: Access::Keys { index: Box::new(index.clone()), held, ranges: found.ranges },
        direction: Direction::Forward,
        collection: None,
        must_sort: !is_ordered && bound.group.is_none(),
        total: None,
    }
}

/// The map-only index that leaves most out, where one leaves anything out, or holds the order of a page.
fn by_secondary(
    bound: &Bound,
    secondary: &[QueriedIndex],
    snapshot: &Snapshot<'_>,
) -> Result<Option<Access>, QueryError> {
    let mut best: Option<(usize, Access)> = None;
    for index in secondary {
        let fields = fields(index);
        let found = KeyRanges::of(bound.filter.conjuncts(), &fields);
        let orders = bound.limit.is_some() && bound.group.is_none() && is_whole_key_order(&bound.order, &fields);
        let rank = 4 * found.given + 2 * usize::from(found.is_bounded) + usize::from(orders);
        if rank == 0 || best.as_ref().is_some_and(|(known, _)| *known >= rank) || !index.is_in(snapshot)? {
            continue;
        }
        let held = Held::Documents { after: index.watermark };
        best = Some((rank, Access::Keys { index: Box::new(index.clone()), held, ranges: found.ranges }));
    }
    Ok(best.map(|(_, access)| access))
}

/// The key's fields as paths of the documents that a map-only index holds.
fn fields(index: &QueriedIndex) -> Vec<(String, Path)> {
    let fields = index.plain_key.iter().flatten();
    let path = |path: &[String]| Path(path.iter().cloned().map(Step::Name).collect());
    fields.map(|(name, steps)| (name.clone(), path(steps))).collect()
}

/// Whether key order is the wanted order and leaves no two rows of different keys equal.
fn is_whole_key_order(order: &[Order], fields: &KeyFields) -> bool {
    order.len() == fields.len() && is_key_order(order, fields)
}

/// The order in which rows are wanted, as far as it is one in which they can be read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Id(Direction),
    Etag(Direction),
    /// They are sorted or grouped in any case.
    Any,
}

fn wanted_order(bound: &Bound) -> Wanted {
    let direction = |descending| if descending { Direction::Backward } else { Direction::Forward };
    match bound.order.as_slice() {
        _ if bound.group.is_some() => Wanted::Any,
        [] => Wanted::Id(Direction::Forward),
        [order, ..]
            if order.by == Subject::Id && order.reading != Reading::Long && order.reading != Reading::Double =>
        {
            Wanted::Id(direction(order.descending))
        }
        [order, ..] if order.by == Subject::Etag && order.reading != Reading::String => {
            Wanted::Etag(direction(order.descending))
        }
        _ => Wanted::Any,
    }
}

fn documents_by_id(ids: &[String]) -> Vec<DocumentId> {
    // What breaks the rules of ids names no document.
    ids.iter().filter_map(|id| DocumentId::existing(id).ok()).collect()
}

impl Spans {
    fn of(filter: &Test) -> Self {
        let mut spans = Self {
            ids: None,
            id_range: KeyRange::all(),
            has_id_range: false,
            after: 0,
            through: u64::MAX,
            has_etags: false,
        };
        for test in filter.conjuncts() {
            match test {
                Test::Compare(Subject::Id, comparison, value) => spans.compare_id(*comparison, value),
                Test::Between(Subject::Id, low, high) => {
                    spans.compare_id(Comparison::GreaterOrEqual, low);
                    spans.compare_id(Comparison::LessOrEqual, high);
                }
                Test::In(Subject::Id, values) => spans.one_of(values),
                Test::StartsWith(Subject::Id, prefix) => spans.within(KeyRange::prefix(prefix.as_bytes())),
                Test::Compare(Subject::Etag, comparison, value) => spans.compare_etag(*comparison, value),
                Test::Between(Subject::Etag, low, high) => {
                    spans.compare_etag(Comparison::GreaterOrEqual, low);
                    spans.compare_etag(Comparison::LessOrEqual, high);
                }
                _ => {}
            }
        }
        spans
    }

    fn one_of(&mut self, values: &[Value<'static>]) {
        let ids = values.iter().filter_map(|value| match value {
            Value::String(id) => Some(id.clone().into_owned()),
            _ => None,
        });
        let ids: Vec<String> = ids.collect();
        match &mut self.ids {
            Some(known) => known.retain(|id| ids.contains(id)),
            None => self.ids = Some(ids),
        }
    }

    fn compare_id(&mut self, comparison: Comparison, value: &Value<'static>) {
        let Value::String(id) = value else { return };
        let at = id.as_bytes().to_vec();
        // No id holds 0x00: nothing stands between an id and this.
        let behind = [at.as_slice(), &[0]].concat();
        match comparison {
            Comparison::Equal => self.one_of(std::slice::from_ref(value)),
            Comparison::NotEqual => {}
            Comparison::Less => self.within(KeyRange { from: Vec::new(), before: Some(at) }),
            Comparison::LessOrEqual => self.within(KeyRange { from: Vec::new(), before: Some(behind) }),
            Comparison::Greater => self.within(KeyRange { from: behind, before: None }),
            Comparison::GreaterOrEqual => self.within(KeyRange { from: at, before: None }),
        }
    }

    fn within(&mut self, range: KeyRange) {
        self.has_id_range = true;
        self.id_range = intersection(&self.id_range, range);
    }

    fn compare_etag(&mut self, comparison: Comparison, value: &Value<'static>) {
        let Value::Number(number) = value else { return };
        let Ok(etag) = number.to_string().parse::<u64>() else { return };
        debug_assert!(*number == Number::from(etag), "a whole number reads back");
        match comparison {
            Comparison::Equal => {
                self.after = self.after.max(etag.saturating_sub(1));
                self.through = self.through.min(etag);
            }
            Comparison::NotEqual => return,
            Comparison::Less => self.through = self.through.min(etag.saturating_sub(1)),
            Comparison::LessOrEqual => self.through = self.through.min(etag),
            Comparison::Greater => self.after = self.after.max(etag),
            Comparison::GreaterOrEqual => self.after = self.after.max(etag.saturating_sub(1)),
        }
        self.has_etags = true;
    }
}

/// The keys that are in both ranges.
pub(crate) fn intersection(a: &KeyRange, b: KeyRange) -> KeyRange {
    let before = match (&a.before, b.before) {
        (Some(a), Some(b)) => Some(a.min(&b).clone()),
        (Some(before), None) => Some(before.clone()),
        (None, before) => before,
    };
    KeyRange { from: a.from.clone().max(b.from), before }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of =
            self.collection.as_ref().map_or_else(|| "all documents".to_owned(), |name| format!("collection '{name}'"));
        match &self.access {
            Access::Nothing => f.write_str("nothing to read")?,
            Access::ById(ids) => write!(f, "{of}: {} by id", ids.len())?,
            Access::Ids(range) if *range == KeyRange::all() => write!(f, "{of}: scan in id order")?,
            Access::Ids(range) => {
                let shown = |key: &[u8]| String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
                match &range.before {
                    Some(before) if after_prefix(&range.from).as_ref() == Some(before) => {
                        write!(f, "{of}: ids that begin with '{}'", shown(&range.from))?;
                    }
                    Some(before) => write!(f, "{of}: ids from '{}' to '{}'", shown(&range.from), shown(before))?,
                    None => write!(f, "{of}: ids from '{}'", shown(&range.from))?,
                }
            }
            Access::Gathered => write!(f, "{of}: its ids from its feed, put in order")?,
            Access::Feed { after: 0, .. } => write!(f, "{of}: its feed")?,
            Access::Feed { after, through } => write!(f, "{of}: its feed after etag {after} through {through}")?,
            Access::Keys { index, held, ranges } => {
                let what = match held {
                    Held::Results | Held::Outputs(_) => "results",
                    Held::Entries => "entries",
                    Held::Documents { .. } => "documents",
                };
                write!(f, "index '{}': {what} ", index.name)?;
                match ranges.as_slice() {
                    all if *all == [all_keys()] => f.write_str("in key order")?,
                    [_] => f.write_str("in a range of keys")?,
                    ranges => write!(f, "in {} ranges of keys", ranges.len())?,
                }
            }
        }
        f.write_str(match (self.must_sort, self.direction) {
            (true, _) => ", then sorted",
            (false, Direction::Backward) => ", backward",
            (false, Direction::Forward) => "",
        })
    }
}

/// Whether a document belongs to the plan's collection.
pub(crate) fn is_in(collection: Option<&str>, name: &str) -> bool {
    collection.is_none_or(|wanted| wanted == name || lower(wanted) == lower(name))
}
