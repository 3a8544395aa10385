"""What happens in a database, as the client's changes API tells it."""

import os
import queue
import tempfile

from ravendb import IndexDefinition
from ravendb.documents.operations.indexes import DeleteIndexOperation, PutIndexesOperation

from support import StoreTest, User

PATIENCE = 30


class ChangesTest(StoreTest):
    def setUp(self):
        super().setUp()
        # The client writes a log into the working directory.
        self.addCleanup(os.chdir, os.getcwd())
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        os.chdir(directory.name)
        self.changes = self.store.changes()
        self.addCleanup(self.disconnect)
        self.changes.ensure_connected_now()

    def disconnect(self):
        self.changes.close()
        for handler in list(self.changes._logger.handlers):
            handler.close()
            self.changes._logger.removeHandler(handler)

    def follow(self, observable):
        seen = queue.Queue()
        observable.subscribe(seen.put)
        observable.ensure_subscribe_now()
        return seen

    def delete(self, id):
        with self.store.open_session() as session:
            session.delete(id)
            session.save_changes()

    def test_documents_are_told_of(self):
        every = self.follow(self.changes.for_all_documents())
        one = self.follow(self.changes.for_document("users/1"))
        some = self.follow(self.changes.for_documents_start_with("USERS/"))
        collection = self.follow(self.changes.for_documents_in_collection("Users"))
        self.save(User("a"), "users/1")
        # Two changes of one document can be told as one to a client that is slow.
        told = [every.get(timeout=PATIENCE)]
        self.delete("users/1")
        self.save(User("b"), "others/1")
        told += [every.get(timeout=PATIENCE) for _ in range(2)]
        self.assertEqual([(str(it.type_of_change), it.key) for it in told],
                         [("Put", "users/1"), ("Delete", "users/1"), ("Put", "others/1")])
        self.assertEqual(told[0].collection_name, "Users")
        self.assertTrue(told[0].change_vector.startswith("A:1-"))
        for seen, count in ((one, 2), (some, 2), (collection, 3)):
            for _ in range(count):
                seen.get(timeout=PATIENCE)
            self.assertTrue(seen.empty())

    def test_indexes_are_told_of(self):
        indexes = self.follow(self.changes.for_all_indexes())
        definition = IndexDefinition()
        definition.name = "Names"
        definition.maps = {'source("Users"); fn map(user) { emit(user.name, 1); }'}
        definition.reduce = "fn reduce(key, values) { values.sum() }"
        self.send(PutIndexesOperation(definition))
        added = indexes.get(timeout=PATIENCE)
        self.assertEqual((str(added.type_of_change), added.name), ("IndexAdded", "Names"))
        self.save(User("a"), "users/1")
        self.assertEqual(str(indexes.get(timeout=PATIENCE).type_of_change), "BatchCompleted")
        self.send(DeleteIndexOperation("Names"))
        kinds = []
        while "IndexRemoved" not in kinds:
            kinds.append(str(indexes.get(timeout=PATIENCE).type_of_change))


# Is only the ground of the tests above.
del StoreTest
