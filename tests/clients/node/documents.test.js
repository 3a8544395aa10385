// Sessions, lazy reads, streams, bulk inserts and deletions with the client as it is.

"use strict";
const { assert, load, ravendb, save, User, withStore } = require("./support.js");

withStore("a session saves all of its changes", async store => {
    const session = store.openSession();
    await session.store(new User("a"), "users/1");
    await session.store(new User("b"), "users/2");
    await session.saveChanges();
    const again = store.openSession();
    const user = await again.load("users/1");
    user.name = "changed";
    await again.delete("users/2");
    await again.saveChanges();
    assert.equal((await load(store, "users/1")).name, "changed");
    assert.equal(await load(store, "users/2"), null);
    assert.equal(again.advanced.hasChanges(), false);
});

withStore("loads bring includes along", async store => {
    await save(store, { total: 5, customer: "users/1" }, "orders/1");
    await save(store, new User("a"), "users/1");
    const session = store.openSession();
    const order = await session.include("customer").load("orders/1");
    const user = await session.load(order.customer);
    assert.equal(user.name, "a");
    assert.equal(session.advanced.numberOfRequests, 1);
});

withStore("a lost race is a concurrency exception and saves nothing", async store => {
    await save(store, new User("a"), "users/1");
    const session = store.openSession();
    session.advanced.useOptimisticConcurrency = true;
    const user = await session.load("users/1");
    await save(store, new User("other"), "users/1");
    user.name = "mine";
    await session.store(new User("b"), "users/2");
    await assert.rejects(session.saveChanges(), error => error.name === "ConcurrencyException");
    assert.equal(await load(store, "users/2"), null);
});

withStore("versions, metadata and existence can be asked for", async store => {
    await save(store, new User("a"), "users/1");
    const session = store.openSession();
    const user = await session.load("users/1");
    assert.match(session.advanced.getChangeVectorFor(user), /^A:\d+-/);
    assert.equal(session.advanced.getMetadataFor(user)["@collection"], "Users");
    assert.equal(await session.advanced.exists("users/1"), true);
    assert.equal(await session.advanced.exists("users/9"), false);
    session.advanced.evict(user);
    const before = session.advanced.getChangeVectorFor(await session.load("users/1"));
    const conditional = await store.openSession().advanced.conditionalLoad("users/1", before, User);
    assert.equal(conditional.entity, null);
});

withStore("lazy reads are one request", async store => {
    await save(store, new User("a"), "users/1");
    await save(store, new User("b"), "users/2");
    const session = store.openSession();
    const one = session.advanced.lazily.load("users/1");
    const two = session.advanced.lazily.load(["users/2", "users/9"]);
    await session.advanced.eagerly.executeAllPendingLazyOperations();
    assert.equal((await one.getValue()).name, "a");
    assert.equal((await two.getValue())["users/2"].name, "b");
    assert.equal(session.advanced.numberOfRequests, 1);
});

withStore("documents are loaded and streamed by prefix", async store => {
    const insert = store.bulkInsert();
    for (let n = 0; n < 300; n++) await insert.store(new User(`${n}`), `users/${String(n).padStart(4, "0")}`);
    await insert.finish();
    const session = store.openSession();
    const page = await session.advanced.loadStartingWith("users/", { start: 10, pageSize: 5, matches: "00*" });
    assert.deepEqual(page.map(user => user.name), ["10", "11", "12", "13", "14"]);
    const stream = await session.advanced.stream("users/", { pageSize: 1000 });
    let count = 0;
    for await (const item of stream) {
        assert.match(item.id, /^users\/\d{4}$/);
        count++;
    }
    assert.equal(count, 300);
});

for (const useCompression of [false, true]) {
    withStore(`a bulk insert ${useCompression ? "packed with gzip" : "as it is"} stores all its documents`, async store => {
        const insert = store.bulkInsert({ useCompression });
        for (let n = 0; n < 3000; n++) await insert.store(new User(`${n}`));
        await insert.store(new User("s"), "things/");
        await insert.finish();
        const statistics = await store.maintenance.send(new ravendb.GetCollectionStatisticsOperation());
        assert.equal(statistics.collections.Users, 3001);
        assert.equal((await load(store, "users/3000-A")).name, "2999");
    });
}

withStore("a bulk insert can be aborted", async store => {
    const insert = store.bulkInsert();
    await insert.store(new User("a"), "users/1");
    await insert.abort();
    await assert.rejects(insert.finish(), error => error.name === "BulkInsertAbortedException");
    assert.equal(await load(store, "users/1"), null);
});

withStore("a collection is deleted by its query", async store => {
    await save(store, new User("a"), "users/1");
    await save(store, { n: 1 }, "others/1");
    const operation = await store.operations.send(new ravendb.DeleteByQueryOperation("from 'Users'"));
    await operation.waitForCompletion();
    assert.equal(await load(store, "users/1"), null);
    assert.notEqual(await load(store, "others/1"), null);
});

withStore("a script patch says that it is not supported", async store => {
    await save(store, new User("a"), "users/1");
    const patch = new ravendb.PatchRequest();
    patch.script = "this.name = 'b'";
    const operation = new ravendb.PatchOperation("users/1", null, patch);
    await assert.rejects(store.operations.send(operation), /does not support patches/);
});
