//! The place in a feed, as callers keep it: an etag, or `etag-begun` for one who began with nothing and has not yet come past
//! the deletions that are cleaned up.
//!
//! Whoever comes back with an etag below the newest tombstone that was removed may have missed a deletion and is refused.
//! Not so a reader on its first way through the feed: what was deleted before it began (at the etag `begun`) it never saw. So
//! its places say when it began, for as long as that makes a difference. CouchDB's clients hand places back as they are.

use std::fmt;

use crate::server::error::ApiError;
use crate::server::query::bad;

/// A place in a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seq {
    /// Everything through this etag was read.
    pub(crate) etag: u64,
    /// The etag that was durable when this reader began with nothing, 0 where it began in the middle.
    pub(crate) begun: u64,
}

impl Seq {
    /// Reads `since`: a place that the feed has reached, or `now`; nothing is the beginning.
    ///
    /// # Errors
    /// Anything else.
    pub(crate) fn read(since: Option<&str>, durable: u64) -> Result<Self, ApiError> {
        let text = since.unwrap_or("0");
        if text == "now" {
            return Ok(Self { etag: durable, begun: 0 });
        }
        let (etag, begun) = text.split_once('-').map_or((text, None), |(etag, begun)| (etag, Some(begun)));
        let number = |digits: &str| {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| digits.parse::<u64>().ok()).flatten()
        };
        let (Some(etag), begun) = (number(etag), begun.map(number)) else { return Err(unreadable(text)) };
        let begun = match begun {
            None if etag == 0 => durable,
            None => 0,
            Some(Some(begun)) if begun >= etag => begun,
            Some(_) => return Err(unreadable(text)),
        };
        if etag > durable || begun > durable {
            return Err(ApiError::argument(format!(
                "'since' is {text}, but the feed has only come to {durable}; was it taken from another database?"
            )));
        }
        Ok(Self { etag, begun })
    }

    /// The place as the reader must keep it, where tombstones through `purged` are removed.
    pub(crate) fn show(self, purged: u64) -> Shown {
        Shown { etag: self.etag, begun: (self.etag < purged).then_some(self.begun).filter(|begun| *begun > 0) }
    }
}

/// A place as text: a number, or a string with both numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    etag: u64,
    begun: Option<u64>,
}

impl Shown {
    /// Without quotes: the id of a server-sent event.
    pub(crate) fn bare(self) -> String {
        self.to_string().trim_matches('"').to_owned()
    }
}

/// As JSON.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.begun {
            None => write!(f, "{}", self.etag),
            Some(begun) => write!(f, "\"{}-{begun}\"", self.etag),
        }
    }
}

fn unreadable(text: &str) -> ApiError {
    bad("since", text, "the 'seq' of a change, or now")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_that_the_feed_has_not_reached_is_refused() {
        let read = |text: &str| Seq::read(Some(text), 12).unwrap();
        assert_eq!(Seq::read(None, 12).unwrap(), Seq { etag: 0, begun: 12 });
        assert_eq!(read("now"), Seq { etag: 12, begun: 0 });
        assert_eq!((read("12"), read("0")), (Seq { etag: 12, begun: 0 }, Seq { etag: 0, begun: 12 }));
        assert_eq!(read("3-9"), Seq { etag: 3, begun: 9 });
        for bad in ["13", "x", "-1", "1.0", "12-abc", "99999999999999999999", "3-13", "9-3", "3-", "+3", "3-4-5"] {
            assert_eq!(Seq::read(Some(bad), 12).unwrap_err().status().as_u16(), 400, "{bad}");
        }
    }

    #[test]
    fn a_place_says_when_its_reader_began_while_that_matters() {
        let place = Seq { etag: 5, begun: 9 };
        assert_eq!(place.show(5).to_string(), "5");
        assert_eq!((place.show(6).to_string(), place.show(6).bare()), ("\"5-9\"".to_owned(), "5-9".to_owned()));
        assert_eq!(Seq { etag: 5, begun: 0 }.show(6).to_string(), "5");
    }
}
