//! A script's failure in JSON: where it happened, what, and the way out.

use serde::Serialize;

use crate::script::{Fault, Phase};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FaultBody {
    phase: &'static str,
    script: String,
    line: Option<u32>,
    column: Option<u32>,
    function: Option<String>,
    message: String,
    hint: Option<String>,
}

impl FaultBody {
    pub(crate) fn new(fault: Fault) -> Self {
        let Fault { phase, script, line, column, function, message, hint, .. } = fault;
        Self { phase: phase_name(phase), script, line, column, function, message, hint }
    }
}

/// A phase's name on the wire.
pub(crate) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Definition => "Definition",
        Phase::Map => "Map",
        Phase::Reduce => "Reduce",
        Phase::Finish => "Finish",
        Phase::Reference => "Reference",
        Phase::Filter => "Filter",
        Phase::Project => "Project",
    }
}
