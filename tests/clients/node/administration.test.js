// Databases, statistics and indexes with the client as it is.

"use strict";
const { assert, load, open, ravendb, save, test, url, User, withStore } = require("./support.js");

const INDEX = {
    name: "Ages",
    maps: new Set([`source("Users"); fn map(user) { emit(#{ age: user.age }, #{ n: 1 }); }`]),
    reduce: `fn reduce(key, values) { #{ n: values.sum("n") } }`,
    outputReduceToCollection: "AgeCounts",
};

function definition(change = {}) {
    return Object.assign(new ravendb.IndexDefinition(), INDEX, change);
}

async function current(store) {
    for (;;) {
        const { indexes } = await store.maintenance.send(new ravendb.GetStatisticsOperation("wait-for-indexing"));
        if (indexes.every(index => !index.isStale || index.state === "Disabled")) return;
    }
}

async function counts(store) {
    const found = await store.openSession().advanced.loadStartingWith("AgeCounts/");
    return Object.fromEntries(found.map(it => [it.age, it.n]));
}

test("databases are created, listed and deleted", async () => {
    const name = `admin${process.pid}`;
    const store = open(name);
    const server = store.maintenance.server;
    await assert.rejects(save(store, new User("a")), error => error.name === "DatabaseDoesNotExistException");
    await server.send(new ravendb.CreateDatabaseOperation({ databaseName: name }));
    await assert.rejects(server.send(new ravendb.CreateDatabaseOperation({ databaseName: name })),
        error => error.name === "ConcurrencyException");
    assert.ok((await server.send(new ravendb.GetDatabaseNamesOperation(0, 1000))).includes(name));
    assert.equal((await server.send(new ravendb.GetDatabaseRecordOperation(name))).databaseName, name);
    assert.match((await server.send(new ravendb.GetBuildNumberOperation())).fullVersion, /^\d/);
    assert.equal(await save(store, new User("a")), "users/1-A");
    await server.send(new ravendb.DeleteDatabasesOperation({ databaseNames: [name], hardDelete: true }));
    assert.ok(!(await server.send(new ravendb.GetDatabaseNamesOperation(0, 1000))).includes(name));
    store.dispose();
});

withStore("statistics count documents and collections", async store => {
    await save(store, new User("a"));
    const statistics = await store.maintenance.send(new ravendb.GetStatisticsOperation());
    assert.equal(statistics.countOfDocuments, 2);
    const { collections } = await store.maintenance.send(new ravendb.GetCollectionStatisticsOperation());
    assert.deepEqual({ ...collections }, { Users: 1, "@hilo": 1 });
});

withStore("an index in Rhai writes artificial documents", async store => {
    for (const age of [30, 30, 41]) await save(store, Object.assign(new User("a"), { age }));
    await store.maintenance.send(new ravendb.PutIndexesOperation(definition()));
    await current(store);
    assert.deepEqual(await counts(store), { 30: 2, 41: 1 });
    assert.deepEqual(await store.maintenance.send(new ravendb.GetIndexNamesOperation(0, 10)), ["Ages"]);
    const found = await store.maintenance.send(new ravendb.GetIndexOperation("Ages"));
    assert.deepEqual([[...found.maps], found.reduce], [[...INDEX.maps], INDEX.reduce]);
    assert.equal(await store.maintenance.send(new ravendb.IndexHasChangedOperation(definition())), false);
    assert.equal(await store.maintenance.send(new ravendb.IndexHasChangedOperation(definition({ outputReduceToCollection: "X" }))), true);
});

withStore("an index is reset, turned off and on, paused, and deleted with its documents", async store => {
    const send = operation => store.maintenance.send(operation);
    await save(store, Object.assign(new User("a"), { age: 30 }));
    await send(new ravendb.PutIndexesOperation(definition()));
    await current(store);
    await send(new ravendb.ResetIndexOperation("Ages"));
    await current(store);
    assert.deepEqual(await counts(store), { 30: 1 });
    await send(new ravendb.DisableIndexOperation("Ages"));
    assert.equal((await send(new ravendb.GetStatisticsOperation())).indexes[0].state, "Disabled");
    await send(new ravendb.EnableIndexOperation("Ages"));
    await send(new ravendb.StopIndexOperation("Ages"));
    assert.equal((await send(new ravendb.GetIndexingStatusOperation())).indexes[0].status, "Paused");
    await send(new ravendb.StartIndexOperation("Ages"));
    await send(new ravendb.StopIndexingOperation());
    await send(new ravendb.StartIndexingOperation());
    await send(new ravendb.SetIndexesLockOperation("Ages", "Unlock"));
    await send(new ravendb.SetIndexesPriorityOperation("Ages", "Low"));
    assert.equal((await send(new ravendb.GetIndexErrorsOperation(["Ages"])))[0].errors.length, 0);
    assert.equal((await send(new ravendb.GetIndexStatisticsOperation("Ages"))).entriesCount, 1);
    await send(new ravendb.DeleteIndexOperation("Ages"));
    assert.ok(!await send(new ravendb.GetIndexOperation("Ages")));
    assert.deepEqual(await counts(store), {});
});

