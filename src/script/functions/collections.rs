//! Functions of arrays and maps, on the script's own and on host types alike.
//!
//! Rhai's packages hold the functions for arrays and maps. A host list or object takes part by becoming an array or
//! map of the script's own, in place, before the package's function is called.

#![expect(clippy::unnecessary_box_returns, reason = "native functions return boxed errors")]

use std::any::TypeId;
use std::rc::Rc;

use rhai::packages::{BasicArrayPackage, BasicMapPackage, Package};
use rhai::{Array, Dynamic, Engine, ImmutableString, Module, NativeCallContext};

use super::super::host::{Cell, List, Object};
use super::super::problem::{Failure, limit};
use super::super::state::State;
use super::operators::equal;

type Result<T> = std::result::Result<T, Failure>;

/// Functions of arrays that take a list, by name and number of further arguments.
const LIST_FUNCTIONS: &[(&str, usize)] = &[
    ("map", 1),
    ("filter", 1),
    ("reduce", 1),
    ("reduce", 2),
    ("reduce_rev", 1),
    ("reduce_rev", 2),
    ("for_each", 1),
    ("some", 1),
    ("all", 1),
    ("find", 1),
    ("find", 2),
    ("find_map", 1),
    ("find_map", 2),
    ("index_of", 1),
    ("index_of", 2),
    ("zip", 2),
    ("extract", 1),
    ("extract", 2),
    ("split", 1),
    ("push", 1),
    ("append", 1),
    ("insert", 2),
    ("pop", 0),
    ("shift", 0),
    ("remove", 1),
    ("clear", 0),
    ("truncate", 1),
    ("chop", 1),
    ("reverse", 0),
    ("retain", 1),
    ("retain", 2),
    ("drain", 1),
    ("drain", 2),
    ("dedup", 0),
    ("dedup", 1),
    ("set", 2),
    ("pad", 2),
    ("splice", 2),
    ("splice", 3),
    ("sort", 0),
    ("sort", 1),
    ("sort_by", 1),
    ("sort_desc", 0),
    ("order", 0),
    ("order", 1),
    ("order_by", 1),
    ("order_desc", 0),
];

/// Functions of maps that take an object, likewise.
const OBJECT_FUNCTIONS: &[(&str, usize)] = &[
    ("map", 1),
    ("filter", 1),
    ("remove", 1),
    ("clear", 0),
    ("mixin", 1),
    ("fill_with", 1),
    ("values", 0),
    ("drain", 1),
    ("retain", 1),
    ("set", 2),
];

/// All names of functions of arrays and maps, for checking calls.
pub(in crate::script) fn names() -> impl Iterator<Item = &'static str> {
    let own = ["len", "is_empty", "contains", "keys", "get", "to_array", "to_json"];
    LIST_FUNCTIONS.iter().chain(OBJECT_FUNCTIONS).map(|(name, _)| *name).chain(own)
}

/// Registers the functions and iterators.
pub(in crate::script) fn register(engine: &mut Engine, state: &Rc<State>) {
    // One module, not two: every look-up of a function asks each. And a registered one: a package by itself hashes all
    // its functions anew for every look-up that misses it.
    let mut packages = Module::new();
    BasicArrayPackage::init(&mut packages);
    BasicMapPackage::init(&mut packages);
    packages.register_lazy_functions();
    super::document::register_iterators(&mut packages);
    packages.build_index();
    engine.register_global_module(packages.into());
    register_redirected(engine);
    register_questions(engine, state);
    // The package's would write numbers in a form of its own.
    let s = Rc::clone(state);
    engine.register_fn("to_json", move |value: rhai::Map| {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let bounds = super::super::host::convert::Bounds {
            bytes: (s.limits.string_bytes_max, "string_bytes_max"),
            depth: s.limits.depth_max,
        };
        super::super::host::convert::encode(&value.into(), bounds, &mut bytes)
            .map_err(|error| super::emit::refused("value", &error))?;
        super::super::encoding::write_json(&bytes, &mut text);
        s.text(text.len())?;
        Ok::<_, Failure>(text)
    });
}

fn register_redirected(engine: &mut Engine) {
    let any = TypeId::of::<Dynamic>();
    for (name, more) in LIST_FUNCTIONS {
        let mut types = vec![TypeId::of::<List>()];
        types.extend(vec![any; *more]);
        engine.register_raw_fn(*name, types, move |context: NativeCallContext, args: &mut [&mut Dynamic]| {
            own_array(args)?;
            context.call_native_fn_raw(*name, true, args)
        });
    }
    for (name, more) in OBJECT_FUNCTIONS {
        let mut types = vec![TypeId::of::<Object>()];
        types.extend(vec![any; *more]);
        engine.register_raw_fn(*name, types, move |context: NativeCallContext, args: &mut [&mut Dynamic]| {
            on_own_map(args, |args| context.call_native_fn_raw(*name, true, args))
        });
    }
    // An array function with a list as its further argument.
    for name in ["append", "zip", "splice"] {
        let types = [TypeId::of::<Array>(), TypeId::of::<List>()];
        engine.register_raw_fn(name, types, move |context: NativeCallContext, args: &mut [&mut Dynamic]| {
            if let [_, list] = args {
                own(list)?;
            }
            context.call_native_fn_raw(name, true, args)
        });
    }
}

