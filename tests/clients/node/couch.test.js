// CouchDB's client for Node.js, nano, with `/databases` for its server's URL.

"use strict";
const assert = require("node:assert/strict");
const { once } = require("node:events");
const { test } = require("node:test");
const Nano = require("nano");
const { open } = require("./support.js");

const nano = Nano({ url: `${process.env.TREEPIE_URL}/databases`, parseUrl: false });
let databases = 0;

// Declares a test that is given a new database: nano's, and its name.
function withDatabase(sentence, use) {
    test(sentence, { timeout: 60_000 }, async () => {
        const name = `couch${process.pid}-${++databases}`;
        assert.deepEqual(await nano.db.create(name), { ok: true });
        try {
            await use(nano.use(name), name);
        } finally {
            assert.deepEqual(await nano.db.destroy(name), { ok: true });
        }
    });
}

// Saves documents by id.
async function save(name, documents) {
    await change(name, async session => {
        for (const [id, document] of Object.entries(documents)) {
            await session.store({ ...document }, id);
            session.advanced.getMetadataFor(await session.load(id))["@collection"] = document.of ?? "Items";
        }
    });
}

async function remove(name, ...ids) {
    await change(name, async session => { for (const id of ids) await session.delete(id); });
}

// Changes documents with RavenDB's client: documents at CouchDB's paths are not there.
async function change(name, use) {
    const store = open(name);
    try {
        const session = store.openSession();
        await use(session);
        await session.saveChanges();
    } finally {
        store.dispose();
    }
}

const ids = listing => listing.rows.map(row => row.id);

// Reads until the reader ends; gives back what it has seen.
async function seen(reader) {
    const changes = [];
    reader.on("batch", batch => changes.push(...batch));
    await once(reader, "end");
    return changes;
}

withDatabase("a database tells what it holds", async (db, name) => {
    await save(name, { a: { n: 1 }, b: { n: 2 } });
    await remove(name, "b");
    const info = await db.info();
    assert.equal(info.db_name, name);
    assert.deepEqual([info.doc_count, info.doc_del_count, info.update_seq], [1, 1, 3]);
    assert.ok(info.sizes.file > 0);
    assert.deepEqual(await nano.db.get(name), info);
    assert.ok((await nano.db.list()).includes(name));
});

withDatabase("databases are made once, and missing ones are told", async (db, name) => {
    await assert.rejects(nano.db.create(name), error => error.statusCode === 412 && error.error === "file_exists");
    await assert.rejects(nano.use("none").info(), error => error.statusCode === 404 && error.error === "not_found");
    await assert.rejects(nano.db.destroy("none"), error => error.statusCode === 404);
});

withDatabase("documents are listed by ranges of ids", async (db, name) => {
    await save(name, { "post/1": {}, "post/1/comment/1": {}, "post/1/comment/2": {}, "post/10": {}, "post/2": {} });
    const listing = await db.list();
    assert.equal(listing.total_rows, 5);
    assert.equal(listing.offset, 0);
    assert.deepEqual(ids(await db.list({ startkey: "post/1", endkey: "post/1/\ufff0" })),
        ["post/1", "post/1/comment/1", "post/1/comment/2"]);
    assert.deepEqual(ids(await db.list({ start_key: "post/2", descending: true, limit: 2 })), ["post/2", "post/10"]);
    assert.deepEqual(ids(await db.list({ startkey: "post/10", endkey: "post/2", inclusive_end: false })), ["post/10"]);
    assert.deepEqual(ids(await db.list({ startkey: "post/2", endkey: {} })), ["post/2"]);
    assert.deepEqual(ids(await db.list({ key: "post/10" })), ["post/10"]);
    assert.deepEqual(ids(await db.list({ keys: ["post/2", "post/1"] })), ["post/2", "post/1"]);
    assert.equal((await db.list({ update_seq: true, limit: 0 })).update_seq, 5);
    await assert.rejects(db.list({ startkey: "b", endkey: "a" }), error => error.statusCode === 400);
});

withDatabase("documents are fetched by id with their content", async (db, name) => {
    await save(name, { a: { n: 1.5 }, b: { n: 2 } });
    const fetched = await db.fetch({ keys: ["b", "none", "a"] });
    assert.deepEqual(fetched.rows.map(row => row.doc?.n), [2, undefined, 1.5]);
    assert.deepEqual(fetched.rows[1], { key: "none", error: "not_found" });
    const { _id, _rev } = fetched.rows[2].doc;
    assert.deepEqual([_id, _rev], ["a", fetched.rows[2].value.rev]);
    const revisions = await db.fetchRevs({ keys: ["a"] });
    assert.equal(revisions.rows[0].value.rev, _rev);
    assert.equal(revisions.rows[0].doc, undefined);
});

