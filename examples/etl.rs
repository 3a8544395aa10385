//! Carries a collection, an index's output for example, into an SQLite database, deletions included, each change exactly once.
//!
//! `cargo run --example etl -- http://127.0.0.1:8080 main CarrierMonths carriers.sqlite`
//!
//! Delivery is at least once: after a crash the last batch may come again. So the table of progress is written in the same
//! transaction as the rows, and what it says was taken in is not taken in twice. A batch holds the runs of an index whole:
//! whoever reads the SQLite database sees every run applied, or not at all. It can be stopped and started at any moment.

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use treepie::client::{Batch, Change, DocumentStore, Strategy, SubscriptionDefinition, WorkerOptions};

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS documents (id TEXT PRIMARY KEY, document TEXT NOT NULL, run INTEGER, etag INTEGER NOT NULL);
    CREATE TABLE IF NOT EXISTS progress (name TEXT PRIMARY KEY, through INTEGER NOT NULL, run INTEGER, changes INTEGER NOT NULL);
";

type Failure = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, database, collection, file, options @ ..] = arguments.as_slice() else {
        return Err("usage: etl URL DATABASE COLLECTION FILE [--until-empty]".into());
    };
    let mut sqlite = Connection::open(file)?;
    sqlite.execute_batch(TABLES)?;

    let name = format!("etl/{collection}");
    let subscriptions = DocumentStore::new(url, database)?.subscriptions();
    let definition = SubscriptionDefinition::new(&name, &format!("from '{collection}' (Deletes = true)"));
    subscriptions.create_if_missing(&definition).await?;
    let options = WorkerOptions {
        // Where another process of the same kind runs, this one stands by.
        strategy: Strategy::WaitForFree,
        ends_when_empty: options.contains(&"--until-empty".to_owned()),
        ..WorkerOptions::default()
    };
    let mut worker = subscriptions.worker(&name, options);
    while let Some(batch) = worker.next().await? {
        let taken = apply(&mut sqlite, &name, &batch)?;
        worker.acknowledge(&batch).await?;
        println!("{taken} changes through etag {}", batch.through);
    }
    Ok(())
}

/// Applies a batch in one transaction; returns how many of its changes are new.
fn apply(sqlite: &mut Connection, name: &str, batch: &Batch) -> Result<usize, Failure> {
    let transaction = sqlite.transaction()?;
    let before: u64 = transaction
        .query_row("SELECT through FROM progress WHERE name = ?1", [name], |row| row.get(0))
        .optional()?
        .unwrap_or(0);
    let new: Vec<&Change> = batch.changes.iter().filter(|change| change.etag > before).collect();
    for change in &new {
        take_in(&transaction, change)?;
    }
    let run = new.iter().filter_map(|change| change.run).max();
    transaction.execute(
        "INSERT INTO progress VALUES (?1, ?2, ?3, ?4) ON CONFLICT (name) DO UPDATE SET through = max(through, excluded.through),
         run = coalesce(excluded.run, run), changes = changes + excluded.changes",
        params![name, batch.through, run, new.len()],
    )?;
    transaction.commit()?;
    Ok(new.len())
}

fn take_in(transaction: &Transaction<'_>, change: &Change) -> Result<(), Failure> {
    match &change.document {
        Some(document) => transaction.execute(
            "INSERT OR REPLACE INTO documents VALUES (?1, ?2, ?3, ?4)",
            params![change.id, document.get(), change.run, change.etag],
        )?,
        None => transaction.execute("DELETE FROM documents WHERE id = ?1", [&change.id])?,
    };
    Ok(())
}
