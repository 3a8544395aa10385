//! TLS: the server's certificate, read again when its files change, and the certificate that a client shows.
//!
//! A client needs none, and whatever it shows is taken at this point as long as it proves that it has the private key:
//! whether the certificate opens anything is `access`'s matter, so that a refusal is an answer that says why.
//!
//! Next on the walk: `access`.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::RwLock;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error as TlsError, ServerConfig, SignatureScheme,
};
use tokio_rustls::server::TlsStream;

use crate::access::Digest;

/// The files of a server's certificate, both in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to its issuer.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// TLS as a server speaks it.
pub(crate) struct Tls {
    files: TlsFiles,
    state: RwLock<State>,
}

struct State {
    config: Arc<ServerConfig>,
    /// The server's own certificate.
    certificate: Vec<u8>,
    seen: Seen,
}

/// By which changed files are known.
type Seen = [Option<SystemTime>; 2];

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files. Blocking.
    pub(crate) fn open(files: TlsFiles) -> io::Result<Self> {
        let seen = look(&files);
        let state = read(&files, seen)?;
        Ok(Self { files, state: RwLock::new(state) })
    }

    /// Reads the files again where they have changed. Blocking. `true`: new connections have the new certificate.
    pub(crate) fn refresh(&self) -> io::Result<bool> {
        let seen = look(&self.files);
        if self.state.read().seen == seen {
            return Ok(false);
        }
        let state = read(&self.files, seen)?;
        *self.state.write() = state;
        Ok(true)
    }

    /// The server's certificate in base64; clients speak TLS for subscriptions only where they are told it.
    pub(crate) fn certificate(&self) -> String {
        STANDARD.encode(&self.state.read().certificate)
    }

    /// Begins TLS on a connection.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let config = Arc::clone(&self.state.read().config);
        TlsAcceptor::from(config).accept(stream).await
    }
}

/// The digest of the certificate that the client has shown.
pub(crate) fn client_certificate(stream: &TlsStream<TcpStream>) -> Option<Digest> {
    let (_, session) = stream.get_ref();
    session.peer_certificates()?.first().map(|certificate| Digest::of(certificate))
}

fn look(files: &TlsFiles) -> Seen {
    [&files.certificate, &files.key].map(|file| std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok())
}

fn read(files: &TlsFiles, seen: Seen) -> io::Result<State> {
    let bad = |file: &PathBuf, error: &dyn fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {error}", file.display()))
    };
    let certificates = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| bad(&files.certificate, &error))?;
    let Some(certificate) = certificates.first().map(|certificate| certificate.to_vec()) else {
        return Err(bad(&files.certificate, &"it holds no certificate in PEM"));
    };
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, &error))?;
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_client_cert_verifier(Arc::new(AnyClient { provider }))
        .with_single_cert(certificates, key)
        .map_err(|error| bad(&files.key, &error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(State { config: Arc::new(config), certificate, seen })
}

/// Takes every client whose certificate, where it shows one, is its own.
#[derive(Debug)]
struct AnyClient {
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
