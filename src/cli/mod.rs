//! The command line: one file for each command.
//!
//! Every command but `serve` talks to a server over HTTP through `api`; what it prints goes through `output`, and how it
//! fails is a `Failure` with an exit code of its own. `json` looks at documents as text, so that no number is changed on
//! its way through. Documents come in by `load`, index scripts by `index put`, and `watch` shows what became of them.
//!
//! Next on the walk: `serve`.

mod api;
mod backup;
mod cert;
mod credentials;
mod delete;
mod document;
mod explain;
mod export;
mod failure;
mod get;
mod index;
mod json;
mod key;
mod lines;
mod list;
mod load;
mod output;
mod put;
mod query;
mod serve;
mod settings;
mod subscription;
mod verify;
mod watch;

use clap::{Args, Parser, Subcommand};

pub(crate) use failure::Failure;

/// What `treepie` can be asked to do.
#[derive(Debug, Parser)]
#[command(
    name = "treepie",
    version,
    about = "A document database whose map-reduce indexes write their results back as documents",
    after_help = EXIT_CODES,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the server refused it, a file could not be read, or an index is in error
  2  the command line is wrong
  3  the document, index or database was not found
  4  the server could not be reached, or went away

Every command prints for people on a terminal and JSON lines when piped; --text and --json choose.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a server
    Serve(serve::Serve),
    /// Load documents from JSON lines or CSV, plain or gzipped
    Load(load::Load),
    /// Try out, put, list, show, delete and follow index scripts
    #[command(subcommand)]
    Index(index::Index),
    /// Print documents by id
    Get(get::Get),
    /// Print documents by prefix or collection
    List(list::List),
    /// Ask a query
    Query(query::Query),
    /// Store one document
    Put(put::Put),
    /// Delete documents by id
    Delete(delete::Delete),
    /// Print the changes of a collection as they commit
    Watch(watch::Watch),
    /// Take a backup of a database, while it is in use
    Backup(backup::Backup),
    /// Make a new database of a backup
    Restore(backup::Restore),
    /// Write a database as JSON lines
    Export(export::Export),
    /// Read a database from JSON lines
    Import(export::Import),
    /// Make, list and delete API keys
    #[command(subcommand)]
    Key(key::Key),
    /// Make certificates, and say which get in
    #[command(subcommand)]
    Cert(cert::Cert),
    /// Create, list, tail, acknowledge and delete subscriptions
    #[command(subcommand)]
    Subscription(subscription::Subscription),
    /// Print what a document was made of, and what it feeds
    Explain(explain::Explain),
    /// Compute everything again and compare it with what is stored
    Verify(verify::Verify),
}

/// Which server and database a command talks to.
#[derive(Clone, Debug, Args)]
pub(crate) struct Target {
    /// The server
    #[arg(long, env = "TREEPIE_URL", default_value = "http://127.0.0.1:8080", value_name = "URL")]
    pub(crate) url: String,
    /// The database
    #[arg(short, long, env = "TREEPIE_DATABASE", default_value = "main", value_name = "NAME")]
    pub(crate) database: String,
    #[command(flatten)]
    pub(crate) credentials: credentials::Credentials,
}

impl Cli {
    /// Runs the command to its end.
    ///
    /// # Errors
    /// A [`Failure`], which knows its message and exit code.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self.command {
            Command::Serve(command) => command.run().await,
            Command::Load(command) => command.run().await,
            Command::Index(command) => command.run().await,
            Command::Get(command) => command.run().await,
            Command::List(command) => command.run().await,
            Command::Query(command) => command.run().await,
            Command::Put(command) => command.run().await,
            Command::Delete(command) => command.run().await,
            Command::Watch(command) => command.run().await,
            Command::Backup(command) => command.run().await,
            Command::Restore(command) => command.run().await,
            Command::Export(command) => command.run().await,
            Command::Import(command) => command.run().await,
            Command::Key(command) => command.run(),
            Command::Cert(command) => command.run(),
            Command::Subscription(command) => command.run().await,
            Command::Explain(command) => command.run().await,
            Command::Verify(command) => command.run().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
