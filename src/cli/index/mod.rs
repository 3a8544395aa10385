//! `treepie index …`: index scripts and how they are doing.

mod delete;
mod follow;
mod list;
mod operation;
mod put;
mod show;
mod status;
mod test;

use clap::Subcommand;

use super::Failure;

/// Put, list, show, follow, pause, change back and delete index scripts
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
    /// Stop indexes until they are resumed or the server starts again
    Pause(operation::Names),
    /// Let paused indexes go on, and those that were stopped for their faults
    Resume(operation::Names),
    /// Turn indexes off for good; their results stay as they are
    Disable(operation::Names),
    /// Turn indexes on again
    Enable(operation::Names),
    /// Build indexes anew beside their present results
    Reset(operation::Names),
    /// Let a changed definition take over now, before it has taken in all documents
    Swap(operation::Names),
    /// Give up a change of definition
    Cancel(operation::Names),
    /// Go back to the definition before the present one
    Rollback(operation::Names),
    /// Set whether the definition may change
    Lock(operation::Lock),
    /// Set how much an index gives way to others
    Priority(operation::Priority),
    /// Forget the recorded faults
    Clear(operation::Names),
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
            Self::Pause(names) => names.run(operation::PAUSE).await,
            Self::Resume(names) => names.run(operation::RESUME).await,
            Self::Disable(names) => names.run(operation::DISABLE).await,
            Self::Enable(names) => names.run(operation::ENABLE).await,
            Self::Reset(names) => names.run(operation::RESET).await,
            Self::Swap(names) => names.run(operation::SWAP).await,
            Self::Cancel(names) => names.run(operation::CANCEL).await,
            Self::Rollback(names) => names.run(operation::ROLL_BACK).await,
            Self::Lock(command) => command.run().await,
            Self::Priority(command) => command.run().await,
            Self::Clear(names) => names.run(operation::CLEAR).await,
            Self::Status(command) => command.run().await,
        }
    }
}
