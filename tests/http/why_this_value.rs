//! Every value can be asked where it comes from, and every document what it does.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sums::{SUM_BY_K, delete_command, put_command};
use crate::support::{TestServer, escape};

async fn explain(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/databases/db/explain?{query}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    answer.json()
}

async fn of_id(server: &TestServer, id: &str) -> Value {
    explain(server, &format!("id={}", escape(id))).await
}

/// The id of the artificial document with this key.
async fn id_of(server: &TestServer, collection: &str, key: &Value) -> String {
    for id in server.versions(collection).await.into_keys() {
        if server.document(&id).await.unwrap()["Key"] == *key {
            return id;
        }
    }
    panic!("{collection} has no document for {key}");
}

/// Days, months and years of sales, and one index that fails for one product.
async fn with_sales() -> TestServer {
    let server = TestServer::with_database().await;
    let level = |source: &str, output: &str, unit: &str| {
        format!(
            r#"source("{source}"); output("{output}");
               fn map(doc) {{ emit((doc.at ?? doc.Key).{unit}(), #{{ total: doc.total }}); }}
               fn reduce(key, values) {{ #{{ total: values.sum("total") }} }}"#
        )
    };
    server.must_index("Days", &level("Sales", "Days", "day")).await;
    server.must_index("Months", &level("Days", "Months", "month")).await;
    server.must_index("Years", &level("Months", "Years", "year")).await;
    let products = r#"source("Sales");
        fn map(doc) { if doc.total > 100 { throw "too dear"; } emit(doc.product, #{ n: 1 }); emit("all", #{ n: 1 }); emit("all", #{ n: 2 }); }
        fn reduce(key, values) { if key == "bad" { throw "bad group"; } #{ n: values.sum("n") } }"#;
    server.must_index("Products", products).await;
    for (id, at, product, total) in [
        ("Sales/1", "2026-01-01", "pie", json!(1)),
        ("Sales/2", "2026-01-01", "tart", json!(2)),
        ("Sales/3", "2026-01-02", "bad", json!(3)),
        ("Sales/4", "2026-02-01", "pie", json!(101)),
    ] {
        server.item("Sales", id, &json!({"at": at, "product": product, "total": total}).to_string()).await;
    }
    server.wait_for_indexes().await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artificial_document_names_what_it_was_made_of_and_what_it_feeds() {
    let server = with_sales().await;
    let id = id_of(&server, "Months", &json!("2026-01")).await;
    let why = of_id(&server, &id).await;
    assert_eq!((&why["Id"], &why["Collection"], &why["IsCut"]), (&json!(id), &json!("Months"), &json!(false)));
    let group = &why["Group"];
    assert_eq!(
        (&group["Index"], &group["Key"], &group["Entries"], &group["State"], &group["Body"]["total"]),
        (&json!("Months"), &json!("2026-01"), &json!(2), &json!("Document"), &json!(6))
    );
    let days = [id_of(&server, "Days", &json!("2026-01-01")).await, id_of(&server, "Days", &json!("2026-01-02")).await];
    let mut made_of: Vec<(String, Value)> = Vec::new();
    for entry in group["Contributions"].as_array().unwrap() {
        assert_eq!(
            (&entry["Collection"], &entry["IsArtificial"], &entry["Ordinal"]),
            (&json!("Days"), &json!(true), &json!(0))
        );
        made_of.push((entry["Id"].as_str().unwrap().to_owned(), entry["Value"].clone()));
    }
    let mut expected = vec![(days[0].clone(), json!({"total": 3})), (days[1].clone(), json!({"total": 3}))];
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!((made_of, &group["Next"]), (expected, &Value::Null));
    let year = id_of(&server, "Years", &json!(2026)).await;
    assert_eq!(why["Feeds"].as_array().unwrap().len(), 1);
    let fed = &why["Feeds"][0];
    assert_eq!((&fed["Index"], &fed["IsCurrent"], &fed["TotalGroups"]), (&json!("Years"), &json!(true), &json!(1)));
    assert_eq!(
        fed["Groups"],
        json!([{"Id": year, "Key": 2026, "Exists": true, "Values": [{"total": 6}], "Feeds": []}])
    );
    let below = of_id(&server, &days[0]).await;
    let ids: Vec<&Value> = below["Group"]["Contributions"].as_array().unwrap().iter().map(|it| &it["Id"]).collect();
    assert_eq!(ids, ["Sales/1", "Sales/2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_document_names_what_it_feeds_up_through_all_levels_and_where_it_failed() {
    let server = with_sales().await;
    let what = of_id(&server, "sales/3").await;
    assert_eq!((&what["Id"], &what["Group"]), (&json!("Sales/3"), &Value::Null));
    let feeds = what["Feeds"].as_array().unwrap();
    assert_eq!(feeds.iter().map(|it| it["Index"].as_str().unwrap()).collect::<Vec<_>>(), ["Days", "Products"]);
    let day = &feeds[0]["Groups"][0];
    assert_eq!((&day["Key"], &day["Values"]), (&json!("2026-01-02"), &json!([{"total": 3}])));
    let month = &day["Feeds"][0]["Groups"][0];
    assert_eq!((&day["Feeds"][0]["Index"], &month["Key"]), (&json!("Months"), &json!("2026-01")));
    let year = &month["Feeds"][0]["Groups"][0];
    assert_eq!((&year["Key"], &year["Values"], &year["Feeds"]), (&json!(2026), &json!([{"total": 6}]), &json!([])));
    let products = &feeds[1];
    assert_eq!(products["TotalGroups"], 2);
    assert_eq!(
        products["Groups"],
        json!([
            {"Id": null, "Key": "bad", "Exists": false, "Values": [{"n": 1}], "Feeds": []},
            {"Id": null, "Key": "all", "Exists": true, "Values": [{"n": 1}, {"n": 2}], "Feeds": []},
        ])
    );
    let failed = of_id(&server, "Sales/4").await["Feeds"][1].clone();
    assert_eq!((&failed["Index"], &failed["TotalGroups"]), (&json!("Products"), &json!(0)));
    assert!(failed["Fault"]["Message"].as_str().unwrap().contains("too dear"), "{failed}");
    server.pause().await;
    server.item("Sales", "Sales/3", r#"{"at":"2026-03-01","product":"pie","total":9}"#).await;
    server.item("Sales", "Sales/9", r#"{"at":"2026-03-01","product":"pie","total":9}"#).await;
    let behind = of_id(&server, "Sales/3").await;
    assert_eq!(
        (&behind["Feeds"][0]["IsCurrent"], &behind["Feeds"][0]["Groups"][0]["Key"]),
        (&json!(false), &json!("2026-01-02"))
    );
    let fresh = of_id(&server, "Sales/9").await;
    assert_eq!((&fresh["Feeds"][0]["IsCurrent"], &fresh["Feeds"][0]["TotalGroups"]), (&json!(false), &json!(0)));
    server.remove("Sales/9").await;
    server.get("/databases/db/explain?id=Sales/9").await.assert_error(
        404,
        "DocumentDoesNotExistException",
        &["Sales/9"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_without_a_document_is_found_by_its_key_and_says_why() {
    let server = with_sales().await;
    let bad = explain(&server, "index=products&key=%22bad%22").await;
    assert_eq!((&bad["Id"], &bad["Group"]["State"]), (&Value::Null, &json!("Fault")));
    assert!(bad["Group"]["Fault"]["Message"].as_str().unwrap().contains("bad group"), "{bad}");
    assert_eq!(bad["Group"]["Contributions"][0]["Id"], "Sales/3");
    let pie = explain(&server, "index=Products&key=%20%22pie%22").await;
    assert_eq!((&pie["Group"]["Body"], &pie["Group"]["Entries"]), (&json!({"Key": "pie", "n": 1}), &json!(1)));
    let day = explain(&server, "index=Days&key=%222026-01-01%22").await;
    assert_eq!(day["Id"], id_of(&server, "Days", &json!("2026-01-01")).await);
    for (query, status, kind, word) in [
        ("index=Products&key=%22none%22", 404, "DocumentDoesNotExistException", "none"),
        ("index=Nope&key=1", 404, "DocumentDoesNotExistException", "Nope"),
        ("index=Days&key=%7B", 400, "ArgumentException", "{"),
        ("index=Days", 400, "ArgumentException", "'key'"),
        ("", 400, "ArgumentException", "'id'"),
        ("id=none", 404, "DocumentDoesNotExistException", "none"),
        ("id=Days/0123456789abcdef0123456789abcdef", 404, "DocumentDoesNotExistException", "Days/0123"),
    ] {
        server.get(&format!("/databases/db/explain?{query}")).await.assert_error(status, kind, &[word]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_many_documents_comes_in_pages_that_survive_changes() {
    let server = TestServer::with_index(SUM_BY_K).await;
    let put = |n: u32| put_command("Items", &format!("Items/{n:04}"), json!({"k": "one", "v": n}));
    server.batch(&(0..2_500).map(put).collect()).await;
    server.wait_for_indexes().await;
    let id = escape(&id_of(&server, "Out", &json!("one")).await);
    let (mut seen, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let page = explain(&server, &format!("id={id}&pageSize=700{after}")).await["Group"].clone();
        pages += 1;
        seen.extend(page["Contributions"].as_array().unwrap().iter().map(|it| it["Id"].as_str().unwrap().to_owned()));
        let Some(next) = page["Next"].as_str() else { break };
        if pages == 1 {
            // What is deleted behind the page, and at its end, moves nothing.
            server.batch(&json!([delete_command("Items/0003"), delete_command("Items/0699")])).await;
            server.wait_for_indexes().await;
        }
        after = format!("&after={}", escape(next));
    }
    let expected: Vec<String> = (0..2_500).map(|n| format!("Items/{n:04}")).collect();
    assert_eq!((pages, seen), (4, expected));
    let most = explain(&server, &format!("id={id}&pageSize=100000")).await;
    assert_eq!(most["Group"]["Contributions"].as_array().unwrap().len(), 1_000);
    let few = explain(&server, &format!("id={id}")).await;
    assert_eq!(few["Group"]["Contributions"].as_array().unwrap().len(), 100);
    server.get(&format!("/databases/db/explain?id={id}&after=x")).await.assert_error(
        400,
        "ArgumentException",
        &["'x'"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_feeds_thousands_of_groups_is_cut_with_a_word_about_it() {
    let script = r#"source("Items"); output("Out");
        fn map(doc) { for n in 0..doc.count { emit(n, #{ n: 1 }); } }
        fn reduce(key, values) { #{ n: values.sum("n") } }"#;
    let server = TestServer::with_index(script).await;
    server.item("Items", "a", r#"{"count":3000}"#).await;
    server.wait_for_indexes().await;
    let what = of_id(&server, "a").await;
    assert_eq!((&what["IsCut"], &what["Feeds"][0]["TotalGroups"]), (&json!(true), &json!(3_000)));
    assert_eq!(what["Feeds"][0]["Groups"].as_array().unwrap().len(), 100);
    server.send(Method::POST, "/databases/db/explain?id=a", "").await.assert_error(404, "RouteNotFoundException", &[]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_document_names_who_loads_it_and_entries_without_groups_are_shown() {
    let server = TestServer::with_database().await;
    let script = r#"source("Orders");
        fn map(doc) { emit(load(doc.customer, "Customers").region, #{ v: doc.v }); }"#;
    server.must_index("Regions", script).await;
    server.item("Customers", "customers/1", r#"{"region":"north"}"#).await;
    for (id, v) in [("orders/1", 1.5), ("Orders/2", 2.0)] {
        server.item("Orders", id, &json!({"v": v, "customer": "customers/1"}).to_string()).await;
    }
    server.wait_for_indexes().await;
    let customer = of_id(&server, "customers/1").await;
    assert_eq!(customer["LoadedBy"], json!([{"Index": "Regions", "Ids": ["orders/1", "orders/2"], "IsCut": false}]));
    let order = of_id(&server, "orders/1").await;
    let feeds = &order["Feeds"][0];
    assert_eq!((&feeds["Index"], &feeds["TotalGroups"], &feeds["Groups"]), (&json!("Regions"), &json!(1), &json!([])));
    assert_eq!(feeds["Entries"], json!([{"Key": "north", "Value": {"v": 1.5}}]));
}
