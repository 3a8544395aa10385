//! The README's first screen is a session that works.
//!
//! In a block fenced as ```console, lines that begin with `$ ` are commands for one shell, and the lines below each are what
//! then appears, with `…` for anything on a line. As on a terminal, a command in the background prints while others run:
//! each step ends when as many lines have come as it shows, in any order.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::program::TREEPIE;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Printed at the end; what comes behind it are the words of programs that are told to stop.
const END: &str = "=== the session ends";

/// How long a session may be silent before it counts as stuck.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A command and the output it should have.
#[derive(Debug)]
struct Step {
    command: String,
    expected: Vec<String>,
}

fn sessions(text: &str) -> Vec<Vec<Step>> {
    let mut sessions = Vec::new();
    let mut lines = text.lines();
    while lines.any(|line| line == "```console") {
        let mut steps: Vec<Step> = Vec::new();
        for line in lines.by_ref().take_while(|line| *line != "```") {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
                (None, Some(step)) if step.command.ends_with('\\') => step.command.extend(["\n", line]),
                (None, Some(step)) => step.expected.push(line.to_owned()),
                (None, None) => panic!("a session begins with a command, not with '{line}'"),
            }
        }
        sessions.push(steps);
    }
    sessions
}

/// Whether `line` is what `expected` says, with `…` for anything.
fn matches(expected: &str, line: &str) -> bool {
    let parts: Vec<&str> = expected.split('…').collect();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
    if parts.len() == 1 {
        return expected == line;
    }
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(place) = rest.find(part) else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// Runs a session in a directory that holds what it needs of the checkout, and compares.
fn play(steps: &[Step]) {
    let files = tempfile::TempDir::new().unwrap();
    std::os::unix::fs::symlink(Path::new(ROOT).join("examples"), files.path().join("examples")).unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut shell = Command::new("bash");
    shell
        .current_dir(files.path())
        .env("PROGRAM", Path::new(TREEPIE).parent().unwrap())
        .env("TREEPIE_TEXT", "1")
        .env_remove("TREEPIE_DATABASE");
    shell.env("TREEPIE_LISTEN", &free).env("TREEPIE_URL", format!("http://{free}"));
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut commands = shell.stdin.take().unwrap();
    let (send, lines) = mpsc::channel();
    let output = BufReader::new(shell.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = send.send(line.replace(&free, "127.0.0.1:8080"));
        }
    });
    writeln!(commands, "exec 2>&1; PATH=\"$PROGRAM:$PATH\"; trap 'kill $(jobs -p); wait' EXIT").unwrap();
    for step in steps {
        writeln!(commands, "{}", step.command).unwrap();
        check(step, &lines);
    }
    writeln!(commands, "echo '{END}'").unwrap();
    drop(commands);
    shell.wait().unwrap();
    reader.join().unwrap();
    let rest: Vec<String> = lines.try_iter().take_while(|line| line != END).collect();
    assert!(rest.is_empty(), "more was printed than is shown: {rest:#?}");
}

/// Reads as many lines as a step shows, and compares them in any order.
fn check(step: &Step, lines: &Receiver<String>) {
    let mut missing: Vec<&String> = step.expected.iter().collect();
    let mut printed = String::new();
    while !missing.is_empty() {
        let line = lines.recv_timeout(SILENCE_MAX);
        let place = line.as_ref().ok().and_then(|line| missing.iter().position(|expected| matches(expected, line)));
        let Some(place) = place else {
            panic!("$ {}\nshould print {missing:#?}\nand printed\n{printed}and now {line:?}", step.command);
        };
        missing.remove(place);
        printed.extend([line.unwrap_or_default(), "\n".to_owned()]);
    }
}

#[test]
fn the_readme_sessions_print_what_they_show() {
    let text = fs::read_to_string(Path::new(ROOT).join("README.md")).unwrap();
    let sessions = sessions(&text);
    assert!(!sessions.is_empty(), "the README has a session");
    for steps in sessions {
        play(&steps);
    }
}

#[test]
fn an_ellipsis_stands_for_anything_on_its_line() {
    assert!(matches("a … c", "a b c") && matches("…", "") && matches("a…b…c", "a1b2c"));
    assert!(!matches("a … c", "a b d") && !matches("a", "ab") && !matches("a…b…c", "ac"));
}
