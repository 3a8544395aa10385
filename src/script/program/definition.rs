//! The texts of an index together: who maps what, who reduces, and whether that is an index.

use std::hash::Hasher as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use siphasher::sip128::{Hasher128 as _, SipHasher24};

use super::super::fault::Finding;
use super::super::state::State;
use super::super::{Fault, Limits, PlainKey, Program, Source, SourceCollection, Texts};
use super::rewrite::ROLES;
use super::text::Text;
use crate::id::lower;

/// Map scripts of one index.
const MAPS_MAX: usize = 64;

/// What a thread runs: the compiled texts and who has which role.
pub(in crate::script) struct Compiled {
    pub(in crate::script) maps: Vec<Text>,
    reduce: Option<Text>,
}

impl Compiled {
    /// Compiles all texts.
    pub(in crate::script) fn new(texts: &Texts, state: &Rc<State>) -> Result<Self, Fault> {
        if texts.maps.len() > MAPS_MAX {
            let message = format!("an index has {MAPS_MAX} map scripts at most");
            return Err(Finding::new(message).into_fault("Maps"));
        }
        let alone = texts.maps.len() == 1 && texts.reduce.is_none();
        let label = |i: usize| if alone { "script".to_owned() } else { format!("Maps[{i}]") };
        let maps = texts.maps.iter().enumerate().map(|(i, text)| Text::compile(text, &label(i), state, &ROLES));
        let maps = maps.collect::<Result<_, _>>()?;
        let reduce = texts.reduce.as_ref().map(|text| Text::compile(text, "Reduce", state, &ROLES)).transpose()?;
        Ok(Self { maps, reduce })
    }

    /// The text that holds `reduce` and `finish`.
    pub(in crate::script) fn reducer(&self) -> Option<&Text> {
        self.reduce.as_ref().or_else(|| self.maps.first())
    }
}

impl Program {
    /// Compiles and checks on this thread, which must have the stack for it.
    pub(in crate::script) fn build(texts: Texts, limits: Limits) -> Result<Self, Fault> {
        let state = Rc::new(State::new(limits.clone(), Arc::new(AtomicBool::new(false))));
        let compiled = Compiled::new(&texts, &state)?;
        let sources = sources(&compiled)?;
        let (has_reduce, has_finish) = roles(&compiled)?;
        let output = setting(&compiled, "output", |text| text.settings().output.clone())?;
        let reference = setting(&compiled, "reference", |text| text.settings().reference.clone())?;
        let first = compiled.maps.first().map_or("script", Text::label);
        if output.is_some() && !has_reduce {
            return Err(Finding::new("`output` without `reduce`: only reduced results become documents")
                .hint("add `fn reduce(key, values) { … }`, or remove the output and query the index")
                .into_fault(first));
        }
        if output.is_some() && sources.iter().any(|source| source.collection == SourceCollection::All) {
            return Err(Finding::new("an index over ALL_DOCS can have no output: it would feed on its own results")
                .hint("name the collections: source(\"Orders\")")
                .into_fault(first));
        }
        let reference_collection =
            setting(&compiled, "reference", |text| text.settings().reference_collection.clone())?;
        let (loads, signature) = (loads(&compiled)?, signature(&compiled));
        let (key_names, plain_key) = (key_names(&compiled), plain_key(&compiled, &sources));
        Ok(Self {
            sources,
            output,
            reference,
            reference_collection,
            has_reduce,
            has_finish,
            loads,
            key_names,
            plain_key,
            signature,
            texts,
            limits,
        })
    }
}

/// The names of key fields that all maps agree about.
fn key_names(compiled: &Compiled) -> Option<Vec<String>> {
    let mut shapes = compiled.maps.iter().map(|text| text.shape().key_names.as_ref());
    let first = shapes.next()??;
    shapes.all(|names| names == Some(first)).then(|| first.clone())
}

/// The key of the only map function, where it is the document's own.
fn plain_key(compiled: &Compiled, sources: &[Source]) -> Option<PlainKey> {
    let [source] = sources else { return None };
    compiled.maps.get(source.text)?.shape().plain_keys.get(&source.function).cloned()
}

