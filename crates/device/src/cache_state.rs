//! The state of the L2 cache at the start of a timed launch.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The contents of the L2 cache when a timed launch starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CacheState {
    /// The data that the same launch before it left there.
    #[default]
    Kept,
    /// None of the launch's data.
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
