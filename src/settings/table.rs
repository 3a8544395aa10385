//! The table: each setting with what it means, its kind, its default and the rule that a value must keep.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time;

use super::Size;
use super::value::{Duration, Guid, Storage, TrailingSlash, Value};
use crate::id::check_node_tag;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// One setting, as the sources of settings see it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name in files; with `--` before it on the command line.
    pub name: &'static str,
    /// What it means, in lines.
    pub doc: &'static str,
    /// Whether a file has it as a string.
    pub is_text: bool,
    /// Whether its presence on the command line alone sets it.
    pub is_switch: bool,
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
    pub(super) get: fn(&Settings) -> Option<String>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// Its name in the environment: `TREEPIE_NODE_TAG`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("TREEPIE_{}", self.name.replace('-', "_").to_ascii_uppercase())
    }

    /// Its default, as text; `None` where it is not set by default.
    #[must_use]
    pub fn default(&self) -> Option<String> {
        (self.get)(&Settings::default())
    }
}

macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $field:ident $name:literal: $kind:ty = $default:expr, $rule:expr;)+) => {
        /// The settings of a server, as people write them.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Settings {
            $($(#[doc = $doc])+ pub $field: $kind,)+
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        const ENTRIES: &[Entry] = &[$(Entry {
            name: $name,
            doc: concat!($($doc, "\n"),+),
            is_text: <$kind as Value>::IS_TEXT,
            is_switch: <$kind as Value>::IS_SWITCH,
            set: |settings, text| {
                let value = <$kind as Value>::read(text)?;
                let rule: fn(&$kind) -> Result<(), String> = $rule;
                rule(&value)?;
                settings.$field = value;
                Ok(())
            },
            get: |settings| settings.$field.write(),
        }),+];
    };
}

/// Every setting, in the order in which they are told.
#[must_use]
pub fn entries() -> &'static [Entry] {
    ENTRIES
}

settings! {
    /// The data directory; created where there is none.
    data "data": PathBuf = PathBuf::from("./treepie-data"), any;
    /// The address to listen on; port 0 takes a free one. Others than the loopback need credentials and TLS.
    listen "listen": SocketAddr = SocketAddr::from(([127, 0, 0, 1], 8080)), any;
    /// The URL under which clients reach this server, told to them; what they used themselves where it is not set.
    public_url "public-url": Option<String> = None, is_url;
    /// The file with the server's certificate in PEM, those of its issuers after it. Read again when it changes.
    tls_certificate "tls-certificate": Option<PathBuf> = None, any;
    /// The file with the private key of that certificate in PEM.
    tls_key "tls-key": Option<PathBuf> = None, any;
    /// Listen on more than the loopback without credentials: everyone who reaches the server can do everything.
    open_to_everyone "anyone-may-read-and-write-everything": bool = false, any;
    /// Take credentials from other machines without TLS. For a server behind a proxy that speaks TLS.
    plain_text "keys-may-travel-in-plain-text": bool = false, any;
    /// The directory that backups go to; backups in the data directory where it is not set.
    backups "backups": Option<PathBuf> = None, any;
    /// The tag of this node in the ids it makes: 1 to 4 capital letters.
    node_tag "node-tag": String = "A".to_owned(), |tag| check_node_tag(tag).map_err(|error| error.to_string());
    /// What a trailing separator asks for, unless a database's settings say otherwise: server-side (users/ gives
    /// users/0000000000000000042-A) or identity (users/ gives users/7, as users| does: the rule of old RavenDB versions).
    trailing_slash "trailing-slash": TrailingSlash = TrailingSlash::ServerSide, any;
    /// The GUIDs of documents without an id, unless a database's settings say otherwise: v4 (random) or v7 (by time).
    guid "guid": Guid = Guid::V4, any;
    /// When a write is on disk: strict (before it is answered) or relaxed (within a second; a crash may lose what was answered).
    durability "durability": Storage = Storage::Strict, any;
    /// Memory for writes that are not yet in files, of all databases together.
    write_buffer "write-buffer": Size = Size(64 << 20), |size| bytes(*size, 1 << 20, 1 << 40);
    /// Memory for blocks read from files, of all databases together.
    block_cache "block-cache": Size = Size(32 << 20), |size| bytes(*size, 1 << 20, 1 << 40);
    /// The largest document that is taken.
    document_max "document-max": Size = Size(64 << 20), |size| bytes(*size, 1 << 10, 1 << 30);
    /// The largest batch that is taken, decompressed.
    batch_max "batch-max": Size = Size(256 << 20), |size| bytes(*size, 1 << 10, 1 << 30);
    /// The largest body of any other request.
    request_max "request-max": Size = Size(16 << 20), |size| bytes(*size, 1 << 10, 1 << 30);
    /// Memory for the bodies of all requests together; what does not fit is answered 503.
    bodies_max "bodies-max": Size = Size(1 << 30), |size| bytes(*size, 1 << 20, 1 << 40);
    /// The largest head of a request.
    head_max "head-max": Size = Size(128 << 10), |size| bytes(*size, 8 << 10, 16 << 20);
    /// Open connections; more wait.
    connections_max "connections-max": usize = 4_096, |count| within(*count, 1, 1_000_000);
    /// Requests in hand, open feeds included; more are answered 503.
    requests_max "requests-max": usize = 8_192, |count| within(*count, 1, 1_000_000);
    /// Requests that read or write files at one moment; more wait.
    blocking_max "blocking-max": usize = 32, |count| within(*count, 1, 400);
    /// Listings and exports being streamed at one moment; more wait.
    listings_max "listings-max": usize = 64, |count| within(*count, 1, 400);
    /// Documents that one answer may include by path.
    includes_max "includes-max": usize = 10_000, |count| within(*count, 1, 10_000_000);
    /// Memory that one query may take for each of sorting, grouping and telling rows apart; one that needs more is refused.
    query_memory_max "query-memory-max": Size = Size(64 << 20), |size| bytes(*size, 1 << 20, 1 << 36);
    /// How long a client may take for a request's head, and a connection may stay idle.
    head_timeout "head-timeout": Duration = seconds(60), |time| span(time, 1, 3_600);
    /// How long a client may pause while it sends a body.
    body_pause_max "body-pause-max": Duration = seconds(30), |time| span(time, 1, 3_600);
    /// How long a client may send nothing in a bulk insert.
    bulk_insert_pause_max "bulk-insert-pause-max": Duration = seconds(300), |time| span(time, 1, 86_400);
    /// How long a whole body may take.
    body_timeout "body-timeout": Duration = seconds(600), |time| span(time, 1, 86_400);
    /// How long a client may leave a streamed answer unread.
    unread_max "unread-max": Duration = seconds(60), |time| span(time, 1, 3_600);
    /// The longest wait that a client can ask for.
    wait_max "wait-max": Duration = seconds(3_600), |time| span(time, 1, 86_400);
    /// How long requests in hand may go on after the server was told to stop.
    shutdown_max "shutdown-max": Duration = seconds(30), |time| span(time, 0, 3_600);
    /// For so long deletions are kept for readers of the feed that the server does not know; 0s keeps them only for indexes
    /// and subscriptions.
    tombstones_kept "tombstones-kept": Duration = days(14), |time| span(time, 0, 36_500 * DAY);
    /// A subscription that nobody has used for so long holds no deletions back any more, and is told when it comes back.
    subscription_idle_max "subscription-idle-max": Duration = days(90), |time| span(time, 0, 36_500 * DAY);
    /// Operations of one call of a script.
    script_operations_max "script-operations-max": usize = 1_000_000, |count| within(*count, 1_000, 1_000_000_000);
    /// Wall time of one call of a script: a safety net.
    script_time_max "script-time-max": Duration = seconds(5), |time| span(time, 1, 600);
    /// What is logged on standard error: a level (info, debug), or levels by part (warn,treepie::index=debug).
    log "log": String = "warn,treepie=info".to_owned(), is_filter;
}

