//! Random operations, and writers side by side, against a plain model that knows no RocksDB.

use std::collections::BTreeMap;

use proptest::prelude::*;
use treepie::store::changes::{ChangeKind, Feed};
use treepie::store::commit::{Commit, Operation, OperationResult};
use treepie::store::scan::Direction;
use treepie::store::snapshot::IdRange;

use crate::world::{World, delete, meta, put, unsynced};

/// What the store should hold.
#[derive(Debug, Default)]
struct Model {
    last_etag: u64,
    /// By lower-cased id: etag, id as written, collection, body.
    documents: BTreeMap<String, (u64, String, String, String)>,
    /// By (collection, lower-cased id): etag, id as written.
    tombstones: BTreeMap<(String, String), (u64, String)>,
    /// By collection: the newest tombstone that was removed.
    purged: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
enum Action {
    Put { id: String, collection: String, body: String },
    Delete { id: String },
}

impl Action {
    fn operation(&self) -> Operation {
        match self {
            Action::Put { id, collection, body } => put(id, collection, body),
            Action::Delete { id } => delete(id),
        }
    }
}

impl Model {
    fn apply(&mut self, action: &Action) {
        let (Action::Put { id, .. } | Action::Delete { id }) = action;
        let lower = id.to_ascii_lowercase();
        let former = self.documents.remove(&lower);
        let into = if let Action::Put { collection, .. } = action { Some(collection) } else { None };
        if let Some((_, written, collection, _)) = former
            && Some(&collection) != into
        {
            self.last_etag += 1;
            self.tombstones.insert((collection, lower.clone()), (self.last_etag, written));
        }
        if let Action::Put { id, collection, body } = action {
            self.last_etag += 1;
            self.tombstones.remove(&(collection.clone(), lower.clone()));
            self.documents.insert(lower, (self.last_etag, id.clone(), collection.clone(), body.clone()));
        }
    }

    /// Removes the tombstones of a collection through an etag; returns how many there were.
    fn purge(&mut self, collection: &str, through: u64) -> u64 {
        let gone = |of: &str, etag: u64| of == collection && etag <= through;
        let etags: Vec<u64> =
            self.tombstones.iter().filter(|((of, _), (etag, _))| gone(of, *etag)).map(|(_, (etag, _))| *etag).collect();
        self.tombstones.retain(|(of, _), (etag, _)| !gone(of, *etag));
        if let Some(newest) = etags.iter().max() {
            self.purged.insert(collection.to_owned(), *newest);
        }
        etags.len() as u64
    }

