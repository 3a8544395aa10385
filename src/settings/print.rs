//! Settings as a file of settings, with what each means.

use std::fmt::Write as _;

use super::table::{Settings, entries};

/// Writes settings as TOML; what is not set is a comment.
#[must_use]
pub fn print(settings: &Settings) -> String {
    let mut text = String::from(
        "# Settings of a Treepie server, for `treepie serve --config FILE`. Each can also be given in the environment and on\n\
         # the command line; the command line wins over the environment, the environment over this file.\n",
    );
    for entry in entries() {
        text.push('\n');
        for line in entry.doc.lines() {
            text.extend(["#", line, "\n"]);
        }
        let default = entry.default().unwrap_or_else(|| "not set".to_owned());
        let line = match (entry.get)(settings) {
            Some(value) if entry.is_text => format!("{} = {}", entry.name, quoted(&value)),
            Some(value) => format!("{} = {value}", entry.name),
            None => format!("# {} = \"\"", entry.name),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "# Default: {default}. Also {}, --{}.\n{line}", entry.variable(), entry.name);
    }
    text
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
