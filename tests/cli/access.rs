//! `key` and `cert`: what opens a server, and how commands show it.

use std::process::Command;

use crate::program::{Ran, Server, TREEPIE, run, serve};

struct Place {
    files: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { files: tempfile::TempDir::new().unwrap() }
    }

    fn run(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = Command::new(TREEPIE);
        command.args(arguments).current_dir(self.files.path()).env("TREEPIE_DATA", self.files.path().join("data"));
        command.envs(variables.iter().copied());
        run(command, "")
    }

    fn serve(&self, arguments: &[&str]) -> Server {
        let (child, url) = serve(&self.files.path().join("data"), &[&["--listen", "127.0.0.1:0"], arguments].concat());
        Server::of(child, url)
    }
}

#[test]
fn a_key_is_shown_once_and_opens_the_server_until_it_is_deleted() {
    let place = Place::new();
    let made = place.run(&["key", "create", "me", "--allow", "*=admin", "--json"], &[]).json();
    let key = made[0]["key"].as_str().unwrap();
    let server = place.serve(&[]);
    let url = ("TREEPIE_URL", server.url.as_str());
    let refused = place.run(&["list"], &[url]);
    assert!(refused.code == Some(1) && refused.stderr.contains("needs credentials"), "{refused:?}");
    assert_eq!(place.run(&["put", "a", "/dev/null"], &[url, ("TREEPIE_KEY", key)]).code, Some(1), "no JSON");
    let document = place.files.path().join("a.json");
    std::fs::write(&document, "{}").unwrap();
    assert_eq!(place.run(&["put", "a", "a.json"], &[url, ("TREEPIE_KEY", key)]).code, Some(0));
    let file = place.files.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    assert_eq!(place.run(&["get", "a", "--key-file", "key"], &[url]).code, Some(0));
    let listed = place.run(&["key", "list", "--json"], &[]);
    assert_eq!(listed.json()[0]["name"], "me");
    assert!(!listed.stdout.contains(key), "only the digest is kept");
    let kept = std::fs::read_to_string(place.files.path().join("data/access.json")).unwrap();
    assert!(!kept.contains(key));
    for (arguments, code, words) in [
        (vec!["key", "create", "ME", "--allow", "main=read"], 1, "already"),
        (vec!["key", "create", "x", "--allow", "main=all"], 2, "read, write and admin"),
        (vec!["key", "delete", "none"], 3, "no key 'none'"),
        (vec!["cert", "delete", "me"], 3, "no certificate 'me'"),
    ] {
        let ran = place.run(&arguments, &[]);
        assert!(ran.code == Some(code) && ran.stderr.contains(words), "{arguments:?} {ran:?}");
    }
    assert_eq!(place.run(&["key", "delete", "me"], &[]).code, Some(0));
    while place.run(&["get", "a"], &[url, ("TREEPIE_KEY", key)]).code == Some(0) {}
}

#[test]
fn certificates_are_made_for_a_server_and_its_clients() {
    let place = Place::new();
    let made = place.run(&["cert", "server", "--host", "127.0.0.1", "--host", "localhost", "--dir", "c"], &[]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let client = place.run(&["cert", "client", "app", "--allow", "main=write,*=read", "--dir", "c"], &[]);
    assert_eq!(client.code, Some(0), "{client:?}");
    let path = |name: &str| place.files.path().join("c").join(name).to_str().unwrap().to_owned();
    let server = place.serve(&["--tls-certificate", &path("server.pem"), "--tls-key", &path("server.key")]);
    assert!(server.url.starts_with("https://"), "{}", server.url);
    let url = ("TREEPIE_URL", server.url.as_str());
    let (ca, own) = (("TREEPIE_CA", path("ca.pem")), path("app.pem"));
    let (ca, own) = ((ca.0, ca.1.as_str()), ("TREEPIE_CERTIFICATE", own.as_str()));
    let unknown_issuer = place.run(&["list"], &[url, own]);
    assert!(unknown_issuer.code == Some(4) && unknown_issuer.stderr.contains("certificate"), "{unknown_issuer:?}");
    let without = place.run(&["list"], &[url, ca]);
    assert!(without.code == Some(1) && without.stderr.contains("needs credentials"), "{without:?}");
    let missing = place.run(&["list"], &[url, ca, own]);
    assert_eq!(missing.code, Some(3), "it gets in, and there is no database: {missing:?}");
    let forbidden = place.run(&["backup", "-d", "main"], &[url, ca, own]);
    assert!(forbidden.code == Some(1) && forbidden.stderr.contains("'app' does not have"), "{forbidden:?}");
    assert_eq!(place.run(&["cert", "list", "--json"], &[]).json()[0]["name"], "app");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path("app.pem")).unwrap().permissions());
    assert_eq!(mode & 0o077, 0, "only its owner reads a private key");
    let again = place.run(&["cert", "client", "app", "--allow", "main=read", "--dir", "c"], &[]);
    assert!(again.code == Some(1) && again.stderr.contains("app.pem"), "{again:?}");
    let added = place.run(&["cert", "add", "other", &path("server.pem"), "--allow", "main=read"], &[]);
    assert_eq!(added.code, Some(0), "{added:?}");
}
