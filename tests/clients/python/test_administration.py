"""Databases, statistics and indexes with the client as it is."""

from ravendb.documents.indexes.definitions import IndexDefinition, IndexLockMode, IndexPriority
from ravendb.documents.operations.indexes import (
    DeleteIndexErrorsOperation,
    DeleteIndexOperation,
    DisableIndexOperation,
    EnableIndexOperation,
    GetIndexErrorsOperation,
    GetIndexNamesOperation,
    GetIndexOperation,
    GetIndexingStatusOperation,
    IndexHasChangedOperation,
    PutIndexesOperation,
    ResetIndexOperation,
    SetIndexesLockOperation,
    SetIndexesPriorityOperation,
    StartIndexOperation,
    StopIndexOperation,
)
from ravendb.documents.operations.statistics import GetStatisticsOperation
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import (
    CreateDatabaseOperation,
    DeleteDatabaseOperation,
    GetBuildNumberOperation,
    GetDatabaseNamesOperation,
)

from support import URL, StoreTest, User


def definition(**change):
    index = IndexDefinition()
    index.name = "Ages"
    index.maps = {'source("Users"); fn map(user) { emit(#{ age: user.age }, #{ n: 1 }); }'}
    index.reduce = 'fn reduce(key, values) { #{ n: values.sum("n") } }'
    index.output_reduce_to_collection = "AgeCounts"
    for name, value in change.items():
        setattr(index, name, value)
    return index


class Count:
    def __init__(self, age=None, n=None):
        self.age = age
        self.n = n


