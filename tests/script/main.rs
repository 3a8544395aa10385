//! Index scripts as an index uses them: definitions, the three calls, numbers, faults, and scripts that mean harm.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::panic, reason = "a test fails by panicking")]

mod definitions;
mod documents;
mod guide;
mod hostile;
mod numbers;
mod support;

/// Counts what is allocated.
#[global_allocator]
static ALLOCATOR: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
