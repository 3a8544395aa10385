//! Which fields a script reads, and whether any value had them: for trying an index out. A field that nothing has is mostly
//! a slip of the pen.
//!
//! Nothing is noted, and nothing is paid, unless a runner was told to watch. Fields of the mapped document are told by their
//! whole path, `Lines[].Product`; those of keys and values in `reduce` and `finish` by their name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::host::{List, Object};
use super::json::{self, Kind, Span};
use super::state::State;
use super::{Phase, UnknownField};

/// Different fields that are noted; a script that makes up names is not followed for ever.
const FIELDS_MAX: usize = 1_000;

/// Characters of a path that are shown.
const PATH_CHARACTERS_MAX: usize = 200;

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The text of the document that is being mapped; other objects of JSON text are not followed.
    document: RefCell<Option<Rc<str>>>,
    fields: RefCell<BTreeMap<(Phase, String), Reads>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    all: u64,
    found: u64,
}

impl Watch {
    /// Begins with a document.
    pub(super) fn begin(&self, object: &Object) {
        *self.document.borrow_mut() = object.text().cloned();
    }

    /// Notes that a field of an object was read.
    pub(super) fn field(&self, state: &State, object: &Object, name: &str) {
        if name.starts_with('@') {
            return;
        }
        let phase = state.phase.get();
        let path = match (phase, object.place()) {
            (Phase::Reduce | Phase::Finish, _) => name.to_owned(),
            (_, Some(place)) => match (self.path(place), object.about()) {
                (Some(path), _) => joined(path, name),
                // A document that was loaded.
                (None, Some(about)) => format!("{}: {name}", about.collection),
                (None, None) => return,
            },
            (_, None) if object.about().is_some() => name.to_owned(),
            _ => return,
        };
        self.note(phase, path, object.has(name));
    }

    /// Notes that an aggregate has read a field, or a dotted path, of every element of a list.
    pub(super) fn elements(&self, state: &State, list: &List, path: &str) {
        let phase = state.phase.get();
        let whole = match (phase, list.first_place()) {
            (Phase::Reduce | Phase::Finish, _) => path.to_owned(),
            (_, Some(place)) => match self.path(place) {
                Some(element) => joined(element, path),
                None => return,
            },
            _ => return,
        };
        let found = list.cells().any(|cell| cell.at(path, |cell| !cell.is_missing()));
        self.note(phase, whole, found);
    }

    fn note(&self, phase: Phase, path: String, found: bool) {
        let mut fields = self.fields.borrow_mut();
        let is_full = fields.len() >= FIELDS_MAX;
        let key = (phase, path);
        if is_full && !fields.contains_key(&key) {
            return;
        }
        let reads = fields.entry(key).or_default();
        reads.all += 1;
        reads.found += u64::from(found);
    }

    /// The fields that were read and never found, by phase and path.
    pub(super) fn unknown(&self) -> Vec<UnknownField> {
        let fields = self.fields.borrow();
        let unknown = fields.iter().filter(|(_, reads)| reads.found == 0);
        unknown
            .map(|((phase, path), reads)| UnknownField {
                phase: *phase,
                path: path.chars().take(PATH_CHARACTERS_MAX).collect(),
                reads: reads.all,
            })
            .collect()
    }

    /// The way from the document to a stretch of its text: `Lines[]`; empty for the document itself.
    fn path(&self, (text, wanted): (&Rc<str>, Span)) -> Option<String> {
        let document = self.document.borrow();
        let document = document.as_ref().filter(|document| Rc::ptr_eq(document, text))?;
        let mut path = String::new();
        let mut at = Span { start: 0, end: u32::try_from(document.len()).ok()? };
        while at != wanted {
            let holds = |span: &Span| span.start <= wanted.start && wanted.end <= span.end;
            match json::kind(at.of(document))? {
                Kind::Object => {
                    let fields = json::fields(at.of(document))?;
                    let field = fields.into_iter().find(|field| holds(&field.value.moved(at.start)))?;
                    path = joined(path, &json::unescape(field.name.moved(at.start).of(document))?);
                    at = field.value.moved(at.start);
                }
                Kind::Array => {
                    let elements = json::elements(at.of(document))?;
                    at = elements.into_iter().map(|element| element.moved(at.start)).find(holds)?;
                    path.push_str("[]");
                }
                _ => return None,
            }
        }
        Some(path)
    }
}

fn joined(mut path: String, name: &str) -> String {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
    path
}
