//! Questions in RQL over HTTP: what answers hold, pages, includes, freshness, streams, errors.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::support::{Answer, TestServer, escape, ids_of};

const SALES: &str = r#"
    source("Orders");
    output("Sales");
    fn map(order) { emit(#{ Company: order.Company }, #{ Count: 1, Total: order.Total ?? 0 }); }
    fn reduce(key, values) { #{ Count: values.sum("Count"), Total: values.sum("Total") } }
"#;

async fn with_orders() -> TestServer {
    let server = TestServer::with_database().await;
    for (id, body) in [
        ("orders/1", r#"{"Company":"companies/1","Total":10.50,"Lines":[{"Product":"p/1"},{"Product":"p/2"}]}"#),
        ("orders/2", r#"{"Company":"companies/2","Total":20,"Tags":["a","b"]}"#),
        ("orders/3", r#"{"Company":"companies/1","Total":12345678901234567890.123}"#),
        ("orders/4", r#"{"Company":null,"Total":"many","Address":{"City":"Kyiv"}}"#),
        ("orders/5", r#"{"Total":20.0,"Address":{"City":"Lviv"}}"#),
    ] {
        let body = format!(r#"{},"@metadata":{{"@collection":"Orders"}}}}"#, &body[..body.len() - 1]);
        server.must_put(id, body).await;
    }
    server.must_put("companies/1", r#"{"Name":"One","@metadata":{"@collection":"Companies"}}"#).await;
    server
}

impl TestServer {
    async fn ask(&self, body: Value) -> Answer {
        self.send(Method::POST, "/databases/db/queries", body.to_string()).await
    }

    async fn rows(&self, query: &str) -> Value {
        let answer = self.ask(json!({ "Query": query })).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {answer:?}");
        answer.json()
    }

    async fn found(&self, query: &str) -> Vec<String> {
        ids_of(&self.rows(query).await["Results"])
    }
}

fn numbered(ids: &[u32]) -> Vec<String> {
    ids.iter().map(|id| format!("orders/{id}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_has_what_ravendbs_clients_read() {
    let server = with_orders().await;
    let answer = server.rows("from Orders where Total = 20 limit 1").await;
    assert_eq!(answer["TotalResults"], 2);
    assert_eq!(answer["SkippedResults"], 0);
    assert_eq!(answer["IndexName"], "collection/Orders");
    assert_eq!(answer["IsStale"], false);
    assert_eq!(answer["NodeTag"], "A");
    assert_eq!(answer["Includes"], json!({}));
    assert!(answer["ResultEtag"].as_u64().is_some_and(|etag| etag < 1 << 53));
    assert!(
        answer["DurationInMs"].is_u64() && answer["LastQueryTime"].is_string() && answer["IndexTimestamp"].is_string()
    );
    let row = &answer["Results"][0];
    assert_eq!((&row["@metadata"]["@id"], &row["@metadata"]["@collection"]), (&json!("orders/2"), &json!("Orders")));
    assert!(row["@metadata"]["@change-vector"].is_string());
    assert!(answer.get("Timings").is_none() && answer.get("Continuation").is_none());
    let timed = server.rows("from Orders include timings()").await;
    assert!(timed["Timings"]["DurationInMs"].is_u64() && timed["Timings"]["Timings"]["Query"]["DurationInMs"].is_u64());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_choose_by_type_and_value() {
    let server = with_orders().await;
    for (condition, expected) in [
        ("Total = 20", &[2, 5][..]),
        ("Total != 20", &[1, 3, 4]),
        ("Total > 12345678901234567890.122", &[3]),
        ("Total > 12345678901234567890.123", &[]),
        ("Total between 10.5 and 20", &[1, 2, 5]),
        ("Total >= 'm'", &[4]),
        ("Total < 15 or Total = 'many'", &[1, 4]),
        ("Company = null", &[4, 5]),
        ("exists(Company)", &[1, 2, 3, 4]),
        ("not exists(Company)", &[5]),
        ("Company in ('companies/1', 'companies/2') and not Total = 20", &[1, 3]),
        ("Tags = 'b'", &[2]),
        ("Tags all in ('a', 'b')", &[2]),
        ("Tags all in ('a', 'c')", &[]),
        ("Lines[].Product = 'p/2'", &[1]),
        ("Lines.Product in ('p/2', 'p/9')", &[1]),
        ("Lines[0].Product = 'p/2'", &[]),
        ("Address.City = 'Kyiv'", &[4]),
        ("startsWith(Address.City, 'L')", &[5]),
        ("endsWith(Company, '/2')", &[2]),
        ("id() = 'ORDERS/3'", &[3]),
        ("id() in ('orders/3', 'orders/9', 'orders/1')", &[1, 3]),
        ("startsWith(id(), 'Orders/')", &[1, 2, 3, 4, 5]),
        ("id() > 'orders/2' and id() <= 'orders/4'", &[3, 4]),
        ("@metadata.@collection = 'Orders' and Total = 20", &[2, 5]),
        ("true and not (Total = 20)", &[1, 3, 4]),
        ("false", &[]),
    ] {
        let found = server.found(&format!("from Orders as o where {condition}")).await;
        assert_eq!(found, numbered(expected), "{condition}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_keep_their_digits() {
    let server = with_orders().await;
    let body = r#"{"Query":"from Orders where Total = $total or Company in ($ids)",
        "QueryParameters":{"total":12345678901234567890.1230,"ids":["companies/2"]}}"#;
    let answer = server.send(Method::POST, "/databases/db/queries", body).await;
    assert_eq!(ids_of(&answer.json()["Results"]), numbered(&[2, 3]));
    assert!(answer.text().contains("12345678901234567890.123"));
    let query = escape("from Orders where Total = $t");
    let answer =
        server.get(&format!("/databases/db/queries?query={query}&parameters={}", escape(r#"{"t":20.00}"#))).await;
    assert_eq!(ids_of(&answer.json()["Results"]), numbered(&[2, 5]));
    server.ask(json!({"Query": "from Orders where a = $b"})).await.assert_error(400, "InvalidQueryException", &["$b"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_ordered_by_type_and_value_and_then_by_id() {
    let server = with_orders().await;
    for (order, expected) in [
        ("", &[1, 2, 3, 4, 5][..]),
        (" order by id() desc", &[5, 4, 3, 2, 1]),
        (" order by Total", &[1, 2, 5, 3, 4]),
        (" order by Total desc", &[4, 3, 2, 5, 1]),
        (" order by Total as double desc, id() desc", &[3, 5, 2, 1, 4]),
        (" order by Company, Total", &[5, 4, 1, 3, 2]),
        (" order by Total as string", &[1, 3, 2, 5, 4]),
        (" order by etag() desc", &[5, 4, 3, 2, 1]),
        (" order by Total desc limit 1, 2", &[3, 2]),
        (" limit 2 offset 1", &[2, 3]),
    ] {
        let answer = server.rows(&format!("from Orders{order}")).await;
        assert_eq!(ids_of(&answer["Results"]), numbered(expected), "{order}");
        assert_eq!(answer["TotalResults"], 5, "{order}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn select_shows_fields_as_they_are_stored() {
    let server = with_orders().await;
    let query =
        "from Orders as o where o.Total < 15 select o.Total, Address.City as City, id() as Key, Lines[].Product as P";
    let answer = server.ask(json!({ "Query": query })).await;
    assert!(answer.text().contains(r#"{"Total":10.50,"City":null,"Key":"orders/1","P":["p/1","p/2"],"@metadata""#));
    let metadata = answer.json()["Results"][0]["@metadata"].clone();
    assert_eq!((&metadata["@projection"], &metadata["@id"]), (&json!(true), &json!("orders/1")));
    let distinct = server.rows("from Orders order by Total select distinct Total").await;
    let totals: Vec<String> =
        distinct["Results"].as_array().unwrap().iter().map(|row| row["Total"].to_string()).collect();
    assert_eq!(totals.len(), 4, "20 and 20.0 are one: {totals:?}");
    assert_eq!((&distinct["TotalResults"], &distinct["SkippedResults"]), (&json!(4), &json!(1)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn groups_are_counted_and_added_up() {
    let server = with_orders().await;
    let query = "from Orders where Total < 1000 group by Company order by count() desc, Company select key() as Who, count(), sum(Total) as Sum";
    let answer = server.ask(json!({ "Query": query })).await;
    assert!(answer.text().contains(r#"{"Who":null,"Count":1,"Sum":20,"#), "{}", answer.text());
    let rows = answer.json();
    assert_eq!(rows["TotalResults"], 3);
    assert_eq!(rows["Results"][0]["@metadata"], json!({"@projection": true, "@change-vector": null}));
    let having = server
        .rows("from Orders group by Company where count() > 1 order by Company select Company, count() as N")
        .await;
    let shown: Vec<_> =
        having["Results"].as_array().unwrap().iter().map(|row| (row["Company"].clone(), row["N"].clone())).collect();
    assert_eq!(shown, [(Value::Null, json!(2)), (json!("companies/1"), json!(2))]);
    let answer = server.ask(json!({ "Query": "from Orders group by Company select sum(Total)" })).await;
    answer.assert_error(400, "InvalidQueryException", &["sum(Total)", "orders/4", "many"]);
    let answer = server.ask(json!({ "Query": "from Orders group by Company select Total" })).await;
    answer.assert_error(400, "InvalidQueryException", &["'Total'", "group by"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_come_along() {
    let server = with_orders().await;
    let answer = server.rows("from Orders where exists(Lines) include Company, Lines[].Product").await;
    assert_eq!(answer["Includes"]["companies/1"]["Name"], "One");
    assert_eq!(answer["Includes"]["p/1"], Value::Null);
    assert_eq!(answer["IncludedPaths"], json!(["Company", "Lines[].Product"]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_they_ended_whatever_comes_and_goes() {
    let server = TestServer::with_database().await;
    let put = |n: u32, v: u32| {
        let server = &server;
        async move {
            let body = format!(r#"{{"V":{v},"@metadata":{{"@collection":"Docs"}}}}"#);
            server.must_put(&format!("docs/{n:03}"), body).await;
        }
    };
    for n in 0..20 {
        put(n * 10, n % 4).await;
    }
    for (query, first) in [
        ("from Docs", "docs/000"),
        ("from Docs order by V, id() desc", "docs/160"),
        ("from Docs order by etag()", "docs/000"),
    ] {
        let mut seen = Vec::new();
        let mut token = Some(String::new());
        let mut page = 0;
        while let Some(continuation) = token {
            let body = json!({ "Query": format!("{query} limit 3"), "Continuation": continuation });
            let answer = server.ask(body).await.json();
            seen.extend(ids_of(&answer["Results"]));
            token = answer["Continuation"].as_str().map(str::to_owned);
            // One comes before the place, one is deleted that was the last one seen.
            if page == 1 {
                server.delete(&format!("/databases/db/docs?id={}", escape(seen.last().unwrap()))).await;
                put(5, 0).await;
            }
            page += 1;
        }
        assert_eq!(seen[0], first);
        let mut once = seen.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), seen.len(), "{query}: nothing twice: {seen:?}");
        assert!(once.len() >= 20, "{query}: nothing left out: {seen:?}");
        server.delete("/databases/db/docs?id=docs/005").await;
        for n in 0..20 {
            put(n * 10, n % 4).await;
        }
    }
    let answer = server.ask(json!({ "Query": "from Docs limit 3", "Continuation": "" })).await.json();
    let token = answer["Continuation"].as_str().unwrap();
    let other = server.ask(json!({ "Query": "from Docs where V = 1 limit 3", "Continuation": token })).await;
    other.assert_error(400, "InvalidQueryException", &["another query"]);
    server.ask(json!({ "Query": "from Docs", "Continuation": "x" })).await.assert_error(
        400,
        "InvalidQueryException",
        &["continuation"],
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_results_are_asked_by_the_name_of_the_index_or_of_its_collection() {
    let server = with_orders().await;
    server.delete("/databases/db/docs?id=orders/4").await;
    assert_eq!(server.put_index("Sales/ByCompany", SALES).await.status, StatusCode::CREATED);
    let body = json!({ "Query": "from index 'sales/bycompany' where Count > 1", "WaitForNonStaleResults": true });
    let answer = server.ask(body).await.json();
    assert_eq!((&answer["IndexName"], &answer["IsStale"]), (&json!("Sales/ByCompany"), &json!(false)));
    assert_eq!(answer["Results"][0]["Company"], "companies/1");
    assert_eq!(answer["Results"][0]["@metadata"]["@flags"], "Artificial, FromIndex");
    let sales = server.rows("from Sales order by Count, Company").await;
    assert_eq!((&sales["IndexName"], &sales["TotalResults"]), (&json!("collection/Sales"), &json!(3)));
    let missing = server.ask(json!({ "Query": "from index 'Nope'" })).await;
    missing.assert_error(404, "IndexDoesNotExistException", &["Nope"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_without_documents_is_asked_too() {
    let server = with_orders().await;
    let script = SALES.replace("output(\"Sales\");", "").replace("order.Total ?? 0", "1");
    assert_eq!(server.put_index("Counts", &script).await.status, StatusCode::CREATED);
    let body = json!({ "Query": "from index Counts order by Company desc", "WaitForNonStaleResults": true });
    let answer = server.ask(body).await.json();
    let companies: Vec<_> = answer["Results"].as_array().unwrap().iter().map(|row| row["Company"].clone()).collect();
    assert_eq!(companies, [json!("companies/2"), json!("companies/1"), Value::Null]);
    assert_eq!(answer["Results"][0]["@metadata"], json!({ "@change-vector": null }));
    assert_eq!(answer["TotalResults"], 3);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_says_whether_it_is_stale_and_waits_when_asked() {
    let server = with_orders().await;
    assert_eq!(server.put_index("Sales/ByCompany", SALES).await.status, StatusCode::CREATED);
    server.wait_for_indexes().await;
    server.send(Method::POST, "/databases/db/admin/indexes/stop", "").await;
    server.must_put("orders/6", r#"{"Company":"companies/9","@metadata":{"@collection":"Orders"}}"#).await;
    for query in ["from index 'Sales/ByCompany'", "from Sales"] {
        assert_eq!(server.rows(query).await["IsStale"], true, "{query}");
        let body =
            json!({ "Query": query, "WaitForNonStaleResults": true, "WaitForNonStaleResultsTimeout": "00:00:00.05" });
        assert_eq!(server.ask(body).await.json()["IsStale"], true, "{query}");
    }
    assert_eq!(server.rows("from Orders").await["IsStale"], false);
    server.send(Method::POST, "/databases/db/admin/indexes/start", "").await;
    let body = json!({ "Query": "from Sales where Company = 'companies/9'", "WaitForNonStaleResults": true });
    let answer = server.ask(body).await.json();
    assert_eq!((&answer["IsStale"], &answer["TotalResults"]), (&json!(false), &json!(1)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_known_is_not_sent_again() {
    let server = with_orders().await;
    let path = format!("/databases/db/queries?query={}", escape("from Orders where Total = 20"));
    let etag = server.get(&path).await.header("etag").unwrap().to_owned();
    let again =
        Answer::read(server.request(Method::GET, &path).header("If-None-Match", &etag).send().await.unwrap()).await;
    assert_eq!((again.status, again.body.len()), (StatusCode::NOT_MODIFIED, 0));
    server.must_put("orders/2", r#"{"Total":21,"@metadata":{"@collection":"Orders"}}"#).await;
    let changed =
        Answer::read(server.request(Method::GET, &path).header("If-None-Match", &etag).send().await.unwrap()).await;
    assert_eq!(ids_of(&changed.json()["Results"]), numbered(&[5]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_says_how_it_is_run() {
    let server = with_orders().await;
    for n in 0..100 {
        server.must_put(&format!("users/{n}"), r#"{"@metadata":{"@collection":"Users"}}"#).await;
    }
    for (query, plan, read) in [
        ("from Orders where id() = 'orders/1'", "1 by id", 1),
        ("from @all_docs where startsWith(id(), 'orders/')", "ids that begin with 'orders/'", 5),
        ("from Orders", "put in order", 5),
        ("from Orders order by Total limit 2", "its feed, then sorted", 5),
        ("from Users where a = 1", "scan in id order", 106),
        ("from Nothing where a = 1", "nothing to read", 0),
        ("from Orders where etag() > 3", "feed after etag 3", 2),
        ("from Users limit 3", "scan in id order", 9),
    ] {
        let answer = server
            .send(Method::POST, "/databases/db/queries?debug=explain", json!({ "Query": query }).to_string())
            .await;
        let explained = answer.json();
        assert!(explained["Plan"].as_str().unwrap().contains(plan), "{query}: {explained}");
        assert!(explained["RowsRead"].as_u64().unwrap() <= read, "{query}: {explained}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_needs_too_much_memory_is_refused() {
    let server = TestServer::start_with(|limits| limits.query_memory_max = 20_000).await;
    server.create("db").await;
    for n in 0..200 {
        let body = format!(r#"{{"V":"{:0>100}","@metadata":{{"@collection":"Docs"}}}}"#, n % 150);
        server.must_put(&format!("docs/{n}"), body).await;
    }
    for query in ["from Docs order by V", "from Docs group by V select V, count()", "from Docs select distinct V"] {
        let answer = server.ask(json!({ "Query": query })).await;
        if query.contains("distinct") {
            // Its rows have begun to go out: the answer breaks off, or the error comes first.
            assert_ne!(answer.status, StatusCode::OK, "{query}");
        }
        answer.assert_error(400, "InvalidQueryException", &["query_memory_max", "20000"]);
    }
    assert_eq!(server.rows("from Docs order by V limit 10").await["TotalResults"], 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_streamed_as_lines_and_as_one_object() {
    let server = with_orders().await;
    let body = json!({ "Query": "from Orders where Total = 20" }).to_string();
    let lines = server.send(Method::POST, "/databases/db/streams/queries?format=jsonl", body.clone()).await.text();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for field in ["ResultEtag", "IsStale", "IndexName", "TotalResults", "IndexTimestamp"] {
        assert!(lines[0]["Stats"].get(field).is_some(), "{field}");
    }
    let ids: Vec<_> = lines[1..].iter().map(|line| line["Item"]["@metadata"]["@id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["orders/2", "orders/5"]);
    let whole = server.send(Method::POST, "/databases/db/streams/queries", body).await.json();
    assert_eq!(ids_of(&whole["Results"]), numbered(&[2, 5]));
    let path = format!("/databases/db/streams/queries?format=jsonl&query={}", escape("from Orders"));
    let all = server.get(&path).await.text();
    assert_eq!(all.lines().count(), 6);
    assert!(all.starts_with(r#"{"Stats":{"#) && all.contains("\"TotalResults\":5"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_says_where_and_why() {
    let server = with_orders().await;
    for (query, status, kind, words) in [
        ("frm Orders", 400, "ParseException", "1:1 "),
        ("from Orders where", 400, "ParseException", "1:18 "),
        ("from Orders where search(Name, 'x')", 501, "NotSupportedException", "search("),
        ("from Orders select count()", 400, "InvalidQueryException", "group by"),
        ("from Orders limit 'x'", 400, "InvalidQueryException", "limit"),
    ] {
        let answer = server.ask(json!({ "Query": query })).await;
        answer.assert_error(status, kind, &[words, query]);
    }
    let path = "/databases/db/queries";
    server.send(Method::PATCH, path, "{}").await.assert_error(501, "NotSupportedException", &["patching by query"]);
    server.send(Method::POST, path, "{}").await.assert_error(400, "ArgumentException", &["Query"]);
    let index = json!({ "Query": "from Orders", "ProjectionBehavior": "FromIndex" });
    server.ask(index).await.assert_error(501, "NotSupportedException", &["FromIndex"]);
    let debug = server.send(Method::POST, "/databases/db/queries?debug=entries", r#"{"Query":"from Orders"}"#).await;
    debug.assert_error(501, "NotSupportedException", &["entries"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_query_chooses_is_deleted_in_the_background() {
    let server = with_orders().await;
    for n in 0..2_500 {
        let commands = json!([{ "Type": "PUT", "Id": format!("docs/{n}"), "Document": { "V": n % 2, "@metadata": { "@collection": "Docs" } } }]);
        if n % 500 == 0 {
            let many: Vec<Value> = (n..n + 500)
                .map(|n| json!({ "Type": "PUT", "Id": format!("docs/{n}"), "Document": { "V": n % 2, "@metadata": { "@collection": "Docs" } } }))
                .collect();
            assert_eq!(server.batch(&json!(many)).await.status, StatusCode::CREATED, "{commands}");
        }
    }
    let body = json!({ "Query": "from Docs where V = $v", "QueryParameters": { "v": 1 } }).to_string();
    let begun = server.send(Method::DELETE, "/databases/db/queries", body).await.json();
    let state = loop {
        let state = server.get(&format!("/databases/db/operations/state?id={}", begun["OperationId"])).await.json();
        if state["Status"] != "InProgress" {
            break state;
        }
    };
    assert_eq!((&state["Status"], &state["Result"]["Total"]), (&json!("Completed"), &json!(1_250)), "{state}");
    let left = server.rows("from Docs where V = 1").await;
    assert_eq!(left["TotalResults"], 0);
    assert_eq!(server.rows("from Docs limit 0").await["TotalResults"], 1_250);
    let refused = server.send(Method::DELETE, "/databases/db/queries", r#"{"Query":"from Docs limit 5"}"#).await;
    refused.assert_error(400, "InvalidQueryException", &["'limit'"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_queries_are_asked_in_one_request() {
    let server = with_orders().await;
    let content = json!({ "Query": "from Orders where Total = $p0", "QueryParameters": { "p0": 20 } }).to_string();
    let requests = json!({ "Requests": [
        { "Url": "/databases/db/queries", "Query": "?queryHash=1", "Method": "POST", "Content": content },
        { "Url": "/databases/db/queries", "Query": "?", "Method": "POST", "Content": { "Query": "from Companies" } },
    ] });
    let answer = server.send(Method::POST, "/databases/db/multi_get", requests.to_string()).await.json();
    assert_eq!(ids_of(&answer["Results"][0]["Result"]["Results"]), numbered(&[2, 5]));
    assert_eq!(answer["Results"][1]["Result"]["TotalResults"], 1);
    server.stop().await;
}
