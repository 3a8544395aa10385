// Queries with the client as it is: session.query, rawQuery, lazy and streaming queries, deleting by query.

"use strict";
const { assert, load, ravendb, save, User, withStore } = require("./support.js");

class Order {
    constructor(fields) { Object.assign(this, fields); }
}

const SALES = `
    source("Orders");
    output("Sales");
    fn map(order) { emit(#{ company: order.company }, #{ count: 1, total: order.total }); }`;
const REDUCE = `fn reduce(key, values) { #{ count: values.sum("count"), total: values.sum("total") } }`;

async function fill(store) {
    store.conventions.registerEntityType(Order);
    const session = store.openSession();
    const orders = [
        { company: "companies/1", total: 10.5, tags: ["a", "b"], lines: [{ product: "p/1" }] },
        { company: "companies/2", total: 20, tags: ["b"], lines: [{ product: "p/2" }, { product: "p/1" }] },
        { company: "companies/1", total: 30, order: 7, address: { city: "Kyiv" } },
    ];
    for (const [n, fields] of orders.entries()) await session.store(new Order(fields), `orders/${n + 1}`);
    await session.store(new User("One"), "companies/1");
    await session.saveChanges();
}

const ids = orders => orders.map(order => order.id).sort();
const orders = session => session.query({ collection: "Orders", documentType: Order });

