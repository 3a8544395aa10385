"""Subscriptions with the client as it is: store.subscriptions, over RavenDB's TCP protocol."""

import threading
from datetime import timedelta

from ravendb.documents.subscriptions.options import (
    SubscriptionCreationOptions,
    SubscriptionOpeningStrategy,
    SubscriptionUpdateOptions,
    SubscriptionWorkerOptions,
)

from support import StoreTest, User

PATIENCE = 30


class Collected:
    """What a worker was given."""

    def __init__(self, test, name, use=None, **options):
        self.items = []
        self.acknowledged = 0
        self.changed = threading.Condition()
        worker_options = SubscriptionWorkerOptions(name)
        worker_options.time_to_wait_before_connection_retry = timedelta(milliseconds=50)
        for option, value in options.items():
            setattr(worker_options, option, value)
        self.use = use
        self.worker = test.store.subscriptions.get_subscription_worker(worker_options, User)
        self.worker.add_after_acknowledgment(self.acknowledge)
        self.task = self.worker.run(self.take)
        test.addCleanup(self.close)

    def take(self, batch):
        if self.use:
            self.use(batch)
        with self.changed:
            self.items += [(item.key, item.raw_metadata, item) for item in batch.items]
            self.changed.notify_all()

    def acknowledge(self, _):
        with self.changed:
            self.acknowledged += 1
            self.changed.notify_all()

    def until(self, condition):
        with self.changed:
            if not self.changed.wait_for(condition, PATIENCE):
                raise AssertionError(f"did not come: {self.items}")

    def ids(self, count):
        self.until(lambda: len(self.items) >= count)
        return [item[0] for item in self.items]

    def close(self):
        self.worker.close()


class Subscriptions(StoreTest):
    def create(self, query="from Users", **options):
        wanted = SubscriptionCreationOptions(query=query)
        for option, value in options.items():
            setattr(wanted, option, value)
        return self.store.subscriptions.create_for_options(wanted)

    def save_many(self, *names):
        with self.store.open_session() as session:
            for name in names:
                session.store(User(name), f"users/{name}")
            session.save_changes()

    def test_a_worker_is_given_what_is_there_and_what_comes(self):
        self.save_many("a", "b", "c")
        name = self.store.subscriptions.create_for_class(User)
        worker = Collected(self, name, max_docs_per_batch=2)
        self.assertEqual(worker.ids(3), ["users/a", "users/b", "users/c"])
        self.save_many("d")
        self.assertEqual(worker.ids(4)[3], "users/d")
        worker.until(lambda: worker.acknowledged >= 3)
        state = self.store.subscriptions.get_subscription_state(name)
        self.assertTrue(state.change_vector_for_next_batch_starting_point.startswith("A:"))

    def test_what_was_acknowledged_does_not_come_again(self):
        self.save_many("a", "b")
        name = self.create()
        first = Collected(self, name)
        first.ids(2)
        first.until(lambda: first.acknowledged >= 1)
        first.close()
        self.save_many("c")
        second = Collected(self, name, strategy=SubscriptionOpeningStrategy.TAKE_OVER)
        self.assertEqual(second.ids(1), ["users/c"])

    def test_what_a_failing_subscriber_left_comes_again(self):
        self.save_many("a")
        name = self.create()

        def fail(_):
            raise RuntimeError("not yet")

        first = Collected(self, name, use=fail)
        with self.assertRaises(Exception):
            first.task.result(PATIENCE)
        first.close()
        # Not one that waits: the client closes a socket that a thread of its own still polls, and the system keeps the
        # connection open until that thread wakes, which takes up to 30 s.
        second = Collected(self, name, strategy=SubscriptionOpeningStrategy.TAKE_OVER)
        self.assertEqual(second.ids(1), ["users/a"])

    def test_a_second_worker_is_refused_or_takes_over(self):
        name = self.create()
        first = Collected(self, name)
        established = threading.Event()
        first.worker.add_on_established_subscription_connection(established.set)
        self.save_many("a")
        first.ids(1)
        refused = Collected(self, name)
        with self.assertRaisesRegex(Exception, "in use"):
            refused.task.result(PATIENCE)
        taker = Collected(self, name, strategy=SubscriptionOpeningStrategy.TAKE_OVER)
        with self.assertRaises(Exception):
            first.task.result(PATIENCE)
        self.save_many("b")
        taker.until(lambda: "users/b" in [item[0] for item in taker.items])

    def test_deletions_are_delivered_where_they_are_asked_for(self):
        self.save_many("a")
        name = self.create("from Users (Deletes = true)")
        worker = Collected(self, name)
        worker.ids(1)
        worker.until(lambda: worker.acknowledged >= 1)
        with self.store.open_session() as session:
            session.delete("users/a")
            session.save_changes()
        self.assertEqual(worker.ids(2), ["users/a", "users/a"])
        self.assertTrue(worker.items[1][1]["@deleted"])

    def test_subscriptions_are_listed_updated_disabled_dropped_and_deleted(self):
        subscriptions = self.store.subscriptions
        name = self.create(name="mine", change_vector="LastDocument")
        self.assertEqual(name, "mine")
        self.assertEqual([it.subscription_name for it in subscriptions.get_subscriptions(0, 10)], ["mine"])
        update = SubscriptionUpdateOptions()
        update.name, update.query = name, "from Users as u"
        self.assertEqual(subscriptions.update(update), name)
        self.assertEqual(subscriptions.get_subscription_state(name).query, "from Users as u")
        worker = Collected(self, name)
        self.save_many("a")
        worker.ids(1)
        subscriptions.drop_connection(name)
        with self.assertRaises(Exception):
            worker.task.result(PATIENCE)
        subscriptions.disable(name)
        self.assertTrue(subscriptions.get_subscription_state(name).disabled)
        subscriptions.enable(name)
        subscriptions.delete(name)
        self.assertEqual(subscriptions.get_subscriptions(0, 10), [])
