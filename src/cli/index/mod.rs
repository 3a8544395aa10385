//! `treepie index …`: index scripts and how they are doing.

mod delete;
mod follow;
mod list;
mod put;
mod show;
mod status;
mod test;

use clap::Subcommand;

use super::Failure;

/// Put, list, show, delete and follow index scripts
#[derive(Debug, Subcommand)]
pub(crate) enum Index {
    /// Put an index script, new or changed
    Put(put::Put),
    /// Try an index script out, before it is put; nothing is written
    Test(test::Test),
    /// List the indexes
    List(list::List),
    /// Print the script of an index
    Show(show::Show),
    /// Delete indexes and their artificial documents
    Delete(delete::Delete),
    /// Print state, lag, rate and estimate; --wait until nothing is stale
    Status(status::Status),
}

impl Index {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Put(command) => command.run().await,
            Self::Test(command) => command.run().await,
            Self::List(command) => command.run().await,
            Self::Show(command) => command.run().await,
            Self::Delete(command) => command.run().await,
            Self::Status(command) => command.run().await,
        }
    }
}