withDatabase("a reader gets all changes and then ends", async (db, name) => {
    await save(name, Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`n/${n}`, { n }])));
    await remove(name, "n/3");
    const reader = db.changesReader.get({ since: 0, batchSize: 10, includeDocs: true, timeout: 50 });
    const changes = await seen(reader);
    assert.equal(changes.length, 25);
    assert.deepEqual([changes[24].id, changes[24].deleted, changes[24].doc._deleted], ["n/3", true, true]);
    assert.ok(changes.slice(0, 24).every(change => change.doc._id === change.id && change.doc._rev === change.changes[0].rev));
});

withDatabase("a reader follows changes until it is stopped", async (db, name) => {
    const reader = db.changesReader.start({ since: "now", timeout: 5_000 });
    // The request that `stop` cuts off is an error to nano.
    reader.on("error", () => {});
    let change;
    reader.on("change", it => { change = it; });
    // It asks for what comes from now on, and does not say when its question has arrived.
    while (!change) await save(name, { a: { at: Date.now() } });
    assert.equal(change.id, "a");
    const ended = new Promise(resolve => reader.on("end", resolve));
    db.changesReader.stop();
    await ended;
});

withDatabase("a reader that waits takes the next batch when it is told to", async (db, name) => {
    await save(name, { a: {}, b: {}, c: {} });
    const batches = [];
    const reader = db.changesReader.get({ since: 0, batchSize: 1, wait: true, timeout: 50 });
    reader.on("batch", batch => {
        batches.push(batch.map(change => change.id).join());
        setImmediate(() => db.changesReader.resume());
    });
    await once(reader, "end");
    assert.deepEqual(batches.sort(), ["a", "b", "c"]);
});

withDatabase("a reader can go on where another one ended", async (db, name) => {
    await save(name, { a: {} });
    const reader = db.changesReader.get({ since: 0, timeout: 50 });
    const [last] = await once(reader, "end");
    await save(name, { b: {} });
    const changes = await seen(db.changesReader.get({ since: last, timeout: 50 }));
    assert.deepEqual(changes.map(change => change.id), ["b"]);
});

withDatabase("a reader spools everything in one request", async (db, name) => {
    await save(name, { a: { n: 1 }, b: { n: 2 } });
    const reader = db.changesReader.spool({ since: 0, includeDocs: true });
    const changes = [];
    reader.on("batch", batch => changes.push(...batch));
    const [last] = await once(reader, "end");
    assert.deepEqual(changes.map(change => [change.id, change.doc.n]), [["a", 1], ["b", 2]]);
    assert.equal(last, 2);
});

withDatabase("a reader can be given a collection, a prefix or ids", async (db, name) => {
    await save(name, { "a/1": { of: "Apples" }, "b/1": { of: "Pears" }, "b/2": { of: "Pears" } });
    const with_ = async qs => (await seen(db.changesReader.get({ since: 0, timeout: 50, qs }))).map(change => change.id);
    assert.deepEqual((await with_({ collection: "Pears" })).sort(), ["b/1", "b/2"]);
    assert.deepEqual(await with_({ prefix: "a/" }), ["a/1"]);
    assert.deepEqual(await with_({ filter: "_doc_ids", doc_ids: '["b/2"]' }), ["b/2"]);
});

withDatabase("what is not there is refused by name", async (db, name) => {
    const refused = word => error => error.statusCode === 501 && error.message.includes(word);
    const reader = db.changesReader.get({ since: 0, selector: { n: 1 } });
    const [error] = await once(reader, "error");
    assert.ok(refused("_selector")(error), error.message);
    reader.on("error", () => {});
    db.changesReader.stop();
    await assert.rejects(db.insert({ n: 1 }), refused("bulk_docs"));
    await assert.rejects(db.bulk({ docs: [] }), refused("_bulk_docs"));
    await assert.rejects(db.find({ selector: {} }), refused("_find"));
    await assert.rejects(db.view("design", "view"), refused("indexes"));
});

withDatabase("changes can be asked for at once", async (db, name) => {
    await save(name, { a: {}, b: {} });
    const changes = await db.changes({ descending: true, limit: 1 });
    assert.equal(changes.results.length, 1);
    assert.equal(changes.pending, 1);
});
