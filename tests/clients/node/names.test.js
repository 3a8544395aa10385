// Every way to name a document, as the documentation of the client shows it.

"use strict";
const { assert, disposed, load, open, ravendb, save, User, withStore } = require("./support.js");
const {
    GetClientConfigurationOperation, GetIdentitiesOperation, GetServerWideClientConfigurationOperation,
    NextIdentityForOperation, PutClientConfigurationOperation, PutServerWideClientConfigurationOperation,
    SeedIdentityForOperation,
} = ravendb;

withStore("a semantic id is kept", async store => {
    assert.equal(await save(store, new User("John"), "users/john@john.doe"), "users/john@john.doe");
    assert.equal((await load(store, "USERS/JOHN@john.doe")).name, "John");
});

withStore("an empty id gives a guid", async store => {
    const id = await save(store, new User("G"));
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/);
}, { conventions: conventions => conventions.registerIdConvention(User, async () => "") });

withStore("a trailing slash gives a server-side id", async store => {
    assert.equal(await save(store, new User("S"), "users/"), "users/0000000000000000001-A");
});

withStore("a trailing bar gives an identity", async store => {
    assert.equal(await save(store, new User("I"), "users|"), "users/1");
    assert.equal(await save(store, new User("I"), "users|"), "users/2");
});

withStore("no id gives a HiLo id before saving", async store => {
    const session = store.openSession();
    const [first, second] = [new User("a"), new User("b")];
    await session.store(first);
    await session.store(second);
    assert.deepEqual([first.id, second.id], ["users/1-A", "users/2-A"]);
    await session.saveChanges();
    assert.equal((await load(store, "users/2-A")).name, "b");
});

withStore("what is not used of a HiLo range is given back", async store => {
    const other = open(store.database);
    await save(other, new User("a"));
    await save(other, new User("b"));
    await disposed(other);
    assert.equal((await load(store, "Raven/Hilo/users")).Max, 2);
    assert.equal(await save(store, new User("c")), "users/3-A");
});

withStore("a HiLo range goes on above what its document says", async store => {
    await save(store, { Max: 64 }, "Raven/Hilo/users");
    assert.equal(await save(store, new User("a")), "users/65-A");
});

withStore("stores at the same time give each document an id of its own", async store => {
    const stores = [1, 2, 3, 4].map(() => open(store.database));
    const ids = (await Promise.all(stores.map(async it => {
        const taken = [];
        for (let n = 0; n < 50; n++) taken.push(await save(it, new User(`${n}`)));
        return taken;
    }))).flat();
    stores.forEach(it => it.dispose());
    assert.equal(new Set(ids).size, 200);
});

for (const separator of ["#", "-"]) {
    withStore(`the separator ${separator} from the server overrides the convention`, async store => {
        await store.maintenance.send(new PutClientConfigurationOperation({ identityPartsSeparator: separator }));
        const other = open(store.database);
        await load(other, "nothing");
        await load(other, "nothing");
        assert.equal(await save(other, new User("h")), `users${separator}1-A`);
        assert.equal(await save(other, new User("i"), "Prefix|"), `Prefix${separator}1`);
        assert.equal(await save(other, new User("i"), "users|"), `users${separator}1`);
        other.dispose();
        const { configuration } = await store.maintenance.send(new GetClientConfigurationOperation());
        assert.equal(configuration.identityPartsSeparator, separator);
    });
}

withStore("the separator of the client's convention is its own affair", async store => {
    assert.equal(await save(store, new User("h")), "users$1-A");
    assert.equal(await save(store, new User("i"), "users|"), "users/1");
}, { conventions: conventions => { conventions.identityPartsSeparator = "$"; } });

withStore("the server-wide configuration holds until a database has its own", async store => {
    const send = operation => store.maintenance.server.send(operation);
    await send(new PutServerWideClientConfigurationOperation({ maxNumberOfRequestsPerSession: 7 }));
    assert.equal((await send(new GetServerWideClientConfigurationOperation())).maxNumberOfRequestsPerSession, 7);
    const get = async () => (await store.maintenance.send(new GetClientConfigurationOperation())).configuration;
    assert.equal((await get()).maxNumberOfRequestsPerSession, 7);
    await store.maintenance.send(new PutClientConfigurationOperation({ maxNumberOfRequestsPerSession: 9 }));
    assert.equal((await get()).maxNumberOfRequestsPerSession, 9);
    await send(new PutServerWideClientConfigurationOperation({ disabled: true }));
});

withStore("identities are seeded one by one, many at once, and by force", async store => {
    const send = operation => store.maintenance.send(operation);
    assert.equal(await send(new NextIdentityForOperation("users|")), 1);
    assert.equal(await send(new SeedIdentityForOperation("users|", 1990)), 1990);
    assert.equal(await send(new SeedIdentityForOperation("users|", 5)), 1990);
    assert.equal(await send(new SeedIdentityForOperation("users|", 5, true)), 5);
    await send(new SeedIdentityForOperation("companies|", 23));
    const identities = await send(new GetIdentitiesOperation());
    assert.deepEqual({ ...identities }, { "companies|": 23, "users|": 5 });
    await Promise.all(Object.entries(identities).map(([name, last]) => send(new SeedIdentityForOperation(name, last + 10))));
    assert.deepEqual({ ...await send(new GetIdentitiesOperation()) }, { "companies|": 33, "users|": 15 });
    assert.equal(await save(store, new User("c"), "companies|"), "companies/34");
});

withStore("an identity passes over documents that are there", async store => {
    await save(store, new User("by hand"), "users/1");
    assert.equal(await save(store, new User("i"), "users|"), "users/2");
    assert.equal((await load(store, "users/1")).name, "by hand");
});

withStore("by the older rule a trailing slash gives an identity", async store => {
    await save(store, new User("by hand"), "users/1");
    assert.equal(await save(store, new User("i"), "users/"), "users/2");
}, { settings: { trailing_slash: "identity" } });

withStore("several ids of one save come back in order", async store => {
    const session = store.openSession();
    const users = [1, 2, 3].map(n => new User(`${n}`));
    await session.store(users[0], "users|");
    await session.store(users[1], "users/");
    await session.store(users[2], "users|");
    await session.saveChanges();
    const ids = users.map(user => session.advanced.getDocumentId(user));
    assert.equal(ids[0], "users/1");
    assert.match(ids[1], /^users\/\d{19}-A$/);
    assert.equal(ids[2], "users/2");
});
