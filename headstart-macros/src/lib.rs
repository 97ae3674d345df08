//! The `#[kernel]` attribute.
