//! Objects and lists under their own names: fields, indexes, iteration, and what documents know about themselves.

use std::any::TypeId;
use std::collections::BTreeSet;
use std::rc::Rc;

use rhai::{Dynamic, Engine, ImmutableString, Map, Module, NativeCallContext};

use super::super::host::{List, Object};
use super::super::problem::{Failure, Problem, failure, failure_with};
use super::super::state::State;
use super::wrong_type;

type Result<T> = std::result::Result<T, Failure>;

/// Registers types, indexers and iterators. `names` are the properties that the script mentions: each gets a getter of
/// its own, which saves the engine a failing look-up per read.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>, names: &BTreeSet<String>) {
    engine
        .register_type_with_name::<Object>("object")
        .register_type_with_name::<List>("array")
        .register_type_with_name::<Problem>("fault");
    register_fields(engine, state, names);
    register_missing(engine, names);
    register_elements(engine);
    register_about(engine);
    engine.register_get("message", |problem: &mut Problem| problem.message.clone());
}

fn register_fields(engine: &mut Engine, state: &Rc<State>, names: &BTreeSet<String>) {
    for name in names {
        let (s, field) = (Rc::clone(state), name.clone());
        engine.register_get(name, move |object: &mut Object| {
            s.charge_elements(object.width())?;
            s.note_read(object, &field);
            object.get(&field)
        });
    }
    let s = Rc::clone(state);
    engine.register_indexer_get(move |object: &mut Object, name: ImmutableString| {
        s.charge_elements(object.width())?;
        s.note_read(object, &name);
        object.get(&name)
    });
    let s = Rc::clone(state);
    engine.register_indexer_set(move |object: &mut Object, name: ImmutableString, value: Dynamic| {
        s.charge_elements(object.width())?;
        let max = s.limits.map_properties();
        let map = object.change()?;
        if map.len() >= max && !map.contains_key(name.as_str()) {
            return Err(super::collections::too_many(max));
        }
        object.set(&name, value)
    });
    engine.register_indexer_get(|_: &mut Object, index: i64| -> Result<Dynamic> {
        Err(failure_with(
            format!("an object has no element {index}"),
            "fields are read by name: doc.Name or doc[\"Name\"]",
        ))
    });
}

/// A field or element of `()` is `()`, also down a chain.
fn register_missing(engine: &mut Engine, names: &BTreeSet<String>) {
    for name in names {
        engine.register_get(name, |(): &mut ()| ());
    }
    engine.register_indexer_get(|(): &mut (), _: ImmutableString| ());
    engine.register_indexer_get(|(): &mut (), _: i64| ());
    engine.register_indexer_set(|(): &mut (), name: ImmutableString, _: Dynamic| -> Result<()> {
        Err(failure_with(format!("{name} cannot be set on ()"), "the object it belongs to is missing or null"))
    });
    engine.register_fn("len", |(): ()| 0_i64).register_fn("is_empty", |(): ()| true);
    engine.register_fn("contains", |(): (), _: Dynamic| false);
    engine.register_fn("keys", |(): ()| rhai::Array::new()).register_fn("values", |(): ()| rhai::Array::new());
}

fn register_elements(engine: &mut Engine) {
    engine.register_indexer_get(|list: &mut List, index: i64| {
        let length = list.len();
        let position = usize::try_from(index).ok().or_else(|| {
            let back = usize::try_from(index.unsigned_abs()).ok()?;
            length.checked_sub(back)
        });
        position.and_then(|position| list.get(position)).unwrap_or_else(|| {
            let message = format!("there is no element {index} in an array of {length}");
            Err(failure_with(message, "check .len() first, or use first() and last()"))
        })
    });
    engine.register_indexer_get(|_: &mut List, name: ImmutableString| -> Result<Dynamic> {
        Err(failure_with(
            format!("an array has no field {name}"),
            "go through its elements: `for line in order.Lines { … line.Total … }`",
        ))
    });
    engine.register_get("len", |list: &mut List| i64::try_from(list.len()).unwrap_or(i64::MAX));
}

fn register_about(engine: &mut Engine) {
    for (name, is_id) in [("id", true), ("collection", false)] {
        engine.register_raw_fn(
            name,
            [TypeId::of::<Dynamic>()],
            move |_: NativeCallContext, args: &mut [&mut Dynamic]| match args {
                [document] => about(name, is_id, document),
                _ => Err(failure(format!("{name} needs a document"))),
            },
        );
    }
}

fn about(function: &str, is_id: bool, document: &Dynamic) -> Result<ImmutableString> {
    let wanted = format!("a document; in maps that is the function's parameter, as in {function}(doc)");
    if let Some(object) = document.read_lock::<Object>() {
        let about = object.about().ok_or_else(|| wrong_type(function, &wanted, document))?;
        return Ok(if is_id { about.id.clone() } else { about.collection.clone() });
    }
    Err(wrong_type(function, &wanted, document))
}

/// What `for` can go through.
pub(in crate::script) fn register_iterators(module: &mut Module) {
    module.set_iterable::<rhai::Array>();
    module.set_iterator::<std::ops::Range<i64>>();
    module.set_iterator::<std::ops::RangeInclusive<i64>>();
    module.set_iter(TypeId::of::<()>(), |_| Box::new(std::iter::empty()));
    module.set_iter(TypeId::of::<ImmutableString>(), |text| {
        let text = text.into_immutable_string().unwrap_or_default();
        let mut at = 0;
        Box::new(std::iter::from_fn(move || {
            let c = text.get(at..)?.chars().next()?;
            at += c.len_utf8();
            Some(Dynamic::from(ImmutableString::from(c.to_string())))
        }))
    });
    module.set_iter_result(TypeId::of::<List>(), |list| match list.try_cast::<List>() {
        Some(list) => Box::new(list.into_iter()),
        None => Box::new(std::iter::empty()),
    });
    for id in [TypeId::of::<Object>(), TypeId::of::<Map>()] {
        module.set_iter_result(id, |_| {
            Box::new(std::iter::once(Err(failure_with(
                "an object cannot be gone through by `for`",
                "go through its names: `for name in doc.keys() { … doc[name] … }`",
            ))))
        });
    }
}
