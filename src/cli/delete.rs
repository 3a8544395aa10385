//! `treepie delete`: documents by id.

use clap::Args;
use reqwest::Method;

use super::api::{ANSWER_TIMEOUT, Api};
use super::output::{Output, OutputArgs};
use super::{Failure, Target};

/// Delete documents by id; one that is not there is no failure
#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Ids of documents, in any case
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Delete {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut out = Output::new(self.output);
        for id in &self.ids {
            let request = api.request(Method::DELETE, "docs").query(&[("id", id)]);
            api.text(request).await?;
            out.deleted("id", id, id)?;
            out.flush()?;
        }
        Ok(())
    }
}
