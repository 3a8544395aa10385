//! `treepie index test`: what an index script would do, before it is put. Nothing is written.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use treepie::index::definition::IndexDefinition;
use treepie::index::tryout::{SAMPLES_MAX, Sample, TryOutError, only_source, try_out};
use treepie::script::Limits;
use treepie::server::TryOutBody;
use treepie::store::document::Document;

use super::put::{name_of, with_line};
use crate::cli::api::{ANSWER_TIMEOUT, Api, CallError};
use crate::cli::document::not_understood;
use crate::cli::explain::{Entry, Fault};
use crate::cli::load::samples;
use crate::cli::output::{Output, OutputArgs, cut, grouped, width};
use crate::cli::put::read;
use crate::cli::{Failure, Target};

/// The collection of a document that names none.
const NO_COLLECTION: &str = "@empty";

/// Try an index script out, before it is put; nothing is written
#[derive(Debug, Args)]
#[command(after_help = "\
With --input, documents come from a file (JSON lines or CSV, plain or gzipped) and no server is needed. Without, the newest
documents of the script's sources are taken from the server's database.
Printed are each document's map entries, the groups and their results, every fault with its place, what the calls took, and
the fields that the script read and that nothing had: mostly slips of the pen. The exit code is 1 where something failed.")]
pub(crate) struct Test {
    /// The script, a .rhai file; - reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Documents to try it on, instead of the server's
    #[arg(long, value_name = "FILE", conflicts_with = "id")]
    input: Option<String>,
    /// With --input: the collection of all documents; else their own, or else the only one that the script maps
    #[arg(long, value_name = "NAME", requires = "input")]
    collection: Option<String>,
    /// With --input: text of a CSV field that means null; may be given more than once
    #[arg(long, value_name = "TEXT", requires = "input")]
    null: Vec<String>,
    /// Stored documents to try it on, instead of the newest
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Try it on so many documents at most
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    count: usize,
    /// Print so many documents and groups for people
    #[arg(long, value_name = "N", default_value_t = 10)]
    show: usize,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Tried<'a> {
    #[serde(borrow)]
    documents: Vec<TriedDocument<'a>>,
    #[serde(borrow)]
    groups: Vec<TriedGroup<'a>>,
    unknown_fields: Vec<UnknownField>,
    not_taken: u64,
    map: Cost,
    reduce: Cost,
    finish: Cost,
    cut_short: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TriedDocument<'a> {
    id: String,
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
    fault: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TriedGroup<'a> {
    #[serde(borrow)]
    key: &'a RawValue,
    entries: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    fault: Option<Fault>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UnknownField {
    phase: String,
    field: String,
    reads: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Cost {
    calls: u64,
    faults: u64,
    operations: u64,
    operations_most: u64,
    micros: u64,
    micros_most: u64,
}

impl Test {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let script = read(&self.file)?;
        let answer = match &self.input {
            Some(input) => self.here(input, &script)?,
            None => self.there(&script).await?,
        };
        let tried: Tried<'_> = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            tried.print(self.show, &mut out)?;
        } else {
            out.line(answer.trim_end())?;
        }
        out.flush()?;
        match tried.map.faults + tried.groups.iter().filter(|group| group.fault.is_some()).count() as u64 {
            0 => Ok(()),
            1 => Err(Failure::failed("1 document or group failed")),
            faults => Err(Failure::failed(format!("{} documents or groups failed", grouped(faults)))),
        }
    }

    /// Tries it in this process, on documents of a file.
    fn here(&self, input: &str, script: &str) -> Result<String, Failure> {
        let limits = Limits::default();
        let definition = IndexDefinition::from_script(self.name(), script);
        let collection = self.collection.clone().or_else(|| only_source(&definition, &limits));
        let mut documents = Vec::new();
        for (line, text) in samples(input, self.count.min(SAMPLES_MAX), &self.null)? {
            let parsed = Document::parse(text.as_bytes())
                .map_err(|error| Failure::failed(format!("{input}:{line}: {error}")))?;
            let Document { collection: own, metadata, body } = parsed.document;
            let is_own = own != NO_COLLECTION && self.collection.is_none();
            let collection = if is_own { own } else { collection.clone().unwrap_or(own) };
            let id = parsed.id.unwrap_or_else(|| format!("line/{line}"));
            documents.push(Sample { id, collection, metadata, body });
        }
        let tried = try_out(definition, &limits, documents).map_err(|error| match error {
            TryOutError::Thread(_) => Failure::failed(error.to_string()),
            _ => Failure::failed(with_line(&error.to_string(), self.file_name(), script)),
        })?;
        serde_json::to_string(&TryOutBody::new(tried)).map_err(|error| Failure::failed(error.to_string()))
    }

