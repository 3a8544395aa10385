// A store on a database of its own, which goes when its test ends.

"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const ravendb = require("ravendb");

const url = process.env.TREEPIE_URL;
let databases = 0;

class User {
    constructor(name, id) {
        this.name = name;
        if (id !== undefined) this.id = id;
    }
}

async function createDatabase(settings = {}) {
    const name = `db${process.pid}-${++databases}`;
    const manager = new ravendb.DocumentStore(url, name);
    manager.initialize();
    await manager.maintenance.server.send(new ravendb.CreateDatabaseOperation({ databaseName: name, settings }));
    manager.dispose();
    return name;
}

function open(name, conventions = () => {}) {
    const store = new ravendb.DocumentStore(url, name);
    store.conventions.registerEntityType(User);
    conventions(store.conventions);
    store.initialize();
    return store;
}

function disposed(store) {
    return new Promise(done => { store.once("executorsDisposed", done); store.dispose(); });
}

// Declares a test that is given an open store.
function withStore(sentence, use, { settings, conventions } = {}) {
    test(sentence, async () => {
        const store = open(await createDatabase(settings), conventions);
        try {
            await use(store);
        } finally {
            store.dispose();
        }
    });
}

// Saves one entity and returns the id that it has then.
async function save(store, entity, ...id) {
    const session = store.openSession();
    await session.store(entity, ...id);
    await session.saveChanges();
    return session.advanced.getDocumentId(entity);
}

async function load(store, id) {
    return store.openSession().load(id);
}

module.exports = { assert, disposed, load, open, ravendb, save, test, url, User, withStore };