/// Turns host types among the arguments into the script's own.
fn own_array(args: &mut [&mut Dynamic]) -> Result<()> {
    args.iter_mut().try_for_each(|arg| own(arg))
}

fn own(value: &mut Dynamic) -> Result<()> {
    let array = match value.read_lock::<List>() {
        Some(list) => list.to_array()?,
        None => return Ok(()),
    };
    *value = array.into();
    Ok(())
}

/// Calls `function` with the object's fields as a map in its place, and keeps what it changed.
fn on_own_map(
    args: &mut [&mut Dynamic],
    function: impl FnOnce(&mut [&mut Dynamic]) -> Result<Dynamic>,
) -> Result<Dynamic> {
    let Some((first, rest)) = args.split_first_mut() else {
        return Ok(Dynamic::UNIT);
    };
    let mut map: Dynamic = match first.write_lock::<Object>() {
        Some(mut object) => std::mem::take(object.change()?).into(),
        None => return Ok(Dynamic::UNIT),
    };
    for value in rest.iter_mut() {
        let fields = value.read_lock::<Object>().map(|object| object.to_map()).transpose()?;
        if let Some(fields) = fields {
            **value = fields.into();
        }
    }
    let result = {
        let mut own: Vec<&mut Dynamic> =
            std::iter::once(&mut map).chain(rest.iter_mut().map(|arg| &mut **arg)).collect();
        function(&mut own)
    };
    if let (Some(mut object), Some(fields)) = (first.write_lock::<Object>(), map.try_cast::<rhai::Map>()) {
        *object.change()? = fields;
    }
    result
}

fn register_questions(engine: &mut Engine, state: &Rc<State>) {
    engine
        .register_fn("len", |list: List| count(list.len()))
        .register_fn("is_empty", |list: List| list.len() == 0)
        .register_fn("to_array", |list: List| list.to_array())
        .register_fn("len", |object: Object| count(object.names().len()))
        .register_fn("is_empty", |object: Object| object.names().is_empty())
        .register_fn("get", |object: Object, name: ImmutableString| object.get(&name))
        .register_fn("contains", |object: Object, name: ImmutableString| object.names().contains(name.as_str()));
    let s = Rc::clone(state);
    engine.register_fn("keys", move |object: Object| {
        let names = object.names();
        s.charge(names.len())?;
        if names.len() > s.limits.array_elements() {
            return Err(too_long(s.limits.array_elements()));
        }
        Ok::<Array, Failure>(names.iter().map(|name| Dynamic::from(ImmutableString::from(name.as_ref()))).collect())
    });
    let s = Rc::clone(state);
    engine.register_fn("contains", move |list: List, wanted: Dynamic| {
        s.charge(list.len())?;
        for element in list {
            if equal(&s, &element?, &wanted)? {
                return Ok(true);
            }
        }
        Ok::<_, Failure>(false)
    });
    let s = Rc::clone(state);
    engine.register_fn("contains", move |array: Array, wanted: Dynamic| {
        s.charge_elements(array.len())?;
        for element in &array {
            if equal(&s, element, &wanted)? {
                return Ok(true);
            }
        }
        Ok::<_, Failure>(false)
    });
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// An array past its limit.
pub(in crate::script) fn too_long(max: usize) -> Failure {
    limit(
        format!("an array may have {max} elements at most (array_elements_max)"),
        "emit entries instead of collecting them",
    )
}

/// A map past its limit.
pub(in crate::script) fn too_many(max: usize) -> Failure {
    limit(
        format!("a map may have {max} properties at most (map_properties_max)"),
        "emit entries instead of collecting them",
    )
}

/// How many elements and text bytes a container of the script's own holds, names included.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::script) struct Size {
    elements: usize,
    bytes: usize,
}

impl Size {
    fn add(&mut self, value: &Dynamic) {
        if let Some(text) = value.read_lock::<ImmutableString>() {
            self.bytes += text.len();
        } else if let Ok(array) = value.as_array_ref() {
            self.elements += array.len();
            array.iter().for_each(|element| self.add(element));
        } else if let Ok(map) = value.as_map_ref() {
            self.add_map(&map);
        } else if let Some(object) = value.read_lock::<Object>()
            && let Cell::Map(map) = object.cell()
        {
            self.add_map(map);
        }
    }

    fn add_map(&mut self, map: &rhai::Map) {
        self.elements += map.len();
        for (name, value) in map {
            self.bytes += name.len();
            self.add(value);
        }
    }
}

/// Checks a container of the script's own. The engine looks at the part only that an assignment puts into a container,
/// so that it could grow to the square of its limit.
pub(in crate::script) fn check_size(state: &State, container: &Dynamic) -> Result<()> {
    let mut size = Size::default();
    size.add(container);
    state.charge_elements(size.elements)?;
    let max = state.limits.array_elements().max(state.limits.map_properties());
    if size.elements > max {
        return Err(too_long(max));
    }
    let max = state.limits.engine_string_bytes();
    if size.bytes > max {
        return Err(limit(
            format!("an array or map may hold {max} bytes of text at most"),
            "emit entries instead of collecting them",
        ));
    }
    Ok(())
}
