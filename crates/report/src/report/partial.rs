//! How far a search came.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number;

/// A search that was stopped: plans that were not tried may be faster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Partial {
    /// Plans that were tried.
    pub tried: usize,
    /// Plans that were to be tried.
    pub of: usize,
    /// Those of the plans left that tell what the others may gain: the likely ones, and one of each other kind.
    #[serde(default)]
    pub telling_left: usize,
    /// The kinds of plans that were tried, and those of which none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried_kinds: Vec<String>,
    /// See there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_kinds: Vec<String>,
    /// How long a plan took on average, in seconds of the search; none where too few ran to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds_a_plan: Option<f64>,
    /// Whether that is for a first look at each: no plan ran to its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_first_looks: bool,
    /// The device's message when it was lost, if the search was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
}

impl fmt::Display for Partial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Stopped after {} of {} plans: others may be faster.",
            self.tried, self.of
        )?;
        for (what, kinds) in [("Tried", &self.tried_kinds), ("Open", &self.open_kinds)] {
            if !kinds.is_empty() {
                write!(f, " {what}: {}.", kinds.join(", "))?;
            }
        }
        match &self.lost {
            Some(error) => write!(f, " The device was lost: {error}."),
            None => Ok(()),
        }
    }
}

impl Partial {
    /// What it would take to try the plans that are left; none where none is.
    pub(super) fn cost(&self) -> Option<String> {
        let left = self.of - self.tried;
        let what = if self.by_first_looks {
            "First looks at the"
        } else {
            "The"
        };
        (left > 0).then(|| match self.seconds_a_plan {
            Some(seconds) => {
                let time = |plans: usize| number::duration(seconds * 1e9 * plans as f64);
                let telling = match self.telling_left {
                    telling if telling == 0 || telling == left => String::new(),
                    1 => format!(" about {} for the likely one,", time(1)),
                    telling => format!(" about {} for the {telling} likely ones,", time(telling)),
                };
                let all = time(left);
                format!("{what} other {left} plans take{telling} about {all} in all: see `--budget`.")
            }
            None => format!("Too few ended to tell how long the other {left} take: see `--budget`."),
        })
    }
}
