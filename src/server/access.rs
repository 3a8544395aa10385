//! Who a request comes from, and whether it may do what it asks for.
//!
//! What a path needs is said in one table, [`need`]; what is not in it needs everything. A request without credentials that
//! count is answered 401, one that may not do this 403.
//!
//! Next on the walk: `router`.

use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::error::{ApiError, names};
use super::host::{Host, signalled};
use super::query::{self, Query};
use super::router::Shared;
use crate::access::{Caller, Digest, Level, Shown};

/// How often the files of credentials and certificates are looked at.
const REFRESH_EVERY: Duration = Duration::from_secs(1);

/// What is known of whoever is at the other end of a connection; an extension of its requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// The digest of the certificate shown.
    pub(crate) certificate: Option<Digest>,
}

/// What a request needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing.
    Nothing,
    /// Credentials that count, whatever they permit.
    Known,
    /// A level in a database.
    In(String, Level),
    /// A level in the server as a whole.
    Everywhere(Level),
}

/// Says who sends a request, and refuses what it may not do.
///
/// # Errors
/// 401 without credentials that count, 403 where they do not permit it.
pub(crate) fn admit(
    host: &Host,
    peer: &Peer,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Caller, ApiError> {
    let caller = recognise(host, peer, headers);
    check(&caller, &need(method, uri)).map(|()| caller)
}

/// Refuses what a caller may not do; for requests inside of requests.
///
/// # Errors
/// As [`admit`].
pub(crate) fn permit<B>(caller: &Caller, request: &Request<B>) -> Result<(), ApiError> {
    check(caller, &need(request.method(), request.uri()))
}

/// Refuses a caller that has not what is needed.
///
/// # Errors
/// As [`admit`].
pub(crate) fn check(caller: &Caller, need: &Need) -> Result<(), ApiError> {
    match (caller, need) {
        (Caller::Anyone, _) | (_, Need::Nothing) | (Caller::Known(_), Need::Known) => Ok(()),
        (Caller::Known(_), Need::In(database, level)) if caller.may(*level, Some(database)) => Ok(()),
        (Caller::Known(_), Need::Everywhere(level)) if caller.may(*level, None) => Ok(()),
        (Caller::Known(credential), need) => Err(forbidden(&credential.name, need)),
        (Caller::Stranger, _) => Err(unknown("it has none")),
        (Caller::Refused(why), _) => Err(unknown(why)),
    }
}

/// Tells who a caller is by its certificate or the key in its headers.
pub(crate) fn recognise(host: &Host, peer: &Peer, headers: &HeaderMap) -> Caller {
    let key = key_in(headers);
    let shown = [peer.certificate.as_ref().map(Shown::Certificate), key.as_deref().map(Shown::Key)];
    host.access.recognise(&shown.into_iter().flatten().collect::<Vec<_>>())
}

/// The key of `Authorization: Bearer …`, or the password of `Basic`, which CouchDB's clients send.
fn key_in(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, rest) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
        return pair.split_once(':').map(|(_, password)| password.to_owned());
    }
    None
}

/// What a request needs.
pub(crate) fn need(method: &Method, uri: &Uri) -> Need {
    let path = uri.path();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    if path == "/databases/_all_dbs" && reads {
        return Need::Known;
    }
    if let Some(rest) = path.strip_prefix("/databases/") {
        let (database, below) = rest.split_once('/').unwrap_or((rest, ""));
        if below.is_empty() && !reads {
            return Need::Everywhere(Level::Admin);
        }
        return match query::decode(database, false) {
            Ok(database) => Need::In(database, level_below(method, below)),
            Err(_) => Need::Everywhere(Level::Admin),
        };
    }
    match path {
        "/healthz" | "/readyz" => Need::Nothing,
        "/build/version" | "/cluster/topology" | "/cluster/node-info" | "/configuration/client" | "/databases"
            if reads =>
        {
            Need::Known
        }
        "/metrics" if reads => Need::Everywhere(Level::Read),
        "/topology" if reads => named(uri, "name", Level::Read),
        "/info/tcp" | "/info/remote-task/tcp" if reads => named(uri, "database", Level::Read),
        "/admin/databases" if reads => named(uri, "name", Level::Admin),
        _ => Need::Everywhere(Level::Admin),
    }
}

