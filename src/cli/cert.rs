//! `treepie cert`: certificates for a server and its clients, from an issuer of one's own or from elsewhere.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use treepie::access::{AccessFile, Certificate, CertificateError, Credential, Issuer, Kind};

use super::Failure;
use super::key::{Allowed, Data, Delete, List, failure};
use super::output::notice;

/// How long an issuer counts, in days: ten years.
const ISSUER_DAYS: u32 = 3_650;

/// Make certificates, and say which clients' certificates get in
#[derive(Debug, Subcommand)]
pub(crate) enum Cert {
    /// Make a server's certificate, and an issuer where the directory has none: ca.pem, ca.key, server.pem, server.key
    Server(Server),
    /// Make a client's certificate with its private key, NAME.pem, and let it in
    Client(Client),
    /// Let a certificate in that comes from elsewhere
    Add(Add),
    /// List the certificates that get in
    List(List),
    /// Let a certificate in no longer
    Delete(Delete),
}

/// Where certificates are written.
#[derive(Clone, Debug, Args)]
pub(crate) struct Directory {
    /// The directory of ca.pem and ca.key, and of what is made; created where there is none
    #[arg(long, default_value = "./treepie-certificates", value_name = "DIR")]
    dir: PathBuf,
    /// It counts for so many days
    #[arg(long, default_value_t = 365, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=3_650))]
    days: u32,
}

#[derive(Debug, Args)]
pub(crate) struct Server {
    /// Host names and addresses under which clients reach it; may be repeated
    #[arg(long = "host", required = true, value_name = "HOST")]
    hosts: Vec<String>,
    #[command(flatten)]
    directory: Directory,
}

#[derive(Debug, Args)]
pub(crate) struct Client {
    /// What people call it
    #[arg(value_name = "NAME", value_parser = file_name)]
    name: String,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    directory: Directory,
    #[command(flatten)]
    data: Data,
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// What people call it
    #[arg(value_name = "NAME")]
    name: String,
    /// The certificate in PEM; a private key in the file is not looked at
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    allowed: Allowed,
    #[command(flatten)]
    data: Data,
}

impl Cert {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Server(server) => server.run(),
            Self::Client(client) => client.run(),
            Self::Add(add) => add.run(),
            Self::List(list) => list.run(Kind::Certificate),
            Self::Delete(delete) => delete.run(Kind::Certificate),
        }
    }
}

impl Server {
    fn run(self) -> Result<(), Failure> {
        let Directory { dir, days } = &self.directory;
        let issued = issuer(dir)?.server(&self.hosts, *days).map_err(unmade)?;
        // A new certificate in place of the old one: the server takes it up by itself.
        write(&dir.join("server.key"), &issued.key, 0o600, true)?;
        write(&dir.join("server.pem"), &issued.certificate, 0o644, true)?;
        notice(&format!(
            "made {0}/server.pem and server.key; serve with --tls-certificate {0}/server.pem --tls-key {0}/server.key, and \
             give clients {0}/ca.pem",
            dir.display()
        ));
        Ok(())
    }
}

impl Client {
    fn run(self) -> Result<(), Failure> {
        let Directory { dir, days } = &self.directory;
        let issued = issuer(dir)?.client(&self.name, *days).map_err(unmade)?;
        let both = format!("{}{}", issued.certificate, issued.key);
        let certificate = Certificate::read(both.as_bytes()).map_err(unmade)?;
        let file = dir.join(format!("{}.pem", self.name));
        write(&file, &both, 0o600, false)?;
        let added = admit(&self.data, self.name, certificate, self.allowed);
        if added.is_err() {
            // Of no use: it does not get in.
            let _ = std::fs::remove_file(&file);
        }
        added?;
        notice(&format!("made {}, the certificate and its private key; it gets in", file.display()));
        Ok(())
    }
}

impl Add {
    fn run(self) -> Result<(), Failure> {
        let shown = self.file.display().to_string();
        let bytes = std::fs::read(&self.file).map_err(|error| Failure::file(&shown, &error))?;
        let certificate = Certificate::read(&bytes).map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
        notice(&format!("{} gets in until {}", self.name, certificate.expires));
        admit(&self.data, self.name, certificate, self.allowed)
    }
}

fn admit(data: &Data, name: String, certificate: Certificate, allowed: Allowed) -> Result<(), Failure> {
    let Certificate { digest, begins, expires } = certificate;
    let (begins, expires) = (Some(begins), Some(expires));
    let created = Timestamp::now();
    let credential =
        Credential { name, kind: Kind::Certificate, digest, allow: allowed.allow, created, begins, expires };
    AccessFile::change(&data.data, |file| file.add(credential)).map_err(failure)
}

/// The issuer of a directory; made where there is none.
fn issuer(directory: &Path) -> Result<Issuer, Failure> {
    let shown = directory.display().to_string();
    std::fs::create_dir_all(directory).map_err(|error| Failure::file(&shown, &error))?;
    let (certificate, key) = (directory.join("ca.pem"), directory.join("ca.key"));
    match (std::fs::read_to_string(&certificate), std::fs::read_to_string(&key)) {
        (Ok(_), Ok(key)) => Issuer::read(&key).map_err(unmade),
        (Err(a), Err(b)) if a.kind() == ErrorKind::NotFound && b.kind() == ErrorKind::NotFound => {
            let (issuer, issued) = Issuer::new(ISSUER_DAYS).map_err(unmade)?;
            write(&key, &issued.key, 0o600, false)?;
            write(&certificate, &issued.certificate, 0o644, false)?;
            Ok(issuer)
        }
        (Err(error), _) | (_, Err(error)) => {
            Err(Failure::file(&shown, &error).way_out("ca.pem and ca.key go together; keep both there, or neither"))
        }
    }
}

/// Writes a file that others may read only where `mode` says so.
fn write(path: &Path, text: &str, mode: u32, replace: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::file(&path.display().to_string(), &error);
    let target = if replace { path.with_extension("new") } else { path.to_owned() };
    let mut options = OpenOptions::new();
    options.write(true).mode(mode).create_new(!replace).create(true).truncate(replace);
    let mut file = options.open(&target).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    if replace {
        std::fs::rename(&target, path).map_err(failed)?;
    }
    Ok(())
}

fn file_name(name: &str) -> Result<String, String> {
    let is_plain = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.' | ' ' | '@');
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) || matches!(name, "ca" | "server") {
        return Err(
            "it names a file: letters, digits, '-', '_', '.', '@' and spaces, and neither ca nor server".to_owned()
        );
    }
    Ok(name.to_owned())
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn unmade(error: CertificateError) -> Failure {
    Failure::failed(error.to_string())
}
