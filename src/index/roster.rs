//! Which indexes there are, by name: the generation that serves and, while a definition changes, the one that is to take its place.
//!
//! Names are compared without regard to case. `ReplacementOf/Name` is how others see the replacement of `Name`.
//!
//! Next on the walk: `live`.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::definition::Refused;
use super::live::Index;
use super::records::DefinitionRecord;
use crate::id::lower;

/// The beginning of a replacement's name, as RavenDB's clients know it.
const REPLACEMENT_OF: &str = "ReplacementOf/";

/// One index.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Whose rows are read and whose results are the documents.
    pub serving: Arc<Index>,
    /// What is to take its place.
    pub replacement: Option<Arc<Index>>,
}

/// A stored definition that this version refuses. Its results stay as they are; it can be replaced and deleted.
#[derive(Debug)]
pub(crate) struct Unloaded {
    pub record: DefinitionRecord,
    pub reason: Refused,
}

/// The indexes of one database.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    slots: RwLock<BTreeMap<String, Slot>>,
    unloaded: RwLock<BTreeMap<String, Arc<Unloaded>>>,
}

/// The name under which others see the replacement of an index.
pub(crate) fn replacement_of(name: &str) -> String {
    format!("{REPLACEMENT_OF}{name}")
}

/// The index whose replacement a name speaks of.
pub(crate) fn replaced_by(name: &str) -> Option<&str> {
    let (head, rest) = name.split_at_checked(REPLACEMENT_OF.len())?;
    head.eq_ignore_ascii_case(REPLACEMENT_OF).then_some(rest)
}

impl Roster {
    /// Both generations of an index.
    pub(crate) fn slot(&self, name: &str) -> Option<Slot> {
        self.slots.read().get(&lower(name)).cloned()
    }

    /// The generation that serves.
    pub(crate) fn serving(&self, name: &str) -> Option<Arc<Index>> {
        Some(self.slot(name)?.serving)
    }

    /// The generation that was begun last.
    pub(crate) fn newest(&self, name: &str) -> Option<Arc<Index>> {
        let slot = self.slot(name)?;
        Some(slot.replacement.unwrap_or(slot.serving))
    }

    /// What a name speaks of: an index, or the replacement of one.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Index>> {
        match replaced_by(name) {
            Some(replaced) => self.slot(replaced)?.replacement,
            None => self.serving(name),
        }
    }

    /// All indexes, in name order.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.slots.read().values().cloned().collect()
    }

    /// The stored definitions that are refused, in name order.
    pub(crate) fn all_unloaded(&self) -> Vec<Arc<Unloaded>> {
        self.unloaded.read().values().cloned().collect()
    }

    /// A stored definition that is refused.
    pub(crate) fn unloaded(&self, name: &str) -> Option<Arc<Unloaded>> {
        self.unloaded.read().get(&lower(name)).cloned()
    }

    /// How many indexes there are.
    pub(crate) fn count(&self) -> usize {
        self.slots.read().len() + self.unloaded.read().len()
    }

    /// Takes in an index that serves; whatever had its name goes.
    pub(crate) fn set(&self, index: &Arc<Index>) {
        let name = lower(&index.context.name);
        let slot = Slot { serving: Arc::clone(index), replacement: None };
        self.slots.write().insert(name.clone(), slot);
        self.unloaded.write().remove(&name);
    }

    /// Takes in what is to take the place of an index, or that nothing is.
    pub(crate) fn set_replacement(&self, name: &str, replacement: Option<Arc<Index>>) {
        if let Some(slot) = self.slots.write().get_mut(&lower(name)) {
            slot.replacement = replacement;
        }
    }

    /// Takes in a definition that is refused.
    pub(crate) fn set_unloaded(&self, unloaded: Unloaded) {
        self.unloaded.write().insert(lower(&unloaded.record.name), Arc::new(unloaded));
    }

    /// Forgets an index.
    pub(crate) fn remove(&self, name: &str) {
        let name = lower(name);
        self.slots.write().remove(&name);
        self.unloaded.write().remove(&name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_is_known_by_its_name_in_any_case() {
        assert_eq!(replaced_by("replacementof/Sales/By month"), Some("Sales/By month"));
        assert_eq!(replaced_by(&replacement_of("é")), Some("é"));
        for name in ["Sales", "ReplacementOf", "ReplacementOfé", "é/replacementof/"] {
            assert_eq!(replaced_by(name), None, "{name}");
        }
    }
}
