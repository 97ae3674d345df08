//! What a timed launch finds in the L2 cache.

use serde::{Deserialize, Serialize};

/// What the L2 cache holds when a timed launch starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// What the same launch before it left there.
    #[default]
    Kept,
    /// Nothing of what the launch touches.
    Flushed,
}
