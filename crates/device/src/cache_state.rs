//! What a timed launch finds in the L2 cache.

use std::fmt;

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

impl fmt::Display for CacheState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CacheState::Kept => "the L2 cache as the launch before left it",
            CacheState::Flushed => "an L2 cache that holds nothing of it",
        })
    }
}
