//! `treepie subscription …`: cursors over a collection that the server keeps.

mod ack;
mod create;
mod delete;
mod list;
mod tail;

use clap::Subcommand;

use super::Failure;

/// Create, list, tail, acknowledge and delete subscriptions
#[derive(Debug, Subcommand)]
pub(crate) enum Subscription {
    /// Create a subscription
    Create(create::Create),
    /// List the subscriptions and how far they are
    List(list::List),
    /// Print what a subscription delivers; --ack acknowledges what was printed
    Tail(tail::Tail),
    /// Acknowledge everything through a change vector or etag
    Ack(ack::Ack),
    /// Delete subscriptions
    Delete(delete::Delete),
}

impl Subscription {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Create(command) => command.run().await,
            Self::List(command) => command.run().await,
            Self::Tail(command) => command.run().await,
            Self::Ack(command) => command.run().await,
            Self::Delete(command) => command.run().await,
        }
    }
}
