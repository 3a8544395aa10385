//! What a build and an update cost, in calls and values read, never in time.
//!
//! With F = 16, an update in a group of n entries reads on average (2F - 1) · log n / log F values, and a build calls `reduce` at
//! most n / (F - 1) + 2 × groups times. Single updates vary with the widths of the nodes on their path.

use treepie::database::Write;
use treepie::index::IndexCounters;

use crate::world::{World, put};

const FANOUT: f64 = 16.0;

/// One group: every document emits as many entries as it says, all under one key.
const ONE_GROUP: &str = r#"
    source("Readings");
    output("Total");
    fn map(reading) {
        for point in 0..reading.points { emit("all", #{ n: 1, v: reading.v }); }
    }
    fn reduce(key, values) { #{ n: values.sum("n"), v: values.sum("v") } }
"#;

fn reading(number: u32, points: u32, v: u32) -> Write {
    put("Readings", &format!("readings/{number:07}"), &format!(r#"{{"points":{points},"v":{v}}}"#))
}

/// Loads `documents` documents of `points` entries each and, after them, as many single ones as a test updates.
fn load(world: &World, documents: u32, points: u32) {
    let numbers: Vec<u32> = (0..documents).collect();
    for chunk in numbers.chunks(1000) {
        world.write(chunk.iter().map(|&number| reading(number, points, 1)).collect());
    }
}

fn counters(world: &World) -> IndexCounters {
    world.database().index_counters("Total").unwrap()
}

/// Builds a group of `entries`, then checks the cost of the build, of updates, and of updates that change nothing.
fn check(documents: u32, points: u32, singles: u32) {
    let entries = u64::from(documents) * u64::from(points) + u64::from(singles);
    let world = World::new();
    load(&world, documents, points);
    for number in 0..singles {
        let spread = documents / singles * number;
        world.put("Readings", &format!("readings/{spread:07}x"), r#"{"points":1,"v":1}"#);
    }
    world.index("Total", ONE_GROUP);
    world.sync();
    assert_eq!(world.bodies("Total"), [format!(r#"{{"Key":"all","n":{entries},"v":{entries}}}"#)]);
    let built = counters(&world);
    assert!(built.reduce_calls <= entries / 15 + 2, "{} calls of reduce for {entries} entries", built.reduce_calls);
    assert_eq!(built.map_calls, u64::from(documents) + u64::from(singles));
    check_updates(&world, entries, singles, documents);
    check_quiet_updates(&world, singles, documents);
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2⁵²")]
fn check_updates(world: &World, entries: u64, singles: u32, documents: u32) {
    let before = counters(world);
    for number in 0..singles {
        let spread = documents / singles * number;
        let last = counters(world);
        world.put("Readings", &format!("readings/{spread:07}x"), r#"{"points":1,"v":2}"#);
        world.sync();
        let now = counters(world);
        let read = now.values_reduced - last.values_reduced;
        assert!(read < 1_000, "one update read {read} values of {entries}");
        assert_eq!(now.outputs_written - last.outputs_written, 1);
    }
    let after = counters(world);
    let updates = f64::from(singles);
    let levels = (entries as f64).ln() / FANOUT.ln();
    let bound = (2.0 * FANOUT - 1.0) * (levels + 1.0);
    let values = (after.values_reduced - before.values_reduced) as f64 / updates;
    assert!(values <= bound, "an update reduced {values} values on average, the bound is {bound}");
    let rows = (after.entries_read + after.nodes_read - before.entries_read - before.nodes_read) as f64 / updates;
    assert!(rows <= 2.0 * bound, "an update read {rows} rows on average, the bound is {}", 2.0 * bound);
    let written = (after.nodes_written - before.nodes_written) as f64 / updates;
    assert!(written <= 2.0 * (levels + 1.0), "an update wrote {written} nodes on average");
    let expected = entries + u64::from(singles);
    assert_eq!(world.bodies("Total"), [format!(r#"{{"Key":"all","n":{entries},"v":{expected}}}"#)]);
}

fn check_quiet_updates(world: &World, singles: u32, documents: u32) {
    let (before, etags) = (counters(world), world.etags("Total"));
    let numbers = (0..singles).map(|number| documents / singles * number);
    let body = r#"{"v":2,"points":1,"note":"nothing that counts"}"#;
    let last =
        world.write(numbers.map(|spread| put("Readings", &format!("readings/{spread:07}x"), body)).collect()).last_etag;
    world.sync();
    let after = counters(world);
    assert_eq!(world.last_etag(), last, "no etag moved");
    assert_eq!(world.etags("Total"), etags);
    assert_eq!(after.reduce_calls, before.reduce_calls);
    assert_eq!(after.nodes_written, before.nodes_written);
    assert_eq!(after.outputs_written, before.outputs_written);
    assert_eq!(after.map_calls, before.map_calls + u64::from(singles));
}

#[test]
fn an_update_in_a_group_of_a_hundred_thousand_reads_a_logarithm_of_it() {
    check(100_000, 1, 50);
}

#[test]
fn an_update_in_a_group_of_a_million_reads_a_logarithm_of_it() {
    check(10_000, 100, 50);
}

#[test]
fn many_small_groups_are_reduced_once_each() {
    let world = World::new();
    let script = ONE_GROUP.replace("emit(\"all\"", "emit(reading.v % 1000");
    for chunk in (0..20_000).collect::<Vec<u32>>().chunks(1000) {
        world.write(chunk.iter().map(|&number| reading(number, 1, number)).collect());
    }
    world.index("Total", &script);
    world.sync();
    let built = counters(&world);
    assert_eq!((built.reduce_calls, built.values_reduced, built.outputs_written), (1000, 20_000, 1000));
    assert_eq!(built.nodes_written, 0, "twenty entries make no tree");
    world.write(vec![reading(5, 1, 5), reading(6, 1, 1006), reading(7, 1, 8)]);
    world.sync();
    let after = counters(&world);
    assert_eq!(after.outputs_written - built.outputs_written, 3, "group 6 has a new value, 7 lost an entry, 8 won one");
    assert!(after.reduce_calls - built.reduce_calls <= 3);
}

#[test]
fn a_batch_of_changes_in_one_group_reduces_each_node_once() {
    let world = World::new();
    load(&world, 5_000, 1);
    world.index("Total", ONE_GROUP);
    world.sync();
    let before = counters(&world);
    world.write((0..5_000).map(|number| reading(number, 1, 2)).collect());
    world.sync();
    let after = counters(&world);
    let runs = after.runs - before.runs;
    let calls = after.reduce_calls - before.reduce_calls;
    assert!(calls <= (5_000 / 15 + 2) + 20 * runs, "{calls} calls of reduce in {runs} runs");
}
