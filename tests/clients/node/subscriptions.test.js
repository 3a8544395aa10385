// Subscriptions with the client as it is: store.subscriptions, over RavenDB's TCP protocol.

"use strict";
const { assert, ravendb, save, User, withStore } = require("./support.js");

// Collects what a worker is given, until told to stop.
class Worker {
    constructor(store, options, use = () => {}) {
        this.items = [];
        this.errors = [];
        this.acknowledged = 0;
        this.waiting = [];
        const wanted = typeof options === "string" ? { subscriptionName: options } : options;
        this.worker = store.subscriptions.getSubscriptionWorker({
            documentType: User, timeToWaitBeforeConnectionRetry: 50, ...wanted,
        });
        this.worker.on("batch", async (batch, done) => {
            try {
                await use(batch);
                for (const item of batch.items) this.items.push(item);
                done();
            } catch (error) {
                done(error);
            }
            this.stir();
        });
        this.worker.on("afterAcknowledgment", () => { this.acknowledged++; this.stir(); });
        this.worker.on("error", error => { this.errors.push(error); this.stir(); });
        this.worker.on("end", () => this.stir());
    }

    stir() {
        this.waiting = this.waiting.filter(({ until, done }) => !until() || void done());
    }

    until(condition) {
        return new Promise(done => { this.waiting.push({ until: condition, done }); this.stir(); });
    }

    async ids(count) {
        await this.until(() => this.items.length >= count);
        return this.items.map(item => item.id);
    }

    async fails() {
        await this.until(() => this.errors.length > 0);
        return this.errors[0];
    }

    dispose() {
        this.worker.dispose();
    }
}

async function saveMany(store, ...names) {
    const session = store.openSession();
    for (const name of names) await session.store(new User(name), `users/${name}`);
    await session.saveChanges();
}

const remove = async (store, id) => {
    const session = store.openSession();
    await session.delete(id);
    await session.saveChanges();
};

withStore("a worker is given what is there and what comes, once it has acknowledged", async store => {
    await saveMany(store, "a", "b", "c");
    const name = await store.subscriptions.create(User);
    const worker = new Worker(store, { subscriptionName: name, maxDocsPerBatch: 2 });
    assert.deepEqual(await worker.ids(3), ["users/a", "users/b", "users/c"]);
    assert.ok(worker.items[0].result instanceof User);
    assert.equal(worker.items[0].result.name, "a");
    await saveMany(store, "d");
    assert.deepEqual((await worker.ids(4))[3], "users/d");
    await worker.until(() => worker.acknowledged >= 3);
    const state = await store.subscriptions.getSubscriptionState(name);
    assert.ok(state.changeVectorForNextBatchStartingPoint);
    assert.ok(state.lastBatchAckTime);
    worker.dispose();
});

withStore("what was not acknowledged comes again after a reconnect, and nothing else", async store => {
    await saveMany(store, "a", "b", "c");
    const name = await store.subscriptions.create({ query: "from Users", name: "again" });
    // It goes away in the middle of its second batch.
    await new Promise(done => {
        const first = new Worker(store, { subscriptionName: name, maxDocsPerBatch: 2 }, batch => {
            if (!batch.items.some(item => item.id === "users/c")) return;
            first.dispose();
            done();
            return new Promise(() => {});
        });
    });
    const second = new Worker(store, { subscriptionName: name, strategy: "WaitForFree" });
    await saveMany(store, "d");
    assert.deepEqual(await second.ids(2), ["users/c", "users/d"]);
    second.dispose();
});

withStore("strategies decide who has it", async store => {
    const name = await store.subscriptions.create(User);
    const first = new Worker(store, name);
    await new Promise(done => first.worker.on("onEstablishedSubscriptionConnection", done));
    const refused = new Worker(store, name);
    assert.equal((await refused.fails()).name, "SubscriptionInUseException");
    const taker = new Worker(store, { subscriptionName: name, strategy: "TakeOver" });
    assert.equal((await first.fails()).name, "SubscriptionInUseException");
    await saveMany(store, "a");
    assert.deepEqual(await taker.ids(1), ["users/a"]);
    for (const worker of [first, refused, taker]) worker.dispose();
});

withStore("concurrent workers have disjoint shares", async store => {
    const names = Array.from({ length: 40 }, (_, n) => `n${n}`);
    await saveMany(store, ...names);
    const name = await store.subscriptions.create(User);
    const options = { subscriptionName: name, strategy: "Concurrent", maxDocsPerBatch: 3 };
    const workers = [1, 2, 3].map(() => new Worker(store, options));
    const all = () => workers.flatMap(worker => worker.items.map(item => item.id));
    await Promise.race(workers.map(worker => worker.until(() => all().length >= 40)));
    assert.deepEqual(all().sort(), names.map(it => `users/${it}`).sort());
    for (const worker of workers) worker.dispose();
});

