//! An object: a document, a part of one, or a reduced value. Its fields are decoded as they are read.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::rc::Rc;

use rhai::{Dynamic, ImmutableString, Map};

use super::super::encoding::{self, Item, Reader};
use super::super::json::{self, Field, Span};
use super::super::problem::Failure;
use super::Cell;
use super::decode::{encoded_value, json_value};

/// Where a document has its id, collection and metadata.
pub(in crate::script) const METADATA: &str = "@metadata";

/// An object as scripts see it. Cloning shares the content.
#[derive(Clone)]
pub(in crate::script) struct Object {
    body: Body,
    about: Option<Rc<About>>,
}

#[derive(Clone)]
enum Body {
    Json {
        text: Rc<str>,
        span: Span,
        fields: Rc<[Field]>,
    },
    Encoded {
        bytes: Rc<[u8]>,
        span: Span,
    },
    /// After the script has assigned to it.
    Changed(Map),
}

/// What a document knows about itself, beside its fields.
#[derive(Debug)]
pub(in crate::script) struct About {
    pub(in crate::script) id: ImmutableString,
    pub(in crate::script) collection: ImmutableString,
    /// The user's own metadata, JSON text of an object.
    pub(in crate::script) metadata: Rc<str>,
}

impl Object {
    /// A stored document. `None` where the body is not the JSON text of an object.
    pub(in crate::script) fn document(body: &str, about: About) -> Option<Self> {
        let text: Rc<str> = body.into();
        let fields = json::fields(&text)?.into();
        let span = Span { start: 0, end: u32::try_from(text.len()).ok()? };
        Some(Self { body: Body::Json { text, span, fields }, about: Some(Rc::new(about)) })
    }

    /// An object inside JSON text.
    pub(in crate::script) fn from_json(text: &Rc<str>, span: Span) -> Option<Self> {
        let mut fields = json::fields(span.of(text))?;
        for field in &mut fields {
            *field = Field { name: field.name.moved(span.start), value: field.value.moved(span.start) };
        }
        Some(Self { body: Body::Json { text: Rc::clone(text), span, fields: fields.into() }, about: None })
    }

    /// An object inside canonical bytes.
    pub(in crate::script) fn from_encoded(bytes: &Rc<[u8]>, span: Span) -> Self {
        Self { body: Body::Encoded { bytes: Rc::clone(bytes), span }, about: None }
    }

    /// The document's id and so on; `None` for parts.
    pub(in crate::script) fn about(&self) -> Option<&About> {
        self.about.as_deref()
    }

    /// The text that it lies in, where it is JSON text that no script has changed.
    pub(in crate::script) fn text(&self) -> Option<&Rc<str>> {
        self.place().map(|(text, _)| text)
    }

    /// The same with the stretch of it.
    pub(in crate::script) fn place(&self) -> Option<(&Rc<str>, Span)> {
        match &self.body {
            Body::Json { text, span, .. } => Some((text, *span)),
            _ => None,
        }
    }

    /// Whether there is such a field.
    pub(in crate::script) fn has(&self, name: &str) -> bool {
        match &self.body {
            Body::Json { text, fields, .. } => fields.iter().any(|field| is_name(field.name.of(text), name)),
            Body::Encoded { bytes, span } => encoding::field(slice(bytes, *span), name).is_some(),
            Body::Changed(map) => map.contains_key(name),
        }
    }

    /// The same document, its collection spelled like this.
    pub(in crate::script) fn named(&self, collection: &ImmutableString) -> Self {
        let about = self.about.as_ref().map(|about| {
            let (id, metadata) = (about.id.clone(), Rc::clone(&about.metadata));
            Rc::new(About { id, collection: collection.clone(), metadata })
        });
        Self { body: self.body.clone(), about }
    }

    /// The number of fields that a look-up may pass, for charging.
    pub(in crate::script) fn width(&self) -> usize {
        match &self.body {
            Body::Json { fields, .. } => fields.len(),
            Body::Encoded { span, .. } => (span.end - span.start) as usize / 8,
            Body::Changed(_) => 0,
        }
    }

