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

// This version of the client has no JSON Patch of its own; its request executor sends what a program asks for.
class JsonPatchCommand extends ravendb.RavenCommand {
    constructor(id, operations) {
        super();
        [this.id, this.operations, this._responseType] = [id, operations, "Object"];
    }
    get isReadRequest() { return false; }
    createRequest(node) {
        return {
            method: "PATCH",
            uri: `${node.url}/databases/${node.database}/json-patch?id=${encodeURIComponent(this.id)}`,
            headers: { "Content-Type": "application/json" },
            body: JSON.stringify({ Operations: this.operations }),
        };
    }
    async setResponseAsync(body) {
        for await (const piece of body) this.text = (this.text ?? "") + piece;
        this.result = JSON.parse(this.text);
    }
}

withStore("a document is patched by JSON Patch", async store => {
    await save(store, { total: 5, tags: ["a", "b"] }, "orders/1");
    const patch = async (...operations) => {
        const command = new JsonPatchCommand("orders/1", operations);
        await store.getRequestExecutor().execute(command);
        return command.result;
    };
    const patched = await patch({ op: "test", path: "/total", value: 5 }, { op: "replace", path: "/total", value: 6 },
        { op: "add", path: "/tags/-", value: "c" }, { op: "move", from: "/tags/0", path: "/first" },
        { op: "copy", from: "/first", path: "/again" }, { op: "remove", path: "/again" });
    assert.equal(patched.Status, "Patched");
    const order = await load(store, "orders/1");
    assert.deepEqual([order.total, order.tags, order.first, order.again], [6, ["b", "c"], "a", undefined]);
    assert.equal((await patch({ op: "test", path: "/total", value: 6 })).Status, "NotModified");
    await assert.rejects(patch({ op: "remove", path: "/none" }), error => /there is no 'none'/.test(error.message));
});

withStore("JSON Patches and writes are one batch", async store => {
    await save(store, { total: 5 }, "orders/1");
    const run = async commands => {
        const batch = new ravendb.SingleNodeBatchCommand(store.conventions,
            commands.map(command => ({ id: command.Id, type: command.Type, serialize: () => command })));
        await store.getRequestExecutor().execute(batch);
        return batch.result.results;
    };
    const put = { Type: "PUT", Id: "orders/2", Document: { total: 1 } };
    const patch = value => ({
        Type: "JsonPatch", Id: "orders/1", ChangeVector: null, ReturnDocument: true,
        JsonPatch: { Operations: [{ op: "test", path: "/total", value }, { op: "replace", path: "/total", value: 6 }] },
    });
    await assert.rejects(run([put, patch(7)]), error => /the value there is 5/.test(error.message));
    assert.equal(await load(store, "orders/2"), null);
    const results = await run([put, patch(5)]);
    assert.deepEqual(results.map(result => result.type), ["PUT", "JsonPatch"]);
    assert.equal((await load(store, "orders/1")).total, 6);
});

withStore("a session can rely on what it has read", async store => {
    await save(store, new User("a"), "users/1");
    const session = store.openSession({ optimisticConcurrencyMode: "WritesAndReads" });
    await session.load("users/1");
    await session.store(new User("b"), "users/2");
    await save(store, new User("other"), "users/1");
    await assert.rejects(session.saveChanges(), error => error.name === "ConcurrencyException");
    assert.equal(await load(store, "users/2"), null);
});

withStore("a script patch says that it is not supported", async store => {
    await save(store, new User("a"), "users/1");
    const patch = new ravendb.PatchRequest();
    patch.script = "this.name = 'b'";
    const operation = new ravendb.PatchOperation("users/1", null, patch);
    await assert.rejects(store.operations.send(operation), /does not support patches/);
});
