//! What a server refuses to do by accident: to be open to a network.

use std::io;

use super::settings::ServerSettings;

/// Checks that the settings open the door no further than they say in so many words.
///
/// # Errors
/// The server would listen on more than the loopback without credentials, or would take them in plain text.
pub(crate) fn check(settings: &ServerSettings, needs_credentials: bool) -> io::Result<()> {
    let refused = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    let listen = settings.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if !needs_credentials && !settings.exposure.open_to_everyone {
        return refused(format!(
            "it would be open: whoever reaches {listen} could read and write everything. Make a key first, with `treepie key \
             create NAME --allow '*=admin'`; or, where that is wanted, say --anyone-may-read-and-write-everything"
        ));
    }
    if needs_credentials && settings.tls.is_none() && !settings.exposure.plain_text {
        return refused(format!(
            "keys would travel to {listen} in plain text. Give --tls-certificate and --tls-key (`treepie cert server` makes \
             them); or, behind a proxy that speaks TLS, say --keys-may-travel-in-plain-text"
        ));
    }
    Ok(())
}
