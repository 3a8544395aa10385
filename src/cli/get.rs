//! `treepie get`: documents by id.

use clap::Args;
use reqwest::Method;

use super::api::{ANSWER_TIMEOUT, Api, CallError};
use super::document::Results;
use super::failure::Exit;
use super::output::{Output, OutputArgs, notice};
use super::{Failure, Target, json};

/// Ids of one request; they stand in its URL.
const IDS_MAX: usize = 16;

/// Print documents by id
#[derive(Debug, Args)]
pub(crate) struct Get {
    /// Ids of documents, in any case
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Get {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut out = Output::new(self.output);
        let mut missing = Vec::new();
        for ids in self.ids.chunks(IDS_MAX) {
            let query: Vec<_> = ids.iter().map(|id| ("id", id)).collect();
            let request = api.request(Method::GET, "docs").query(&query);
            let answer = match api.send(request).await {
                Ok(response) => response.text().await.map_err(|error| api.failure(super::api::unanswered(&error)))?,
                // A single id that is not there.
                Err(CallError::Refused(refusal)) if refusal.status.as_u16() == 404 => {
                    missing.extend(ids);
                    continue;
                }
                Err(error) => return Err(api.failure(error)),
            };
            for (id, document) in ids.iter().zip(Results::parse(&answer)?.results) {
                match document {
                    Some(document) if out.for_people() => out.line(&json::pretty(document.get()))?,
                    Some(document) => out.line(&json::one_line(document.get()))?,
                    None => missing.push(id),
                }
            }
        }
        out.flush()?;
        let last = missing.pop();
        for id in missing {
            notice(&absent(id));
        }
        last.map_or(Ok(()), |id| Err(Failure::new(Exit::NotFound, absent(id))))
    }
}

fn absent(id: &str) -> String {
    format!("there is no document '{id}'")
}
