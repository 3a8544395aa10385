//! Keys are equal by value and told apart by everything else; numbers keep every digit, and sums have no history.

use serde_json::{Value, json};

use crate::sums::SUM_BY_K;
use crate::support::TestServer;

async fn with_keys(keys: &[&str]) -> TestServer {
    let server = TestServer::with_index(SUM_BY_K).await;
    for (number, key) in keys.iter().enumerate() {
        server.item("Items", &format!("items/{number}"), &format!("{{\"k\":{key},\"v\":1}}")).await;
    }
    server.wait_for_indexes().await;
    server
}

/// The groups as `key×documents`, sorted.
async fn groups(server: &TestServer) -> Vec<String> {
    let group = |body: &String| {
        let (key, rest) = body.strip_prefix("{\"Key\":").unwrap().rsplit_once(",\"n\":").unwrap();
        format!("{key}×{}", rest.split(',').next().unwrap())
    };
    let mut groups: Vec<String> = server.bodies("Out").await.iter().map(group).collect();
    groups.sort();
    groups
}

#[tokio::test(flavor = "multi_thread")]
async fn large_integers_keep_every_digit() {
    let keys = ["369553424691494913", "369553424691494912", "9223372036854775807", "-9223372036854775808"];
    let server = with_keys(&keys).await;
    for (number, key) in keys.iter().enumerate() {
        let text = server.get(&format!("/databases/db/docs?id=items/{number}")).await.text();
        assert!(text.contains(&format!("\"k\":{key},")), "{text}");
    }
    let mut expected: Vec<String> = keys.iter().map(|key| format!("{key}×1")).collect();
    expected.sort();
    assert_eq!(groups(&server).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_are_equal_are_one_group_and_a_text_is_another() {
    let server = with_keys(&["1", "1.0", "1e0", "\"1\"", "9007199254740993", "9007199254740992"]).await;
    assert_eq!(groups(&server).await, ["\"1\"×1", "1×3", "9007199254740992×1", "9007199254740993×1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_do_not_depend_on_their_history() {
    let server = TestServer::with_index(SUM_BY_K).await;
    let values = ["-0.2", "-0.1", "0.1", "0.2"];
    let mut orders = Vec::new();
    for a in 0..4 {
        for b in (0..4).filter(|b| *b != a) {
            for c in (0..4).filter(|c| ![a, b].contains(c)) {
                orders.push([a, b, c, 6 - a - b - c]);
            }
        }
    }
    assert_eq!(orders.len(), 24);
    for (k, order) in orders.iter().enumerate() {
        for &place in order {
            server.item("Items", &format!("{k}/{place}"), &format!("{{\"k\":{k},\"v\":{}}}", values[place])).await;
            server.wait_for_indexes().await;
        }
    }
    let expected: Vec<String> = {
        let mut bodies: Vec<String> = (0..24).map(|k| format!("{{\"Key\":{k},\"n\":4,\"v\":0}}")).collect();
        bodies.sort();
        bodies
    };
    assert_eq!(server.bodies("Out").await, expected);
    server.rebuild("Index").await;
    assert_eq!(server.bodies("Out").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sum_beyond_64_bits_goes_on_exactly_and_comes_back() {
    let server = TestServer::with_index(SUM_BY_K).await;
    server.item("Items", "a", r#"{"k":1,"v":9223372036854775807}"#).await;
    server.item("Items", "b", r#"{"k":1,"v":1}"#).await;
    server.item("Items", "c", r#"{"k":2,"v":5}"#).await;
    server.wait_for_indexes().await;
    let second = r#"{"Key":2,"n":1,"v":5}"#;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"n":2,"v":9223372036854775808}"#, second]);
    server.remove("b").await;
    server.wait_for_indexes().await;
    assert_eq!(server.bodies("Out").await, [r#"{"Key":1,"n":1,"v":9223372036854775807}"#, second]);
    assert_eq!(server.faults("Index").await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn null_false_zero_and_empty_values_are_groups_of_their_own_and_missing_is_null() {
    let server = with_keys(&["null", "false", "0", "\"\"", "[]", "{}"]).await;
    server.item("Items", "missing", r#"{"v":1}"#).await;
    server.wait_for_indexes().await;
    let read = async || {
        let mut groups: Vec<Value> = Vec::new();
        for body in server.bodies("Out").await {
            let body: Value = serde_json::from_str(&body).unwrap();
            groups.push(json!([body.get("Key"), body["n"]]));
        }
        groups
    };
    let expected = [
        json!(["", 1]),
        json!([0, 1]),
        json!([[], 1]),
        json!([false, 1]),
        json!([null, 2]),
        // An empty object has no fields to show.
        json!([null, 1]),
    ];
    let before = read().await;
    assert_eq!(before.len(), 6, "{before:?}");
    for group in &expected {
        assert!(before.contains(group), "{group} in {before:?}");
    }
    server.rebuild("Index").await;
    assert_eq!(read().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_grouped_by_code_points_and_ids_by_code_points_without_case() {
    let texts = ["é", "e\u{301}", "É", "✈\u{fe0f}", "✈"];
    let keys: Vec<String> = texts.iter().map(|text| Value::from(*text).to_string()).collect();
    let server = with_keys(&keys.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut expected: Vec<String> = keys.iter().map(|key| format!("{key}×1")).collect();
    expected.sort();
    assert_eq!(groups(&server).await, expected);
    for text in texts {
        server.item("Texts", text, &json!({"text": text}).to_string()).await;
    }
    // Ids do not know case, so the third text is the first one written again; it shows as it was written last.
    assert_eq!(server.versions("Texts").await.len(), 4);
    for (id, text) in [("é", "É"), ("É", "É"), ("e\u{301}", "e\u{301}"), ("✈", "✈"), ("✈\u{fe0f}", "✈\u{fe0f}")]
    {
        assert_eq!(server.document(id).await.unwrap()["text"], text);
    }
    server.remove("✈").await;
    assert!(server.document("✈").await.is_none() && server.document("✈\u{fe0f}").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_several_parts_are_never_glued_together() {
    let keys = [
        r#"["a","b/c"]"#,
        r#"["a/b","c"]"#,
        r#"["ab",""]"#,
        r#"["a","b"]"#,
        r#"["a\u0000","b"]"#,
        r#"["a","\u0000b"]"#,
        r#"["1",2]"#,
        r#"[1,"2"]"#,
        r#"["a|b"]"#,
        "[\"\u{10ffff}\u{10ffff}\"]",
        "[\"\u{10ffff}\",\"\u{10ffff}\"]",
    ];
    let server = with_keys(&keys).await;
    let ids: Vec<String> = server.versions("Out").await.into_keys().collect();
    assert_eq!(ids.len(), keys.len(), "each is a group of its own");
    for id in ids {
        assert_eq!(server.document(&id).await.unwrap()["n"], 1, "{id} can be fetched");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_keys_are_whole_keys() {
    let server = TestServer::with_index(SUM_BY_K).await;
    for (length, last) in [(4_096, 'a'), (4_096, 'b'), (100_000, 'a')] {
        let key = format!("{}{last}", "x".repeat(length - 1));
        let put = |number: u32| {
            let id = format!("items/{length}-{last}-{number}");
            crate::sums::put_command("Items", &id, json!({"k": key, "v": 1}))
        };
        assert!(server.batch(&(0..128).map(put).collect()).await.status.is_success());
    }
    server.wait_for_indexes().await;
    let bodies = server.bodies("Out").await;
    assert_eq!(bodies.len(), 3);
    assert!(bodies.iter().all(|body| body.ends_with(",\"n\":128,\"v\":128}")));
}
