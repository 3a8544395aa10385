//! The example of a database inside a program runs and prints what its reader expects.

use std::process::Command;

#[test]
fn the_embedded_example_shows_results_and_a_change() {
    let ran = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--offline", "--example", "embedded"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let printed = String::from_utf8(ran.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("wrote orders/") && lines[0].ends_with("-A"), "{printed}");
    assert_eq!(lines.len(), 4, "{printed}");
    assert!(lines.iter().any(|line| line.ends_with(r#" {"Product":"milk","Total":0.7}"#)), "{printed}");
    assert!(
        lines[3].starts_with("changed: Sales/") && lines[3].ends_with(r#" {"Product":"tea","Total":0.5}"#),
        "{printed}"
    );
}
