//! `treepie subscription tail`: what a subscription delivers, as it comes.
//!
//! With `--ack` each batch is acknowledged when it was printed; without, the server waits after the first one, and delivers
//! it again to whoever comes next.

use std::time::Duration;

use bytes::BytesMut;
use clap::Args;
use futures_util::StreamExt;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cli::api::{Api, unanswered};
use crate::cli::document::{Shown, not_understood};
use crate::cli::failure::Exit;
use crate::cli::output::{Output, OutputArgs, cut, notice, width};
use crate::cli::{Failure, Target};

/// How long a silent server counts as alive; it says every few seconds that it is there.
const SILENCE: Duration = Duration::from_secs(30);

/// Bytes of one line; a document is at most a quarter of that.
const LINE_BYTES_MAX: usize = 256 << 20;

/// Print what a subscription delivers
#[derive(Debug, Args)]
pub(crate) struct Tail {
    /// The subscription
    #[arg(value_name = "NAME")]
    name: String,
    /// Acknowledge each batch when it was printed
    #[arg(long)]
    ack: bool,
    /// End when everything was delivered, instead of waiting for more
    #[arg(long)]
    until_empty: bool,
    /// What to do about another worker: OpenIfFree, WaitForFree, TakeOver or Concurrent
    #[arg(long, default_value = "OpenIfFree")]
    strategy: String,
    /// Changes of one batch
    #[arg(long, default_value_t = 1_024, value_name = "N")]
    batch: u32,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

/// A line of the stream.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Line<'a> {
    r#type: &'a str,
    id: Option<String>,
    #[serde(default)]
    deleted: bool,
    #[serde(borrow)]
    document: Option<&'a RawValue>,
    exception: Option<String>,
    worker: Option<String>,
    change_vector: Option<String>,
    status: Option<String>,
    message: Option<String>,
    data: Option<Closing>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Closing {
    #[serde(default)]
    no_docs_left: bool,
}

impl Tail {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, SILENCE)?;
        let request = api.request(Method::GET, "subscriptions/stream").query(&[
            ("name", self.name.as_str()),
            ("strategy", &self.strategy),
            ("batch", &self.batch.to_string()),
            ("closeWhenNoDocsLeft", if self.until_empty { "true" } else { "false" }),
        ]);
        let response = api.send(request).await.map_err(|error| api.failure(error))?;
        let mut chunks = response.bytes_stream();
        let mut out = Output::new(self.output);
        let mut buffer = BytesMut::new();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| ended(&api.failure(unanswered(&error)).message))?;
            buffer.extend_from_slice(&chunk);
            if !chunk.contains(&b'\n') && buffer.len() <= LINE_BYTES_MAX {
                continue;
            }
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line = buffer.split_to(end + 1);
                if self.line(&api, &mut out, &String::from_utf8_lossy(&line)).await? {
                    return Ok(());
                }
            }
            if buffer.len() > LINE_BYTES_MAX {
                return Err(ended(&format!("a line is longer than {LINE_BYTES_MAX} bytes")));
            }
        }
        Err(ended("the server ended the stream"))
    }

    /// Deals with one line; `true`: it was the last.
    async fn line(&self, api: &Api, out: &mut Output, text: &str) -> Result<bool, Failure> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(false);
        }
        let line: Line<'_> = serde_json::from_str(text).map_err(|error| not_understood(&error))?;
        match line.r#type {
            "Data" => print(out, &line, text)?,
            "EndOfBatch" => {
                out.flush()?;
                self.end_batch(api, &line).await?;
            }
            _ if line.status.as_deref() == Some("Accepted") => notice(&format!("tailing '{}'", self.name)),
            _ if line.data.is_some_and(|data| data.no_docs_left) => {
                out.flush()?;
                return Ok(true);
            }
            _ => return Err(ended(&line.message.unwrap_or_else(|| "the server ended the stream".to_owned()))),
        }
        Ok(false)
    }

    async fn end_batch(&self, api: &Api, line: &Line<'_>) -> Result<(), Failure> {
        let (worker, vector) = (line.worker.as_deref().unwrap_or(""), line.change_vector.as_deref().unwrap_or(""));
        if self.ack {
            let request = api.request(Method::POST, "subscriptions/ack");
            api.text(request.query(&[("name", self.name.as_str()), ("worker", worker), ("through", vector)])).await?;
        } else {
            notice(&format!(
                "the server waits until this is acknowledged: treepie subscription ack {} {vector}",
                self.name
            ));
        }
        Ok(())
    }
}

fn print(out: &mut Output, line: &Line<'_>, text: &str) -> Result<(), Failure> {
    if !out.for_people() {
        return out.line(text);
    }
    let id = line.id.as_deref().unwrap_or("");
    let shown = match (&line.exception, line.document) {
        (Some(exception), _) => format!("{id}  failed: {exception}"),
        (None, Some(document)) => format!("{id}  {}", Shown::parse(document.get())?.body()),
        (None, None) if line.deleted => format!("{id}  deleted"),
        (None, None) => id.to_owned(),
    };
    out.line(&cut(&shown, width()))
}

fn ended(cause: &str) -> Failure {
    Failure::new(Exit::Unreachable, cause).way_out("tail it again: what was not acknowledged comes again")
}
