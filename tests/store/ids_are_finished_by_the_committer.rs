//! Server-side ids hold the etag of their own write; where one is taken, a later etag is used.

use treepie::store::commit::OperationResult;

use crate::world::{World, delete, etag, put, put_server_side};

fn written(result: &OperationResult) -> &str {
    match result {
        OperationResult::Put { id, .. } | OperationResult::Delete { id, .. } | OperationResult::Checked { id } => id,
    }
}

#[test]
fn a_server_side_id_is_the_etag_of_its_write() {
    let world = World::new();
    world.put("a", "C");
    let results = world
        .run(vec![put_server_side("Users/", "C"), put("a", "D", "{}"), put_server_side("/", "C"), delete("a")])
        .unwrap()
        .results;
    assert_eq!(written(&results[0]), "Users/0000000000000000002-A");
    assert_eq!(written(&results[2]), "/0000000000000000005-A");
    assert_eq!(results.iter().map(etag).collect::<Vec<_>>(), [2, 4, 5, 6], "the move of 'a' took two");
    assert_eq!(world.get("users/0000000000000000002-a").unwrap().etag, 2);
    world.assert_sound();
}

#[test]
fn a_taken_server_side_id_goes_to_a_later_etag() {
    let world = World::new();
    for number in 5..=30 {
        world.put(&format!("x/{number:019}-A"), "C");
    }
    assert_eq!(world.store.progress().written, 26);
    let results = world.run(vec![put_server_side("x/", "C"), put_server_side("x/", "C"), put("b", "C", "{}")]);
    let results = results.unwrap().results;
    assert_eq!(written(&results[0]), "x/0000000000000000031-A");
    assert_eq!(results.iter().map(etag).collect::<Vec<_>>(), [31, 32, 33]);
    world.assert_sound();
}

#[test]
fn too_long_a_prefix_refuses_the_commit() {
    let world = World::new();
    let error = world.run(vec![put_server_side(&format!("{}/", "x".repeat(500)), "C")]).unwrap_err();
    assert!(error.to_string().contains("512 bytes"), "{error}");
    assert_eq!(world.put("a", "C"), 1);
}
