//! What can go wrong with a subscription, and who must act.

use crate::script::Fault;
use crate::store::StoreError;

/// Why a worker is no worker any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Somebody dropped the connection; it may come again.
    Dropped,
    /// Another worker took over.
    TakenOver,
    /// The subscription was deleted.
    Deleted,
    /// The subscription was turned off.
    Disabled,
    /// The definition or the position was changed; it may come again.
    Changed,
}

impl End {
    /// Whether the worker may come again at once.
    pub(crate) fn may_return(self) -> bool {
        matches!(self, Self::Changed)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Dropped => "the connection was dropped by request",
            Self::TakenOver => "another worker took the subscription over (TakeOver)",
            Self::Deleted => "the subscription was deleted",
            Self::Disabled => "the subscription was disabled",
            Self::Changed => "the subscription was changed; open it again",
        })
    }
}

/// An error of a subscription.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubscriptionError {
    /// From the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such subscription.
    #[error("there is no subscription '{name}'; create it with PUT subscriptions")]
    Missing {
        /// As asked for.
        name: String,
    },
    /// There is one of this name already.
    #[error("there is a subscription '{name}' already; update or delete it, or choose another name")]
    Exists {
        /// As it is spelled.
        name: String,
    },
    /// The definition breaks a rule.
    #[error("subscription '{name}' is refused: {reason}")]
    Definition {
        /// As asked for.
        name: String,
        /// The rule and the way out.
        reason: String,
    },
    /// The definition asks for what there is not.
    #[error("{0}")]
    Unsupported(String),
    /// The script is refused.
    #[error("the script of subscription '{name}' is refused: {fault}")]
    Script {
        /// The subscription.
        name: String,
        /// What is wrong, with its position.
        fault: Box<Fault>,
    },
    /// A position that the feed does not have.
    #[error("{0}")]
    Position(String),
    /// Another worker has it.
    #[error("{0}")]
    InUse(String),
    /// It is turned off.
    #[error("subscription '{name}' is disabled; enable it first")]
    Disabled {
        /// The subscription.
        name: String,
    },
    /// Deletions that it had not delivered were cleaned up.
    #[error(
        "subscription '{name}' was left behind: deletions through etag {purged} were cleaned up, and it had come to {through} only, so \
         it would miss some; start it again with update and ChangeVector 'BeginningOfTime', and forget what was read before"
    )]
    Abandoned {
        /// The subscription.
        name: String,
        /// What is gone.
        purged: u64,
        /// How far it had come.
        through: u64,
    },
    /// A worker that has no open connection.
    #[error(
        "subscription '{name}' has no open worker '{worker}': its connection ended, and what it held will be delivered again"
    )]
    NoWorker {
        /// The subscription.
        name: String,
        /// As asked for.
        worker: String,
    },
    /// The worker's connection has ended.
    #[error("{0}")]
    Ended(End),
}
