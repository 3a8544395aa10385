//! `source(ALL_DOCS)`: every document that is in no `@…` collection, artificial and reference documents included.

use serde_json::{Value, json};
use treepie::database::ResultRange;

use crate::models::{FRIENDS, SUMS};
use crate::world::{World, delete, put};

const COUNTS: &str = r#"
    source(ALL_DOCS);
    fn map(doc) { emit(collection(doc), #{ Documents: 1, Last: id(doc) }); }
    fn reduce(key, values) { #{ Documents: values.sum("Documents"), Last: values.max("Last") } }
"#;

const IDS: &str = "source(ALL_DOCS); fn map(doc) { emit(id(doc), collection(doc)); }";

/// What both indexes must hold: each collection's count, and every document.
fn assert_all(world: &World) {
    world.sync();
    let documents = world.sources();
    let mut collections: Vec<&String> = documents.iter().map(|document| &document.collection).collect();
    collections.sort();
    collections.dedup();
    let expected: Vec<Value> = collections
        .into_iter()
        .map(|name| {
            let ids = documents.iter().filter(|document| document.collection == *name).map(|document| &document.id);
            json!({ "Key": name, "Documents": ids.clone().count(), "Last": ids.max() })
        })
        .collect();
    let counts = world.results("Counts", &ResultRange::all(1_000)).into_iter().map(|(.., body)| body);
    assert_eq!(counts.collect::<Vec<_>>(), expected);
    let mut ids: Vec<(Value, Value)> = documents.iter().map(|it| (json!(it.id), json!(it.collection))).collect();
    ids.sort_by(|a, b| a.0.as_str().cmp(&b.0.as_str()));
    let found = world.results("Ids", &ResultRange::all(1_000)).into_iter().map(|(id, _, collection)| (id, collection));
    assert_eq!(found.collect::<Vec<_>>(), ids);
}

#[test]
fn every_document_is_taken_once_wherever_it_comes_from_and_goes() {
    let mut world = World::new();
    world.index(FRIENDS.name, FRIENDS.script);
    world.index(SUMS.name, SUMS.script);
    let order = |n: usize| json!({ "k": n % 3, "v": n, "friend": format!("returns/{n}") }).to_string();
    world
        .write((0..20).map(|n| put(["Orders", "Returns", "@empty"][n % 3], &format!("docs/{n}"), &order(n))).collect());
    world.index("Counts", COUNTS);
    world.index("Ids", IDS);
    assert_all(&world);
    world.put("@empty", "docs/0", "{}");
    world.put("Orders", "docs/2", &order(2));
    world.put("Elsewhere", "docs/1", "{}");
    world.write(vec![delete("docs/3"), delete("docs/5")]);
    assert_all(&world);
    world.reopen();
    world.database().reset_index("Counts").unwrap();
    world.put("Orders", "docs/5", &order(5));
    assert_all(&world);
    assert!(world.database().delete_index(SUMS.name).unwrap());
    assert_all(&world);
}

#[test]
fn an_index_over_all_documents_can_have_no_output() {
    let world = World::new();
    let message = world.try_index("All", &format!("output(\"Out\"); {COUNTS}")).unwrap_err().to_string();
    assert!(message.contains("ALL_DOCS"), "{message}");
    let mut definition = crate::world::definition("All", COUNTS);
    definition.output = Some("Out".to_owned());
    let message = world.database().put_index(definition).unwrap_err().to_string();
    assert!(message.contains("all documents"), "{message}");
}

#[test]
fn what_it_loads_is_followed_as_well() {
    let world = World::new();
    world.index("Parents", r#"source(ALL_DOCS); fn map(doc) { emit(load(doc.parent, "Parents").name, id(doc)); }"#);
    world.put("Children", "c", r#"{"parent":"p"}"#);
    world.put("Parents", "p", r#"{"name":"Ann","parent":"p"}"#);
    world.sync();
    let names = |world: &World| -> Vec<(Value, Value)> {
        world.results("Parents", &ResultRange::all(9)).into_iter().map(|(name, _, id)| (name, id)).collect()
    };
    assert_eq!(names(&world), [(json!("Ann"), json!("c")), (json!("Ann"), json!("p"))]);
    world.put("Parents", "p", r#"{"name":"Bo"}"#);
    world.sync();
    assert_eq!(names(&world), [(json!(null), json!("p")), (json!("Bo"), json!("c"))]);
}
