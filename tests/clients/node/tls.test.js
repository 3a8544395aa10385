// The client over TLS, with its certificate in both forms that it takes.

"use strict";
const fs = require("node:fs");
const { assert, ravendb, test, url, User } = require("./support.js");

const { TREEPIE_CA, TREEPIE_CLIENT_PEM, TREEPIE_CLIENT_PFX, TREEPIE_PFX_PASSWORD } = process.env;
const ca = fs.readFileSync(TREEPIE_CA, "utf8");
const pem = { type: "pem", certificate: fs.readFileSync(TREEPIE_CLIENT_PEM, "utf8"), ca };
const pfx = { type: "pfx", certificate: fs.readFileSync(TREEPIE_CLIENT_PFX), password: TREEPIE_PFX_PASSWORD, ca };

function open(name, authOptions) {
    const store = new ravendb.DocumentStore(url, name, authOptions);
    store.conventions.registerEntityType(User);
    return store.initialize();
}

async function saveAndLoad(name, authOptions) {
    const store = open(name, authOptions);
    try {
        const session = store.openSession();
        await session.store(new User("over TLS"));
        await session.saveChanges();
        const found = await store.openSession().load("users/1-A");
        assert.equal(found.name, "over TLS");
    } finally {
        store.dispose();
    }
}

for (const [form, authOptions] of [["PFX", pfx], ["PEM", pem]]) {
    test(`a certificate in ${form} gets in and does what it may`, async () => {
        const name = `tls-${form}`;
        const manager = open(name, pfx);
        await manager.maintenance.server.send(new ravendb.CreateDatabaseOperation({ databaseName: name }));
        manager.dispose();
        await saveAndLoad(name, authOptions);
    });
}

test("a subscription is read over TLS", async () => {
    const store = open("tls-subscribed", pfx);
    await store.maintenance.server.send(new ravendb.CreateDatabaseOperation({ databaseName: "tls-subscribed" }));
    const session = store.openSession();
    await session.store(new User("subscribed"));
    await session.saveChanges();
    const subscriptionName = await store.subscriptions.create({ query: "from Users" });
    const worker = store.subscriptions.getSubscriptionWorker({ documentType: User, subscriptionName });
    const ids = await new Promise((resolve, reject) => {
        worker.on("error", reject);
        worker.on("batch", (batch, done) => {
            done();
            resolve(batch.items.map(item => item.id));
        });
    });
    assert.deepEqual(ids, ["users/1-A"]);
    worker.dispose();
    store.dispose();
});

test("a certificate that may not do it is told so", async () => {
    const store = open("tls-refused", pem);
    const create = new ravendb.CreateDatabaseOperation({ databaseName: "tls-refused" });
    await assert.rejects(store.maintenance.server.send(create), error => error.name === "AuthorizationException");
    store.dispose();
});
