//! The real `treepie` program against a real server process: every command, what it prints, and its exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod access;
mod backup;
mod documents;
mod embedded;
mod etl;
mod explaining;
mod feeds_by_curl;
mod flights;
mod index;
mod load;
mod program;
mod query;
mod readme;
mod serve;
mod settings;
mod subscription;
mod trouble;
mod trying_out;
mod verifying;
mod watch;