    /// Lets the server try it on stored documents.
    async fn there(&self, script: &str) -> Result<String, Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut query = vec![("name", self.name()), ("count", self.count.to_string())];
        query.extend(self.id.iter().map(|id| ("id", id.clone())));
        let request = api.request(Method::POST, "indexes/test").query(&query).body(script.to_owned());
        match api.send(request).await {
            Ok(answer) => answer.text().await.map_err(|error| api.failure(crate::cli::api::unanswered(&error))),
            Err(CallError::Refused(refusal)) if refusal.status.is_client_error() && !refusal.database_missing => {
                Err(Failure::failed(with_line(&refusal.message, self.file_name(), script)))
            }
            Err(error) => Err(api.failure(error)),
        }
    }

    fn name(&self) -> String {
        name_of(&self.file).unwrap_or_else(|_| "Test".to_owned())
    }

    fn file_name(&self) -> &str {
        if self.file == "-" { "standard input" } else { &self.file }
    }
}

impl Tried<'_> {
    fn print(&self, show: usize, out: &mut Output) -> Result<(), Failure> {
        let more = |all: usize| (all > show).then(|| format!("… and {} more", grouped((all - show) as u64)));
        for document in self.documents.iter().take(show) {
            out.line(&document.id)?;
            for entry in document.entries.iter().take(show) {
                out.line(&cut(&format!("  {}  {}", entry.key.get(), entry.value.get()), width()))?;
            }
            more(document.entries.len()).map_or(Ok(()), |more| out.line(&format!("  {more}")))?;
        }
        more(self.documents.len()).map_or(Ok(()), |more| out.line(&more))?;
        out.line(&format!("{} groups", grouped(self.groups.len() as u64)))?;
        for group in self.groups.iter().take(show) {
            let result = group.result.map_or("no document", RawValue::get);
            out.line(&cut(&format!("  {} entries: {result}", grouped(group.entries)), width()))?;
        }
        more(self.groups.len()).map_or(Ok(()), |more| out.line(&format!("  {more}")))?;
        self.print_troubles(show, out)?;
        for (name, cost) in [("map", &self.map), ("reduce", &self.reduce), ("finish", &self.finish)] {
            if cost.calls > 0 {
                out.line(&cost.sentence(name))?;
            }
        }
        self.cut_short.as_ref().map_or(Ok(()), |why| out.line(&format!("cut short: {why}")))
    }

    fn print_troubles(&self, show: usize, out: &mut Output) -> Result<(), Failure> {
        let of_documents = self.documents.iter().filter_map(|it| Some((it.id.as_str(), it.fault.as_ref()?)));
        let of_groups = self.groups.iter().filter_map(|it| Some((it.key.get(), it.fault.as_ref()?)));
        for (subject, fault) in of_documents.take(show).chain(of_groups.take(show)) {
            out.line(&format!("failed: {}: {fault}", cut(subject, 80)))?;
        }
        for UnknownField { phase, field, reads } in &self.unknown_fields {
            let phase = phase.to_ascii_lowercase();
            out.line(&format!("nothing has the field {field}, which {phase} read {} times", grouped(*reads)))?;
        }
        match self.not_taken {
            0 => Ok(()),
            count => out.line(&format!("{} documents are in no collection that the script maps", grouped(count))),
        }
    }
}

impl Cost {
    fn sentence(&self, name: &str) -> String {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let millis = |micros: u64| micros as f64 / 1000.0;
        format!(
            "{name}: {} calls, {} failed; {} operations, {} at most in one; {:.1} ms, {:.1} at most in one",
            grouped(self.calls),
            grouped(self.faults),
            grouped(self.operations),
            grouped(self.operations_most),
            millis(self.micros),
            millis(self.micros_most)
        )
    }
}