    /// A field's value; `()` where there is none.
    pub(in crate::script) fn get(&self, name: &str) -> Result<Dynamic, Failure> {
        match &self.body {
            Body::Json { text, fields, .. } => {
                let found = fields.iter().rev().find(|field| is_name(field.name.of(text), name));
                if let Some(field) = found {
                    return json_value(text, field.value);
                }
            }
            Body::Encoded { bytes, span } => {
                let object = slice(bytes, *span);
                if let Some(value) = encoding::field(object, name) {
                    return encoded_value(bytes, within(bytes, value));
                }
            }
            Body::Changed(map) => {
                if let Some(value) = map.get(name) {
                    return Ok(value.clone());
                }
            }
        }
        match (&self.about, name) {
            (Some(about), METADATA) => about.metadata_object(),
            _ => Ok(Dynamic::UNIT),
        }
    }

    /// Sets a field, in this copy.
    pub(in crate::script) fn set(&mut self, name: &str, value: Dynamic) -> Result<(), Failure> {
        self.change()?.insert(name.into(), value);
        Ok(())
    }

    /// The fields as a map of the script's own.
    pub(in crate::script) fn change(&mut self) -> Result<&mut Map, Failure> {
        if !matches!(self.body, Body::Changed(_)) {
            self.body = Body::Changed(self.to_map()?);
        }
        match &mut self.body {
            Body::Changed(map) => Ok(map),
            _ => Err(super::super::problem::failure("the object could not be changed")),
        }
    }

    /// The fields as a map; nested arrays and objects stay undecoded.
    pub(in crate::script) fn to_map(&self) -> Result<Map, Failure> {
        match &self.body {
            Body::Json { text, fields, .. } => fields
                .iter()
                .filter_map(|field| Some((json::unescape(field.name.of(text))?, field.value)))
                .map(|(name, value)| Ok((name.as_ref().into(), json_value(text, value)?)))
                .collect(),
            Body::Encoded { bytes, span } => match Reader::new(slice(bytes, *span)).item() {
                Some(Item::Object(fields)) => {
                    fields.map(|(name, value)| Ok((name.into(), encoded_value(bytes, within(bytes, value))?))).collect()
                }
                _ => Ok(Map::new()),
            },
            Body::Changed(map) => Ok(map.clone()),
        }
    }

    /// The names of the fields, in code-point order, each once.
    pub(in crate::script) fn names(&self) -> BTreeSet<Cow<'_, str>> {
        match &self.body {
            Body::Json { text, fields, .. } => fields.iter().filter_map(|f| json::unescape(f.name.of(text))).collect(),
            Body::Encoded { bytes, span } => match Reader::new(slice(bytes, *span)).item() {
                Some(Item::Object(fields)) => fields.map(|(name, _)| Cow::Borrowed(name)).collect(),
                _ => BTreeSet::new(),
            },
            Body::Changed(map) => map.keys().map(|name| Cow::Borrowed(name.as_str())).collect(),
        }
    }

    /// The object as a cell, for encoding and aggregates.
    pub(in crate::script) fn cell(&self) -> Cell<'_> {
        match &self.body {
            Body::Json { text, fields, .. } => Cell::Fields { text, fields },
            Body::Encoded { bytes, span } => Cell::Encoded(slice(bytes, *span)),
            Body::Changed(map) => Cell::Map(map),
        }
    }
}

impl About {
    /// `@id`, `@collection` and the user's own metadata.
    fn metadata_object(&self) -> Result<Dynamic, Failure> {
        let end = u32::try_from(self.metadata.len()).unwrap_or(u32::MAX);
        let mut object = match Object::from_json(&self.metadata, Span { start: 0, end }) {
            Some(object) => object,
            None => Object { body: Body::Changed(Map::new()), about: None },
        };
        object.set("@id", self.id.clone().into())?;
        object.set("@collection", self.collection.clone().into())?;
        Ok(Dynamic::from(object))
    }
}

/// Whether a literal with quotes means `name`.
pub(super) fn is_name(literal: &str, name: &str) -> bool {
    let inner = literal.get(1..literal.len().saturating_sub(1)).unwrap_or("");
    inner == name || (inner.contains('\\') && json::unescape(literal).is_some_and(|text| text == name))
}

pub(super) fn slice(bytes: &[u8], span: Span) -> &[u8] {
    bytes.get(span.start as usize..span.end as usize).unwrap_or(&[])
}

/// Where a part of `bytes` lies in them.
pub(super) fn within(bytes: &[u8], part: &[u8]) -> Span {
    let start = (part.as_ptr() as usize).saturating_sub(bytes.as_ptr() as usize);
    let at = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span { start: at(start), end: at(start + part.len()) }
}