    fn feed(&self) -> Vec<(u64, ChangeKind, String, String)> {
        let puts = self
            .documents
            .values()
            .map(|(etag, id, collection, _)| (*etag, ChangeKind::Put, id.clone(), collection.clone()));
        let deletes = self
            .tombstones
            .iter()
            .map(|((collection, _), (etag, id))| (*etag, ChangeKind::Delete, id.clone(), collection.clone()));
        let mut feed = puts.chain(deletes).collect::<Vec<_>>();
        feed.sort_by_key(|(etag, ..)| *etag);
        feed
    }
}

fn action() -> impl Strategy<Value = Action> {
    let id = "[abAB]/[12]";
    prop_oneof![
        3 => (id, "(Users|Orders|Third)", 0..3).prop_map(|(id, collection, value)| {
            Action::Put { id, collection, body: format!("{{\"v\":{value}}}") }
        }),
        1 => id.prop_map(|id| Action::Delete { id }),
    ]
}

#[derive(Clone, Debug)]
enum Move {
    Batch(Vec<Action>, bool),
    /// Of a collection, through this share of all etags, in percent.
    Purge(String, u64),
    Reopen,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let batch = (prop::collection::vec(action(), 1..6), any::<bool>());
    let one = prop_oneof![
        20 => batch.prop_map(|(actions, unsynced)| Move::Batch(actions, unsynced)),
        1 => Just(Move::Reopen),
        4 => ("(Users|Orders|Third|Never)", 0..=100_u64).prop_map(|(of, percent)| Move::Purge(of, percent)),
    ];
    prop::collection::vec(one, 1..30)
}

fn assert_equal(world: &World, model: &Model) {
    assert_eq!(world.feed(), model.feed());
    let snapshot = world.store.snapshot();
    let documents = snapshot.documents(&IdRange::default()).map(|document| {
        let document = document.unwrap();
        (document.etag, document.id, document.collection, document.body)
    });
    assert_eq!(documents.collect::<Vec<_>>(), model.documents.values().cloned().collect::<Vec<_>>());
    let mut backwards = snapshot
        .documents(&IdRange { direction: Direction::Backward, ..IdRange::default() })
        .map(|document| document.unwrap().id)
        .collect::<Vec<_>>();
    backwards.reverse();
    assert_eq!(backwards, model.documents.values().map(|(_, id, ..)| id.clone()).collect::<Vec<_>>());
    for collection in ["Users", "Orders", "Third"] {
        let feed = model.feed().into_iter().filter(|(.., of)| of == collection).collect::<Vec<_>>();
        assert_eq!(world.feed_of(collection), feed);
        let count = snapshot.collection(collection).unwrap();
        let count = count.map_or((0, 0), |count| (count.documents, count.tombstones));
        let is = |kind| feed.iter().filter(|(_, is, ..)| *is == kind).count() as u64;
        assert_eq!(count, (is(ChangeKind::Put), is(ChangeKind::Delete)));
        let purged = snapshot.purged_through(&Feed::Collection(collection.to_owned())).unwrap();
        assert_eq!(purged, model.purged.get(collection).copied().unwrap_or_default());
    }
    assert_eq!(snapshot.purged_through(&Feed::All).unwrap(), model.purged.values().copied().max().unwrap_or_default());
    let count = snapshot.count().unwrap();
    assert_eq!(
        (count.documents, count.tombstones, count.last_etag),
        (model.documents.len() as u64, model.tombstones.len() as u64, model.last_etag)
    );
    world.assert_sound();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_sequence_of_writes_and_restarts_ends_as_the_model_says(moves in moves()) {
        let (mut world, mut model) = (World::new(), Model::default());
        let mut last = 0;
        for step in moves {
            match step {
                Move::Reopen => world = world.reopened(),
                Move::Purge(collection, percent) => {
                    // Only what is durable goes.
                    let rows = vec![meta("test/sync", b"")];
                    world.store.commit(Commit { rows, ..Commit::default() }).unwrap();
                    let through = model.last_etag * percent / 100;
                    let purged = world.store.purge_tombstones(&collection, 0, through).unwrap();
                    prop_assert_eq!((purged.removed, purged.through), (model.purge(&collection, through), through));
                }
                Move::Batch(actions, without_sync) => {
                    let operations = actions.iter().map(Action::operation).collect();
                    let commit = if without_sync {
                        unsynced(operations)
                    } else {
                        Commit { operations, ..Commit::default() }
                    };
                    let committed = world.store.commit(commit).unwrap();
                    for result in &committed.results {
                        if let OperationResult::Put { etag, .. } | OperationResult::Delete { etag: Some(etag), .. } = result {
                            prop_assert!(*etag > last, "etags rise");
                            last = *etag;
                        }
                    }
                    for action in &actions {
                        model.apply(action);
                    }
                    prop_assert_eq!(committed.last_etag, model.last_etag);
                }
            }
        }
        assert_equal(&world, &model);
        assert_equal(&world.reopened(), &model);
    }
}

#[test]
fn eight_writers_leave_a_whole_feed_and_its_reader_misses_nothing() {
    const WRITERS: usize = 8;
    const WRITES: usize = 150;
    let world = World::new();
    let ids = |writer: usize, number: usize| format!("{}/{}", writer % 4, number % 20);
    let answers = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            // Follows the feed by what is written: every document's last state must be seen.
            let (mut after, mut seen) = (0, BTreeMap::new());
            loop {
                let written = world.store.wait_written_above(after, std::time::Duration::from_secs(60)).written;
                let snapshot = world.store.snapshot();
                for change in snapshot.changes(&treepie::store::changes::Feed::All, after, written, Direction::Forward)
                {
                    let change = change.unwrap();
                    assert!(change.etag > after && change.etag <= written);
                    seen.insert((change.collection.clone(), change.id.clone()), (change.etag, change.kind));
                }
                after = written;
                if snapshot.exists(&crate::world::id("end")).unwrap() && after == snapshot.progress().written {
                    return seen;
                }
            }
        });
        let writers = (0..WRITERS).map(|writer| {
            let world = &world;
            scope.spawn(move || {
                let mut results = Vec::new();
                for number in 0..WRITES {
                    let id = ids(writer, number);
                    let collection = if (writer + number) % 3 == 0 { "A" } else { "B" };
                    let operation = if number % 5 == 4 { delete(&id) } else { put(&id, collection, "{}") };
                    results.extend(world.run(vec![operation]).unwrap().results);
                }
                results
            })
        });
        let writers = writers.collect::<Vec<_>>();
        let answers = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect::<Vec<_>>();
        world.put("end", "A");
        (answers, reader.join().unwrap())
    });
    let (answers, seen) = answers;
    // The answers alone, in etag order, tell what must be there.
    let mut newest = BTreeMap::new();
    for answer in &answers {
        match answer {
            OperationResult::Put { id, etag, collection, .. } => {
                newest.insert(*etag, (id.clone(), Some(collection.clone())));
            }
            OperationResult::Delete { id, etag: Some(etag), .. } => {
                newest.insert(*etag, (id.clone(), None));
            }
            OperationResult::Delete { .. } | OperationResult::Checked { .. } => {}
        }
    }
    let mut live = BTreeMap::new();
    for (etag, (id, collection)) in newest {
        match collection {
            Some(collection) => live.insert(id, (etag, collection)),
            None => live.remove(&id),
        };
    }
    live.remove("end");
    let documents = world.store.snapshot().documents(&IdRange::default()).map(Result::unwrap).collect::<Vec<_>>();
    let documents = documents.into_iter().filter(|document| document.id != "end");
    let stored =
        documents.map(|document| (document.id, (document.etag, document.collection))).collect::<BTreeMap<_, _>>();
    assert_eq!(stored, live);
    for (etag, kind, id, collection) in world.feed() {
        assert_eq!(seen.get(&(collection, id)), Some(&(etag, kind)), "the reader has the newest of each");
    }
    world.assert_sound();
}
