//! Where a call stands in the source, and what its author asked for.

use crate::ir::{LoopWishes, UnrollWish};

/// A line and column (both from 1) of the file that the running function was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct At(pub u32, pub u32);

/// The author's requests for a loop.
#[derive(Clone, Debug, Default)]
pub struct Wishes(LoopWishes);

impl Wishes {
    /// Nothing.
    pub fn none() -> Wishes {
        Wishes::default()
    }

    /// `#[unroll]`.
    #[must_use]
    pub fn unroll_full(mut self) -> Wishes {
        self.0.unroll = Some(UnrollWish::Full);
        self
    }

    /// `#[unroll(count)]`; 0 keeps the loop. More than 2³² iterations are as good as that.
    #[must_use]
    pub fn unroll_by(mut self, count: u64) -> Wishes {
        self.0.unroll = Some(match count {
            0 => UnrollWish::Keep,
            _ => UnrollWish::By(u32::try_from(count).unwrap_or(u32::MAX)),
        });
        self
    }

    /// The corresponding request of the IR's loop.
    pub(super) fn into_loop_wishes(self) -> LoopWishes {
        self.0
    }

    /// `#[prefetch("PLAN")]`.
    #[must_use]
    pub fn plan(mut self, plan: &str) -> Wishes {
        self.0.plan = Some(plan.to_owned());
        self
    }
}
