//! The real `treepie` program against a real server process: every command, what it prints, and its exit codes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod access;
mod backup;
mod documents;
mod embedded;
mod explaining;
mod flights;
mod index;
mod load;
mod program;
mod readme;
mod serve;
mod settings;
mod trouble;
mod trying_out;
mod verifying;
mod watch;
