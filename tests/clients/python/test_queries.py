"""Queries with the client as it is: session.query, raw_query, lazy and streaming queries, deleting by query."""

from datetime import timedelta

from ravendb import IndexDefinition, PutIndexesOperation
from ravendb.documents.operations.misc import DeleteByQueryOperation
from ravendb.documents.queries.index_query import IndexQuery
from ravendb.documents.session.misc import OrderingType

from support import Order, StoreTest, User

MAP = """
source("Orders");
output("Sales");
fn map(order) { emit(#{ customer: order.customer }, #{ count: 1, total: order.total }); }
"""
REDUCE = 'fn reduce(key, values) { #{ count: values.sum("count"), total: values.sum("total") } }'


class Sale:
    def __init__(self, customer=None, count=None, total=None):
        self.customer, self.count, self.total = customer, count, total


class Queries(StoreTest):
    def setUp(self):
        super().setUp()
        with self.store.open_session() as session:
            session.store(Order(10.5, "users/1"), "orders/1")
            session.store(Order(20, "users/2"), "orders/2")
            session.store(Order(30, "users/1"), "orders/3")
            session.store(User("One", 7), "users/1")
            session.save_changes()

    def ask(self, shape):
        with self.store.open_session() as session:
            orders = list(shape(session.query(object_type=Order)))
            return sorted(session.advanced.get_document_id(order) for order in orders)

    def test_a_session_asks_by_conditions(self):
        self.assertEqual(self.ask(lambda q: q), ["orders/1", "orders/2", "orders/3"])
        self.assertEqual(self.ask(lambda q: q.where_equals("customer", "users/1")), ["orders/1", "orders/3"])
        self.assertEqual(self.ask(lambda q: q.where_not_equals("customer", "users/1")), ["orders/2"])
        self.assertEqual(self.ask(lambda q: q.where_greater_than("total", 10.5)), ["orders/2", "orders/3"])
        self.assertEqual(self.ask(lambda q: q.where_between("total", 10, 20)), ["orders/1", "orders/2"])
        self.assertEqual(self.ask(lambda q: q.where_in("customer", ["users/2", "users/9"])), ["orders/2"])
        self.assertEqual(self.ask(lambda q: q.where_starts_with("customer", "users/2")), ["orders/2"])
        self.assertEqual(self.ask(lambda q: q.where_ends_with("customer", "/2")), ["orders/2"])
        self.assertEqual(self.ask(lambda q: q.where_exists("nothing")), [])
        self.assertEqual(
            self.ask(lambda q: q.where_equals("total", 20).or_else().where_equals("total", 30)),
            ["orders/2", "orders/3"],
        )

    def test_rows_come_in_order_and_in_pages_and_are_counted(self):
        with self.store.open_session() as session:
            query = session.query(object_type=Order).order_by_descending("total", OrderingType.FLOAT)
            self.assertEqual([order.total for order in query], [30, 20, 10.5])
            page = session.query(object_type=Order).order_by("total", OrderingType.FLOAT).skip(1).take(1)
            self.assertEqual([order.total for order in page], [20])
            self.assertEqual(session.query(object_type=Order).where_equals("customer", "users/1").count(), 2)
            self.assertEqual(session.query(object_type=Order).where_equals("total", 99).count(), 0)
            self.assertEqual(session.query(object_type=Order).order_by("total").first().total, 10.5)
            self.assertEqual(session.query(object_type=Order).where_equals("total", 20).single().total, 20)

    def test_includes_come_along_and_what_is_loaded_is_tracked(self):
        with self.store.open_session() as session:
            order = session.query(object_type=Order).where_equals("total", 10.5).include("customer").first()
            self.assertEqual(session.load(order.customer, User).name, "One")
            self.assertEqual(session.advanced.number_of_requests, 1)
            order.total = 11
            session.save_changes()
        self.assertEqual(self.load("orders/1", Order).total, 11)

    def test_a_raw_query_is_asked_as_it_is_written(self):
        with self.store.open_session() as session:
            query = session.advanced.raw_query("from Orders where total > $min order by total desc", Order)
            self.assertEqual([order.total for order in query.add_parameter("min", 10.5)], [30, 20])
            text = "from Orders group by customer order by customer select customer, count() as count, sum(total) as total"
            groups = list(session.advanced.raw_query(text, Sale))
            self.assertEqual([(g.customer, g.count, g.total) for g in groups], [("users/1", 2, 40.5), ("users/2", 1, 20)])
            with self.assertRaises(Exception) as raised:
                list(session.advanced.raw_query("from Orders where", Order))
            self.assertIn("1:18", str(raised.exception))

    def test_an_index_is_queried_and_waited_for(self):
        definition = IndexDefinition()
        definition.name, definition.maps, definition.reduce = "Sales/ByCustomer", {MAP}, REDUCE
        self.send(PutIndexesOperation(definition))
        with self.store.open_session() as session:
            query = session.query_index("Sales/ByCustomer", Sale).wait_for_non_stale_results(timedelta(seconds=20))
            found = [(sale.customer, sale.count, sale.total) for sale in query.where_greater_than("count", 1)]
            self.assertEqual(found, [("users/1", 2, 40.5)])
            with self.assertRaises(Exception):
                list(session.query_index("Nope", Sale))

    def test_lazy_queries_are_one_request(self):
        with self.store.open_session() as session:
            one = session.query(object_type=Order).where_equals("total", 20).lazily()
            two = session.query(object_type=Order).where_equals("customer", "users/1").count_lazily()
            session.advanced.eagerly.execute_all_pending_lazy_operations()
            self.assertEqual([order.total for order in one.value], [20])
            self.assertEqual(two.value, 2)
            self.assertEqual(session.advanced.number_of_requests, 1)

    def test_rows_are_streamed(self):
        with self.store.open_session() as session:
            query = session.query(object_type=Order).where_greater_than("total", 10.5)
            stream = session.advanced.stream(query)
            self.assertEqual(sorted(item.document.total for item in stream), [20, 30])

    def test_what_a_query_chooses_is_deleted(self):
        query = IndexQuery("from Orders where total >= 20")
        self.store.operations.send_async(DeleteByQueryOperation(query)).wait_for_completion()
        self.assertEqual(self.ask(lambda q: q), ["orders/1"])
