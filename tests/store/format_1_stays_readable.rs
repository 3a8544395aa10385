//! A database of format 1, written once and committed with the sources, opens and reads as it was.

use std::path::{Path, PathBuf};

use treepie::store::changes::ChangeKind::{Delete, Put};
use treepie::store::commit::{Author, ClaimChange, Commit, Expected, Operation, PutId};
use treepie::store::document::{Document, DocumentFlags};
use treepie::store::keyspace::Family;
use treepie::store::{Store, StoreSettings};

use crate::world::{World, copy, id, meta};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1")
}

#[test]
fn a_database_of_format_1_is_read() {
    let directory = copy(&fixture());
    let store = Store::open(directory.path(), &StoreSettings::default()).unwrap();
    let world = World { store, directory };
    let document = world.get("USERS/ÄGNES").unwrap();
    assert_eq!(
        (&*document.id, document.etag, &*document.collection, &*document.metadata, &*document.body),
        ("Users/Ägnes", 3, "Users", r#"{"own":[1.0]}"#, r#"{"Price":1.10,"Big":123456789012345678901234567890}"#)
    );
    assert_eq!(document.change_vector, format!("A:3-{}", world.store.incarnation()));
    let artificial = world.get("Out/0123456789abcdef0123456789abcdef").unwrap();
    assert!(artificial.flags.artificial);
    let feed = world.feed();
    let feed = feed.iter().map(|(etag, kind, id, of)| (*etag, *kind, &**id, &**of)).collect::<Vec<_>>();
    assert_eq!(
        feed,
        [
            (3, Put, "Users/Ägnes", "Users"),
            (4, Delete, "users/gone", "Users"),
            (6, Delete, "users/moved", "Users"),
            (7, Put, "users/moved", "People"),
            (8, Put, "Out/0123456789abcdef0123456789abcdef", "Out"),
        ]
    );
    assert_eq!(world.store.snapshot().claim("out").unwrap().unwrap().owner_name, "ix");
    assert_eq!(world.store.list_identities().unwrap(), [("users|".to_owned(), 41)]);
    assert_eq!(world.store.snapshot().row(Family::Meta, b"index/1").unwrap().as_deref(), Some(&b"definition"[..]));
    assert_eq!(world.put("new", "users"), 9);
    world.assert_sound();
}

/// Makes the fixture: part of it in tables, part of it in the log.
#[test]
#[ignore = "replaces the committed fixture; run it only for a new format version, into a new directory"]
fn make_the_fixture() {
    let world = World::new();
    world.put("Users/Ägnes", "Users");
    world.put("users/gone", "Users");
    let json = r#"{"Price":1.10,"@metadata":{"@collection":"Users","own":[1.0]},"Big":123456789012345678901234567890}"#;
    let put = |name: &str, document, artificial| Operation::Put {
        id: PutId::Given(id(name)),
        document,
        flags: DocumentFlags { artificial },
        expected: Expected::Any,
    };
    let document = Document::parse(json.as_bytes()).unwrap().document;
    world.run(vec![put("Users/Ägnes", document, false)]).unwrap();
    world.delete("users/gone");
    let identity = treepie::id::IdentityName::new("users|", &world.store.id_rules()).unwrap();
    world.store.seed_identity(&identity, 40, false).unwrap();
    let world = world.reopened();
    world.store.next_identities(&identity, 0, 1).unwrap();
    world
        .run(vec![crate::world::put("users/moved", "Users", "{}"), crate::world::put("users/moved", "People", "{}")])
        .unwrap();
    let output = Document { collection: "Out".into(), metadata: "{}".into(), body: r#"{"n":1}"#.into() };
    let commit = Commit {
        author: Author::Index(1),
        operations: vec![put("Out/0123456789abcdef0123456789abcdef", output, true)],
        rows: vec![meta("index/1", b"definition")],
        claims: vec![ClaimChange::Take { collection: "Out".into(), owner: 1, owner_name: "ix".into() }],
        ..Commit::default()
    };
    world.store.commit(commit).unwrap();
    let World { store, directory } = world;
    drop(store);
    std::fs::create_dir_all(fixture()).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let (name, path) = (entry.as_ref().unwrap().file_name(), entry.unwrap().path());
        let name = name.to_string_lossy();
        // Neither the options nor RocksDB's own diary are needed to open it.
        if !name.starts_with("OPTIONS") && !name.starts_with("LO") {
            std::fs::copy(path, fixture().join(&*name)).unwrap();
        }
    }
}
