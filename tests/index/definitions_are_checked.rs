//! Which definitions are accepted, what a change or a delete of one does, and who may write into an output collection.

use treepie::database::{DatabaseError, Write};
use treepie::store::commit::Expected;

use crate::models::sum_by_k;
use crate::world::{World, definition, delete, put};

fn two_documents() -> Vec<Write> {
    vec![put("Orders", "orders/1", r#"{"k":1,"v":5}"#), put("Orders", "orders/2", r#"{"k":2,"v":7}"#)]
}

fn refusal(world: &World, name: &str, script: &str) -> String {
    let before = world.database().indexes();
    let error = world.try_index(name, script).unwrap_err();
    assert_eq!(world.database().indexes(), before, "nothing half-created");
    assert_eq!(error.kind(), treepie::store::ErrorKind::Caller, "{error}");
    error.to_string()
}

#[track_caller]
fn assert_names(message: &str, words: &[&str]) {
    for word in words {
        assert!(message.contains(word), "'{word}' is missing in: {message}");
    }
}

#[test]
fn an_index_over_its_own_output_is_refused() {
    let world = World::new();
    let message = refusal(&world, "Circle", &sum_by_k("Alphas", "Alphas"));
    assert_names(&message, &["Circle", "Alphas"]);
    let message = refusal(&world, "Circle", &sum_by_k("Alphas", "ALPHAS"));
    assert_names(&message, &["Circle"]);
}

#[test]
fn a_definition_that_closes_a_loop_is_refused_with_the_whole_path() {
    let world = World::new();
    world.index("First", &sum_by_k("Alphas", "Betas"));
    world.index("Second", &sum_by_k("Betas", "Gammas"));
    let message = refusal(&world, "Third", &sum_by_k("Gammas", "Alphas"));
    assert_names(&message, &["Third", "First", "Second", "Alphas", "Betas", "Gammas"]);
    let message = refusal(&world, "First", &sum_by_k("Gammas", "Betas"));
    assert_names(&message, &["First", "Second", "Betas", "Gammas"]);
    world.put("Alphas", "a", r#"{"k":1,"v":5}"#);
    world.sync();
    assert_eq!(world.bodies("Betas"), [r#"{"Key":1,"n":1,"v":5}"#], "the earlier ones work on");
    assert_eq!(world.bodies("Gammas").len(), 1);
}

#[test]
fn an_output_collection_that_another_index_owns_is_refused() {
    let world = World::new();
    world.index("First", &sum_by_k("Alphas", "Out"));
    let message = refusal(&world, "Second", &sum_by_k("Betas", "OUT"));
    assert_names(&message, &["Second", "First"]);
    assert!(world.database().delete_index("First").unwrap());
    world.index("Second", &sum_by_k("Betas", "OUT"));
}

#[test]
fn an_output_collection_that_holds_documents_is_refused_with_their_number() {
    let world = World::new();
    world.put("Out", "Out/1", r#"{"mine":true}"#);
    world.put("Out", "elsewhere", r#"{"mine":true}"#);
    let message = refusal(&world, "Sums", &sum_by_k("Orders", "Out"));
    assert_names(&message, &["Sums", "Out", "2"]);
    assert_eq!(world.get("Out/1").unwrap().body, r#"{"mine":true}"#);
    world.write(vec![delete("Out/1"), delete("elsewhere")]);
    world.index("Sums", &sum_by_k("Orders", "Out"));
}

#[test]
fn users_cannot_write_what_an_index_owns() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.write(two_documents());
    world.sync();
    let outputs = world.documents("Out");
    let id = outputs.keys().next().unwrap().clone();
    let free_id = format!("out/{:032x}", 7);
    let attempts = [
        put("Out", &id, r#"{"forged":1}"#),
        put("Other", &id, r#"{"forged":1}"#),
        put("Other", &id.to_uppercase(), r#"{"forged":1}"#),
        put("OUT", "mine", r#"{"forged":1}"#),
        put("Out", "orders/1", r#"{"forged":1}"#),
        put("Other", &free_id, r#"{"forged":1}"#),
        delete(&id),
    ];
    for attempt in attempts {
        let shown = format!("{attempt:?}");
        let neighbour = put("Orders", "orders/3", r#"{"k":3,"v":1}"#);
        let error = world.database().write(vec![neighbour, attempt]).unwrap_err();
        assert_names(&error.to_string(), &["Sums", "ut"]);
        assert!(world.get("orders/3").is_none(), "all or nothing: {shown}");
    }
    assert_eq!(world.documents("Out"), outputs);
    let version = Expected::ChangeVector(outputs[&id].change_vector.clone());
    world.database().write(vec![Write::Delete { id, expected: version }]).unwrap_err();
}

#[test]
fn the_same_definition_again_changes_nothing() {
    let world = World::new();
    assert!(world.index("Sums", &sum_by_k("Orders", "Out")));
    world.write(two_documents());
    world.sync();
    let (etags, rows) = (world.etags("Out"), world.rows());
    let before = world.database().index_counters("Sums").unwrap();
    assert!(!world.index("Sums", &sum_by_k("Orders", "Out")));
    assert!(!world.index("SUMS", &sum_by_k("Orders", "Out")), "names are compared without regard to case");
    world.index("Sums", &format!("// a comment\n{}", sum_by_k("Orders", "Out").replace("; ", ";\n  ")));
    world.sync();
    assert_eq!(world.etags("Out"), etags);
    assert_eq!(world.rows(), rows);
    assert_eq!(world.database().index_counters("Sums").unwrap().map_calls, before.map_calls);
    assert_eq!(world.database().indexes().len(), 1);
}

#[test]
fn a_changed_definition_rebuilds_and_keeps_the_ids() {
    let mut world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.write(two_documents());
    world.sync();
    let ids: Vec<String> = world.etags("Out").into_keys().collect();
    let changed = sum_by_k("Orders", "Out").replace("v: doc.v }", "v: doc.v * 10 }");
    assert!(world.index("Sums", &changed));
    world.sync();
    let bodies = [r#"{"Key":1,"n":1,"v":50}"#, r#"{"Key":2,"n":1,"v":70}"#];
    assert_eq!(world.bodies("Out"), bodies);
    assert_eq!(world.etags("Out").into_keys().collect::<Vec<_>>(), ids);
    world.reopen();
    world.put("Orders", "orders/3", r#"{"k":1,"v":1}"#);
    world.sync();
    assert_eq!(world.bodies("Out")[0], r#"{"Key":1,"n":2,"v":60}"#);
    assert_eq!(world.database().indexes(), [definition("Sums", &changed)]);
}

#[test]
fn a_changed_output_collection_moves_the_outputs() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out1"));
    world.write(two_documents());
    world.sync();
    world.index("Sums", &sum_by_k("Orders", "Out2"));
    world.sync();
    assert_eq!(world.bodies("Out1"), Vec::<String>::new());
    assert_eq!(world.bodies("Out2"), [r#"{"Key":1,"n":1,"v":5}"#, r#"{"Key":2,"n":1,"v":7}"#]);
    world.put("Out1", "Out1/1", r#"{"free":"again"}"#);
    world.database().write(vec![put("Out2", "Out2/1", "{}")]).unwrap_err();
}

#[test]
fn a_build_anew_gives_the_same_ids_and_bodies() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.write(two_documents());
    world.sync();
    let shown = |world: &World| -> Vec<(String, String)> {
        world.documents("Out").into_iter().map(|(id, document)| (id, document.body)).collect()
    };
    let (before, rows) = (shown(&world), world.rows());
    for _ in 0..2 {
        assert!(world.database().delete_index("Sums").unwrap());
        world.index("Sums", &sum_by_k("Orders", "Out"));
        world.sync();
        assert_eq!(shown(&world), before);
        assert_eq!(world.rows(), rows);
    }
}

#[test]
fn a_deleted_index_takes_its_outputs_along() {
    let mut world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.index("Above", &sum_by_k("Out", "Top"));
    world.write(two_documents());
    world.sync();
    assert_eq!(world.bodies("Out").len(), 2);
    assert_eq!(world.bodies("Top").len(), 1);
    assert!(world.database().delete_index("sums").unwrap());
    assert!(!world.database().delete_index("Sums").unwrap());
    world.sync();
    assert_eq!(world.bodies("Out"), Vec::<String>::new());
    assert_eq!(world.bodies("Top"), Vec::<String>::new(), "the index above saw the deletes");
    world.reopen();
    world.sync();
    assert_eq!(world.database().indexes().len(), 1);
    world.put("Out", "Out/1", r#"{"k":1,"v":1}"#);
    world.sync();
    assert_eq!(world.bodies("Top"), [r#"{"Key":1,"n":1,"v":1}"#], "the collection is free again");
}

#[test]
fn waiting_for_a_new_index_waits_for_its_build_even_where_nothing_was_written() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.sync();
    let status = world.database().index_status().unwrap().remove(0);
    assert!(!status.building && !status.stale, "{status:?}");
}

#[test]
fn a_definition_that_cannot_be_compiled_is_refused_with_its_place() {
    let world = World::new();
    let script =
        "source(\"Orders\");\noutput(\"Out\");\nfn map(doc) { emit(doc.k, ; }\nfn reduce(key, values) { values }";
    let message = refusal(&world, "Broken", script);
    assert_names(&message, &["Broken", ":3:"]);
    let error = world.try_index("Broken", script).unwrap_err();
    assert!(matches!(*error, DatabaseError::Script { fault, .. } if fault.line == Some(3)));
}

#[test]
fn a_database_has_at_most_256_indexes() {
    let world = World::new();
    for number in 0..treepie::index::INDEXES_MAX {
        world.index(&format!("Sums{number}"), &sum_by_k("Orders", &format!("Out{number}")));
    }
    let message = refusal(&world, "OneMore", &sum_by_k("Orders", "Out"));
    assert_names(&message, &["256", "delete one first"]);
    assert!(!world.index("sums7", &sum_by_k("Orders", "Out7")), "those there are can still be put");
    assert!(world.index("sums7", &sum_by_k("Returns", "Out7")));
    world.write(two_documents());
    world.sync();
    assert_eq!(world.bodies("Out255").len(), 2);
}

#[test]
fn names_that_break_a_rule_are_refused() {
    let world = World::new();
    for name in ["", "a\u{0}b", &"x".repeat(257)] {
        refusal(&world, name, &sum_by_k("Orders", "Out"));
    }
    for output in ["", "@mine", "a\\u0001b"] {
        refusal(&world, "Sums", &sum_by_k("Orders", output));
    }
    assert!(world.index(&"x".repeat(256), &sum_by_k("Orders", "Out")));
}

#[test]
fn a_closed_database_changes_no_index() {
    let world = World::new();
    world.index("Sums", &sum_by_k("Orders", "Out"));
    world.database().close().unwrap();
    for changed in [
        world.database().put_index(definition("Sums", &sum_by_k("Orders", "Out2"))).map(drop),
        world.database().put_index(definition("More", &sum_by_k("Orders", "Out3"))).map(drop),
        world.database().delete_index("Sums").map(drop),
    ] {
        assert_names(&changed.unwrap_err().to_string(), &["closed"]);
    }
}
