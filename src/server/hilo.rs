//! `/hilo`: ranges of numbers from which clients make ids by themselves, and their return.
//!
//! Next on the walk: `database::hilo`, by way of [`crate::database::Database::next_hilo`].

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::error::ApiError;
use super::json::json;
use super::query::{Query, bad};
use super::registry::Lease;
use super::router::Shared;
use super::wire::names::HiloAnswer;
use super::wire::text::now;
use crate::id::IdRules;
use crate::id::hilo::{HiloRequest, NUMBER_MAX};

/// Hands out a tag's next range.
pub(crate) async fn next(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let tag = query.required("tag")?.to_owned();
    let separator = separator(&query, &lease.store().id_rules())?;
    let request = HiloRequest {
        last_size: number(&query, "lastBatchSize")?.unwrap_or(0),
        since_last: since(&query)?,
        last_max: number(&query, "lastMax")?.unwrap_or(0),
    };
    let range = {
        let tag = tag.clone();
        host.blocking(move || Ok(lease.next_hilo(&tag, &request)?)).await?
    };
    let answer = HiloAnswer {
        prefix: format!("{tag}{separator}"),
        low: range.low,
        high: range.high,
        last_size: range.size(),
        server_tag: host.node.tag.clone(),
        last_range_at: now(),
    };
    Ok(json(StatusCode::CREATED, &answer))
}

/// Takes back what a client has not used of its last range; does nothing where others were handed numbers since.
pub(crate) async fn give_back(State(host): State<Shared>, lease: Lease, query: Query) -> Result<Response, ApiError> {
    let tag = query.required("tag")?.to_owned();
    let needed = |name| number(&query, name)?.map_or_else(|| query.required(name).map(|_| 0), Ok);
    let (end, last) = (needed("end")?, needed("last")?);
    host.blocking(move || Ok(lease.return_hilo(&tag, end, last)?)).await?;
    Ok(StatusCode::OK.into_response())
}

/// The separator that the client will put between tag and number. The Node.js client sends `#` unencoded, so that nothing
/// arrives: then it is the database's.
fn separator(query: &Query, rules: &IdRules) -> Result<char, ApiError> {
    let Some(text) = query.text("identityPartsSeparator") else { return Ok(rules.separator) };
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(separator), None) => {
            IdRules { separator, ..rules.clone() }.check()?;
            Ok(separator)
        }
        _ => Err(bad("identityPartsSeparator", text, "a single character")),
    }
}

fn number(query: &Query, name: &str) -> Result<Option<u64>, ApiError> {
    match query.number(name)? {
        Some(number) if number > NUMBER_MAX => {
            Err(bad(name, &number.to_string(), &format!("a whole number of at most {NUMBER_MAX}")))
        }
        number => Ok(number),
    }
}

/// How long ago the client took its last range; a time to come is now. Clients write times with and without a zone.
fn since(query: &Query) -> Result<Option<Duration>, ApiError> {
    let Some(text) = query.text("lastRangeAt") else { return Ok(None) };
    let time = text.parse::<Timestamp>().or_else(|_| {
        let civil = text.parse::<DateTime>()?;
        TimeZone::UTC.to_timestamp(civil)
    });
    let time = time.map_err(|_| bad("lastRangeAt", text, "a time such as 2026-11-30T11:29:45.0000000Z"))?;
    let since = Timestamp::now().duration_since(time).max(SignedDuration::ZERO);
    Ok(Some(since.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(text: &str) -> Query {
        Query::parse(text).unwrap()
    }

    #[test]
    fn the_times_of_all_clients_are_understood() {
        let hour = Duration::from_secs(3_600);
        for time in ["1970-01-01T00%3A00%3A00.0000000Z", "0001-01-01T00:00:00.0000000Z", "0001-02-01T00:00:00.0000000"]
        {
            assert!(since(&query(&format!("lastRangeAt={time}"))).unwrap().unwrap() > hour, "{time}");
        }
        assert_eq!(since(&query("lastRangeAt=9000-01-01T00:00:00Z")).unwrap(), Some(Duration::ZERO));
        assert_eq!(since(&query("lastRangeAt=")).unwrap(), None);
        assert!(since(&query("lastRangeAt=soon")).unwrap_err().message().contains("'lastRangeAt'"));
    }

    #[test]
    fn a_separator_that_did_not_arrive_is_the_databases() {
        let rules = IdRules { separator: '#', ..IdRules::default() };
        assert_eq!(separator(&query("identityPartsSeparator="), &rules).unwrap(), '#');
        assert_eq!(separator(&query("tag=users"), &rules).unwrap(), '#');
        assert_eq!(separator(&query("identityPartsSeparator=/"), &rules).unwrap(), '/');
        for refused in ["identityPartsSeparator=%7C", "identityPartsSeparator=--"] {
            assert_eq!(separator(&query(refused), &rules).unwrap_err().status().as_u16(), 400, "{refused}");
        }
    }
}
