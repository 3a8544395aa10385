//! The id stands in a field of the entity, by convention or by closure, and not in the document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use treepie::client::{Conventions, ErrorKind, IdGeneration};
use uuid::Uuid;

use crate::support::World;

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Order {
    #[serde(rename = "Id")]
    id: u64,
    total: u32,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Visit {
    id: Uuid,
    page: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Invoice {
    number: String,
    total: u32,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Category {
    id: Option<String>,
    name: String,
}

#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Thing {
    id: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[tokio::test]
async fn a_number_holds_the_number_of_the_id() {
    let world = World::start().await;
    let mut session = world.store.session();
    let made = session.store(Order { id: 0, total: 3 }).await.unwrap();
    let given = session.store(Order { id: 42, total: 4 }).await.unwrap();
    session.save_changes().await.unwrap();
    assert_eq!((session.document_id(&made), session.get(&made).unwrap().id), (Some("orders/1-A"), 1));
    assert_eq!(session.document_id(&given), Some("orders/42"));
    let stored = world.raw("orders/1-A").await.unwrap();
    assert_eq!((stored["total"].as_u64(), stored.get("Id")), (Some(3), None));

    let mut another = world.store.session();
    let loaded = another.load::<Order>("orders/42").await.unwrap().unwrap();
    assert_eq!(another.get(&loaded).unwrap(), &Order { id: 42, total: 4 });
}

#[tokio::test]
async fn a_number_field_and_an_id_without_a_number_are_refused_together() {
    let world = World::start().await;
    let mut session = world.store.session();
    let error = session.store_as(Order::default(), "orders/first").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Caller);
    assert!(error.to_string().contains("orders/first") && error.to_string().contains("String"), "{error}");
}

#[tokio::test]
async fn a_uuid_field_gets_a_uuid() {
    let world = World::start().await;
    let mut session = world.store.session();
    let made = session.store(Visit { id: Uuid::nil(), page: "/".into() }).await.unwrap();
    let id = session.get(&made).unwrap().id;
    assert!(!id.is_nil());
    assert_eq!(session.document_id(&made), Some(id.to_string().as_str()));
    session.save_changes().await.unwrap();
    let mut another = world.store.session();
    let loaded = another.load::<Visit>(&id.to_string()).await.unwrap().unwrap();
    assert_eq!(another.get(&loaded).unwrap().id, id);
}

#[tokio::test]
async fn an_optional_field_is_filled() {
    let world = World::start().await;
    let mut session = world.store.session();
    let made = session.store(Category { id: None, name: "tea".into() }).await.unwrap();
    assert_eq!(session.get(&made).unwrap().id.as_deref(), Some("categories/1-A"));
    session.save_changes().await.unwrap();
    assert_eq!(world.raw("categories/1-A").await.unwrap()["@metadata"]["@collection"], "Categories");
}

#[tokio::test]
async fn a_closure_can_say_where_the_id_is() {
    let conventions =
        Conventions::new()
            .collection::<Invoice>("Bills")
            .generate::<Invoice>(IdGeneration::Identity)
            .id::<Invoice>(|invoice| Some(invoice.number.clone()), |invoice, id| invoice.number = id.to_owned());
    let world = World::start_with(conventions, |_| {}).await;
    let mut session = world.store.session();
    let made = session.store(Invoice { number: String::new(), total: 1 }).await.unwrap();
    let given = session.store(Invoice { number: "bills/x".into(), total: 2 }).await.unwrap();
    assert_eq!(session.document_id(&made), None);
    session.save_changes().await.unwrap();
    assert_eq!((session.document_id(&made), session.get(&made).unwrap().number.as_str()), (Some("bills/1"), "bills/1"));
    assert_eq!(session.document_id(&given), Some("bills/x"));
    assert!(!session.has_changes().unwrap());
}

#[tokio::test]
async fn a_flattened_rest_keeps_what_is_there() {
    let world = World::start().await;
    let mut session = world.store.session();
    let rest = BTreeMap::from([("colour".to_owned(), json!("red")), ("weight".to_owned(), json!(3))]);
    let made = session.store(Thing { id: String::new(), rest }).await.unwrap();
    assert_eq!(session.get(&made).unwrap().id, "things/1-A");
    session.save_changes().await.unwrap();
    let stored = world.raw("things/1-A").await.unwrap();
    assert_eq!((&stored["colour"], stored.get("id")), (&json!("red"), None));
    let mut another = world.store.session();
    let loaded = another.load::<Thing>("things/1-A").await.unwrap().unwrap();
    let thing = another.get_mut(&loaded).unwrap();
    assert_eq!((thing.id.as_str(), thing.rest.len()), ("things/1-A", 2));
    thing.rest.remove("weight");
    another.save_changes().await.unwrap();
    assert_eq!(world.raw("things/1-A").await.unwrap().get("weight"), None);
}

#[tokio::test]
async fn json_values_are_documents_without_a_collection_of_their_own() {
    let world = World::start().await;
    let mut session = world.store.session();
    let value = json!({ "a": 1, "@metadata": { "@collection": "Things", "owner": "me" } });
    let entity = session.store(value).await.unwrap();
    session.save_changes().await.unwrap();
    let id = session.document_id(&entity).unwrap().to_owned();
    assert_eq!(id.len(), 36);
    let stored = world.raw(&id).await.unwrap();
    assert_eq!((&stored["@metadata"]["@collection"], &stored["@metadata"]["owner"]), (&"Things".into(), &"me".into()));
    let mut another = world.store.session();
    let loaded = another.load::<Value>(&id).await.unwrap().unwrap();
    assert_eq!(another.get(&loaded).unwrap(), &json!({ "a": 1 }));
    assert_eq!(another.metadata::<_, String>(&loaded, "owner").unwrap().as_deref(), Some("me"));
}
