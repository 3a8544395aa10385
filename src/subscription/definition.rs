//! What a subscription delivers, as asked for and as checked.
//!
//! Next on the walk: `registry`, which keeps definitions, then `live`.

use std::sync::Arc;

use super::error::SubscriptionError;
use super::query::{Query, QueryError};
use super::record::DefinitionRecord;
use crate::id::cut;
use crate::script::Limits;
use crate::script::sieve::Sieve;
use crate::store::changes::Feed;
use crate::store::{Progress, Store};

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 256;

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    /// `None`: its number becomes its name.
    pub(crate) name: Option<String>,
    /// `from Collection`.
    pub(crate) query: String,
    /// Rhai, with `fn filter(doc)` and `fn project(doc)`, or one of them.
    pub(crate) script: Option<String>,
    /// Whether deletions are delivered.
    pub(crate) include_deletes: bool,
    /// Whether the version that was seen before is delivered beside the new one.
    pub(crate) include_previous: bool,
    /// Whether it begins turned off.
    pub(crate) is_disabled: bool,
    /// Where it begins.
    pub(crate) start: Start,
}

/// Where a subscription begins, or goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Start {
    /// With the first document.
    #[default]
    Beginning,
    /// After what is there.
    Last,
    /// Where it is.
    Unchanged,
    /// After this etag.
    After(u64),
}

impl Start {
    /// Reads RavenDB's words, or a change vector of this database.
    ///
    /// # Errors
    /// It is neither, is of another database, or lies beyond what the feed has reached.
    pub(crate) fn parse(text: Option<&str>, store: &Store) -> Result<Self, SubscriptionError> {
        match text.unwrap_or("").trim() {
            "" => Ok(Self::Beginning),
            word if word.eq_ignore_ascii_case("BeginningOfTime") => Ok(Self::Beginning),
            word if word.eq_ignore_ascii_case("LastDocument") => Ok(Self::Last),
            word if word.eq_ignore_ascii_case("DoNotChange") => Ok(Self::Unchanged),
            vector => position(vector, store).map(Self::After),
        }
    }

    /// The etag through which everything counts as delivered; `None`: it stays.
    pub(super) fn etag(self, progress: Progress) -> Option<u64> {
        match self {
            Self::Beginning => Some(0),
            Self::Last => Some(progress.durable),
            Self::Unchanged => None,
            Self::After(etag) => Some(etag),
        }
    }
}

/// Reads a position: an etag, or a change vector of this database, that the feed has reached.
///
/// # Errors
/// It is none.
pub(crate) fn position(text: &str, store: &Store) -> Result<u64, SubscriptionError> {
    let refused = |reason: String| Err(SubscriptionError::Position(reason));
    let shown = cut(text);
    let digits = match text.split_once(':') {
        None => text,
        Some((_, version)) => {
            let Some((etag, incarnation)) = version.split_once('-') else {
                return refused(format!("'{shown}' is no change vector of this database, such as A:42-…"));
            };
            if incarnation != store.incarnation() {
                return refused(format!(
                    "the change vector '{shown}' is of another database, or of this one before it was restored; start at \
                     'BeginningOfTime' or 'LastDocument'"
                ));
            }
            etag
        }
    };
    let Ok(etag) = digits.parse::<u64>() else {
        return refused(format!(
            "'{shown}' is no position; give a change vector, an etag, 'BeginningOfTime', 'LastDocument' or 'DoNotChange'"
        ));
    };
    let durable = store.progress().durable;
    if etag > durable {
        return refused(format!("the position '{shown}' lies ahead: the feed has only come to {durable}"));
    }
    Ok(etag)
}

/// A definition that was checked.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(super) record: DefinitionRecord,
    pub(super) feed: Feed,
    pub(super) sieve: Option<Arc<Sieve>>,
}

impl Checked {
    /// Checks a definition. Blocking: a script is compiled.
    ///
    /// # Errors
    /// Names the rule and the way out.
    pub(super) fn check(
        definition: &Definition,
        number: u64,
        limits: &Limits,
        now_micros: i64,
    ) -> Result<Self, SubscriptionError> {
        let name = definition.name.clone().unwrap_or_else(|| number.to_string());
        check_name(&name)?;
        let query = Query::parse(&definition.query).map_err(|error| match error {
            QueryError::Syntax(reason) => SubscriptionError::Definition { name: cut(&name), reason },
            QueryError::Unsupported(what) => SubscriptionError::Unsupported(what),
        })?;
        let record = DefinitionRecord {
            number,
            name,
            query: definition.query.clone(),
            script: definition.script.clone().filter(|script| !script.trim().is_empty()),
            include_deletes: definition.include_deletes || query.include_deletes,
            include_previous: definition.include_previous || query.include_previous,
            is_disabled: definition.is_disabled,
            created_micros: now_micros,
        };
        Self::of(record, limits)
    }

    /// Makes a checked definition of a stored one.
    pub(super) fn of(record: DefinitionRecord, limits: &Limits) -> Result<Self, SubscriptionError> {
        let refused = |reason: String| SubscriptionError::Definition { name: cut(&record.name), reason };
        let feed = Query::parse(&record.query).map_err(|error| refused(error.to_string()))?.feed;
        if record.include_previous && feed == Feed::All {
            return Err(refused(
                "former versions are kept for one collection; name it instead of @all_docs, or leave IncludePrevious out"
                    .to_owned(),
            ));
        }
        let sieve = match &record.script {
            None => None,
            Some(script) => {
                let sieve = Sieve::compile(script.clone(), limits.clone());
                let refused = |fault| SubscriptionError::Script { name: cut(&record.name), fault: Box::new(fault) };
                Some(Arc::new(sieve.map_err(refused)?))
            }
        };
        Ok(Self { record, feed, sieve })
    }
}

fn check_name(name: &str) -> Result<(), SubscriptionError> {
    let rule = if name.trim().is_empty() {
        "a name can't be blank".to_owned()
    } else if name.len() > NAME_BYTES_MAX {
        format!("a name has at most {NAME_BYTES_MAX} bytes, and this one has {}", name.len())
    } else if name.chars().any(char::is_control) {
        "a name can't hold control characters".to_owned()
    } else {
        return Ok(());
    };
    Err(SubscriptionError::Definition { name: cut(name), reason: format!("{rule}; choose another one") })
}
