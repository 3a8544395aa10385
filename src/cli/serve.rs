//! `treepie serve`: a server, until it is told to stop.

use std::future::pending;
use std::io::{ErrorKind, IsTerminal};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;
use treepie::database::DatabaseSettings;
use treepie::id::check_node_tag;
use treepie::server::{Server, ServerSettings};
use treepie::store::{Durability, Memory};

use super::Failure;
use super::age::Age;
use super::output::{Output, OutputArgs, notice};
use super::size::Size;

/// Run a server
#[derive(Debug, Args)]
#[command(after_help = "\
SIGTERM and SIGINT end it: requests and index runs in hand are finished and synced. A second signal ends it at once;
what was answered before is on disk then, too, unless durability is relaxed. The log's filter is a level (info, debug) or
levels by part: warn,treepie::index=debug.")]
pub(crate) struct Serve {
    /// The data directory; created where there is none
    #[arg(long, default_value = "./treepie-data", value_name = "DIR")]
    data: PathBuf,
    /// The address to listen on; port 0 takes a free one
    #[arg(long, env = "TREEPIE_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The tag of this node in the ids it makes: 1 to 4 capital letters
    #[arg(long, default_value = "A", value_name = "TAG", value_parser = node_tag)]
    node_tag: String,
    /// What a trailing separator asks for, unless a database's settings say otherwise
    #[arg(long, default_value = "server-side", value_name = "ID")]
    trailing_slash: TrailingSlashArg,
    /// The GUIDs of documents without an id, unless a database's settings say otherwise
    #[arg(long, default_value = "v4", value_name = "VERSION")]
    guid: GuidArg,
    /// When a write is on disk
    #[arg(long, default_value = "strict", value_name = "WHEN")]
    durability: DurabilityArg,
    /// Memory for writes that are not yet in files, of all databases together
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    write_buffer: Size,
    /// Memory for blocks read from files, of all databases together
    #[arg(long, default_value = "32MiB", value_name = "SIZE")]
    block_cache: Size,
    /// The largest document that is taken
    #[arg(long, default_value = "64MiB", value_name = "SIZE")]
    document_max: Size,
    /// The largest batch that is taken, decompressed
    #[arg(long, default_value = "256MiB", value_name = "SIZE")]
    batch_max: Size,
    /// For so long deletions are kept for readers of the feed that the server does not know; 0s keeps them only for indexes
    /// and subscriptions
    #[arg(long, default_value = "14d", value_name = "TIME")]
    tombstones_kept: Age,
    /// A subscription that nobody has used for so long holds no deletions back any more, and is told when it comes back
    #[arg(long, default_value = "90d", value_name = "TIME")]
    subscription_idle_max: Age,
    /// What is logged on standard error
    #[arg(long, env = "TREEPIE_LOG", default_value = "warn,treepie=info", value_name = "FILTER")]
    log: String,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DurabilityArg {
    /// Before it is answered
    Strict,
    /// Within a second; a crash may lose what was answered
    Relaxed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TrailingSlashArg {
    /// users/ gives users/0000000000000000042-A
    ServerSide,
    /// users/ gives users/7, as users| does: the rule of old RavenDB versions
    Identity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GuidArg {
    /// Random
    V4,
    /// Ordered by time
    V7,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let filter = EnvFilter::try_new(&self.log)
            .map_err(|error| Failure::usage(format!("--log '{}' is no filter: {error}", self.log)))?;
        let colours = std::io::stderr().is_terminal();
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
        // Both signals are caught before anything is open.
        let stop = Stop::new()?;
        let server = Server::bind(self.settings()).await.map_err(|error| {
            let failure = Failure::failed(format!("cannot serve {} on {}: {error}", self.data.display(), self.listen));
            match error.kind() {
                ErrorKind::AddrInUse => failure.way_out("stop what listens there, or choose another with --listen"),
                ErrorKind::NotFound | ErrorKind::PermissionDenied => {
                    failure.way_out("choose a data directory that can be made and written, with --data")
                }
                _ => failure,
            }
        })?;
        let address = server
            .local_address()
            .map_err(|error| Failure::failed(format!("the address of the server is not known: {error}")))?;
        let mut out = Output::new(self.output);
        out.line(&if out.for_people() {
            format!("treepie serves {} on http://{address}", self.data.display())
        } else {
            serde_json::json!({ "url": format!("http://{address}"), "data": self.data }).to_string()
        })?;
        out.flush()?;
        server.run(stop.wait()).await.map_err(|error| Failure::failed(format!("the server failed: {error}")))
    }

    fn settings(&self) -> ServerSettings {
        let mut database = DatabaseSettings::default();
        database.store.id_rules.node_tag.clone_from(&self.node_tag);
        database.store.id_rules.trailing_slash_is_identity = self.trailing_slash == TrailingSlashArg::Identity;
        database.store.id_rules.guid_v7 = self.guid == GuidArg::V7;
        database.store.durability = match self.durability {
            DurabilityArg::Strict => Durability::Strict,
            DurabilityArg::Relaxed => {
                notice("--durability relaxed: a crash may lose the last second of answered writes");
                Durability::Relaxed
            }
        };
        database.tombstones.kept_min = self.tombstones_kept.0;
        database.tombstones.subscription_idle_max = self.subscription_idle_max.0;
        database.store.memory = Some(Memory::new(self.write_buffer.0, self.block_cache.0));
        let mut settings = ServerSettings::new(self.data.clone(), self.listen, database);
        settings.limits.document_bytes_max = self.document_max.0;
        settings.limits.batch_bytes_max = self.batch_max.0;
        settings
    }
}

/// The signals that end a server.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::failed(format!("cannot catch signals: {error}")));
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    /// Waits for the first signal; from then on the next one ends the process at once.
    async fn wait(mut self) {
        self.next().await;
        notice("stopping; a second signal ends it at once");
        tokio::spawn(async move {
            self.next().await;
            std::process::exit(1);
        });
    }

    async fn next(&mut self) {
        tokio::select! {
            received = self.terminate.recv() => if received.is_none() { pending().await },
            received = self.interrupt.recv() => if received.is_none() { pending().await },
        }
    }
}

fn node_tag(text: &str) -> Result<String, String> {
    check_node_tag(text).map(|()| text.to_owned()).map_err(|error| error.to_string())
}