withStore("deletions and former versions are delivered where they are asked for", async store => {
    await saveMany(store, "a", "b");
    await store.subscriptions.create({ query: "from Users (Deletes = true, Previous = true)", name: "all" });
    const worker = new Worker(store, "all");
    await worker.ids(2);
    await worker.until(() => worker.acknowledged >= 1);
    await remove(store, "users/a");
    const session = store.openSession();
    (await session.load("users/b")).name = "bb";
    await session.saveChanges();
    await worker.ids(4);
    const [gone, changed] = worker.items.slice(2);
    assert.equal(gone.id, "users/a");
    assert.equal(gone.rawMetadata["@deleted"], true);
    assert.equal(gone.rawMetadata["@previous"].name, "a");
    assert.deepEqual([changed.result.name, changed.rawMetadata["@previous"].name], ["bb", "b"]);
    worker.dispose();
});

withStore("an index's output is a collection like any other", async store => {
    const index = Object.assign(new ravendb.IndexDefinition(), {
        name: "Names",
        maps: new Set([`source("Users"); output("NameCounts"); fn map(user) { emit(#{ name: user.name }, #{ n: 1 }); }`]),
        reduce: `fn reduce(key, values) { #{ n: values.sum("n") } }`,
    });
    await store.maintenance.send(new ravendb.PutIndexesOperation(index));
    await store.subscriptions.create({ query: "from NameCounts (Deletes = true)", name: "counts" });
    const worker = new Worker(store, { subscriptionName: "counts", documentType: undefined });
    await save(store, new User("x"), "users/1");
    await worker.ids(1);
    assert.equal(worker.items[0].result.n, 1);
    assert.ok(worker.items[0].rawMetadata["@run"] > 0);
    await worker.until(() => worker.acknowledged >= 1);
    await remove(store, "users/1");
    await worker.ids(2);
    assert.equal(worker.items[1].rawMetadata["@deleted"], true);
    worker.dispose();
});

withStore("subscriptions are listed, updated, disabled, dropped and deleted", async store => {
    const { subscriptions } = store;
    const name = await subscriptions.create({ query: "from Users", name: "mine", changeVector: "LastDocument" });
    assert.deepEqual((await subscriptions.getSubscriptions(0, 10)).map(it => it.subscriptionName), ["mine"]);
    await subscriptions.update({ name, query: "from Users as u" });
    assert.equal((await subscriptions.getSubscriptionState(name)).query, "from Users as u");
    await assert.rejects(subscriptions.update({ name: "nope", query: "from Users" }),
        error => error.name === "SubscriptionDoesNotExistException");
    const dropped = new Worker(store, name);
    await new Promise(done => dropped.worker.on("onEstablishedSubscriptionConnection", done));
    await subscriptions.dropConnection(name);
    assert.equal((await dropped.fails()).name, "SubscriptionClosedException");
    await subscriptions.disable(name);
    assert.equal((await new Worker(store, name).fails()).name, "SubscriptionClosedException");
    await subscriptions.enable(name);
    await subscriptions.delete(name);
    assert.deepEqual(await subscriptions.getSubscriptions(0, 10), []);
    assert.equal((await new Worker(store, name).fails()).name, "SubscriptionDoesNotExistException");
    await assert.rejects(subscriptions.create({ query: "from Users where age > 3" }), /where/);
});

withStore("a worker can end when nothing is left", async store => {
    await saveMany(store, "a", "b");
    const name = await store.subscriptions.create(User);
    const worker = new Worker(store, { subscriptionName: name, closeWhenNoDocsLeft: true });
    assert.equal((await worker.fails()).name, "SubscriptionClosedException");
    assert.deepEqual(await worker.ids(2), ["users/a", "users/b"]);
    worker.dispose();
});

withStore("a batch opens a session with what it holds", async store => {
    await saveMany(store, "a");
    const name = await store.subscriptions.create(User);
    const worker = new Worker(store, name, async batch => {
        const session = batch.openSession();
        for (const item of batch.items) item.result.seen = true;
        await session.saveChanges();
    });
    await worker.until(() => worker.items.length >= 2);
    assert.equal((await store.openSession().load("users/a")).seen, true);
    worker.dispose();
});
