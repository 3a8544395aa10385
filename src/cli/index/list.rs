//! `treepie index list`: the indexes and where their results go.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::{Results, not_understood};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// List the indexes
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// An index definition, as far as commands look at it.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Definition {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) maps: Vec<String>,
    #[serde(default)]
    pub(crate) reduce: Option<String>,
    #[serde(default)]
    output_reduce_to_collection: Option<String>,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let answer =
            api.text(api.request(Method::GET, "indexes").query(&[("start", 0), ("pageSize", i32::MAX)])).await?;
        let definitions: Vec<&RawValue> = Results::parse(&answer)?.results.into_iter().flatten().collect();
        let mut out = Output::new(self.output);
        if !out.for_people() {
            for definition in definitions {
                out.line(definition.get())?;
            }
            return out.flush();
        }
        let mut rows = Vec::new();
        for definition in definitions {
            let definition: Definition =
                serde_json::from_str(definition.get()).map_err(|error| not_understood(&error))?;
            rows.push(vec![definition.name, definition.output_reduce_to_collection.unwrap_or_default()]);
        }
        out.table(&["INDEX", "OUTPUT"], &rows)?;
        out.flush()
    }
}
