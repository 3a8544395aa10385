//! `treepie index delete`: indexes, and with them their artificial documents.

use clap::Args;
use reqwest::Method;

use super::show::absent;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::Results;
use crate::cli::failure::Exit;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target, json};

/// Delete indexes and their artificial documents
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The indexes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Delete {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut out = Output::new(self.output);
        for name in &self.names {
            if !exists(&api, name).await? {
                return Err(absent(name));
            }
            api.text(api.request(Method::DELETE, "indexes").query(&[("name", name)])).await?;
            if out.for_people() {
                out.line(&format!("deleted index {name}"))?;
            } else {
                let mut text = String::new();
                json::push_string(&mut text, name);
                out.line(&json::object([("name", text.as_str()), ("deleted", "true")].into_iter()))?;
            }
            out.flush()?;
        }
        Ok(())
    }
}

/// A delete of what is not there succeeds, so a mistyped name must be looked up.
async fn exists(api: &Api, name: &str) -> Result<bool, Failure> {
    match api.text(api.request(Method::GET, "indexes").query(&[("name", name)])).await {
        Ok(answer) => Ok(Results::parse(&answer)?.results.iter().any(Option::is_some)),
        Err(failure) if failure.exit == Exit::NotFound && failure.way_out.is_none() => Ok(false),
        Err(failure) => Err(failure),
    }
}
