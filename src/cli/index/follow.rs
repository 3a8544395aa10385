//! `treepie index status --watch`: the same table, again and again as indexes move.

use std::time::Duration;

use console::Term;
use reqwest::Method;

use super::status::{Look, found_indexes};
use crate::cli::api::Api;
use crate::cli::lines::Lines;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{Failure, Target};

/// The server reports twice a second.
const SILENCE: Duration = Duration::from_secs(60);

/// Follows one index, or all, until the server goes away or nobody reads.
pub(super) async fn follow(target: &Target, name: Option<&str>, output: OutputArgs) -> Result<(), Failure> {
    let api = Api::new(target, SILENCE)?;
    let request = api.request(Method::GET, "indexes/progress").header("Accept", "text/event-stream");
    let request = request.query(&name.map(|name| ("name", name)).into_iter().collect::<Vec<_>>());
    let answer = api.send(request).await.map_err(|error| api.failure(error));
    let mut lines = Lines::new(&api, found_indexes(name, answer)?);
    let (mut out, term) = (Output::new(output), Term::stdout());
    let (mut before, mut shown) = (Vec::<String>::new(), 0);
    while let Some(line) = lines.next().await? {
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let look = Look::parse(data)?;
        if look.raw == before {
            continue;
        }
        if out.for_people() {
            if term.is_term() && shown > 0 {
                term.clear_last_lines(shown).map_err(|error| Failure::output(&error))?;
            }
            shown = look.lines();
            look.print(&mut out)?;
        } else {
            let moved = look.raw.iter().filter(|index| !before.contains(index));
            for index in moved {
                out.line(index)?;
            }
        }
        out.flush()?;
        before = look.raw;
    }
    Ok(())
}
