//! A server in trouble: what `load` sends again, and what it does not.
//!
//! The server here is a stand-in that counts requests and answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use crate::program::{Ran, TREEPIE, run};

/// How the stand-in treats a request for a batch.
#[derive(Clone, Copy)]
enum Answer {
    Stored,
    Busy,
    /// Reads it whole and hangs up.
    Nothing,
}

/// Starts a stand-in that treats batches by `answers`, one after the other, and reports each batch's body.
fn stand_in(answers: &'static [Answer]) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (report, batches) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answers = answers.iter();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let (head, body) = request(&stream);
            let answer = if head.starts_with("POST") {
                report.send(body).unwrap();
                *answers.next().unwrap()
            } else {
                Answer::Stored
            };
            reply(stream, answer);
        }
    });
    (url, batches)
}

fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, String::from_utf8(body).unwrap())
}

fn reply(mut stream: TcpStream, answer: Answer) {
    let (status, body) = match answer {
        Answer::Stored => ("201 Created", "{\"Results\":[]}"),
        Answer::Busy => ("503 Service Unavailable", "{\"Message\":\"too much at once\"}"),
        Answer::Nothing => return,
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
}

fn load(url: &str, id: &str) -> Ran {
    let mut command = Command::new(TREEPIE);
    command.args(["load", "-", "--id", id, "--url", url, "--json"]);
    run(command, "{\"n\":1}\n{\"n\":2}\n")
}

#[test]
fn a_busy_server_is_asked_again_with_the_same_batch() {
    for id in ["", "a/", "a/{n}"] {
        let (url, batches) = stand_in(&[Answer::Busy, Answer::Busy, Answer::Stored]);
        let ran = load(&url, id);
        assert_eq!(ran.json()[0]["documents"], 2, "{id}");
        assert!(ran.stderr.contains("trying again"), "{ran:?}");
        let sent: Vec<String> = batches.try_iter().collect();
        assert_eq!((sent.len(), &sent[0], &sent[1]), (3, &sent[2], &sent[2]), "{id}");
    }
}

#[test]
fn a_batch_without_an_answer_is_sent_again_only_when_its_ids_are_finished() {
    let (url, batches) = stand_in(&[Answer::Nothing, Answer::Stored]);
    assert_eq!(load(&url, "a/{n}").json()[0]["documents"], 2);
    assert_eq!(batches.try_iter().count(), 2);
    for id in ["", "a/", "a|"] {
        let (url, batches) = stand_in(&[Answer::Nothing]);
        let ran = load(&url, id);
        assert_eq!(ran.code, Some(4), "{id}");
        assert!(ran.stderr.contains("lines 1 to 2 may have been stored or not"), "{ran:?}");
        assert_eq!(batches.try_iter().count(), 1, "{id}");
    }
}
