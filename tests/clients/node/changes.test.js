// What happens in a database, as the client's changes API tells it.

"use strict";
const { assert, load, open, ravendb, save, User, withStore } = require("./support.js");

// Subscribes and waits until that counts; gives back what has come, and a way to wait for so many.
async function follow(observable) {
    const seen = [];
    let woken = () => {};
    const handler = change => { seen.push(change); woken(); };
    observable.on("data", handler);
    await observable.ensureSubscribedNow();
    return {
        seen,
        stop: () => observable.off("data", handler),
        count: async n => { while (seen.length < n) await new Promise(resolve => { woken = resolve; }); return seen; },
    };
}

async function connected(store) {
    const changes = store.changes();
    await changes.ensureConnectedNow();
    return changes;
}

async function remove(store, id) {
    const session = store.openSession();
    await session.delete(id);
    await session.saveChanges();
}

const told = changes => changes.map(change => [change.type, change.id]);

withStore("documents are told of once, each in its order", async store => {
    const changes = await connected(store);
    const all = await follow(changes.forAllDocuments());
    const one = await follow(changes.forDocument("users/1"));
    const some = await follow(changes.forDocumentsStartingWith("USERS/"));
    const collection = await follow(changes.forDocumentsInCollection("Users"));
    await save(store, new User("a"), "users/1");
    await save(store, { n: 1 }, "other/1");
    // Two changes of one document can be told as one to a client that is slow.
    await all.count(2);
    await remove(store, "users/1");
    await save(store, { n: 2 }, "last");
    assert.deepEqual(told(await all.count(4)), [["Put", "users/1"], ["Put", "other/1"], ["Delete", "users/1"], ["Put", "last"]]);
    for (const follower of [one, some, collection]) {
        assert.deepEqual(told(follower.seen), [["Put", "users/1"], ["Delete", "users/1"]]);
    }
    assert.equal(all.seen[0].collectionName, "Users");
    assert.match(all.seen[0].changeVector, /^A:1-/);
});

withStore("a change vector is that of the document", async store => {
    const all = await follow((await connected(store)).forAllDocuments());
    await save(store, new User("a"), "users/1");
    const [change] = await all.count(1);
    const session = store.openSession();
    assert.equal(session.advanced.getChangeVectorFor(await session.load("users/1")), change.changeVector);
});

withStore("what is no longer watched is not told", async store => {
    const changes = await connected(store);
    const users = await follow(changes.forDocumentsInCollection("Users"));
    const all = await follow(changes.forAllDocuments());
    await save(store, new User("a"), "users/1");
    await users.count(1);
    users.stop();
    await save(store, new User("b"), "users/2");
    await all.count(2);
    assert.equal(users.seen.length, 1);
});

withStore("artificial documents are told of when they change, and their index too", async store => {
    const changes = await connected(store);
    const sums = await follow(changes.forDocumentsInCollection("AgeCounts"));
    const index = await follow(changes.forIndex("ages"));
    const all = await follow(changes.forAllIndexes());
    const definition = Object.assign(new ravendb.IndexDefinition(), {
        name: "Ages",
        maps: new Set([`source("Users"); fn map(user) { emit(#{ age: user.age }, #{ n: 1 }); }`]),
        reduce: `fn reduce(key, values) { #{ n: values.sum("n") } }`,
        outputReduceToCollection: "AgeCounts",
    });
    await store.maintenance.send(new ravendb.PutIndexesOperation(definition));
    assert.deepEqual((await index.count(1)).map(it => [it.type, it.name]), [["IndexAdded", "Ages"]]);
    await save(store, Object.assign(new User("a"), { age: 30 }), "users/1");
    await sums.count(1);
    await index.count(2);
    assert.ok(index.seen.slice(1).every(it => it.type === "BatchCompleted"), JSON.stringify(index.seen));
    const before = index.seen.length;
    // Its total changes once more.
    await save(store, Object.assign(new User("b"), { age: 30 }), "users/2");
    await sums.count(2);
    await index.count(before + 1);
    assert.equal((await load(store, sums.seen[1].id)).n, 2);
    await store.maintenance.send(new ravendb.DeleteIndexOperation("Ages"));
    while (index.seen.at(-1).type !== "IndexRemoved") await index.count(index.seen.length + 1);
    assert.deepEqual(all.seen, index.seen);
});

withStore("an operation is told of until it has ended", async store => {
    const operations = await follow((await connected(store)).forAllOperations());
    const insert = store.bulkInsert();
    await insert.store(new User("a"), "users/1");
    await insert.finish();
    while (operations.seen.at(-1)?.state.status !== "Completed") await operations.count(operations.seen.length + 1);
    assert.equal(new Set(operations.seen.map(it => it.operationId)).size, 1);
});

withStore("what the server does not have is refused by name", async store => {
    const changes = await connected(store);
    const counters = changes.forAllCounters();
    const refused = new Promise(resolve => counters.on("error", resolve));
    changes.on("error", () => {});
    counters.on("data", () => {});
    assert.match(String(await refused), /watch-counters/);
});

withStore("two stores follow the same database", async store => {
    const other = open(store.database);
    const [here, there] = [await follow((await connected(store)).forAllDocuments()), await follow((await connected(other)).forAllDocuments())];
    await save(store, new User("a"), "users/1");
    assert.deepEqual(told(await here.count(1)), told(await there.count(1)));
    other.dispose();
});
