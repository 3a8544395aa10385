//! What scripts load during a trial: a sample, else what is stored.

use std::collections::HashMap;

use super::Sample;
use crate::id::{DocumentId, lower};
use crate::script::{LoadedDocument, Loader};
use crate::store::snapshot::SharedSnapshot;

/// The documents of a trial, by lower-cased id, and those of a database.
#[derive(Debug)]
pub(super) struct SampleLoader {
    samples: HashMap<String, Sample>,
    stored: Option<SharedSnapshot>,
}

impl SampleLoader {
    pub(super) fn new(samples: &[Sample], stored: Option<SharedSnapshot>) -> Self {
        let samples = samples.iter().map(|sample| (lower(&sample.id), sample.clone())).collect();
        Self { samples, stored }
    }
}

impl Loader for SampleLoader {
    fn load(&self, id: &DocumentId) -> Result<Option<LoadedDocument>, String> {
        if let Some(Sample { id, collection, metadata, body }) = self.samples.get(id.lower()).cloned() {
            return Ok(Some(LoadedDocument { id, collection, metadata, body }));
        }
        let found = self.stored.as_ref().map(|stored| stored.get().get(id)).transpose();
        let found = found.map_err(|error| error.to_string())?.flatten();
        Ok(found.map(|found| LoadedDocument {
            id: found.id,
            collection: found.collection,
            metadata: found.metadata,
            body: found.body,
        }))
    }
}
