//! Some documents of one file that are stored together: one request.
//!
//! Next on the walk: `sender`.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::id::is_final;
use super::shape::Shape;

/// Documents of one batch.
const DOCUMENTS_MAX: usize = 1000;

/// Bytes at which a batch is sent.
const BYTES_MAX: usize = 4 << 20;

/// Documents on their way to the server.
#[derive(Debug)]
pub(super) struct Batch {
    /// The file, as messages call it.
    pub(super) file: Arc<str>,
    /// The commands, one after the other.
    body: String,
    places: Vec<Place>,
    /// The finished ids, in lower case: a batch that shares one must be stored before or after, not beside.
    finished: HashSet<String>,
    /// Some ids will be numbered by the server, so that the order of batches shows.
    pub(super) numbered: bool,
    /// Storing it twice is the same as storing it once.
    pub(super) repeatable: bool,
}

#[derive(Clone, Debug)]
struct Place {
    line: u64,
    command: Range<usize>,
}

impl Batch {
    pub(super) fn new(file: Arc<str>) -> Self {
        Self {
            file,
            body: String::new(),
            places: Vec::new(),
            finished: HashSet::new(),
            numbered: false,
            repeatable: true,
        }
    }

    /// Adds the document of `line`.
    ///
    /// # Errors
    /// It is no document, or gives no id; the batch is left as it was.
    pub(super) fn push(&mut self, line: u64, document: &str, shape: &Shape) -> Result<(), String> {
        let start = self.body.len();
        match shape.push_command(document, &mut self.body)? {
            Some(id) if is_final(&id) => {
                self.finished.insert(treepie::id::lower(&id));
            }
            Some(_) => {
                self.numbered = true;
                self.repeatable = false;
            }
            None => self.repeatable = false,
        }
        self.places.push(Place { line, command: start..self.body.len() });
        Ok(())
    }

    /// Whether it is time to send it.
    pub(super) fn is_full(&self) -> bool {
        self.places.len() >= DOCUMENTS_MAX || self.body.len() >= BYTES_MAX
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the order in which the two are stored can be seen.
    pub(super) fn must_not_overlap(&self, other: &Self) -> bool {
        (self.numbered && other.numbered) || !self.finished.is_disjoint(&other.finished)
    }

    /// The body of a `bulk_docs` request for some of its documents.
    pub(super) fn request(&self, documents: Range<usize>) -> String {
        let places = self.places.get(documents).unwrap_or_default();
        let bytes: usize = places.iter().map(|place| place.command.len() + 1).sum();
        let mut text = String::with_capacity(bytes + 16);
        text.push_str("{\"Commands\":[");
        for (number, place) in places.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(self.body.get(place.command.clone()).unwrap_or_default());
        }
        text.push_str("]}");
        text
    }

    /// The line of a document; 0 where there is none.
    pub(super) fn line(&self, document: usize) -> u64 {
        self.places.get(document).map_or(0, |place| place.line)
    }
}

#[cfg(test)]
mod tests {
    use super::super::id::IdPlan;
    use super::*;

    fn batch(ids: &str, documents: &[&str]) -> Batch {
        let shape = Shape::new(IdPlan::parse(ids).unwrap(), None);
        let mut batch = Batch::new("f".into());
        for (line, document) in (1..).zip(documents) {
            batch.push(line, document, &shape).unwrap();
        }
        batch
    }

    #[test]
    fn any_part_of_a_batch_is_a_request() {
        let batch = batch("", &["{\"a\":1}", "{\"a\":2}", "{\"a\":3}"]);
        let part: serde_json::Value = serde_json::from_str(&batch.request(1..3)).unwrap();
        assert_eq!(part["Commands"].as_array().map(Vec::len), Some(2));
        assert_eq!(part["Commands"][0]["Document"]["a"], 2);
        assert_eq!(batch.request(0..0), "{\"Commands\":[]}");
        assert_eq!(batch.line(2), 3);
    }

    #[test]
    fn batches_that_share_an_id_in_any_case_keep_their_order() {
        let first = batch("a/{x}", &["{\"x\":\"Ä\"}", "{\"x\":1}"]);
        assert!(first.must_not_overlap(&batch("a/{x}", &["{\"x\":\"ä\"}"])));
        assert!(!first.must_not_overlap(&batch("a/{x}", &["{\"x\":\"b\"}"])));
        assert!(batch("a/", &["{}"]).must_not_overlap(&batch("a/", &["{}"])));
        assert!(!batch("", &["{}"]).must_not_overlap(&batch("", &["{}"])));
    }

    #[test]
    fn only_finished_ids_can_be_stored_twice() {
        assert!(batch("a/{x}", &["{\"x\":1}"]).repeatable);
        assert!(!batch("a/", &["{}"]).repeatable);
        assert!(!batch("", &["{}"]).repeatable);
    }
}
