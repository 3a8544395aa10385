//! Certificates: made for servers and clients by an issuer of one's own, and read.

use der::asn1::{AnyRef, GeneralizedTime, UtcTime};
use der::{Decode as _, Reader, Tag};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use super::Digest;

/// Why a certificate can't be made or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// It can't be made.
    #[error("the certificate can't be made: {0}")]
    Make(#[from] rcgen::Error),
    /// What should be a certificate is none.
    #[error("it holds no certificate in PEM: {0}")]
    Read(String),
}

/// What a certificate says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The digest of its bytes (DER).
    pub digest: Digest,
    /// From when it counts.
    pub begins: Timestamp,
    /// Until when it counts.
    pub expires: Timestamp,
}

impl Certificate {
    /// Reads the first certificate of a file in PEM; what else stands there is passed over.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn read(pem: &[u8]) -> Result<Self, CertificateError> {
        let bad = |detail: &dyn std::fmt::Display| CertificateError::Read(detail.to_string());
        let bytes = CertificateDer::from_pem_slice(pem).map_err(|error| bad(&error))?;
        let (begins, expires) = validity(&bytes).map_err(|error| bad(&error))?;
        let time = |seconds| Timestamp::from_second(seconds).map_err(|error| bad(&error));
        Ok(Self { begins: time(begins)?, expires: time(expires)?, digest: Digest::of(&bytes) })
    }
}

/// From when until when a certificate counts, in seconds since 1970: the fifth field of what is signed in it (RFC 5280, 4.1),
/// or the fourth, where it has no version.
fn validity(certificate: &[u8]) -> der::Result<(i64, i64)> {
    AnyRef::from_der(certificate)?.sequence(|certificate| {
        let times = certificate.sequence(|signed| {
            if signed.peek_tag()?.is_context_specific() {
                AnyRef::decode(signed)?;
            }
            for _serial_algorithm_issuer in 0..3 {
                AnyRef::decode(signed)?;
            }
            let times = signed.sequence(|validity| Ok((time(validity)?, time(validity)?)))?;
            while !signed.is_finished() {
                AnyRef::decode(signed)?;
            }
            Ok(times)
        })?;
        while !certificate.is_finished() {
            AnyRef::decode(certificate)?;
        }
        Ok(times)
    })
}

fn time<'a>(reader: &mut impl Reader<'a>) -> der::Result<i64> {
    let since = match reader.peek_tag()? {
        Tag::UtcTime => UtcTime::decode(reader)?.to_unix_duration(),
        _ => GeneralizedTime::decode(reader)?.to_unix_duration(),
    };
    Ok(i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
}

/// A certificate and its private key, both in PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

/// Shows nothing of the private key.
impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Signs certificates: a small certificate authority of one's own. All issuers have one name; the key tells them apart.
pub struct Issuer {
    signer: rcgen::Issuer<'static, KeyPair>,
}

/// The name of every issuer that Treepie makes.
const ISSUER: &str = "Treepie's own issuer";

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").finish_non_exhaustive()
    }
}

impl Issuer {
    /// Makes an issuer that counts for `days`.
    ///
    /// # Errors
    /// The library refuses it.
    pub fn new(days: u32) -> Result<(Self, Issued), CertificateError> {
        let (params, key) = (issuer_params(days)?, KeyPair::generate()?);
        let issued = Issued { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem() };
        Ok((Self { signer: rcgen::Issuer::new(params, key) }, issued))
    }

    /// Takes up an issuer that was made before, by its private key in PEM.
    ///
    /// # Errors
    /// It is no private key.
    pub fn read(key: &str) -> Result<Self, CertificateError> {
        Ok(Self { signer: rcgen::Issuer::new(issuer_params(1)?, KeyPair::from_pem(key)?) })
    }

    /// Makes a server's certificate for host names and addresses.
    ///
    /// # Errors
    /// A host is no name and no address.
    pub fn server(&self, hosts: &[String], days: u32) -> Result<Issued, CertificateError> {
        let mut params = params(hosts.first().map_or("treepie", String::as_str), days)?;
        params.subject_alt_names = CertificateParams::new(hosts.to_vec())?.subject_alt_names;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params)
    }

    /// Makes a client's certificate.
    ///
    /// # Errors
    /// The library refuses it.
    pub fn client(&self, name: &str, days: u32) -> Result<Issued, CertificateError> {
        let mut params = params(name, days)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Result<Issued, CertificateError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.signer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

fn issuer_params(days: u32) -> Result<CertificateParams, CertificateError> {
    let mut params = params(ISSUER, days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// From yesterday, because clocks differ, for so many days.
fn params(name: &str, days: u32) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    let day = |offset: i64| {
        let time = Timestamp::now().saturating_add(SignedDuration::from_hours(24 * offset));
        let date = time.unwrap_or(Timestamp::MAX).to_zoned(jiff::tz::TimeZone::UTC).date();
        date_time_ymd(date.year().into(), date.month().unsigned_abs(), date.day().unsigned_abs())
    };
    params.not_before = day(-1);
    params.not_after = day(i64::from(days));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_issuer_makes_says_from_when_until_when_it_counts() {
        let (_, own) = Issuer::new(10).unwrap();
        let issuer = Issuer::read(&own.key).unwrap();
        let client = issuer.client("app", 3).unwrap();
        let read = Certificate::read(format!("{}{}", client.key, client.certificate).as_bytes()).unwrap();
        let now = Timestamp::now();
        assert!(read.begins < now && now < read.expires);
        assert!(read.expires.duration_since(now) <= SignedDuration::from_hours(72));
        assert!(Certificate::read(client.key.as_bytes()).is_err());
        assert!(!format!("{client:?}").contains(&client.key));
    }

    #[test]
    fn a_server_has_names_and_addresses() {
        let (issuer, _) = Issuer::new(1).unwrap();
        assert!(issuer.server(&["db.example.com".to_owned(), "127.0.0.1".to_owned()], 1).is_ok());
    }
}
