//! What becomes of settings: those of a server, its databases and their scripts.

use super::table::Settings;
use super::value::{Guid, Storage, TrailingSlash};
use crate::database::DatabaseSettings;
use crate::server::{Exposure, ServerLimits, ServerSettings, TlsFiles};
use crate::store::{Durability, Memory};

impl Settings {
    /// The settings of the server.
    #[must_use]
    pub fn server(&self) -> ServerSettings {
        let mut settings = ServerSettings::new(self.data.clone(), self.listen, self.database());
        settings.limits = self.limits();
        settings.public_url.clone_from(&self.public_url);
        settings.backups.clone_from(&self.backups);
        settings.exposure = Exposure { open_to_everyone: self.open_to_everyone, plain_text: self.plain_text };
        if let (Some(certificate), Some(key)) = (&self.tls_certificate, &self.tls_key) {
            settings.tls = Some(TlsFiles { certificate: certificate.clone(), key: key.clone() });
        }
        settings
    }

    fn database(&self) -> DatabaseSettings {
        let mut database = DatabaseSettings::default();
        let store = &mut database.store;
        store.id_rules.node_tag.clone_from(&self.node_tag);
        store.id_rules.trailing_slash_is_identity = self.trailing_slash == TrailingSlash::Identity;
        store.id_rules.guid_v7 = self.guid == Guid::V7;
        store.durability = match self.durability {
            Storage::Strict => Durability::Strict,
            Storage::Relaxed => Durability::Relaxed,
        };
        store.memory = Some(Memory::new(self.write_buffer.0, self.block_cache.0));
        database.tombstones.kept_min = self.tombstones_kept.0;
        database.tombstones.subscription_idle_max = self.subscription_idle_max.0;
        database.script_limits.operations_max = self.script_operations_max as u64;
        database.script_limits.wall_max = self.script_time_max.0;
        database
    }

    fn limits(&self) -> ServerLimits {
        ServerLimits {
            connections_max: self.connections_max,
            requests_max: self.requests_max,
            blocking_max: self.blocking_max,
            listings_max: self.listings_max,
            head_bytes_max: self.head_max.0,
            document_bytes_max: self.document_max.0,
            batch_bytes_max: self.batch_max.0,
            request_bytes_max: self.request_max.0,
            bodies_bytes_max: self.bodies_max.0,
            includes_max: self.includes_max,
            query_memory_max: self.query_memory_max.0,
            head_timeout: self.head_timeout.0,
            body_pause_max: self.body_pause_max.0,
            bulk_insert_pause_max: self.bulk_insert_pause_max.0,
            body_timeout: self.body_timeout.0,
            unread_max: self.unread_max.0,
            wait_max: self.wait_max.0,
            shutdown_max: self.shutdown_max.0,
        }
    }
}
