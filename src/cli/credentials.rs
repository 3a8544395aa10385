//! With what a command shows a server who it is, and by what it knows the server.

use std::path::PathBuf;

use clap::Args;
use reqwest::ClientBuilder;
use treepie::client;

use super::Failure;

/// Credentials of a command.
#[derive(Clone, Default, Args)]
pub(crate) struct Credentials {
    /// A file with the certificate of the server's issuer in PEM, where the system does not know it
    #[arg(long, env = "TREEPIE_CA", value_name = "FILE")]
    ca: Option<PathBuf>,
    /// A file with a client certificate and its private key in PEM
    #[arg(long, env = "TREEPIE_CERTIFICATE", value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// A file with an API key; TREEPIE_KEY may hold the key itself
    #[arg(long, env = "TREEPIE_KEY_FILE", value_name = "FILE")]
    key_file: Option<PathBuf>,
    #[arg(long = "api-key", env = "TREEPIE_KEY", hide = true, hide_env_values = true)]
    api_key: Option<String>,
}

/// Shows nothing of the key.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("ca", &self.ca)
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads their files and adds them to what an HTTP client is made of.
    ///
    /// # Errors
    /// A file can't be read, or does not hold what it should.
    pub(crate) fn apply(&self, client: ClientBuilder) -> Result<ClientBuilder, Failure> {
        let mut credentials = client::Credentials::default();
        credentials.issuer = self.ca.as_ref().map(read).transpose()?;
        credentials.certificate = self.certificate.as_ref().map(read).transpose()?;
        credentials.api_key = match (&self.api_key, &self.key_file) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(file)) => Some(String::from_utf8_lossy(&read(file)?).into_owned()),
            (None, None) => None,
        };
        credentials.apply(client).map_err(|error| Failure::usage(error.to_string()))
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::file(&file.display().to_string(), &error))
}
