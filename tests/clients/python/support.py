"""A store on a database of its own, which goes when its test ends."""

import os
import unittest

from ravendb import DocumentStore
from ravendb.serverwide.database_record import DatabaseRecord
from ravendb.serverwide.operations.common import CreateDatabaseOperation

URL = os.environ["TREEPIE_URL"]


class User:
    def __init__(self, name=None, age=None, Id=None):
        self.name = name
        self.age = age
        if Id is not None:
            self.Id = Id


class Order:
    def __init__(self, total=None, customer=None):
        self.total = total
        self.customer = customer


class StoreTest(unittest.TestCase):
    """Gives each test an open store, `self.store`."""

    databases = 0
    settings = {}
    separator = None

    def setUp(self):
        StoreTest.databases += 1
        self.database = f"py{os.getpid()}-{StoreTest.databases}"
        record = DatabaseRecord(self.database)
        record.settings = dict(self.settings)
        manager = self.open()
        manager.maintenance.server.send(CreateDatabaseOperation(record))
        manager.close()
        self.store = self.open()
        self.addCleanup(self.store.close)

    def open(self):
        store = DocumentStore(URL, self.database)
        if self.separator:
            store.conventions.identity_parts_separator = self.separator
        store.initialize()
        return store

    def save(self, entity, *id, store=None):
        """Saves one entity and returns the id that it has then."""
        with (store or self.store).open_session() as session:
            session.store(entity, *id)
            session.save_changes()
            return session.advanced.get_document_id(entity)

    def load(self, id, kind=User):
        with self.store.open_session() as session:
            return session.load(id, kind)

    def send(self, operation):
        return self.store.maintenance.send(operation)
