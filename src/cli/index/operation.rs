//! `treepie index pause`, `resume`, `enable`, `disable`, `reset`, `swap`, `cancel`, `rollback`, `lock`, `priority`, `clear`: what is
//! done with indexes by their names alone.

use clap::{Args, ValueEnum};
use reqwest::{Method, RequestBuilder};
use serde::Deserialize;

use super::show::found;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::not_understood;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target, json};

/// What a command does with each index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    method: &'static str,
    path: &'static str,
    /// The prefix of the name that is sent.
    prefix: &'static str,
    /// The word that tells that it was done.
    done: &'static str,
}

pub(crate) const PAUSE: Operation = post("admin/indexes/stop", "paused");
pub(crate) const RESUME: Operation = post("admin/indexes/start", "resumed");
pub(crate) const ENABLE: Operation = post("admin/indexes/enable", "enabled");
pub(crate) const DISABLE: Operation = post("admin/indexes/disable", "disabled");
pub(crate) const SWAP: Operation = post("indexes/replace", "swapping");
pub(crate) const ROLL_BACK: Operation = post("indexes/rollback", "rolling back");
pub(crate) const RESET: Operation = Operation { method: "RESET", path: "indexes", prefix: "", done: "reset" };
pub(crate) const CLEAR: Operation = Operation { method: "DELETE", path: "indexes/errors", prefix: "", done: "cleared" };
pub(crate) const CANCEL: Operation =
    Operation { method: "DELETE", path: "indexes", prefix: "ReplacementOf/", done: "cancelled" };

const fn post(path: &'static str, done: &'static str) -> Operation {
    Operation { method: "POST", path, prefix: "", done }
}

/// Which indexes
#[derive(Debug, Args)]
pub(crate) struct Names {
    /// The indexes
    #[arg(required_unless_present = "all", value_name = "NAME")]
    names: Vec<String>,
    /// All indexes of the database
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// Set whether an index's definition may change
#[derive(Debug, Args)]
pub(crate) struct Lock {
    /// `unlock`; `ignore` passes another definition over without a word; `error` refuses it
    #[arg(value_name = "MODE")]
    mode: LockMode,
    #[command(flatten)]
    names: Names,
}

/// Set how much an index gives way to others
#[derive(Debug, Args)]
pub(crate) struct Priority {
    /// `low` rests as long as it works; `normal` and `high` work while there is something to do
    #[arg(value_name = "PRIORITY")]
    priority: Level,
    #[command(flatten)]
    names: Names,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LockMode {
    Unlock,
    Ignore,
    Error,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Low,
    Normal,
    High,
}

#[derive(Deserialize)]
struct NamesOnly {
    #[serde(rename = "Results")]
    names: Vec<String>,
}

impl Names {
    /// Does it with one index after the other.
    pub(crate) async fn run(self, operation: Operation) -> Result<(), Failure> {
        let method = Method::from_bytes(operation.method.as_bytes()).unwrap_or(Method::POST);
        let request = |api: &Api, name: &str| {
            let name = format!("{}{name}", operation.prefix);
            api.request(method.clone(), operation.path).query(&[("name", name)])
        };
        self.each(operation.done, request).await
    }

    async fn each(self, done: &str, request: impl Fn(&Api, &str) -> RequestBuilder) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut out = Output::new(self.output);
        let names = if self.all { all(&api).await? } else { self.names };
        for name in &names {
            found(name, api.text(request(&api, name)).await)?;
            if out.for_people() {
                out.line(&format!("{done} index {name}"))?;
            } else {
                let (mut text, mut word) = (String::new(), String::new());
                json::push_string(&mut text, name);
                json::push_string(&mut word, done);
                out.line(&json::object([("name", text.as_str()), ("done", word.as_str())].into_iter()))?;
            }
            out.flush()?;
        }
        Ok(())
    }
}

impl Lock {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let (mode, done) = match self.mode {
            LockMode::Unlock => ("Unlock", "unlocked"),
            LockMode::Ignore => ("LockedIgnore", "locked"),
            LockMode::Error => ("LockedError", "locked"),
        };
        let request = |api: &Api, name: &str| {
            let body = serde_json::json!({ "IndexNames": [name], "Mode": mode }).to_string();
            api.request(Method::POST, "indexes/set-lock").body(body)
        };
        self.names.each(done, request).await
    }
}

impl Priority {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let priority = match self.priority {
            Level::Low => "Low",
            Level::Normal => "Normal",
            Level::High => "High",
        };
        let request = |api: &Api, name: &str| {
            let body = serde_json::json!({ "IndexNames": [name], "Priority": priority }).to_string();
            api.request(Method::POST, "indexes/set-priority").body(body)
        };
        self.names.each("set the priority of", request).await
    }
}

/// The names of all indexes, without those that are to take the place of one.
async fn all(api: &Api) -> Result<Vec<String>, Failure> {
    let query = [("namesOnly", "true"), ("start", "0"), ("pageSize", "2147483647")];
    let answer = api.text(api.request(Method::GET, "indexes").query(&query)).await?;
    let NamesOnly { names } = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
    Ok(names.into_iter().filter(|name| !name.starts_with("ReplacementOf/")).collect())
}
