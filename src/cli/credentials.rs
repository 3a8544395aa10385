//! With what a command shows a server who it is, and by what it knows the server.

use std::path::PathBuf;

use clap::Args;
use reqwest::{Certificate, ClientBuilder, Identity, header};

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
    #[arg(long = "key", env = "TREEPIE_KEY", hide = true, hide_env_values = true)]
    key: Option<String>,
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
    /// Adds them to what an HTTP client is made of.
    ///
    /// # Errors
    /// A file can't be read, or does not hold what it should.
    pub(crate) fn apply(&self, mut client: ClientBuilder) -> Result<ClientBuilder, Failure> {
        if let Some(file) = &self.ca {
            let issuers = Certificate::from_pem_bundle(&read(file)?).map_err(|error| bad(file, &error))?;
            for issuer in issuers {
                client = client.add_root_certificate(issuer);
            }
        }
        if let Some(file) = &self.certificate {
            client = client.identity(Identity::from_pem(&read(file)?).map_err(|error| bad(file, &error))?);
        }
        let key = match (&self.key, &self.key_file) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(file)) => Some(String::from_utf8_lossy(&read(file)?).into_owned()),
            (None, None) => None,
        };
        if let Some(key) = key {
            let mut value = header::HeaderValue::from_str(&format!("Bearer {}", key.trim()))
                .map_err(|_| Failure::usage("the API key holds characters that no key has"))?;
            value.set_sensitive(true);
            client = client.default_headers([(header::AUTHORIZATION, value)].into_iter().collect());
        }
        Ok(client)
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| Failure::file(&file.display().to_string(), &error))
}

fn bad(file: &PathBuf, error: &reqwest::Error) -> Failure {
    Failure::failed(format!("{}: {error}", file.display()))
}
