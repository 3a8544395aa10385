//! What a caller asks of `_changes`, from the URL, the head and the body of a request.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::HeaderMap;

use super::feed::Framing;
use super::seq::Seq;
use crate::id;
use crate::server::error::ApiError;
use crate::server::query::{Query, bad};
use crate::server::settings::ServerLimits;
use crate::server::wire::couch::ChangesBody;
use crate::store::changes::Feed;

/// How long a waiting feed stays open without a change where the caller names no time; CouchDB's default.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The shortest time between two heartbeats.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// When a feed comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// When it has everything that is durable now.
    Normal,
    /// With the first changes.
    LongPoll,
    /// When nothing has changed for `timeout`, or never with a heartbeat.
    Continuous,
}

/// What a caller asks of the feed.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) mode: Mode,
    pub(super) framing: Framing,
    pub(super) since: Seq,
    pub(super) limit: u64,
    pub(super) descending: bool,
    pub(super) heartbeat: Option<Duration>,
    pub(super) timeout: Duration,
    pub(super) include_docs: bool,
    pub(super) filter: Filter,
}

/// Which changes a caller wants.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) feed: Feed,
    /// Only ids that begin with this, lower-cased.
    pub(super) prefix: Option<String>,
    /// Only these ids, lower-cased.
    pub(super) ids: Option<BTreeSet<String>>,
}

impl Asked {
    pub(super) fn read(
        query: &Query,
        headers: &HeaderMap,
        body: ChangesBody,
        durable: u64,
        limits: &ServerLimits,
    ) -> Result<Self, ApiError> {
        query.refuse(&["view", "att_encoding_info", "attachments"], "_changes")?;
        let (mode, framing) = match query.text("feed").unwrap_or("normal") {
            "normal" => (Mode::Normal, Framing::Array),
            "longpoll" => (Mode::LongPoll, Framing::Array),
            "continuous" => (Mode::Continuous, Framing::Lines),
            "eventsource" => (Mode::Continuous, Framing::Events),
            other => return Err(bad("feed", other, "normal, longpoll, continuous or eventsource")),
        };
        let descending = query.switch("descending", false)?;
        if descending && mode != Mode::Normal {
            return Err(ApiError::argument(
                "descending=true goes with feed=normal only: a feed that waits goes forward.",
            ));
        }
        match query.text("style") {
            // There is one version of each document.
            None | Some("main_only" | "all_docs") => {}
            Some(other) => return Err(bad("style", other, "main_only or all_docs")),
        }
        let last_event = headers.get("last-event-id").and_then(|value| value.to_str().ok());
        let last_event = last_event.or(query.text("last-event-id")).filter(|_| framing == Framing::Events);
        let mut heartbeat = heartbeat(query, limits)?;
        if framing == Framing::Events && heartbeat.is_none() {
            heartbeat = Some(TIMEOUT / 2);
        }
        let timeout = query.number("timeout")?.map_or(TIMEOUT, Duration::from_millis);
        Ok(Self {
            mode,
            framing,
            since: Seq::read(last_event.or(query.text("since")), durable)?,
            // As in CouchDB, 0 is 1.
            limit: query.number("limit")?.unwrap_or(u64::MAX).max(1),
            descending,
            heartbeat,
            timeout: timeout.min(limits.wait_max),
            include_docs: query.switch("include_docs", false)?,
            filter: Filter::read(query, body)?,
        })
    }
}

impl Filter {
    fn read(query: &Query, body: ChangesBody) -> Result<Self, ApiError> {
        let by_ids = match query.text("filter") {
            None => false,
            Some("_doc_ids") => true,
            Some(other) => {
                let shown: String = other.chars().take(80).collect();
                let ways = "_doc_ids, or collection=… or prefix=… without a filter";
                return Err(ApiError::unsupported(&format!("the filter '{shown}' of _changes; use {ways}")));
            }
        };
        if body.selector.is_some() {
            return Err(ApiError::unsupported("selectors in _changes; use filter=_doc_ids, collection=… or prefix=…"));
        }
        let ids = match (body.doc_ids, query.text("doc_ids")) {
            (Some(ids), _) => Some(ids),
            (None, Some(text)) => {
                Some(serde_json::from_str(text).map_err(|_| bad("doc_ids", text, "a JSON array of ids"))?)
            }
            (None, None) => None,
        };
        if by_ids != ids.is_some() {
            return Err(ApiError::argument("filter=_doc_ids and 'doc_ids', an array of ids, go together."));
        }
        Ok(Self {
            feed: query.text("collection").map_or(Feed::All, |name| Feed::Collection(name.to_owned())),
            prefix: query.text("prefix").map(id::lower),
            ids: ids.map(|ids: Vec<String>| ids.iter().map(|wanted| id::lower(wanted)).collect()),
        })
    }

    /// Whether a change of the feed is wanted.
    pub(super) fn wants(&self, id: &str) -> bool {
        if self.prefix.is_none() && self.ids.is_none() {
            return true;
        }
        let lower = id::lower(id);
        self.prefix.as_ref().is_none_or(|prefix| lower.starts_with(prefix.as_str()))
            && self.ids.as_ref().is_none_or(|ids| ids.contains(&lower))
    }
}

fn heartbeat(query: &Query, limits: &ServerLimits) -> Result<Option<Duration>, ApiError> {
    let period = match query.text("heartbeat") {
        None | Some("false") => return Ok(None),
        Some("true") => TIMEOUT,
        Some(text) => match text.parse::<u64>() {
            Ok(millis) if millis > 0 => Duration::from_millis(millis),
            _ => return Err(bad("heartbeat", text, "a number of milliseconds above 0, or true")),
        },
    };
    Ok(Some(period.clamp(HEARTBEAT_MIN, limits.wait_max.max(HEARTBEAT_MIN))))
}