/// A level in the database that a parameter of the query names.
fn named(uri: &Uri, parameter: &str, level: Level) -> Need {
    let query = Query::parse(uri.query().unwrap_or_default());
    match query.ok().and_then(|query| query.get(parameter).map(str::to_owned)) {
        Some(name) => Need::In(name, level),
        None => Need::Known,
    }
}

/// What a request needs in the database whose path it is below.
fn level_below(method: &Method, below: &str) -> Level {
    let first = below.split('/').next().unwrap_or_default();
    let reads = matches!(*method, Method::GET | Method::HEAD);
    match (first, below) {
        ("admin", _) => Level::Admin,
        // Whoever reads a subscription moves it, and takes it from others.
        ("hilo", _) | ("subscriptions", "subscriptions/stream") => Level::Write,
        ("indexes", "indexes/has-changed" | "indexes/test") => Level::Read,
        ("indexes", _) if *method == Method::POST && is_results(below) => Level::Read,
        ("indexes", _) if !reads => Level::Admin,
        _ if reads => Level::Read,
        (_, "docs" | "multi_get" | "queries" | "_changes" | "_all_docs" | "_find" | "_bulk_get")
            if method == Method::POST =>
        {
            Level::Read
        }
        ("streams", _) if method == Method::POST => Level::Read,
        _ => Level::Write,
    }
}

/// Whether this is the path of an index's results, `indexes/{name}/results`.
fn is_results(below: &str) -> bool {
    matches!(below.split('/').collect::<Vec<_>>().as_slice(), ["indexes", _, "results"])
}

fn unknown(why: &str) -> ApiError {
    let message = format!(
        "This server needs credentials, and the request's do not count: {why}. Send an API key as 'Authorization: Bearer \
         treepie_…', or use a client certificate; `treepie key` and `treepie cert` make them."
    );
    let challenge = HeaderValue::from_static("Bearer realm=\"treepie\", Basic realm=\"treepie\"");
    ApiError::new(StatusCode::UNAUTHORIZED, names::AUTHORIZATION, message)
        .with_header(header::WWW_AUTHENTICATE, challenge)
}

fn forbidden(name: &str, need: &Need) -> ApiError {
    let (level, place) = match need {
        Need::In(database, level) => (*level, format!("database '{database}'")),
        Need::Everywhere(level) => (*level, "the whole server (*)".to_owned()),
        Need::Nothing | Need::Known => (Level::Read, "this server".to_owned()),
    };
    ApiError::new(
        StatusCode::FORBIDDEN,
        names::AUTHORIZATION,
        format!("This needs the level '{level}' in {place}, which the credential '{name}' does not have."),
    )
}

/// Looks at the files of credentials and certificates until the server stops.
pub(crate) async fn follow_files(host: Shared) {
    let mut stopping = host.stop_signal();
    loop {
        tokio::select! {
            () = tokio::time::sleep(REFRESH_EVERY) => {}
            () = signalled(&mut stopping) => return,
        }
        let worker = Arc::clone(&host);
        // Where the task breaks, the next look finds the same change.
        let _ = tokio::task::spawn_blocking(move || refresh(&worker)).await;
    }
}

