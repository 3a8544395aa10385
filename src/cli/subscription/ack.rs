//! `treepie subscription ack`: what was read is done with.

use clap::Args;
use reqwest::Method;

use crate::cli::api::{ANSWER_TIMEOUT, Api};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target, json};

/// Acknowledge everything through a change vector or etag
#[derive(Debug, Args)]
pub(crate) struct Ack {
    /// The subscription
    #[arg(value_name = "NAME")]
    name: String,
    /// The change vector or etag of the last thing that was done
    #[arg(value_name = "THROUGH")]
    through: String,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Ack {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let request = api.request(Method::POST, "subscriptions/ack");
        api.text(request.query(&[("name", &self.name), ("through", &self.through)])).await?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            out.line(&format!("acknowledged {} through {}", self.name, self.through))?;
        } else {
            let (mut name, mut through) = (String::new(), String::new());
            json::push_string(&mut name, &self.name);
            json::push_string(&mut through, &self.through);
            out.line(&json::object([("name", name.as_str()), ("through", through.as_str())].into_iter()))?;
        }
        out.flush()
    }
}
