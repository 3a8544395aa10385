//! `treepie subscription delete`: cursors that nobody needs any more.

use clap::Args;
use reqwest::Method;

use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// Delete subscriptions
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// The subscriptions
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
            // The deletion of a missing one is no error to the server; to a person it is a slip.
            api.text(api.request(Method::GET, "subscriptions/state").query(&[("name", name)])).await?;
            api.text(api.request(Method::DELETE, "subscriptions").query(&[("taskName", name)])).await?;
            out.deleted("name", name, &format!("subscription {name}"))?;
            out.flush()?;
        }
        Ok(())
    }
}