withStore("an index without reduce is of type Map, and one that loads follows what it loads", async store => {
    const send = operation => store.maintenance.send(operation);
    const byAge = { maps: new Set([`source("Users"); fn map(user) { emit(user.age, user.name); }`]), reduce: null };
    await send(new ravendb.PutIndexesOperation(definition({ ...byAge, outputReduceToCollection: null })));
    const maps = new Set([`source("Users"); fn map(user) { emit(#{ age: load(user.friend, "Users").age }, #{ n: 1 }); }`]);
    const friends = { name: "Friends", maps, patternForOutputReduceToCollectionReferences: "ages/{age:000}" };
    await send(new ravendb.PutIndexesOperation(definition(friends)));
    await save(store, Object.assign(new User("a"), { age: 30, friend: "users/2" }), "users/1");
    await save(store, Object.assign(new User("b"), { age: 41, friend: "users/1" }), "users/2");
    await current(store);
    assert.deepEqual(await counts(store), { 30: 1, 41: 1 });
    await save(store, Object.assign(new User("b"), { age: 30, friend: "users/1" }), "users/2");
    await current(store);
    assert.deepEqual(await counts(store), { 30: 2 });
    const session = store.openSession();
    const reference = await session.include("ReduceOutputs").load("ages/030");
    assert.equal((await session.load(reference.ReduceOutputs[0])).n, 2);
    assert.equal(session.advanced.numberOfRequests, 1);
    const { indexes } = await send(new ravendb.GetStatisticsOperation());
    assert.deepEqual(indexes.map(index => [index.name, index.type]), [["Ages", "Map"], ["Friends", "MapReduce"]]);
    const stats = await send(new ravendb.GetIndexStatisticsOperation("Friends"));
    assert.equal(stats.patternReferencesCollectionName, "AgeCounts/References");
    const found = await send(new ravendb.GetIndexOperation("Friends"));
    assert.equal(found.patternForOutputReduceToCollectionReferences, "ages/{age:000}");
    assert.equal(await send(new ravendb.IndexHasChangedOperation(definition(friends))), false);
});

withStore("a changed definition is a replacement until it takes over, or is cancelled", async store => {
    const send = operation => store.maintenance.send(operation);
    const names = async () => (await send(new ravendb.GetStatisticsOperation())).indexes.map(index => index.name);
    await save(store, Object.assign(new User("a"), { age: 30 }));
    await send(new ravendb.PutIndexesOperation(definition()));
    await current(store);
    await send(new ravendb.StopIndexOperation("Ages"));
    const changed = definition({ reduce: INDEX.reduce.replace("values.sum(\"n\")", "values.sum(\"n\") * 2") });
    await send(new ravendb.PutIndexesOperation(changed));
    assert.deepEqual(await names(), ["Ages", "ReplacementOf/Ages"]);
    await send(new ravendb.DeleteIndexOperation("ReplacementOf/Ages"));
    assert.deepEqual(await names(), ["Ages"]);
    await send(new ravendb.PutIndexesOperation(changed));
    assert.deepEqual(await counts(store), { 30: 1 });
    await send(new ravendb.StartIndexOperation("Ages"));
    await current(store);
    assert.deepEqual([await names(), await counts(store)], [["Ages"], { 30: 2 }]);
});

withStore("an index is locked, and its errors are cleared", async store => {
    const send = operation => store.maintenance.send(operation);
    await save(store, Object.assign(new User("a"), { age: "old" }));
    const strict = definition({ maps: new Set([`source("Users"); fn map(user) { emit(#{ age: user.age * 1 }, #{ n: 1 }); }`]) });
    await send(new ravendb.PutIndexesOperation(strict));
    await current(store);
    const errors = async () => (await send(new ravendb.GetIndexErrorsOperation(["Ages"])))[0].errors;
    assert.equal((await errors()).length, 1);
    await send(new ravendb.DeleteIndexErrorsOperation(["Ages"]));
    assert.equal((await errors()).length, 0);
    await send(new ravendb.SetIndexesLockOperation("Ages", "LockedError"));
    assert.equal((await send(new ravendb.GetIndexStatisticsOperation("Ages"))).lockMode, "LockedError");
    await assert.rejects(send(new ravendb.PutIndexesOperation(definition())), /lock mode LockedError/);
    await send(new ravendb.SetIndexesLockOperation("Ages", "LockedIgnore"));
    await send(new ravendb.PutIndexesOperation(definition()));
    assert.deepEqual([...(await send(new ravendb.GetIndexOperation("Ages"))).maps], [...strict.maps]);
    await send(new ravendb.SetIndexesPriorityOperation("Ages", "High"));
    assert.equal((await send(new ravendb.GetIndexStatisticsOperation("Ages"))).priority, "High");
});

withStore("a script that does not compile is an exception with its place", async store => {
    const broken = definition({ maps: new Set([`source("Users"); fn map(user) { emit( }`]) });
    await assert.rejects(store.maintenance.send(new ravendb.PutIndexesOperation(broken)),
        error => error.name === "IndexCompilationException" && /Maps\[0\]:1:39/.test(error.message));
});

withStore("a change waits for the indexes that take it in", async store => {
    await store.maintenance.send(new ravendb.PutIndexesOperation(definition()));
    const session = store.openSession();
    session.advanced.waitForIndexesAfterSaveChanges();
    await session.store(Object.assign(new User("a"), { age: 5 }), "users/1");
    await session.saveChanges();
    assert.deepEqual(await counts(store), { 5: 1 });
    assert.equal((await load(store, "users/1")).age, 5);
});

test("the url of the topology is the one that was used", async () => {
    const store = open(`topology${process.pid}`);
    await store.maintenance.server.send(new ravendb.CreateDatabaseOperation({ databaseName: store.database }));
    await save(store, new User("a"));
    assert.deepEqual(store.getRequestExecutor().getTopologyNodes().map(node => node.url), [url]);
    store.dispose();
});
