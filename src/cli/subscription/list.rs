//! `treepie subscription list`: the subscriptions, and how far they are.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::document::{Results, not_understood};
use crate::cli::output::{Output, OutputArgs, grouped};
use crate::cli::{Failure, Target};

/// List the subscriptions and how far they are
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct State {
    subscription_name: String,
    query: String,
    disabled: bool,
    change_vector_for_next_batch_starting_point: Option<String>,
    delivered: u64,
    faults: u64,
    connections: Vec<serde::de::IgnoredAny>,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let answer = api.text(api.request(Method::GET, "subscriptions")).await?;
        let states: Vec<&RawValue> = Results::parse(&answer)?.results.into_iter().flatten().collect();
        let mut out = Output::new(self.output);
        if !out.for_people() {
            for state in states {
                out.line(state.get())?;
            }
            return out.flush();
        }
        let mut rows = Vec::new();
        for state in states {
            let state: State = serde_json::from_str(state.get()).map_err(|error| not_understood(&error))?;
            let doing = match (state.disabled, state.connections.len()) {
                (true, _) => "disabled".to_owned(),
                (false, 0) => "idle".to_owned(),
                (false, 1) => "1 worker".to_owned(),
                (false, workers) => format!("{workers} workers"),
            };
            let through = state.change_vector_for_next_batch_starting_point.unwrap_or_else(|| "beginning".to_owned());
            let counts = [grouped(state.delivered), grouped(state.faults)];
            rows.push([vec![state.subscription_name, state.query, doing, through], counts.to_vec()].concat());
        }
        out.table(&["SUBSCRIPTION", "QUERY", "STATE", "THROUGH", "DELIVERED", "FAULTS"], &rows)?;
        out.flush()
    }
}
