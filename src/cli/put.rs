//! `treepie put`: one document.

use std::io::Read;

use clap::Args;
use reqwest::Method;
use serde::Deserialize;

use super::api::{ANSWER_TIMEOUT, Api};
use super::document::not_understood;
use super::output::{Output, OutputArgs};
use super::{Failure, Target, json};

/// Store one document; an existing one is replaced
#[derive(Debug, Args)]
#[command(after_help = "\
The id in any form:
  users/ayende  this very id
  users/        a server-side id: users/0000000000000000042-A
  'users|'      the next number: users/7
  ''            a GUID")]
pub(crate) struct Put {
    /// The id, in any form
    #[arg(value_name = "ID")]
    id: String,
    /// A file with one JSON object; - reads standard input
    #[arg(default_value = "-", value_name = "FILE")]
    file: String,
    /// The document's collection, instead of its own @metadata.@collection
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
struct Stored {
    #[serde(rename = "Id")]
    id: String,
}

impl Put {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let text = read(&self.file).map_err(|failure| match self.file.trim_start().starts_with(['{', '[']) {
            true => failure.way_out("a document comes from a file or standard input: echo '{…}' | treepie put ID"),
            false => failure,
        })?;
        let document = json::with_metadata(&text, self.collection.as_deref(), true)
            .map_err(|error| Failure::failed(format!("{}: not a JSON object: {error}", name_of(&self.file))))?;
        api.ensure_database().await?;
        let request = api.request(Method::PUT, "docs").query(&[("id", &self.id)]).body(document);
        let answer = api.text(request).await?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            let stored: Stored = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
            out.line(&format!("stored {}", stored.id))?;
        } else {
            out.line(answer.trim_end())?;
        }
        out.flush()
    }
}

/// Reads a whole file, or standard input for `-`.
///
/// # Errors
/// It can't be read, or is no UTF-8.
pub(crate) fn read(file: &str) -> Result<String, Failure> {
    let read = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| Failure::file(name_of(file), &error))
}

fn name_of(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}
