//! `treepie explain`: why a document is what it is, and what it feeds.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::api::{ANSWER_TIMEOUT, Api};
use super::document::not_understood;
use super::output::{Output, OutputArgs, cut, grouped, width};
use super::{Failure, Target};

/// Print what a document was made of, and what it feeds
#[derive(Debug, Args)]
#[command(after_help = "\
Of an artificial document: its index, its reduce key, and the documents that contributed with what each gave, in the order
in which they are reduced. Of any document: the artificial documents it feeds, and those that they feed in turn.
A group without a document (its script failed, or its index has no output) is found by --index and --key.")]
pub(crate) struct Explain {
    /// The document
    #[arg(value_name = "ID", required_unless_present = "index", conflicts_with_all = ["index", "key"])]
    id: Option<String>,
    /// Instead of a document: a group of this index
    #[arg(long, requires = "key", value_name = "NAME")]
    index: Option<String>,
    /// The group's reduce key, as JSON
    #[arg(long, requires = "index", value_name = "JSON")]
    key: Option<String>,
    /// How many contributions to print
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: u64,
    /// Go on where an earlier call ended
    #[arg(long, value_name = "PLACE")]
    after: Option<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Explanation<'a> {
    id: Option<String>,
    collection: Option<String>,
    #[serde(borrow)]
    group: Option<Group<'a>>,
    #[serde(borrow)]
    feeds: Vec<Feeding<'a>>,
    loaded_by: Vec<LoadedBy>,
    is_cut: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LoadedBy {
    index: String,
    ids: Vec<String>,
    is_cut: bool,
}

/// What a map emitted.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) key: &'a RawValue,
    #[serde(borrow)]
    pub(super) value: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Group<'a> {
    index: String,
    #[serde(borrow)]
    key: &'a RawValue,
    entries: u64,
    state: String,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
    fault: Option<Fault>,
    #[serde(borrow)]
    contributions: Vec<Contributed<'a>>,
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contributed<'a> {
    id: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Feeding<'a> {
    index: String,
    is_current: bool,
    fault: Option<Fault>,
    total_groups: u64,
    #[serde(borrow)]
    groups: Vec<FedGroup<'a>>,
    #[serde(borrow)]
    entries: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct FedGroup<'a> {
    id: Option<String>,
    #[serde(borrow)]
    key: &'a RawValue,
    exists: bool,
    #[serde(borrow)]
    values: Vec<&'a RawValue>,
    #[serde(borrow)]
    feeds: Vec<Feeding<'a>>,
}

/// A script's failure, as far as it is printed.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Fault {
    script: String,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<String>,
    message: String,
    hint: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.script)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(function) = &self.function {
            write!(f, " in {function}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(hint) = &self.hint {
            write!(f, " ({hint})")?;
        }
        Ok(())
    }
}

impl Explain {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let named = [
            ("id", &self.id),
            ("index", &self.index),
            ("key", &self.key),
            ("after", &self.after),
            ("pageSize", &Some(self.limit.to_string())),
        ];
        let query: Vec<_> = named.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?))).collect();
        let answer = api.text(api.request(Method::GET, "explain").query(&query)).await?;
        let mut out = Output::new(self.output);
        if out.for_people() {
            let explanation: Explanation<'_> = serde_json::from_str(&answer).map_err(|error| not_understood(&error))?;
            explanation.print(&mut out)?;
        } else {
            out.line(answer.trim_end())?;
        }
        out.flush()
    }
}

impl Explanation<'_> {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        match (&self.id, &self.collection) {
            (Some(id), Some(collection)) => out.line(&format!("{id}, in {collection}"))?,
            (Some(id), None) => out.line(&format!("{id}, which is not there"))?,
            (None, _) => {}
        }
        if let Some(group) = &self.group {
            group.print(out)?;
        }
        print_feeds(&self.feeds, 0, out)?;
        for LoadedBy { index, ids, is_cut } in &self.loaded_by {
            let more = if *is_cut { ", …" } else { "" };
            out.line(&cut(&format!("loaded for {index} by {}{more}", ids.join(", ")), width()))?;
        }
        if self.is_cut {
            out.line("… it feeds more than is shown; ask about one of these")?;
        }
        Ok(())
    }
}

impl Group<'_> {
    fn print(&self, out: &mut Output) -> Result<(), Failure> {
        out.line(&format!("made by {} for {}", self.index, self.key.get()))?;
        match (self.state.as_str(), self.body, &self.fault) {
            (_, Some(body), _) => out.line(&cut(&format!("  = {}", body.get()), width()))?,
            (_, _, Some(fault)) => out.line(&format!("  no document: {fault}"))?,
            ("Nothing", ..) => out.line("  no document: the script gave none")?,
            _ => out.line("  not reduced yet")?,
        }
        out.line(&format!("from {} entries:", grouped(self.entries)))?;
        for entry in &self.contributions {
            out.line(&cut(&format!("  {}  {}", entry.id, entry.value.get()), width()))?;
        }
        match &self.next {
            Some(next) => out.line(&format!("  … go on with --after '{next}'")),
            None => Ok(()),
        }
    }
}

fn print_feeds(feeds: &[Feeding<'_>], depth: usize, out: &mut Output) -> Result<(), Failure> {
    let margin = "  ".repeat(depth);
    for feeding in feeds {
        let behind = if feeding.is_current { "" } else { ", which has not taken in its newest version yet" };
        let what = if feeding.entries.is_empty() { "group(s)" } else { "entries" };
        out.line(&format!("{margin}feeds {} {what} of {}{behind}", grouped(feeding.total_groups), feeding.index))?;
        for entry in &feeding.entries {
            out.line(&cut(&format!("{margin}  {}  {}", entry.key.get(), entry.value.get()), width()))?;
        }
        if let Some(fault) = &feeding.fault {
            out.line(&format!("{margin}  nothing, since its map failed: {fault}"))?;
        }
        for group in &feeding.groups {
            let name = group.id.as_deref().unwrap_or_else(|| group.key.get());
            let missing = if group.exists { "" } else { ", which has no document" };
            let values: Vec<&str> = group.values.iter().map(|value| value.get()).collect();
            out.line(&cut(&format!("{margin}  {name}{missing}  + {}", values.join(" + ")), width()))?;
            print_feeds(&group.feeds, depth + 2, out)?;
        }
    }
    Ok(())
}