/// The collections that the maps load from, each once.
fn loads(compiled: &Compiled) -> Result<Vec<String>, Fault> {
    if let Some(text) = compiled.reduce.as_ref().filter(|text| !text.loads().is_empty()) {
        return Err(Finding::new("load works in map functions only")
            .hint("put what `reduce` needs into the value that map emits")
            .into_fault(text.label()));
    }
    let mut names: Vec<String> = Vec::new();
    for name in compiled.maps.iter().flat_map(Text::loads) {
        if !names.iter().any(|known| lower(known) == lower(name)) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

fn sources(compiled: &Compiled) -> Result<Vec<Source>, Fault> {
    let mut sources = Vec::new();
    for (index, text) in compiled.maps.iter().enumerate() {
        let settings = text.settings();
        if settings.sources.is_empty() {
            return Err(Finding::new("there is no source: the index would map nothing")
                .hint("say which collection it maps: source(\"Orders\");")
                .into_fault(text.label()));
        }
        for (collection, function) in &settings.sources {
            check_function(text, function, &["doc"])?;
            let collection = collection.clone().map_or(SourceCollection::All, SourceCollection::Named);
            sources.push(Source { collection, text: index, function: function.clone() });
        }
    }
    if sources.is_empty() {
        return Err(Finding::new("there is no map script").hint("an index needs at least one").into_fault("Maps"));
    }
    Ok(sources)
}

/// Whether there are `reduce` and `finish`, each in one place and with two parameters.
fn roles(compiled: &Compiled) -> Result<(bool, bool), Fault> {
    let has = |text: &Text, name: &str| !text.parameters(name).is_empty();
    let elsewhere =
        if compiled.reduce.is_some() { compiled.maps.as_slice() } else { compiled.maps.get(1..).unwrap_or(&[]) };
    for text in elsewhere {
        if let Some(name) = ["reduce", "finish"].iter().find(|name| has(text, name)) {
            return Err(Finding::new(format!("{name} is in the wrong script"))
                .hint("with several scripts, Reduce holds `reduce` and `finish`; each of Maps holds its `source` and `map`")
                .into_fault(text.label()));
        }
    }
    if let Some(text) = &compiled.reduce {
        let settings = text.settings();
        if !settings.sources.is_empty() || settings.output.is_some() || settings.reference.is_some() {
            return Err(Finding::new("Reduce holds functions only")
                .hint("put source, output and reference into one of Maps")
                .into_fault(text.label()));
        }
        if !has(text, "reduce") {
            return Err(Finding::new("there is no function reduce")
                .hint("add `fn reduce(key, values) { … }`")
                .into_fault(text.label()));
        }
    }
    let Some(text) = compiled.reducer() else {
        return Ok((false, false));
    };
    let (reduce, finish) = (has(text, "reduce"), has(text, "finish"));
    for (name, present) in [("reduce", reduce), ("finish", finish)] {
        if present {
            check_function(text, name, if name == "reduce" { &["key", "values"] } else { &["key", "value"] })?;
        }
    }
    if finish && !reduce {
        return Err(Finding::new("`finish` without `reduce`: there is no result to finish")
            .hint("shape the value in the map, or add `fn reduce(key, values) { … }`")
            .into_fault(text.label()));
    }
    Ok((reduce, finish))
}

fn check_function(text: &Text, name: &str, parameters: &[&str]) -> Result<(), Fault> {
    let found = text.parameters(name);
    if found == [parameters.len()] {
        return Ok(());
    }
    let shape = format!("fn {name}({}) {{ … }}", parameters.join(", "));
    let finding = match found.as_slice() {
        [] => Finding::new(format!("there is no function {name}")).hint(format!("add `{shape}`")),
        _ => Finding::new(format!("{name} must have {} parameter(s), in one definition", parameters.len()))
            .hint(format!("write `{shape}`")),
    };
    Err(finding.into_fault(text.label()))
}

/// A setting that at most one text makes.
fn setting(compiled: &Compiled, name: &str, get: impl Fn(&Text) -> Option<String>) -> Result<Option<String>, Fault> {
    let mut found = compiled.maps.iter().filter_map(|text| get(text).map(|value| (text, value)));
    let first = found.next();
    match found.next() {
        Some((text, _)) => {
            Err(Finding::new(format!("{name} is called in two scripts; an index has one")).into_fault(text.label()))
        }
        None => Ok(first.map(|(_, value)| value)),
    }
}

fn signature(compiled: &Compiled) -> [u8; 16] {
    let mut hasher = SipHasher24::new();
    for text in &compiled.maps {
        hasher.write_u8(b'm');
        hasher.write(&text.signature());
    }
    if let Some(text) = &compiled.reduce {
        hasher.write_u8(b'r');
        hasher.write(&text.signature());
    }
    hasher.finish128().as_bytes()
}
