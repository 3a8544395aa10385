//! `POST /indexes/test`: tries a definition out, on stored documents or on some that come along. Nothing is written.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::json::{self, json};
use super::query::Query;
use super::registry::Lease;
use super::router::Shared;
use super::wire::definition::read_definition;
use super::wire::tryout::TryOutBody;
use crate::database::Chosen;
use crate::index::definition::IndexDefinition;
use crate::index::tryout::{SAMPLES_MAX, Sample};
use crate::store::document::Document;

/// Stored documents of a trial that says nothing about it.
const COUNT: usize = 100;

/// The name of a definition that is tried out without one.
const NAME: &str = "Test";

/// The body in JSON; RavenDB's has more, which Treepie refuses where it would matter.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Trial {
    index_definition: Map<String, Value>,
    #[serde(default)]
    max_documents_to_process: Option<u64>,
    #[serde(default)]
    documents: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    query: Option<String>,
}

/// Tries out a script, or, in JSON, a definition.
pub(crate) async fn run(
    State(host): State<Shared>,
    lease: Lease,
    query: Query,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let heavy = host.take_heavy()?;
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let trial = read(&query, payload.bytes())?;
    let run = move || {
        let _heavy = heavy;
        let tried = match trial {
            (definition, Samples::Stored(chosen)) => lease.try_index(definition, &chosen)?,
            (definition, Samples::Sent(samples)) => lease.try_index_on(definition, samples)?,
        };
        Ok(json(StatusCode::OK, &TryOutBody::new(tried)))
    };
    host.blocking(run).await
}

enum Samples {
    Stored(Chosen),
    Sent(Vec<Sample>),
}

fn read(query: &Query, body: &[u8]) -> Result<(IndexDefinition, Samples), ApiError> {
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(ApiError::data("The body is not an index script or definition: it is not UTF-8."));
    };
    let name = query.text("name").unwrap_or(NAME);
    let mut count = query.count("count")?;
    let mut sent = None;
    let definition = if text.trim_start().starts_with('{') {
        let mut trial: Trial = json::read(body, "an object with \"IndexDefinition\": {…}")?;
        if trial.query.is_some_and(|query| !query.is_empty()) {
            return Err(ApiError::unsupported("a query in a test of an index"));
        }
        count = count.or(trial.max_documents_to_process);
        sent = trial.documents;
        trial.index_definition.entry("Name").or_insert_with(|| name.into());
        read_definition(&trial.index_definition)?.definition
    } else {
        IndexDefinition::from_script(name, text)
    };
    let ids: Vec<String> = query.all("id").filter(|id| !id.is_empty()).map(str::to_owned).collect();
    let samples = match sent {
        Some(documents) => Samples::Sent(
            documents.iter().enumerate().map(|(place, document)| sample(place, document)).collect::<Result<_, _>>()?,
        ),
        None if !ids.is_empty() => Samples::Stored(Chosen::Ids(ids)),
        None => {
            let count = count.map_or(COUNT, |count| usize::try_from(count).unwrap_or(SAMPLES_MAX));
            Samples::Stored(Chosen::Newest(count.min(SAMPLES_MAX)))
        }
    };
    Ok((definition, samples))
}

/// A document that came along, under its own id or one made from its place.
fn sample(place: usize, document: &RawValue) -> Result<Sample, ApiError> {
    let parsed = Document::parse(document.get().as_bytes())
        .map_err(|error| ApiError::from(error).at(&format!("document {place}")))?;
    let Document { collection, metadata, body } = parsed.document;
    Ok(Sample { id: parsed.id.unwrap_or_else(|| format!("sample/{}", place + 1)), collection, metadata, body })
}
