//! `treepie index show`: the script of an index.

use clap::Args;
use reqwest::Method;

use super::list::Definition;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::{Results, not_understood};
use crate::cli::failure::Exit;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// Print the script of an index
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The index
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Show {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let answer = api.text(api.request(Method::GET, "indexes").query(&[("name", &self.name)])).await;
        let answer = found(&self.name, answer)?;
        let definition = Results::parse(&answer)?.results.into_iter().flatten().next();
        let Some(definition) = definition else { return Err(absent(&self.name)) };
        let mut out = Output::new(self.output);
        if out.for_people() {
            let definition: Definition =
                serde_json::from_str(definition.get()).map_err(|error| not_understood(&error))?;
            for script in definition.maps.iter().chain(&definition.reduce) {
                out.line(script.trim_end())?;
            }
        } else {
            out.line(definition.get())?;
        }
        out.flush()
    }
}

/// An answer about index `name`, where a server that found nothing means that there is no such index.
pub(super) fn found<T>(name: &str, answer: Result<T, Failure>) -> Result<T, Failure> {
    answer.map_err(|failure| match failure.exit {
        // A missing database comes with a way out of its own.
        Exit::NotFound if failure.way_out.is_none() => absent(name),
        _ => failure,
    })
}

/// The failure for an index that is not there.
fn absent(name: &str) -> Failure {
    Failure::new(Exit::NotFound, format!("there is no index '{name}'"))
        .way_out("`treepie index list` shows those there are")
}