fn refresh(host: &Host) {
    match host.access.refresh() {
        Ok(true) => tracing::info!(name: "access.changed", "the credentials were read again"),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(name: "access.unreadable", %error, "the credentials have changed and can't be read; those from before count");
        }
    }
    match host.tls.as_ref().map_or(Ok(false), super::tls::Tls::refresh) {
        Ok(true) => tracing::info!(name: "tls.changed", "the server's certificate was read again"),
        Ok(false) => {}
        Err(error) => {
            tracing::error!(name: "tls.unreadable", %error, "the server's certificate has changed and can't be read; the one from before is used");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(method: &str, uri: &str) -> Need {
        need(&method.parse().unwrap(), &uri.parse().unwrap())
    }

    #[test]
    fn a_path_needs_what_it_does() {
        let in_main = |level| Need::In("main".to_owned(), level);
        for (method, uri, need) in [
            ("GET", "/healthz", Need::Nothing),
            ("GET", "/databases", Need::Known),
            ("GET", "/topology?name=main", in_main(Level::Read)),
            ("GET", "/admin/databases?name=main", in_main(Level::Admin)),
            ("PUT", "/admin/databases?name=main", Need::Everywhere(Level::Admin)),
            ("DELETE", "/admin/databases", Need::Everywhere(Level::Admin)),
            ("GET", "/metrics", Need::Everywhere(Level::Read)),
            ("GET", "/admin/backups", Need::Everywhere(Level::Admin)),
            ("GET", "/databases/main/docs?id=x", in_main(Level::Read)),
            ("POST", "/databases/main/docs", in_main(Level::Read)),
            ("POST", "/databases/main/queries", in_main(Level::Read)),
            ("DELETE", "/databases/main/queries", in_main(Level::Write)),
            ("PATCH", "/databases/main/queries", in_main(Level::Write)),
            ("PUT", "/databases/main/docs?id=x", in_main(Level::Write)),
            ("GET", "/databases/main/hilo/next", in_main(Level::Write)),
            ("POST", "/databases/main/identity/next", in_main(Level::Write)),
            ("GET", "/databases/main/indexes", in_main(Level::Read)),
            ("RESET", "/databases/main/indexes", in_main(Level::Admin)),
            ("POST", "/databases/main/indexes/has-changed", in_main(Level::Read)),
            ("PUT", "/databases/main/indexes/a", in_main(Level::Admin)),
            ("POST", "/databases/main/admin/backup", in_main(Level::Admin)),
            ("GET", "/databases/main/export", in_main(Level::Read)),
            ("GET", "/databases/main", in_main(Level::Read)),
            ("PUT", "/databases/main", Need::Everywhere(Level::Admin)),
            ("DELETE", "/databases/main", Need::Everywhere(Level::Admin)),
            ("DELETE", "/databases/main/", Need::Everywhere(Level::Admin)),
            ("GET", "/databases/_all_dbs", Need::Known),
            ("GET", "/info/tcp", Need::Known),
            ("GET", "/info/remote-task/tcp?database=main&verify-database=true", in_main(Level::Read)),
            ("GET", "/databases/main/info/tcp", in_main(Level::Read)),
            ("GET", "/databases/main/changes", in_main(Level::Read)),
            ("POST", "/databases/main/_changes?feed=continuous", in_main(Level::Read)),
            ("POST", "/databases/main/_all_docs", in_main(Level::Read)),
            ("POST", "/databases/main/_bulk_docs", in_main(Level::Write)),
            ("POST", "/databases/main/multi_get", in_main(Level::Read)),
            ("POST", "/databases/main/streams/queries", in_main(Level::Read)),
            ("PATCH", "/databases/main/json-patch?id=x", in_main(Level::Write)),
            ("POST", "/databases/main/indexes/test", in_main(Level::Read)),
            ("POST", "/databases/main/indexes/a%2Fb/results", in_main(Level::Read)),
            ("PUT", "/databases/main/indexes/a/results", in_main(Level::Admin)),
            ("GET", "/databases/main/indexes/verify?name=a", in_main(Level::Read)),
            ("POST", "/databases/main/indexes/verify?name=a", in_main(Level::Admin)),
            ("POST", "/databases/main/indexes/rollback?name=a", in_main(Level::Admin)),
            ("GET", "/databases/main/explain?id=x", in_main(Level::Read)),
            ("GET", "/databases/main/subscriptions", in_main(Level::Read)),
            ("PUT", "/databases/main/subscriptions", in_main(Level::Write)),
            ("GET", "/databases/main/subscriptions/stream?name=s", in_main(Level::Write)),
            ("POST", "/databases/main/subscriptions/ack?name=s", in_main(Level::Write)),
            ("GET", "/databases/main/admin/tombstones/state", in_main(Level::Admin)),
            ("POST", "/databases/main/import", in_main(Level::Write)),
            ("GET", "/databases/m%61in/docs", in_main(Level::Read)),
            ("GET", "/databases/m%zz/docs", Need::Everywhere(Level::Admin)),
            ("GET", "/something/new", Need::Everywhere(Level::Admin)),
        ] {
            assert_eq!(needed(method, uri), need, "{method} {uri}");
        }
    }

    #[test]
    fn a_key_is_read_from_both_schemes() {
        let key = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            key_in(&headers)
        };
        assert_eq!(key("Bearer treepie_x"), Some("treepie_x".to_owned()));
        assert_eq!(key("basic YW55OnRyZWVwaWVfeA=="), Some("treepie_x".to_owned()));
        for value in ["treepie_x", "Digest x", "Basic !", "Bearer"] {
            assert_eq!(key(value), None, "{value}");
        }
    }
}
