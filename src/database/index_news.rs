//! What happens to the indexes of a database, for those who are told: added, replaced, removed, a batch done, stopped for its
//! faults.
//!
//! Definitions that come and go pass through a bounded channel; a follower that lets it overflow learns that it has missed
//! some. How far indexes have come is a watched value each, which a slow follower sees less often. Nothing polls.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::stream::{self, BoxStream, SelectAll, StreamExt};
use tokio::sync::broadcast::{self, error::RecvError};

use super::Database;
use crate::index::live::{Index, Reached};

/// News that may wait for the slowest follower.
const WAITING_MAX: usize = 1_024;

/// What a follower is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Something happened to an index.
    Index {
        /// Its name.
        name: String,
        /// RavenDB's word for it.
        kind: &'static str,
    },
    /// The follower was too slow, and some news are lost.
    Missed,
}

/// Where news of definitions are told.
#[derive(Debug)]
pub(super) struct Teller(broadcast::Sender<News>);

impl Default for Teller {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING_MAX))
    }
}

impl Teller {
    pub(super) fn tell(&self, name: &str, kind: &'static str) {
        // Nobody may follow.
        let _ = self.0.send(News::Index { name: name.to_owned(), kind });
    }
}

/// What was last seen of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    last_run_micros: i64,
    is_errored: bool,
}

/// Follows the indexes of a database.
pub(crate) struct IndexNews {
    database: Database,
    told: broadcast::Receiver<News>,
    running: SelectAll<BoxStream<'static, (Arc<Index>, Reached)>>,
    seen: HashMap<u32, Seen>,
}

impl Database {
    /// Follows the indexes from now on.
    pub(crate) fn index_news(&self) -> IndexNews {
        let told = self.teller.0.subscribe();
        let mut news = IndexNews { database: self.clone(), told, running: SelectAll::new(), seen: HashMap::new() };
        for index in self.registry.all() {
            news.follow(index);
        }
        news
    }
}

impl IndexNews {
    /// The next thing that happens; never where the database has gone.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub(crate) async fn next(&mut self) -> News {
        loop {
            tokio::select! {
                told = self.told.recv() => match told {
                    Ok(news) => {
                        self.follow_new(&news);
                        return news;
                    }
                    Err(RecvError::Lagged(_)) => return News::Missed,
                    Err(RecvError::Closed) => std::future::pending().await,
                },
                Some((index, reached)) = self.running.next() => {
                    let kind = if reached.is_gone { self.look_for_next(&index) } else { self.look(&index, reached) };
                    if let Some(kind) = kind {
                        return News::Index { name: index.context.name.to_string(), kind };
                    }
                }
            }
        }
    }

    fn follow_new(&mut self, news: &News) {
        if let News::Index { name, .. } = news
            && let Some(index) = self.database.registry.get(name)
            && !self.seen.contains_key(&index.context.generation.0)
        {
            self.follow(index);
        }
    }

    fn follow(&mut self, index: Arc<Index>) {
        let reached = index.reached.subscribe();
        let seen = Seen { last_run_micros: last_run(&index), is_errored: reached.borrow().is_errored };
        self.seen.insert(index.context.generation.0, seen);
        let changes = stream::unfold((index, reached), |(index, mut reached)| async move {
            let is_gone = reached.borrow().is_gone;
            if is_gone || reached.changed().await.is_err() {
                return None;
            }
            let now = *reached.borrow_and_update();
            Some(((Arc::clone(&index), now), (index, reached)))
        });
        self.running.push(changes.boxed());
    }

    /// Whether another generation has taken the place of one that is gone.
    fn look_for_next(&mut self, gone: &Index) -> Option<&'static str> {
        self.seen.remove(&gone.context.generation.0);
        let next = self.database.registry.get(&gone.context.name)?;
        if self.seen.contains_key(&next.context.generation.0) {
            return None;
        }
        self.follow(next);
        Some("SideBySideReplace")
    }

    /// What an index has done since it was last looked at.
    fn look(&mut self, index: &Index, reached: Reached) -> Option<&'static str> {
        let now = Seen { last_run_micros: last_run(index), is_errored: reached.is_errored };
        let before = self.seen.insert(index.context.generation.0, now)?;
        if now.is_errored && !before.is_errored {
            return Some("IndexMarkedAsErrored");
        }
        (now.last_run_micros != before.last_run_micros).then_some("BatchCompleted")
    }
}

fn last_run(index: &Index) -> i64 {
    index.last_run_micros.load(Ordering::Relaxed)
}

impl std::fmt::Debug for IndexNews {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexNews").field("seen", &self.seen).finish_non_exhaustive()
    }
}
