//! Sorting with a script's comparator. The standard sort may panic on a comparator that contradicts itself; this merge
//! sort gives some order then, and the same one everywhere.

use std::cmp::Ordering;

use rhai::{Array, Dynamic, Engine, FnPtr, NativeCallContext};

use super::super::problem::{Failure, failure};
use super::operators::order;

type Result<T> = std::result::Result<T, Failure>;

/// Registers the functions: `sort` and `sort_desc` change the array, `order` and `order_desc` give a sorted copy.
pub(in crate::script) fn register(engine: &mut Engine) {
    for name in ["sort", "sort_by"] {
        engine.register_fn(name, |context: NativeCallContext, array: &mut Array, comparator: FnPtr| {
            let sorted = merge_sort(std::mem::take(array), &mut |a, b| compare(&context, &comparator, a, b))?;
            *array = sorted;
            Ok::<_, Failure>(())
        });
    }
    for name in ["order", "order_by"] {
        engine.register_fn(name, |context: NativeCallContext, array: Array, comparator: FnPtr| {
            merge_sort(array, &mut |a, b| compare(&context, &comparator, a, b))
        });
    }
    for (sort, copy, descending) in [("sort", "order", false), ("sort_desc", "order_desc", true)] {
        let natural = move |a: &Dynamic, b: &Dynamic| {
            let order = order("sort", a, b)?;
            Ok(if descending { order.reverse() } else { order })
        };
        engine.register_fn(sort, move |array: &mut Array| {
            *array = merge_sort(std::mem::take(array), &mut { natural })?;
            Ok::<_, Failure>(())
        });
        engine.register_fn(copy, move |array: Array| merge_sort(array, &mut { natural }));
    }
}

fn compare(context: &NativeCallContext, comparator: &FnPtr, a: &Dynamic, b: &Dynamic) -> Result<Ordering> {
    let answer: Dynamic = comparator.call_within_context(context, (a.clone(), b.clone()))?;
    if let Ok(number) = answer.as_int() {
        return Ok(number.cmp(&0));
    }
    match answer.as_bool() {
        Ok(true) => Ok(Ordering::Less),
        Ok(false) => Ok(Ordering::Greater),
        Err(_) => Err(failure("a comparator returns a whole number (below, equal to or above 0) or true for `before`")),
    }
}

fn merge_sort(mut array: Array, compare: &mut impl FnMut(&Dynamic, &Dynamic) -> Result<Ordering>) -> Result<Array> {
    if array.len() <= 1 {
        return Ok(array);
    }
    let right = array.split_off(array.len() / 2);
    let mut right = merge_sort(right, compare)?.into_iter().peekable();
    let mut left = merge_sort(array, compare)?.into_iter().peekable();
    let mut sorted = Array::with_capacity(left.len() + right.len());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if compare(a, b)?.is_gt() { right.next() } else { left.next() };
        sorted.extend(next);
    }
    sorted.extend(left);
    sorted.extend(right);
    Ok(sorted)
}
