//! JSON Patch from the client: alone, in a session, and what the session knows after it.

use treepie::client::{ErrorKind, Patch, Patched};

use crate::support::{User, World, user};

async fn stored(world: &World) {
    let mut session = world.store.session();
    session.store_as(user("Ann"), "users/1").await.unwrap();
    session.save_changes().await.unwrap();
}

#[tokio::test]
async fn a_document_is_changed_in_parts_without_loading_it() {
    let world = World::start().await;
    stored(&world).await;
    let patch = Patch::new()
        .test("/name", &"Ann")
        .unwrap()
        .add("/tags", &["a", "b"])
        .unwrap()
        .add(&format!("/{}", Patch::escape("a/b~c")), &1.5)
        .unwrap()
        .relocate("/tags/0", "/first")
        .copy("/first", "/second")
        .replace("/name", &"Bea")
        .unwrap()
        .remove("/tags");
    let Patched::Changed { change_vector } = world.store.patch("users/1", &patch).await.unwrap() else { panic!() };
    let document = world.raw("users/1").await.unwrap();
    assert_eq!(document["@metadata"]["@change-vector"], change_vector);
    assert_eq!((&document["name"], &document["first"], &document["second"]), (&"Bea".into(), &"a".into(), &"a".into()));
    assert_eq!((&document["a/b~c"], document.get("tags")), (&1.5.into(), None));
    let test = Patch::new().test("/name", &"Bea").unwrap();
    assert_eq!(world.store.patch("users/1", &test).await.unwrap(), Patched::Unchanged);
    for (id, patch) in [("users/1", Patch::new().remove("/none")), ("users/none", test)] {
        let error = world.store.patch(id, &patch).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Caller);
        assert!(error.to_string().contains(id), "{error}");
    }
}

#[tokio::test]
async fn patches_of_a_session_are_saved_with_its_changes_and_refresh_its_entities() {
    let world = World::start().await;
    stored(&world).await;
    let mut session = world.store.session();
    let ann = session.load::<User>("users/1").await.unwrap().unwrap();
    session.get_mut(&ann).unwrap().employer = Some("companies/1".into());
    session.patch(&ann, Patch::new().replace("/name", &"Bea").unwrap()).unwrap();
    session.patch(&ann, Patch::new().add("/unknown", &[1]).unwrap()).unwrap();
    assert!(session.has_changes().unwrap());
    let saved = session.save_changes().await.unwrap();
    assert_eq!((saved.stored, saved.patched, saved.deleted), (1, 1, 0));
    let bea = session.get(&ann).unwrap();
    assert_eq!((bea.id.as_str(), bea.name.as_str(), bea.employer.as_deref()), ("users/1", "Bea", Some("companies/1")));
    assert!(!session.has_changes().unwrap());
    let document = world.raw("users/1").await.unwrap();
    assert_eq!(document["unknown"][0], 1);
    assert_eq!(session.change_vector(&ann), document["@metadata"]["@change-vector"].as_str());
    session.get_mut(&ann).unwrap().name = "Cleo".into();
    session.set_optimistic_concurrency(true);
    session.save_changes().await.unwrap();
    assert_eq!(world.raw("users/1").await.unwrap()["unknown"][0], 1);

    session.store_as(user("new"), "users/2").await.unwrap();
    session.patch_by_id("users/1", Patch::new().test("/name", &"Ann").unwrap());
    assert_eq!(session.save_changes().await.unwrap_err().kind(), ErrorKind::Caller);
    assert!(world.raw("users/2").await.is_none(), "all or nothing");
    assert!(session.has_changes().unwrap(), "the session is as before");
}

#[tokio::test]
async fn an_entity_is_loaded_anew() {
    let world = World::start().await;
    stored(&world).await;
    let mut session = world.store.session();
    let ann = session.load::<User>("users/1").await.unwrap().unwrap();
    let before = session.change_vector(&ann).unwrap().to_owned();
    let patch = Patch::new().replace("/name", &"Bea").unwrap();
    world.store.patch("users/1", &patch).await.unwrap();
    session.get_mut(&ann).unwrap().name = "lost".into();
    session.refresh(&ann).await.unwrap();
    assert_eq!(session.get(&ann).unwrap().name, "Bea");
    assert!(!session.has_changes().unwrap() && session.change_vector(&ann) != Some(before.as_str()));
    let mut another = world.store.session();
    another.delete_by_id("users/1").unwrap();
    another.save_changes().await.unwrap();
    assert_eq!(session.refresh(&ann).await.unwrap_err().kind(), ErrorKind::Missing);
}
