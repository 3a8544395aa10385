"""Sessions, lazy reads, streams, bulk inserts and deletions with the client as it is."""

from ravendb.documents.bulk_insert_operation import BulkInsertOptions
from ravendb.documents.commands.batches import JsonPatchCommandData
from ravendb.documents.operations.json_patch import JsonPatchDocument, JsonPatchOperation
from ravendb.documents.operations.misc import DeleteByQueryOperation
from ravendb.documents.operations.patch import PatchOperation, PatchRequest, PatchStatus
from ravendb.documents.operations.statistics import GetCollectionStatisticsOperation

from support import Order, StoreTest, User


class Documents(StoreTest):
    def test_a_session_saves_all_of_its_changes(self):
        with self.store.open_session() as session:
            session.store(User("a"), "users/1")
            session.store(User("b"), "users/2")
            session.save_changes()
        with self.store.open_session() as session:
            session.load("users/1", User).name = "changed"
            session.delete("users/2")
            session.save_changes()
            self.assertFalse(session.advanced.has_changes())
        self.assertEqual(self.load("users/1").name, "changed")
        self.assertIsNone(self.load("users/2"))

    def test_loads_bring_includes_along(self):
        self.save(Order(5, "users/1"), "orders/1")
        self.save(User("a"), "users/1")
        with self.store.open_session() as session:
            order = session.include("customer").load("orders/1", Order)["orders/1"]
            self.assertEqual(session.load(order.customer, User).name, "a")
            self.assertEqual(session.advanced.number_of_requests, 1)

    def test_a_lost_race_is_an_error_and_saves_nothing(self):
        self.save(User("a"), "users/1")
        with self.store.open_session() as session:
            session.advanced.use_optimistic_concurrency = True
            user = session.load("users/1", User)
            self.save(User("other"), "users/1")
            user.name = "mine"
            session.store(User("b"), "users/2")
            with self.assertRaises(Exception) as raised:
                session.save_changes()
            self.assertIn("change vector", str(raised.exception))
        self.assertIsNone(self.load("users/2"))

    def test_versions_and_metadata_can_be_asked_for(self):
        self.save(User("a"), "users/1")
        with self.store.open_session() as session:
            user = session.load("users/1", User)
            self.assertRegex(session.advanced.get_change_vector_for(user), r"^A:\d+-")
            self.assertEqual(session.advanced.get_metadata_for(user)["@collection"], "Users")
            self.assertTrue(session.advanced.exists("users/1"))
            self.assertFalse(session.advanced.exists("users/9"))

    def test_lazy_reads_are_one_request(self):
        self.save(User("a"), "users/1")
        self.save(User("b"), "users/2")
        with self.store.open_session() as session:
            one = session.advanced.lazily.load("users/1", User)
            two = session.advanced.lazily.load(["users/2"], User)
            session.advanced.eagerly.execute_all_pending_lazy_operations()
            self.assertEqual(one.value.name, "a")
            self.assertEqual(two.value["users/2"].name, "b")
            self.assertEqual(session.advanced.number_of_requests, 1)

    def test_documents_are_loaded_and_streamed_by_prefix(self):
        with self.store.bulk_insert() as insert:
            for n in range(300):
                insert.store_as(User(str(n)), f"users/{n:04}")
        with self.store.open_session() as session:
            page = session.advanced.load_starting_with("users/", User, start=10, page_size=5, matches="00*")
            self.assertEqual([user.name for user in page], ["10", "11", "12", "13", "14"])
            self.assertEqual(sum(1 for _ in session.advanced.stream_starting_with("users/", object_type=User)), 300)

    def test_a_bulk_insert_stores_all_its_documents(self):
        for use_compression in [False, True]:
            with self.subTest(use_compression):
                with self.store.bulk_insert(options=BulkInsertOptions(use_compression=use_compression)) as insert:
                    for n in range(3_000):
                        insert.store_as(User(str(n)), f"users/{n}")
                    insert.store_as(User("s"), "things/")
                statistics = self.send(GetCollectionStatisticsOperation())
                self.assertEqual(statistics.collections["Users"], 3_002 if use_compression else 3_001)

    def test_a_collection_is_deleted_by_its_query(self):
        self.save(User("a"), "users/1")
        self.save(Order(1), "orders/1")
        self.store.operations.send_async(DeleteByQueryOperation("from 'Users'")).wait_for_completion()
        self.assertIsNone(self.load("users/1"))
        self.assertIsNotNone(self.load("orders/1", Order))

    def test_a_document_is_patched_by_json_patch(self):
        self.save(Order(5, "users/1"), "orders/1")
        patch = JsonPatchDocument().test("/total", 5).replace("/total", 6).add("/lines", [1]).add("/lines/-", {"n": 2})
        patch.copy("/customer", "/buyer").move("/lines/0", "/first").remove("/customer")
        result = self.store.operations.send(JsonPatchOperation("orders/1", patch))
        self.assertEqual(result.status, PatchStatus.PATCHED)
        expected = {"total": 6, "lines": [{"n": 2}], "buyer": "users/1", "first": 1}
        self.assertEqual({key: result.modified_document[key] for key in expected}, expected)
        result = self.store.operations.send(JsonPatchOperation("orders/1", JsonPatchDocument().test("/total", 6)))
        self.assertEqual(result.status, PatchStatus.NOT_MODIFIED)
        for wrong in [JsonPatchDocument().test("/total", 7), JsonPatchDocument().remove("/none")]:
            with self.assertRaises(Exception):
                self.store.operations.send(JsonPatchOperation("orders/1", wrong))
        with self.assertRaises(Exception) as raised:
            self.store.operations.send(JsonPatchOperation("orders/none", patch))
        self.assertIn("no such document", str(raised.exception))

    def test_patches_of_a_session_are_json_patches_and_refresh_what_is_loaded(self):
        self.save(User("a", 3), "users/1")
        with self.store.open_session() as session:
            user = session.load("users/1", User)
            before = session.advanced.get_change_vector_for(user)
            session.advanced.patch(user, "name", "patched")
            session.advanced.patch("users/1", "age", 4)
            session.save_changes()
            self.assertEqual((user.name, user.age), ("patched", 4))
            self.assertNotEqual(session.advanced.get_change_vector_for(user), before)
        found = self.load("users/1")
        self.assertEqual((found.name, found.age), ("patched", 4))
        with self.store.open_session() as session:
            session.store(User("b"), "users/2")
            session.advanced.defer(JsonPatchCommandData("users/1", JsonPatchDocument().test("/name", "other")))
            with self.assertRaises(Exception):
                session.save_changes()
        self.assertIsNone(self.load("users/2"))

    def test_a_script_patch_says_that_it_is_not_supported(self):
        self.save(User("a"), "users/1")
        with self.assertRaisesRegex(Exception, "does not support patches"):
            self.store.operations.send(PatchOperation("users/1", None, PatchRequest("this.name = 'b'")))
