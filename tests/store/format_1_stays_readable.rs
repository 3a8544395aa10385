//! A database of format 1, written once and committed with the sources, opens and reads as it was.

use std::path::{Path, PathBuf};

use treepie::store::changes::ChangeKind::{Delete, Put};
use treepie::store::keyspace::Family;
use treepie::store::{Store, StoreSettings};

use crate::world::{World, copy};

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
            (5, Delete, "users/moved", "Users"),
            (6, Put, "users/moved", "People"),
            (7, Put, "Out/0123456789abcdef0123456789abcdef", "Out"),
        ]
    );
    assert_eq!(world.store.snapshot().claim("out").unwrap().unwrap().owner_name, "ix");
    assert_eq!(world.store.list_identities().unwrap(), [("users|".to_owned(), 41)]);
    assert_eq!(world.store.snapshot().row(Family::Meta, b"index/1").unwrap().as_deref(), Some(&b"definition"[..]));
    assert_eq!(world.put("new", "users"), 8);
    world.assert_sound();
}