class Administration(StoreTest):
    def current(self):
        while any(index.stale for index in self.send(GetStatisticsOperation("wait-for-indexing")).indexes):
            pass

    def counts(self):
        with self.store.open_session() as session:
            return {it.age: it.n for it in session.advanced.load_starting_with("AgeCounts/", Count)}

    def test_databases_are_created_listed_and_deleted(self):
        server, name = self.store.maintenance.server, f"{self.database}-more"
        server.send(CreateDatabaseOperation(DatabaseRecord(name)))
        with self.assertRaisesRegex(Exception, "There is a database"):
            server.send(CreateDatabaseOperation(DatabaseRecord(name)))
        self.assertIn(name, server.send(GetDatabaseNamesOperation(0, 1000)))
        self.assertRegex(server.send(GetBuildNumberOperation()).full_version, r"^\d")
        server.send(DeleteDatabaseOperation(name, hard_delete=True))
        self.assertNotIn(name, server.send(GetDatabaseNamesOperation(0, 1000)))

    def test_statistics_count_documents(self):
        self.save(User("a"))
        self.assertEqual(self.send(GetStatisticsOperation()).count_of_documents, 2)

    def test_an_index_in_rhai_writes_artificial_documents(self):
        for age in [30, 30, 41]:
            self.save(User("a", age))
        self.send(PutIndexesOperation(definition()))
        self.current()
        self.assertEqual(self.counts(), {30: 2, 41: 1})
        self.assertEqual(self.send(GetIndexNamesOperation(0, 10)), ["Ages"])
        self.assertEqual(self.send(GetIndexOperation("Ages")).reduce, definition().reduce)
        self.assertFalse(self.send(IndexHasChangedOperation(definition())))
        self.assertTrue(self.send(IndexHasChangedOperation(definition(output_reduce_to_collection="X"))))

    def test_an_index_is_reset_turned_off_and_on_paused_and_deleted_with_its_documents(self):
        self.save(User("a", 30))
        self.send(PutIndexesOperation(definition()))
        self.current()
        self.send(ResetIndexOperation("Ages"))
        self.current()
        self.assertEqual(self.counts(), {30: 1})
        status = lambda: self.send(GetIndexingStatusOperation()).indexes[0].status.value
        self.send(DisableIndexOperation("Ages"))
        self.assertEqual(status(), "Disabled")
        self.send(EnableIndexOperation("Ages"))
        self.send(StopIndexOperation("Ages"))
        self.assertEqual(status(), "Paused")
        self.send(StartIndexOperation("Ages"))
        self.assertEqual(status(), "Running")
        self.send(SetIndexesLockOperation(IndexLockMode.UNLOCK, "Ages"))
        self.send(SetIndexesPriorityOperation(IndexPriority.LOW, "Ages"))
        self.assertEqual(self.send(GetIndexErrorsOperation("Ages"))[0].errors, [])
        self.send(DeleteIndexOperation("Ages"))
        self.assertIsNone(self.send(GetIndexOperation("Ages")))
        self.assertEqual(self.counts(), {})

    def test_an_index_without_reduce_is_of_type_map_and_one_that_loads_follows_what_it_loads(self):
        maps = {'source("Users"); fn map(user) { emit(user.age, user.name); }'}
        self.send(PutIndexesOperation(definition(maps=maps, reduce=None, output_reduce_to_collection=None)))
        maps = {'source("Users"); fn map(user) { emit(#{ age: load("users/2", "Users").age }, #{ n: 1 }); }'}
        pattern = {"pattern_for_output_reduce_to_collection_references": "ages/{age:000}"}
        self.send(PutIndexesOperation(definition(name="Friends", maps=maps, **pattern)))
        for age in [41, 30]:
            with self.store.open_session() as session:
                session.store(User("a", 7), "users/1")
                session.store(User("b", age), "users/2")
                session.save_changes()
            self.current()
            self.assertEqual(self.counts(), {age: 2})
            with self.store.open_session() as session:
                self.assertEqual(len(session.advanced.load_starting_with("ages/", dict)), 1)
        found = self.send(GetIndexOperation("Friends"))
        self.assertEqual(found.pattern_for_output_reduce_to_collection_references, "ages/{age:000}")
        self.assertEqual(found.pattern_references_collection_name, "AgeCounts/References")

    def test_a_changed_definition_is_a_replacement_until_it_takes_over_or_is_cancelled(self):
        names = lambda: [index.name for index in self.send(GetStatisticsOperation()).indexes]
        self.save(User("a", 30))
        self.send(PutIndexesOperation(definition()))
        self.current()
        self.send(StopIndexOperation("Ages"))
        changed = definition(reduce='fn reduce(key, values) { #{ n: values.sum("n") * 2 } }')
        self.send(PutIndexesOperation(changed))
        self.assertEqual(names(), ["Ages", "ReplacementOf/Ages"])
        self.send(DeleteIndexOperation("ReplacementOf/Ages"))
        self.assertEqual(names(), ["Ages"])
        self.send(PutIndexesOperation(changed))
        self.assertEqual(self.counts(), {30: 1})
        self.send(StartIndexOperation("Ages"))
        self.current()
        self.assertEqual((names(), self.counts()), (["Ages"], {30: 2}))

    def test_an_index_is_locked_and_its_errors_are_cleared(self):
        self.save(User("a", "old"))
        strict = definition(maps={'source("Users"); fn map(user) { emit(#{ age: user.age * 1 }, #{ n: 1 }); }'})
        self.send(PutIndexesOperation(strict))
        self.current()
        errors = lambda: self.send(GetIndexErrorsOperation("Ages"))[0].errors
        self.assertEqual(len(errors()), 1)
        self.send(DeleteIndexErrorsOperation(["Ages"]))
        self.assertEqual(errors(), [])
        self.send(SetIndexesLockOperation(IndexLockMode.LOCKED_ERROR, "Ages"))
        with self.assertRaisesRegex(Exception, "lock mode LockedError"):
            self.send(PutIndexesOperation(definition()))
        self.send(SetIndexesLockOperation(IndexLockMode.LOCKED_IGNORE, "Ages"))
        self.send(PutIndexesOperation(definition()))
        self.assertEqual(self.send(GetIndexOperation("Ages")).maps, strict.maps)

    def test_a_script_that_does_not_compile_is_an_exception_with_its_place(self):
        broken = definition(maps={'source("Users"); fn map(user) { emit( }'})
        with self.assertRaisesRegex(Exception, r"Maps\[0\]:1:39"):
            self.send(PutIndexesOperation(broken))

    def test_a_change_waits_for_the_indexes_that_take_it_in(self):
        self.send(PutIndexesOperation(definition()))
        with self.store.open_session() as session:
            session.advanced.wait_for_indexes_after_save_changes()
            session.store(User("a", 5), "users/1")
            session.save_changes()
        self.assertEqual(self.counts(), {5: 1})

    def test_the_url_of_the_topology_is_the_one_that_was_used(self):
        self.save(User("a"))
        self.assertEqual([node.url for node in self.store.get_request_executor().topology_nodes], [URL])
