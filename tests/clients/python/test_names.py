"""Every way to name a document, as the documentation of the client shows it."""

from concurrent.futures import ThreadPoolExecutor

from ravendb.documents.operations.configuration.definitions import ClientConfiguration
from ravendb.documents.operations.configuration.operations import (
    GetClientConfigurationOperation,
    GetServerWideClientConfigurationOperation,
    PutClientConfigurationOperation,
    PutServerWideClientConfigurationOperation,
)
from ravendb.documents.operations.identities import (
    GetIdentitiesOperation,
    NextIdentityForOperation,
    SeedIdentityForOperation,
)

from support import StoreTest, User


def with_separator(separator):
    configuration = ClientConfiguration()
    configuration.identity_parts_separator = separator
    return configuration


class Names(StoreTest):
    def test_a_semantic_id_is_kept(self):
        self.assertEqual(self.save(User("John"), "users/john@john.doe"), "users/john@john.doe")
        self.assertEqual(self.load("USERS/JOHN@john.doe").name, "John")

    def test_an_empty_id_gives_a_guid(self):
        pattern = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$"
        self.assertRegex(self.save(User("G", Id="")), pattern)

    def test_a_trailing_slash_gives_a_server_side_id(self):
        self.assertEqual(self.save(User("S"), "users/"), "users/0000000000000000001-A")

    def test_a_trailing_bar_gives_an_identity(self):
        self.assertEqual(self.save(User("I"), "users|"), "users/1")
        self.assertEqual(self.save(User("I"), "users|"), "users/2")

    def test_no_id_gives_a_hilo_id_before_saving(self):
        with self.store.open_session() as session:
            first, second = User("a"), User("b")
            session.store(first)
            session.store(second)
            self.assertEqual([first.Id, second.Id], ["users/1-A", "users/2-A"])
            session.save_changes()
        self.assertEqual(self.load("users/2-A").name, "b")

    def test_what_is_not_used_of_a_hilo_range_is_given_back(self):
        other = self.open()
        self.save(User("a"), store=other)
        self.save(User("b"), store=other)
        other.close()
        self.assertEqual(self.save(User("c")), "users/3-A")

    def test_stores_at_the_same_time_give_each_document_an_id_of_its_own(self):
        def fill(_):
            store = self.open()
            ids = [self.save(User(str(n)), store=store) for n in range(50)]
            store.close()
            return ids

        with ThreadPoolExecutor(4) as pool:
            ids = [id for some in pool.map(fill, range(4)) for id in some]
        self.assertEqual(len(set(ids)), 200)

    def test_the_server_wide_configuration_holds_until_a_database_has_its_own(self):
        configuration = ClientConfiguration()
        configuration.max_number_of_requests_per_session = 7
        server = self.store.maintenance.server
        server.send(PutServerWideClientConfigurationOperation(configuration))
        found = server.send(GetServerWideClientConfigurationOperation())
        self.assertEqual(found.max_number_of_requests_per_session, 7)
        of_database = lambda: self.send(GetClientConfigurationOperation()).configuration
        self.assertEqual(of_database().max_number_of_requests_per_session, 7)
        configuration.max_number_of_requests_per_session = 9
        self.send(PutClientConfigurationOperation(configuration))
        self.assertEqual(of_database().max_number_of_requests_per_session, 9)
        configuration.disabled = True
        server.send(PutServerWideClientConfigurationOperation(configuration))

    def test_identities_are_seeded_one_by_one_many_at_once_and_by_force(self):
        self.assertEqual(self.send(NextIdentityForOperation("users|")), 1)
        self.assertEqual(self.send(SeedIdentityForOperation("users|", 1990)), 1990)
        self.assertEqual(self.send(SeedIdentityForOperation("users|", 5)), 1990)
        self.assertEqual(self.send(SeedIdentityForOperation("users|", 5, True)), 5)
        self.send(SeedIdentityForOperation("companies|", 23))
        identities = self.send(GetIdentitiesOperation())
        self.assertEqual(identities, {"companies|": 23, "users|": 5})
        for name, last in identities.items():
            self.send(SeedIdentityForOperation(name, last + 10))
        self.assertEqual(self.send(GetIdentitiesOperation()), {"companies|": 33, "users|": 15})
        self.assertEqual(self.save(User("c"), "companies|"), "companies/34")

    def test_an_identity_passes_over_documents_that_are_there(self):
        self.save(User("by hand"), "users/1")
        self.assertEqual(self.save(User("i"), "users|"), "users/2")
        self.assertEqual(self.load("users/1").name, "by hand")

    def test_several_ids_of_one_save_come_back_in_order(self):
        with self.store.open_session() as session:
            users = [User(str(n)) for n in range(4)]
            for user, id in zip(users, ["users|", "users/", "users|"]):
                session.store(user, id)
            users[3].Id = ""
            session.store(users[3])
            session.save_changes()
            ids = [session.advanced.get_document_id(user) for user in users]
        self.assertEqual((ids[0], ids[2], len(ids[3])), ("users/1", "users/2", 36))
        self.assertRegex(ids[1], r"^users/\d{19}-A$")


class Separator:
    """The samples of the documentation with one separator; the server's goes before the client's."""

    def test_the_separator_from_the_server_overrides_the_convention(self):
        character = self.character
        self.send(PutClientConfigurationOperation(with_separator(character)))
        other = self.open()
        self.addCleanup(other.close)
        # Any answer says that there is a configuration.
        for _ in range(2):
            with other.open_session() as session:
                session.load("nothing", User)
        self.assertEqual(self.save(User("h"), store=other), f"users{character}1-A")
        self.assertEqual(self.save(User("i"), "Prefix|", store=other), f"Prefix{character}1")
        self.assertEqual(self.save(User("i"), "users|", store=other), f"users{character}1")
        found = self.send(GetClientConfigurationOperation()).configuration
        self.assertEqual(found.identity_parts_separator, character)


class Hash(Separator, StoreTest):
    character = "#"


class Dash(Separator, StoreTest):
    character = "-"


class OwnSeparator(StoreTest):
    separator = "$"

    def test_the_separator_of_the_clients_convention_is_its_own_affair(self):
        self.assertEqual(self.save(User("h")), "users$1-A")
        self.assertEqual(self.save(User("i"), "users|"), "users/1")


class OlderRule(StoreTest):
    settings = {"trailing_slash": "identity"}

    def test_by_the_older_rule_a_trailing_slash_gives_an_identity(self):
        self.save(User("by hand"), "users/1")
        self.assertEqual(self.save(User("i"), "users/"), "users/2")
