//! `treepie serve`: a server, until it is told to stop.
//!
//! What it can be told is the table of `treepie::settings`; this file only adds where the words come from.

use std::future::pending;
use std::io::{ErrorKind, IsTerminal};

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;
use treepie::server::Server;
use treepie::settings::{Settings, Storage, print};

use super::Failure;
use super::output::{Output, OutputArgs, notice};
use super::settings::SettingsArgs;

/// Run a server
#[derive(Debug, Args)]
#[command(after_help = "\
A setting comes from its default, the file of --config, the environment or the command line; the later one wins.

SIGTERM and SIGINT end it: requests and index runs in hand are finished and synced. A second signal ends it at once;
what was answered before is on disk then, too, unless durability is relaxed.")]
pub(crate) struct Serve {
    #[command(flatten)]
    settings: SettingsArgs,
    /// Print the settings as a file that --config reads, with what each means, and end
    #[arg(long)]
    print_config: bool,
    #[command(flatten)]
    output: OutputArgs,
}

impl Serve {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let settings = self.settings.read()?;
        if self.print_config {
            let mut out = Output::new(self.output);
            out.line(print(&settings).trim_end())?;
            return out.flush();
        }
        let filter = EnvFilter::try_new(&settings.log)
            .map_err(|error| Failure::usage(format!("--log '{}' is no filter: {error}", settings.log)))?;
        let colours = std::io::stderr().is_terminal();
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr).init();
        warn_of_dangers(&settings);
        // Both signals are caught before anything is open.
        let stop = Stop::new()?;
        let (data, listen) = (settings.data.display(), settings.listen);
        let server = Server::bind(settings.server()).await.map_err(|error| {
            let failure = Failure::failed(format!("cannot serve {data} on {listen}: {error}"));
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
        let scheme = if settings.tls_certificate.is_some() { "https" } else { "http" };
        let mut out = Output::new(self.output);
        out.line(&if out.for_people() {
            format!("treepie serves {data} on {scheme}://{address}")
        } else {
            serde_json::json!({ "url": format!("{scheme}://{address}"), "data": settings.data }).to_string()
        })?;
        out.flush()?;
        server.run(stop.wait()).await.map_err(|error| Failure::failed(format!("the server failed: {error}")))
    }
}

/// Says what was asked for and may be regretted.
fn warn_of_dangers(settings: &Settings) {
    if settings.durability == Storage::Relaxed {
        notice("--durability relaxed: a crash may lose the last second of answered writes");
    }
    if settings.open_to_everyone && !settings.listen.ip().is_loopback() {
        notice("--anyone-may-read-and-write-everything: whoever reaches the server can do everything");
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
