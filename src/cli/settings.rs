//! The settings of a server on the command line: one option for each entry of the table, made from it.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use treepie::settings::{Given, Settings, entries, read};

use super::Failure;
use super::output::notice;

/// Variables of the environment that begin like settings and are none: those of the other commands.
const OTHERS: [&str; 9] = [
    "TREEPIE_CA",
    "TREEPIE_CERTIFICATE",
    "TREEPIE_CLIENTS",
    "TREEPIE_CONFIG",
    "TREEPIE_DATABASE",
    "TREEPIE_KEY",
    "TREEPIE_KEY_FILE",
    "TREEPIE_TEXT",
    "TREEPIE_URL",
];

/// Settings as they were given on the command line, and the file of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingsArgs {
    file: Option<PathBuf>,
    given: Vec<Given>,
}

impl SettingsArgs {
    /// Puts the settings of all sources together.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read(&self) -> Result<Settings, Failure> {
        warn_of_strange_variables();
        let read = read(self.file.as_deref(), variable, &self.given);
        read.map_err(|findings| {
            let way_out = "treepie serve --print-config shows every setting with its default";
            Failure::usage(findings.join("\n  ")).way_out(way_out)
        })
    }
}

/// Others than settings may begin alike (a container's environment has TREEPIE_PORT where a service is called treepie), so
/// they are told and not refused.
fn warn_of_strange_variables() {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let is_setting = entries().iter().any(|entry| entry.variable() == name);
        if name.starts_with("TREEPIE_") && !is_setting && !OTHERS.contains(&name.as_str()) {
            notice(&format!("{name} in the environment is no setting; nothing comes of it"));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place where the environment is read")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Args for SettingsArgs {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .env("TREEPIE_CONFIG")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("A file of settings in TOML");
        let options = entries().iter().map(|entry| {
            let help = entry.doc.split_whitespace().collect::<Vec<_>>().join(" ");
            let default = entry.default().map_or_else(String::new, |default| format!(" [default: {default}]"));
            let option = Arg::new(entry.name).long(entry.name);
            if entry.is_switch {
                return option.action(ArgAction::SetTrue).help(help);
            }
            let variable = entry.variable();
            option.value_name("VALUE").help(format!("{help}{default} [env: {variable}]"))
        });
        command.arg(file).args(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let given = entries().iter().filter_map(|entry| {
            let text = if entry.is_switch {
                matches.get_flag(entry.name).then(|| "true".to_owned())
            } else {
                matches.get_one::<String>(entry.name).cloned()
            };
            Some(Given { name: entry.name.to_owned(), text: text?, place: format!("--{}", entry.name) })
        });
        Ok(Self { file: matches.get_one("config").cloned(), given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
