//! `query`: rows as a table, as JSON lines and as CSV; parameters; how a query is run.

use crate::program::Server;

fn with_orders() -> Server {
    let server = Server::start();
    for (id, document) in [
        ("orders/1", r#"{"Company":"One, \"Ltd\"","Total":10.50}"#),
        ("orders/2", r#"{"Company":"Two","Total":20,"Note":null}"#),
        ("orders/3", r#"{"Company":"Two","Total":123456789012345678901,"Lines":[{"P":1}]}"#),
    ] {
        let ran = server.run_with(&["put", id, "--collection", "Orders"], document);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    server
}

#[test]
fn rows_are_json_lines_when_piped() {
    let server = with_orders();
    let ran = server.run(&["query", "from Orders where Total > 15 order by Total desc"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let rows = ran.json();
    assert_eq!((rows.len(), rows[1]["@metadata"]["@id"].as_str()), (2, Some("orders/2")));
    assert!(ran.stdout.lines().next().unwrap().contains("123456789012345678901"), "no digit is lost");
}

#[test]
fn rows_are_a_table_for_people() {
    let server = with_orders();
    let ran = server.run(&["query", "--text", "from Orders select Company, Total"]);
    let table = "Company                     Total\nOne, \"Ltd\"                  10.50\n";
    let lines: Vec<&str> = ran.stdout.lines().map(str::trim_end).collect();
    assert_eq!(lines[..2], table.lines().map(str::trim_end).collect::<Vec<_>>(), "{ran:?}");
    let whole = server.run(&["query", "--text", "from Orders where exists(Lines)"]).stdout;
    assert!(whole.starts_with("@id") && whole.contains("orders/3") && whole.contains(r#"[{"P":1}]"#), "{whole}");
}

#[test]
fn rows_are_comma_separated_when_asked() {
    let server = with_orders();
    let ran = server.run(&["query", "--csv", "from Orders select Company, Total, Note"]);
    let expected = "Company,Total,Note\n\"One, \"\"Ltd\"\"\",10.50,\nTwo,20,\nTwo,123456789012345678901,\n";
    assert_eq!(ran.stdout, expected, "{ran:?}");
}

#[test]
fn parameters_are_json_or_text() {
    let server = with_orders();
    let query = "from Orders where Total in ($totals) and Company = $company";
    let ran = server.run(&["query", query, "--param", "totals=[20,10.5]", "-p", "$company=Two"]);
    assert_eq!(ran.json().len(), 1, "{ran:?}");
}

#[test]
fn a_query_is_explained_instead_of_answered() {
    let server = with_orders();
    let ran = server.run(&["query", "--explain", "--text", "from Orders where id() = 'orders/2'"]);
    assert!(ran.stdout.contains("plan   collection 'Orders': 1 by id\nread   1\nfound  1\n"), "{ran:?}");
    let json = server.run(&["query", "--explain", "from Orders order by Total"]).json();
    assert_eq!((json[0]["RowsRead"].as_u64(), json[0]["TotalResults"].as_i64()), (Some(3), Some(3)));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let server = with_orders();
    let ran = server.run(&["query", "from Orders where"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("1:18"), "{ran:?}");
    assert_eq!(server.run(&["query", "from index 'Nope'"]).code, Some(3));
    assert_eq!(server.run(&["query", "from Orders", "--param", "x"]).code, Some(2));
}
