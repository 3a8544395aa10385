//! `treepie list`: documents by prefix or collection, a page at a time.

use clap::Args;
use reqwest::Method;

use super::api::{ANSWER_TIMEOUT, Api};
use super::document::{Results, Shown};
use super::output::{Output, OutputArgs, cut, width};
use super::{Failure, Target, json};

/// Documents of one request.
const PAGE: u64 = 256;

/// Print documents by prefix or collection, sorted by id unless only a collection is asked for
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only documents whose id begins with this
    #[arg(long, default_value = "", value_name = "PREFIX")]
    prefix: String,
    /// Only documents of this collection; without --prefix the newest come first
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// At most so many documents
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    limit: u64,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl List {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let mut out = Output::new(self.output);
        let mut printed = 0;
        let mut start = 0;
        let mut after = String::new();
        while printed < self.limit {
            let by_collection = self.collection.as_deref().filter(|_| self.prefix.is_empty());
            let page = (self.limit - printed).min(PAGE);
            let request = match by_collection {
                Some(collection) => api
                    .request(Method::GET, "collections/docs")
                    .query(&[("name", collection)])
                    .query(&[("start", start), ("pageSize", page)]),
                None => api
                    .request(Method::GET, "docs")
                    .query(&[("startsWith", self.prefix.as_str()), ("startAfter", after.as_str())])
                    .query(&[("start", 0), ("pageSize", PAGE)]),
            };
            let answer = api.text(request).await?;
            let documents = Results::parse(&answer)?.results;
            for document in documents.iter().flatten() {
                let shown = Shown::parse(document.get())?;
                after.clone_from(&shown.id);
                if printed < self.limit && self.wants(&shown) {
                    printed += 1;
                    let line = if out.for_people() { for_people(&shown) } else { json::one_line(document.get()) };
                    out.line(&line)?;
                }
            }
            out.flush()?;
            start += page;
            if (documents.len() as u64) < if by_collection.is_some() { page } else { PAGE } {
                break;
            }
        }
        Ok(())
    }

    /// Collections are matched without regard to case.
    fn wants(&self, shown: &Shown<'_>) -> bool {
        self.collection.as_deref().is_none_or(|wanted| {
            let wanted = treepie::id::lower(wanted);
            shown.collection.as_deref().is_some_and(|collection| treepie::id::lower(collection) == wanted)
        })
    }
}

fn for_people(shown: &Shown<'_>) -> String {
    cut(&format!("{}  {}", shown.id, shown.body()), width())
}
