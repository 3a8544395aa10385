//! With what a client shows a server who it is, and by what it knows the server.

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Certificate, ClientBuilder, Identity};

use super::error::ClientError;

/// What a client shows a server, and by what it knows the server. Nothing of it is shown by `Debug`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Credentials {
    /// An API key.
    pub api_key: Option<String>,
    /// A certificate and its private key, both in PEM.
    pub certificate: Option<Vec<u8>>,
    /// The certificate of the server's issuer in PEM, where the system does not know it.
    pub issuer: Option<Vec<u8>>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("api_key", &self.api_key.is_some())
            .field("certificate", &self.certificate.is_some())
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Adds them to what an HTTP client is made of.
    ///
    /// # Errors
    /// They are not what they should be.
    pub fn apply(&self, mut client: ClientBuilder) -> Result<ClientBuilder, ClientError> {
        let bad = |what: &str, error: &dyn fmt::Display| ClientError::Usage(format!("{what} can't be used: {error}"));
        if let Some(issuer) = &self.issuer {
            let issuers =
                Certificate::from_pem_bundle(issuer).map_err(|error| bad("the issuer's certificate", &error))?;
            for issuer in issuers {
                client = client.add_root_certificate(issuer);
            }
        }
        if let Some(certificate) = &self.certificate {
            let identity = Identity::from_pem(certificate).map_err(|error| bad("the client certificate", &error))?;
            client = client.identity(identity);
        }
        if let Some(key) = &self.api_key {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim()))
                .map_err(|_| bad("the API key", &"it holds characters that no key has"))?;
            value.set_sensitive(true);
            client = client.default_headers(HeaderMap::from_iter([(AUTHORIZATION, value)]));
        }
        Ok(client)
    }
}
