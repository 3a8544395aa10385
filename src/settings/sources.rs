//! Where settings come from: a file, the environment, the command line; and everything that is wrong with them.

use std::fmt::Display;
use std::path::Path;

use super::table::{Entry, Settings, entries};

/// A setting as it was given, with where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The setting's name.
    pub name: String,
    /// Its value as text.
    pub text: String,
    /// As messages call its place: `--node-tag`, `TREEPIE_NODE_TAG`, `treepie.toml: node-tag`.
    pub place: String,
}

/// Puts settings together: defaults, then `file`, then `environment`, then `flags`.
///
/// # Errors
/// All that is wrong, one finding each: settings that do not exist, values that break their rule, a file that can't be read,
/// settings that do not go together.
pub fn read(
    file: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
    flags: &[Given],
) -> Result<Settings, Vec<String>> {
    let (mut settings, mut findings) = (Settings::default(), Vec::new());
    let mut given = Vec::new();
    if let Some(file) = file {
        read_file(file, &mut given, &mut findings);
    }
    for entry in entries() {
        let variable = entry.variable();
        if let Some(text) = environment(&variable) {
            given.push(Given { name: entry.name.to_owned(), text, place: variable });
        }
    }
    given.extend_from_slice(flags);
    for Given { name, text, place } in given {
        match find(&name) {
            None => findings.push(format!("{place}: there is no such setting")),
            Some(entry) => {
                if let Err(rule) = (entry.set)(&mut settings, &text) {
                    findings.push(format!("{place}: '{}' {rule}", crate::id::cut(&text)));
                }
            }
        }
    }
    if settings.tls_certificate.is_some() != settings.tls_key.is_some() {
        findings.push("tls-certificate and tls-key go together: one is given and the other is not".to_owned());
    }
    if findings.is_empty() { Ok(settings) } else { Err(findings) }
}

fn find(name: &str) -> Option<&'static Entry> {
    entries().iter().find(|entry| entry.name == name)
}

fn read_file(file: &Path, given: &mut Vec<Given>, findings: &mut Vec<String>) {
    let shown = file.display();
    let mut wrong = |detail: &dyn Display| findings.push(format!("{shown}: {detail}"));
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return wrong(&error),
    };
    let table = match text.parse::<toml::Table>() {
        Ok(table) => table,
        Err(error) => return wrong(&error),
    };
    for (name, value) in table {
        let is_text = find(&name).is_none_or(|entry| entry.is_text);
        let text = match value {
            toml::Value::String(text) if is_text => text,
            toml::Value::Integer(number) if !is_text => number.to_string(),
            toml::Value::Boolean(on) if !is_text => on.to_string(),
            other => {
                let wanted = if is_text { "a string in quotes" } else { "a number, or true or false, without quotes" };
                wrong(&format!("{name}: {other} must be {wanted}"));
                continue;
            }
        };
        given.push(Given { place: format!("{shown}: {name}"), name, text });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Size, print};

    fn flag(name: &str, text: &str) -> Given {
        Given { name: name.to_owned(), text: text.to_owned(), place: format!("--{name}") }
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn the_later_source_wins() {
        let file = file("node-tag = \"F\"\nguid = \"v7\"\nconnections-max = 7\nwrite-buffer = \"8MiB\"\n");
        let environment = |name: &str| match name {
            "TREEPIE_NODE_TAG" => Some("E".to_owned()),
            "TREEPIE_WRITE_BUFFER" => Some("9MiB".to_owned()),
            _ => None,
        };
        let settings = read(Some(file.path()), environment, &[flag("node-tag", "C")]).unwrap();
        assert_eq!((settings.node_tag.as_str(), settings.connections_max), ("C", 7));
        assert_eq!((settings.write_buffer, settings.block_cache), (Size(9 << 20), Size(32 << 20)));
    }

    #[test]
    fn all_that_is_wrong_is_told_together() {
        let file = file("node-tag = \"lower\"\nno-such = 1\nconnections-max = \"7\"\n[table]\n");
        let flags = [flag("write-buffer", "much"), flag("blocking-max", "0"), flag("tls-key", "a.pem")];
        let findings = read(Some(file.path()), |_| None, &flags).unwrap_err();
        for (name, words) in [
            ("node-tag", "capital letters"),
            ("no-such", "no-such"),
            ("connections-max", "without quotes"),
            ("--write-buffer", "'much' must be"),
            ("--blocking-max", "must be 1 to 400"),
            ("tls-certificate", "go together"),
            ("table", "table"),
        ] {
            let is_told = findings.iter().any(|finding| finding.contains(name) && finding.contains(words));
            assert!(is_told, "{name}: {findings:#?}");
        }
    }

    #[test]
    fn a_file_that_is_none_is_told() {
        let findings = read(Some(Path::new("/nowhere/x.toml")), |_| None, &[]).unwrap_err();
        assert!(findings.len() == 1 && findings[0].contains("/nowhere/x.toml"), "{findings:?}");
        let file = file("a = = b");
        assert_eq!(read(Some(file.path()), |_| None, &[]).unwrap_err().len(), 1);
    }

    #[test]
    fn what_is_printed_reads_as_the_same_settings() {
        let flags = [
            flag("data", "a \"quoted\" \\ path"),
            flag("tls-certificate", "c.pem"),
            flag("tls-key", "k.pem"),
            flag("anyone-may-read-and-write-everything", "true"),
            flag("head-timeout", "90s"),
            flag("log", "debug"),
        ];
        for flags in [&[][..], &flags] {
            let settings = read(None, |_| None, flags).unwrap();
            let printed = print(&settings);
            assert_eq!(read(Some(file(&printed).path()), |_| None, &[]), Ok(settings), "{printed}");
        }
    }
}
