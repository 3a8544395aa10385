//! `treepie subscription create`: a named cursor over a collection.

use std::path::PathBuf;

use clap::Args;
use reqwest::Method;
use serde_json::json;

use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// Create a subscription
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Its name
    #[arg(value_name = "NAME")]
    name: String,
    /// The collection, artificial documents' too; @all_docs for all
    #[arg(long, value_name = "COLLECTION")]
    collection: String,
    /// Deliver deletions too
    #[arg(long)]
    deletes: bool,
    /// Deliver, beside each document, the version that was delivered before
    #[arg(long)]
    previous: bool,
    /// A Rhai script with `fn filter(doc)`, `fn project(doc)`, or both
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Where to begin: BeginningOfTime, LastDocument, a change vector or an etag
    #[arg(long, default_value = "BeginningOfTime", value_name = "POSITION")]
    start: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Create {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let script = match &self.script {
            None => None,
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .map_err(|error| Failure::failed(format!("cannot read {}: {error}", path.display())))?,
            ),
        };
        let collection = match self.collection.as_str() {
            "@all_docs" => self.collection.clone(),
            name => format!("'{}'", name.replace('\\', "\\\\").replace('\'', "''")),
        };
        let body = json!({
            "Name": self.name,
            "Query": format!("from {collection}"),
            "Script": script,
            "IncludeDeletes": self.deletes,
            "IncludePrevious": self.previous,
            "ChangeVector": self.start,
        });
        let answer = api.text(api.request(Method::PUT, "subscriptions").body(body.to_string())).await?;
        let mut out = Output::new(self.output);
        match out.for_people() {
            true => out.line(&format!("created subscription {}", self.name))?,
            false => out.line(answer.trim())?,
        }
        out.flush()
    }
}