#[expect(clippy::unnecessary_wraps, reason = "the rule of a setting that has none")]
fn any<T>(_: &T) -> Result<(), String> {
    Ok(())
}

fn within(value: usize, least: usize, most: usize) -> Result<(), String> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(format!("must be {least} to {most}")) }
}

fn bytes(size: Size, least: usize, most: usize) -> Result<(), String> {
    within(size.0, least, most).map_err(|_| format!("must be {} to {}", Size(least), Size(most)))
}

fn span(time: &Duration, least_seconds: u64, most_seconds: u64) -> Result<(), String> {
    let (least, most) = (seconds(least_seconds), seconds(most_seconds));
    if least.0 <= time.0 && time.0 <= most.0 { Ok(()) } else { Err(format!("must be {least} to {most}")) }
}

const fn seconds(seconds: u64) -> Duration {
    Duration(time::Duration::from_secs(seconds))
}

const fn days(days: u64) -> Duration {
    seconds(days * DAY)
}

#[expect(clippy::ref_option, reason = "a rule takes the kind of its setting")]
fn is_url(url: &Option<String>) -> Result<(), String> {
    match url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            Err("must begin with http:// or https://".to_owned())
        }
        _ => Ok(()),
    }
}

fn is_filter(filter: &String) -> Result<(), String> {
    tracing_subscriber::EnvFilter::try_new(filter).map(|_| ()).map_err(|error| format!("is no filter: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_keeps_its_rule_and_names_are_unique() {
        let mut settings = Settings::default();
        let mut names = std::collections::BTreeSet::new();
        for entry in entries() {
            assert!(names.insert(entry.name), "{}", entry.name);
            if let Some(default) = entry.default() {
                (entry.set)(&mut settings, &default).unwrap_or_else(|rule| panic!("{} {rule}", entry.name));
            }
        }
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn defaults_are_those_of_the_server() {
        let own = Settings::default().server();
        let servers = crate::server::ServerLimits::default();
        assert_eq!(format!("{:?}", own.limits), format!("{servers:?}"));
        let limits = crate::script::Limits::default();
        assert_eq!(own.database.script_limits.operations_max, limits.operations_max);
        assert_eq!(own.database.script_limits.wall_max, limits.wall_max);
        let tombstones = crate::database::DatabaseSettings::default().tombstones;
        assert_eq!(own.database.tombstones.kept_min, tombstones.kept_min);
        assert_eq!(own.database.tombstones.subscription_idle_max, tombstones.subscription_idle_max);
    }
}
