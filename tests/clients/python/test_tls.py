"""The client over TLS, with its certificate."""

import os
import threading
import unittest

from ravendb import DocumentStore
from ravendb.documents.subscriptions.options import SubscriptionWorkerOptions
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import CreateDatabaseOperation

from support import User

URL = os.environ["TREEPIE_URL"]


class TlsTest(unittest.TestCase):
    def open(self, name, certificate=os.environ["TREEPIE_CLIENT_PEM"]):
        store = DocumentStore(URL, name)
        if certificate:
            store.certificate_pem_path = certificate
        store.trust_store_path = os.environ["TREEPIE_CA"]
        store.initialize()
        self.addCleanup(store.close)
        return store

    def test_a_certificate_gets_in_and_does_what_it_may(self):
        store = self.open("tls")
        store.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord("tls")))
        with store.open_session() as session:
            session.store(User("over TLS"))
            session.save_changes()
        with store.open_session() as session:
            self.assertEqual(session.load("users/1-A", User).name, "over TLS")

    def test_a_subscription_is_read_over_tls(self):
        store = self.open("tls-subscribed")
        store.maintenance.server.send(CreateDatabaseOperation(DatabaseRecord("tls-subscribed")))
        with store.open_session() as session:
            session.store(User("subscribed"))
            session.save_changes()
        name = store.subscriptions.create_for_class(User)
        seen, came = [], threading.Event()

        def take(batch):
            seen.extend(item.key for item in batch.items)
            came.set()

        with store.subscriptions.get_subscription_worker(SubscriptionWorkerOptions(name), User) as worker:
            worker.run(take)
            self.assertTrue(came.wait(30))
        self.assertEqual(seen, ["users/1-A"])

    def test_without_a_certificate_nobody_gets_in(self):
        store = self.open("tls", certificate=None)
        with self.assertRaises(Exception) as raised:
            with store.open_session() as session:
                session.load("users/1-A", User)
        self.assertIn("credentials", str(raised.exception))
