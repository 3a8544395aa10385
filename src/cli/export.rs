//! `treepie export` and `treepie import`: a database as JSON lines, plain or gzipped.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{Stream, StreamExt, stream};
use reqwest::{Body, Method, header};
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::api::{Api, unanswered};
use super::document::not_understood;
use super::output::{Output, OutputArgs, grouped, notice};
use super::{Failure, Target};

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(300);
/// How long a server may store and index what it was sent before it answers.
const STORING: Duration = Duration::from_secs(24 * 3_600);
/// Bytes of a file that are sent at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Write a database as JSON lines: documents, indexes, and the numbers that must not be given out again
#[derive(Debug, Args)]
pub(crate) struct Export {
    /// The file, gzipped where its name ends in .gz; - writes to standard output
    #[arg(default_value = "-", value_name = "FILE")]
    file: String,
    /// Write artificial documents too, as ordinary ones, and leave out the indexes that make them
    #[arg(long)]
    artificial: bool,
    #[command(flatten)]
    target: Target,
}

/// Read what `treepie export` wrote into a database
#[derive(Debug, Args)]
#[command(after_help = "\
Documents are stored under their ids, and replace what is there. Identities and HiLo ranges only ever rise. A line that is
refused ends the import: its number is told, what came before is stored, and --from-line goes on behind it. The database is
created if it is missing.")]
pub(crate) struct Import {
    /// The file; - reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Go on with this line, counted from 1
    #[arg(long, default_value_t = 1, value_name = "N", hide_default_value = true)]
    from_line: u64,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Imported {
    documents: u64,
    identities: u64,
    #[serde(rename = "HiLo")]
    hilo: u64,
    indexes: u64,
}

impl Export {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, SILENCE)?;
        let request = api.request(Method::GET, "export").query(&[("artificial", self.artificial)]);
        let response = api.send(request).await.map_err(|error| api.failure(error))?;
        let mut chunks = response.bytes_stream();
        let mut sink = Sink::open(&self.file)?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| api.failure(unanswered(&error)))?;
            sink.write(&chunk)?;
        }
        sink.finish()
    }
}

/// Where an export goes. A file has another name until it is whole.
struct Sink {
    file: String,
    into: Into,
}

enum Into {
    Output(std::io::Stdout),
    Plain(std::fs::File),
    Gzip(GzEncoder<std::fs::File>),
}

impl Sink {
    fn open(file: &str) -> Result<Self, Failure> {
        let into = if file == "-" {
            Into::Output(std::io::stdout())
        } else {
            let part = part_of(file);
            let open = std::fs::File::create(&part).map_err(|error| Failure::file(&part, &error))?;
            if is_gzip(file) { Into::Gzip(GzEncoder::new(open, Compression::fast())) } else { Into::Plain(open) }
        };
        Ok(Self { file: file.to_owned(), into })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match &mut self.into {
            Into::Output(output) => output.write_all(bytes).map_err(|error| Failure::output(&error)),
            Into::Plain(file) => file.write_all(bytes).map_err(|error| Failure::file(&self.file, &error)),
            Into::Gzip(gzip) => gzip.write_all(bytes).map_err(|error| Failure::file(&self.file, &error)),
        }
    }

    fn finish(self) -> Result<(), Failure> {
        let file = match self.into {
            Into::Output(mut output) => return output.flush().map_err(|error| Failure::output(&error)),
            Into::Plain(file) => Ok(file),
            Into::Gzip(gzip) => gzip.finish(),
        };
        let whole = file.and_then(|file| file.sync_all());
        whole
            .and_then(|()| std::fs::rename(part_of(&self.file), &self.file))
            .map_err(|error| Failure::file(&self.file, &error))?;
        notice(&format!("exported to {}", self.file));
        Ok(())
    }
}

impl Import {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, STORING)?;
        let body = if self.file == "-" {
            Body::wrap_stream(pieces(tokio::io::stdin()))
        } else {
            let file = tokio::fs::File::open(&self.file).await;
            Body::wrap_stream(pieces(file.map_err(|error| Failure::file(&self.file, &error))?))
        };
        api.ensure_database().await?;
        let mut request = api.request(Method::POST, "import").query(&[("fromLine", self.from_line)]).body(body);
        if is_gzip(&self.file) {
            request = request.header(header::CONTENT_ENCODING, "gzip");
        }
        let answer = api.text(request).await?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            let Imported { documents, identities, hilo, indexes } =
                serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
            let (s, documents) = (if documents == 1 { "" } else { "s" }, grouped(documents));
            out.line(&format!(
                "imported {documents} document{s}, {indexes} indexes, {identities} identities, {hilo} HiLo tags"
            ))?;
        } else {
            out.line(answer.trim_end())?;
        }
        out.flush()
    }
}

fn pieces(from: impl AsyncRead + Unpin + Send + 'static) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::unfold(from, |mut from| async move {
        let mut piece = vec![0; PIECE_BYTES];
        match from.read(&mut piece).await {
            Ok(0) => None,
            Ok(count) => {
                piece.truncate(count);
                Some((Ok(Bytes::from(piece)), from))
            }
            Err(error) => Some((Err(error), from)),
        }
    })
}

fn part_of(file: &str) -> String {
    format!("{file}.part")
}

fn is_gzip(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gz"))
}
