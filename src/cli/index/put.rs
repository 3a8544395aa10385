//! `treepie index put`: an index script, and where it was refused.

use std::path::Path;

use clap::Args;
use reqwest::Method;

use crate::cli::api::{ANSWER_TIMEOUT, Api, CallError, encode};
use crate::cli::output::{Output, OutputArgs};
use crate::cli::put::read;
use crate::cli::{Failure, Target, json};

/// Put an index script, new or changed
#[derive(Debug, Args)]
pub(crate) struct Put {
    /// The script, a .rhai file; - reads standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// The index's name, instead of the file's
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: OutputArgs,
}

impl Put {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let api = Api::new(&self.target, ANSWER_TIMEOUT)?;
        let name = match &self.name {
            Some(name) => name.clone(),
            None => name_of(&self.file)?,
        };
        let script = read(&self.file)?;
        api.ensure_database().await?;
        let request = api.request(Method::PUT, &format!("indexes/{}", encode(&name))).body(script.clone());
        match api.send(request).await {
            Ok(_) => {}
            Err(CallError::Refused(refusal)) if refusal.status.is_client_error() && !refusal.database_missing => {
                let file = if self.file == "-" { "standard input" } else { &self.file };
                return Err(Failure::failed(with_line(&refusal.message, file, &script)));
            }
            Err(error) => return Err(api.failure(error)),
        }
        let mut out = Output::new(self.output);
        if out.for_people() {
            out.line(&format!("put index {name}"))?;
        } else {
            let mut text = String::new();
            json::push_string(&mut text, &name);
            out.line(&json::object([("name", text.as_str())].into_iter()))?;
        }
        out.flush()
    }
}

/// The index's name, from that of its file.
pub(super) fn name_of(file: &str) -> Result<String, Failure> {
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str()).filter(|stem| *stem != "-");
    stem.map(str::to_owned).ok_or_else(|| Failure::usage("an index from standard input needs a --name"))
}

/// Adds the line that a message points at, with a caret under the column.
pub(super) fn with_line(message: &str, file: &str, script: &str) -> String {
    let shown =
        position(message).and_then(|(line, column)| Some((line, column, script.lines().nth(line.checked_sub(1)?)?)));
    let Some((line, column, text)) = shown else { return message.to_owned() };
    let number = line.to_string();
    let margin = " ".repeat(number.len());
    let text = text.replace('\t', " ");
    let before = " ".repeat(column.saturating_sub(1));
    format!("{message}\n {margin} --> {file}:{line}:{column}\n {number} | {text}\n {margin} | {before}^")
}

/// The first `:line:column` in a message.
fn position(message: &str) -> Option<(usize, usize)> {
    message.match_indices(':').find_map(|(place, _)| {
        let (line, rest) = number(message.get(place + 1..)?)?;
        let (column, _) = number(rest.strip_prefix(':')?)?;
        Some((line, column))
    })
}

fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_script_is_shown_at_its_line() {
        let message = "index 'A' is refused: script:2:5 in map: no such function (did you mean 'emit'?)";
        let shown = with_line(message, "a.rhai", "fn map(d) {\n    emti(1);\n}");
        let expected = format!("{message}\n   --> a.rhai:2:5\n 2 |     emti(1);\n   |     ^");
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_message_without_a_place_stays_as_it_is() {
        for message in ["no source: say source(\"Orders\")", "at 12:30 o'clock", "a:1:"] {
            assert_eq!(with_line(message, "a.rhai", "x"), message);
        }
    }

    #[test]
    fn an_index_is_called_like_its_file() {
        assert_eq!(name_of("some/CarrierMonths.rhai").ok().as_deref(), Some("CarrierMonths"));
        assert!(name_of("-").is_err());
    }
}
