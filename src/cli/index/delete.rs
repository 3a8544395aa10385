//! `treepie index delete`: indexes, and with them their artificial documents.

use clap::Args;
use reqwest::Method;

use super::show::found;
use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// Delete indexes and their artificial documents
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The indexes
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    /// Keep the artificial documents: they become ordinary ones
    #[arg(long)]
    keep_outputs: bool,
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
            let query = [("name", name.as_str()), ("keepOutputs", if self.keep_outputs { "true" } else { "false" })];
            let answer = api.text(api.request(Method::DELETE, "indexes").query(&query)).await;
            found(name, answer)?;
            out.deleted("name", name, &format!("index {name}"))?;
            out.flush()?;
        }
        Ok(())
    }
}
