//! `/multi_get`: several reads in one request, as lazy operations of clients send them.
//!
//! Each is put through a router of its own, which knows the reads that clients batch, and its answer goes out as it comes.

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use axum::response::Response;
use axum::routing::get;
use axum::{Extension, Router};
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::{Map, Value};
use tower::ServiceExt;

use super::access;
use super::body::{self, BodyLimit};
use super::error::ApiError;
use super::host::InHand;
use super::registry::Lease;
use super::router::Shared;
use super::stream::{self, Ended, Outlet, PIECE_BYTES};
use super::{documents, json, observe, queries, unsupported};
use crate::access::Caller;

/// Requests in one.
const REQUESTS_MAX: usize = 1_024;

#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "Requests")]
    requests: Vec<Asked>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Asked {
    url: String,
    query: Option<String>,
    method: Option<String>,
    headers: Option<Map<String, Value>>,
    content: Option<Value>,
}

/// The router of what can be asked for together.
#[derive(Clone, Debug)]
pub(crate) struct Reads(Router);

impl Reads {
    pub(crate) fn new(host: &Shared) -> Self {
        let reads = Router::new().route("/docs", get(documents::get).head(documents::head).post(documents::get_many));
        let reads = reads.route("/queries", get(queries::get).post(queries::post));
        let reads = Router::new().nest("/databases/{db}", reads);
        let reads = reads.fallback(unsupported::refuse).method_not_allowed_fallback(unsupported::refuse);
        Self(reads.with_state(Shared::clone(host)))
    }
}

/// Answers several requests, in order.
pub(crate) async fn run(
    State(host): State<Shared>,
    Extension(reads): Extension<Reads>,
    Extension(held): Extension<InHand>,
    Extension(caller): Extension<Caller>,
    _: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let payload = body::read(&host, &headers, body, BodyLimit::request(&host.settings.limits)).await?;
    let batch: Batch = json::read(payload.bytes(), "an object with \"Requests\": [{\"Url\":…}]")?;
    if batch.requests.len() > REQUESTS_MAX {
        return Err(ApiError::argument(format!("One multi_get may have {REQUESTS_MAX} requests; send several.")));
    }
    let requests = batch.requests.into_iter().enumerate().map(|(position, asked)| {
        let request = asked.into_request();
        // Each by itself: its path may name another database.
        let admitted = request.and_then(|request| access::permit(&caller, &request).map(|()| request));
        admitted.map_err(|error| error.at(&format!("Request {position}, counted from 0")))
    });
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    let (outlet, inlet) = stream::answer(host.settings.limits.unread_max);
    tokio::spawn(async move {
        let _held = held;
        match answer_all(&reads, requests, &outlet).await {
            Ok(rest) => drop(outlet.finish(rest).await),
            Err(ended) => outlet.fail(ended).await,
        }
    });
    inlet.into_response(json::CONTENT_TYPE).await
}

async fn answer_all(reads: &Reads, requests: Vec<Request<Body>>, outlet: &Outlet) -> Result<Vec<u8>, Ended> {
    let mut buffer = b"{\"Results\":[".to_vec();
    for (position, request) in requests.into_iter().enumerate() {
        if position > 0 {
            buffer.push(b',');
        }
        let uri = request.uri().clone();
        let Ok(mut response) = reads.0.clone().oneshot(request).await;
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            response = observe::with_body(response, &error, &uri);
        }
        write_head(&response, &mut buffer)?;
        let mut body = response.into_body().into_data_stream();
        let mut is_empty = true;
        while let Some(piece) = body.next().await {
            let piece = piece.map_err(|error| ApiError::internal(format!("The answer to {uri} broke off: {error}")))?;
            is_empty &= piece.is_empty();
            buffer.extend_from_slice(&piece);
            if buffer.len() >= PIECE_BYTES {
                outlet.send(std::mem::take(&mut buffer)).await?;
            }
        }
        buffer.extend_from_slice(if is_empty { b"null}" } else { b"}" });
    }
    buffer.extend_from_slice(b"]}");
    Ok(buffer)
}

fn write_head(response: &Response, into: &mut Vec<u8>) -> Result<(), ApiError> {
    let headers = response.headers().iter().filter_map(|(name, value)| {
        // Clients look for their names as RavenDB spells them.
        let name = if *name == header::ETAG { "ETag" } else { name.as_str() };
        Some((name.to_owned(), Value::from(value.to_str().ok()?)))
    });
    let headers = serde_json::to_string(&headers.collect::<Map<_, _>>());
    let headers = headers.map_err(|error| ApiError::internal(format!("Headers can't be written: {error}")))?;
    let status = response.status().as_u16();
    into.extend_from_slice(format!("{{\"StatusCode\":{status},\"Headers\":{headers},\"Result\":").as_bytes());
    Ok(())
}

impl Asked {
    fn into_request(self) -> Result<Request<Body>, ApiError> {
        let refused = |what: &str, value: &str| {
            let shown: String = value.chars().take(200).collect();
            ApiError::argument(format!("Its {what} can't be that of a request: '{shown}'."))
        };
        let query = self.query.as_deref().unwrap_or_default().trim_start_matches('?');
        let target = format!("{}?{query}", self.url);
        let uri: Uri = target.parse().map_err(|_| refused("Url or Query", &target))?;
        let method = self.method.as_deref().unwrap_or("GET");
        let method: Method = method.parse().map_err(|_| refused("Method", method))?;
        let body = match self.content {
            None | Some(Value::Null) => Body::empty(),
            Some(Value::String(text)) => Body::from(text),
            Some(other) => Body::from(other.to_string()),
        };
        let mut request = Request::new(body);
        *request.uri_mut() = uri;
        *request.method_mut() = method;
        for (name, value) in self.headers.into_iter().flatten() {
            let Value::String(value) = value else { continue };
            let value: HeaderValue = value.parse().map_err(|_| refused("header", &value))?;
            let name: HeaderName = name.parse().map_err(|_| refused("header", &name))?;
            request.headers_mut().insert(name, value);
        }
        Ok(request)
    }
}
