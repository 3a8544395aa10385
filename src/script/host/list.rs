//! A list: an array of a document, or the values of a group. Its elements are decoded as they are reached.

use std::rc::Rc;

use rhai::{Array, Dynamic};

use super::super::encoding::Elements;
use super::super::json::{self, Span};
use super::super::problem::{Failure, failure};
use super::Cell;
use super::decode::{encoded_value, json_value};
use super::object::{slice, within};

/// A list as scripts see it. Cloning shares the content.
#[derive(Clone)]
pub(in crate::script) struct List {
    source: Source,
    spans: Rc<[Span]>,
}

#[derive(Clone)]
enum Source {
    Json(Rc<str>),
    Encoded(Rc<[u8]>),
}

impl List {
    /// An array inside JSON text.
    pub(in crate::script) fn from_json(text: &Rc<str>, span: Span) -> Option<Self> {
        let spans = json::elements(span.of(text))?.into_iter().map(|element| element.moved(span.start)).collect();
        Some(Self { source: Source::Json(Rc::clone(text)), spans })
    }

    /// An array inside canonical bytes.
    pub(in crate::script) fn from_elements(bytes: &Rc<[u8]>, elements: Elements<'_>) -> Self {
        let spans = elements.map(|element| within(bytes, element)).collect();
        Self { source: Source::Encoded(Rc::clone(bytes)), spans }
    }

    /// The values of a group, each encoded.
    pub(in crate::script) fn group(values: &[&[u8]]) -> Result<Self, Failure> {
        let mut bytes = Vec::with_capacity(values.iter().map(|value| value.len()).sum());
        let mut spans = Vec::with_capacity(values.len());
        for value in values {
            let start = bytes.len();
            bytes.extend_from_slice(value);
            let at = |n: usize| u32::try_from(n).map_err(|_| failure("the group's values are larger than 4 GiB"));
            spans.push(Span { start: at(start)?, end: at(bytes.len())? });
        }
        Ok(Self { source: Source::Encoded(bytes.into()), spans: spans.into() })
    }

    /// The JSON text it lies in, with the stretch of its first element, where it has one.
    pub(in crate::script) fn first_place(&self) -> Option<(&Rc<str>, Span)> {
        match &self.source {
            Source::Json(text) => Some((text, *self.spans.first()?)),
            Source::Encoded(_) => None,
        }
    }

    pub(in crate::script) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The element at a position; `None` past the end.
    pub(in crate::script) fn get(&self, position: usize) -> Option<Result<Dynamic, Failure>> {
        let span = *self.spans.get(position)?;
        Some(match &self.source {
            Source::Json(text) => json_value(text, span),
            Source::Encoded(bytes) => encoded_value(bytes, span),
        })
    }

    /// The elements as an array of the script's own; arrays and objects inside stay undecoded.
    pub(in crate::script) fn to_array(&self) -> Result<Array, Failure> {
        (0..self.len()).filter_map(|position| self.get(position)).collect()
    }

    /// The elements, undecoded.
    pub(in crate::script) fn cells(&self) -> impl Iterator<Item = Cell<'_>> {
        self.spans.iter().map(|span| match &self.source {
            Source::Json(text) => Cell::Json(span.of(text)),
            Source::Encoded(bytes) => Cell::Encoded(slice(bytes, *span)),
        })
    }
}

/// The elements one after the other, for `for`.
pub(in crate::script) struct ListIter {
    list: List,
    next: usize,
}

impl IntoIterator for List {
    type Item = Result<Dynamic, Failure>;
    type IntoIter = ListIter;

    fn into_iter(self) -> ListIter {
        ListIter { list: self, next: 0 }
    }
}

impl Iterator for ListIter {
    type Item = Result<Dynamic, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let element = self.list.get(self.next)?;
        self.next += 1;
        Some(element)
    }
}
