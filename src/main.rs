//! The `treepie` program: parse, run, print how it failed.
//!
//! Everything it can do is in `cli`, one file for each command; the database itself is the library.

mod cli;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use cli::{Cli, Failure};

/// How long threads may take to end when everything else has.
const END_MAX: Duration = Duration::from_secs(1);

/// Index scripts allocate many small values, on many threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.message.is_empty() {
                // Nobody is left to tell when standard error is closed.
                let _ = writeln!(io::stderr(), "treepie: {failure}");
            }
            failure.exit_code()
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {error}")))?;
    let outcome = runtime.block_on(cli.run());
    // What still blocks a thread (a backup, standard input) was told to end, and is not waited for.
    runtime.shutdown_timeout(END_MAX);
    outcome
}