withStore("a session asks by conditions", async store => {
    await fill(store);
    const session = store.openSession();
    const ask = async shape => ids(await shape(orders(session)).all());
    assert.deepEqual(await ask(q => q), ["orders/1", "orders/2", "orders/3"]);
    assert.deepEqual(await ask(q => q.whereEquals("company", "companies/1")), ["orders/1", "orders/3"]);
    assert.deepEqual(await ask(q => q.whereNotEquals("company", "companies/1")), ["orders/2"]);
    assert.deepEqual(await ask(q => q.whereGreaterThan("total", 10.5).andAlso().whereLessThanOrEqual("total", 20)), ["orders/2"]);
    assert.deepEqual(await ask(q => q.whereBetween("total", 11, 30)), ["orders/2", "orders/3"]);
    assert.deepEqual(await ask(q => q.whereIn("company", ["companies/2", "companies/9"])), ["orders/2"]);
    assert.deepEqual(await ask(q => q.containsAny("tags", ["a", "z"])), ["orders/1"]);
    assert.deepEqual(await ask(q => q.containsAll("tags", ["a", "b"])), ["orders/1"]);
    assert.deepEqual(await ask(q => q.whereStartsWith("company", "comp").whereEndsWith("company", "/2")), ["orders/2"]);
    assert.deepEqual(await ask(q => q.whereExists("address.city")), ["orders/3"]);
    assert.deepEqual(await ask(q => q.whereEquals("address.city", "Kyiv")), ["orders/3"]);
    assert.deepEqual(await ask(q => q.whereEquals("lines[].product", "p/1")), ["orders/1", "orders/2"]);
    assert.deepEqual(await ask(q => q.whereEquals("order", 7)), ["orders/3"]);
    assert.deepEqual(await ask(q => q.whereEquals("id()", "orders/2")), ["orders/2"]);
    assert.deepEqual(await ask(q => q.not().whereEquals("total", 20)), ["orders/1", "orders/3"]);
    assert.deepEqual(await ask(q => q.whereEquals("total", 20).orElse().openSubclause().whereEquals("total", 30).closeSubclause()),
        ["orders/2", "orders/3"]);
    await assert.rejects(orders(session).search("company", "one").all(), error => /search\(/.test(error.message));
});

withStore("rows come in order and in pages, and are counted", async store => {
    await fill(store);
    const session = store.openSession();
    const totals = async q => (await q.all()).map(order => order.total);
    assert.deepEqual(await totals(orders(session).orderByDescending("total", "Double")), [30, 20, 10.5]);
    assert.deepEqual(await totals(orders(session).orderBy("company").orderByDescending("total")), [30, 10.5, 20]);
    let statistics;
    const page = orders(session).orderBy("total", "Double").skip(1).take(1).statistics(found => statistics = found);
    assert.deepEqual(await totals(page), [20]);
    assert.equal(statistics.totalResults, 3);
    assert.equal(statistics.isStale, false);
    assert.equal((await orders(session).orderBy("total").first()).id, "orders/1");
    assert.equal((await orders(session).whereEquals("total", 20).single()).id, "orders/2");
    assert.equal(await orders(session).whereEquals("total", 99).firstOrNull(), null);
    await assert.rejects(orders(session).single());
    assert.equal(await orders(session).whereEquals("company", "companies/1").count(), 2);
    assert.equal(await orders(session).whereEquals("company", "companies/9").any(), false);
});

withStore("what is loaded by a query is tracked, what is projected is not", async store => {
    await fill(store);
    const session = store.openSession();
    const [order] = await orders(session).whereEquals("total", 20).include("company").all();
    await session.load("companies/2");
    order.total = 21;
    await session.saveChanges();
    assert.equal((await load(store, "orders/2")).total, 21);
    const names = await orders(session).orderBy("total", "Double").selectFields("company").all();
    assert.deepEqual(names, ["companies/1", "companies/2", "companies/1"]);
    const some = await orders(session).whereEquals("total", 30).selectFields(["total", "company"]).all();
    assert.deepEqual([some[0].total, some[0].company], [30, "companies/1"]);
    const distinct = await orders(session).selectFields("company").distinct().all();
    assert.deepEqual(distinct.sort(), ["companies/1", "companies/2"]);
    const included = store.openSession();
    await orders(included).whereEquals("company", "companies/1").include("company").all();
    await included.load("companies/1");
    assert.equal(included.advanced.numberOfRequests, 1);
});

withStore("a raw query is asked as it is written", async store => {
    await fill(store);
    const session = store.openSession();
    const raw = session.advanced.rawQuery("from Orders where total > $min order by total desc", Order).addParameter("min", 10.5);
    assert.deepEqual((await raw.all()).map(order => order.id), ["orders/3", "orders/2"]);
    const groups = await session.advanced
        .rawQuery("from Orders group by company order by company select company, count() as orders, sum(total) as total").all();
    assert.deepEqual(groups.map(({ company, orders, total }) => [company, orders, total]),
        [["companies/1", 2, 40.5], ["companies/2", 1, 20]]);
    await assert.rejects(session.advanced.rawQuery("from Orders where").all(), error => /1:18/.test(error.message));
});

withStore("documents are grouped by the session's query", async store => {
    await fill(store);
    const session = store.openSession();
    const groups = await session.query({ collection: "Orders" })
        .groupBy("company").selectKey("company").selectSum({ fieldName: "total", projectedName: "sum" }).all();
    assert.deepEqual(groups.map(group => [group.company, group.sum]).sort(), [["companies/1", 40.5], ["companies/2", 20]]);
    const counts = await session.query({ collection: "Orders" }).groupBy("company").selectKey("company").selectCount("orders").all();
    assert.deepEqual(counts.map(group => group.orders).sort(), [1, 2]);
});

withStore("an index's results are queried, and waited for", async store => {
    await fill(store);
    const definition = new ravendb.IndexDefinition();
    Object.assign(definition, { name: "Sales/ByCompany", maps: new Set([SALES]), reduce: REDUCE });
    await store.maintenance.send(new ravendb.PutIndexesOperation(definition));
    const session = store.openSession();
    const found = await session.query({ indexName: "Sales/ByCompany" })
        .waitForNonStaleResults(20_000).whereGreaterThan("count", 1).all();
    assert.deepEqual(found.map(({ company, count, total }) => [company, count, total]), [["companies/1", 2, 40.5]]);
    let statistics;
    await session.query({ indexName: "Sales/ByCompany" }).statistics(it => statistics = it).all();
    assert.equal(statistics.indexName, "Sales/ByCompany");
    assert.equal(statistics.totalResults, 2);
    await assert.rejects(session.query({ indexName: "Nope" }).all(), error => error.name === "IndexDoesNotExistException");
});

withStore("lazy queries are one request", async store => {
    await fill(store);
    const session = store.openSession();
    const one = orders(session).whereEquals("total", 20).lazily();
    const two = orders(session).whereEquals("company", "companies/1").countLazily();
    const three = session.advanced.lazily.load("companies/1");
    await session.advanced.eagerly.executeAllPendingLazyOperations();
    assert.deepEqual(ids(await one.getValue()), ["orders/2"]);
    assert.equal(await two.getValue(), 2);
    assert.equal((await three.getValue()).name, "One");
    assert.equal(session.advanced.numberOfRequests, 1);
});

withStore("rows are streamed", async store => {
    await fill(store);
    const session = store.openSession();
    let statistics;
    const query = orders(session).whereGreaterThan("total", 10.5);
    const stream = await session.advanced.stream(query, it => statistics = it);
    const found = [];
    for await (const item of stream) found.push(item.document);
    assert.deepEqual(found.map(order => order.total).sort(), [20, 30]);
    assert.equal(statistics.isStale, false);
    const raw = await session.advanced.stream(session.advanced.rawQuery("from Orders select total"));
    const totals = [];
    for await (const item of raw) totals.push(item.document.total);
    assert.deepEqual(totals.sort(), [10.5, 20, 30]);
});

withStore("what a query chooses is deleted", async store => {
    await fill(store);
    const query = new ravendb.IndexQuery("from Orders where total >= $min");
    query.queryParameters = { min: 20 };
    const operation = await store.operations.send(new ravendb.DeleteByQueryOperation(query));
    await operation.waitForCompletion();
    assert.deepEqual(ids(await orders(store.openSession()).all()), ["orders/1"]);
});
