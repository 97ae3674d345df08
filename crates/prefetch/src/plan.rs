//! A plan: the loads to fetch early, the strategy of each, and its distance in iterations.
//!
//! The one spelling of a plan is used by the command line, the loop attribute, the tuner's log and the reports:
//!
//! ```text
//! values=rolling-async:4/interleaved,indices=rolling-registers:5
//! unroll:8,values=rolling-async:16
//! unroll:4
//! unroll:16,registers:168
//! inner:4,values=rolling-registers:1
//! none
//! ```
//!
//! A load is named by the parameter that it reads, and where that is not enough by its loop or its line as well:
//! `values@row`, `values@gather.rs:41`, several lines at once as `values@gather.rs:{41,43}`. A plan knows nothing of kernels: whether its loads exist, and whether it is
//! legal for them, is the business of the passes.
//!
//! ```
//! use headstart::prefetch::plan::{Layout, Plan, Strategy};
//! let plan: Plan = "unroll:8,values=rolling-async:16".parse()?;
//! let (load, strategy) = &plan.loads()[0];
//! assert_eq!(load.param(), "values");
//! assert_eq!(strategy.distance().get(), 16);
//! assert_eq!(strategy.layout(), Some(Layout::Interleaved));
//! assert_eq!(plan.to_string(), "unroll:8,values=rolling-async:16/interleaved");
//! # Ok::<(), headstart::Error>(())
//! ```

mod name;
mod parse;
mod strategy;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use super::descriptor::{Carried, Descriptor, Look, Mark, TrialPolicy};
pub use super::strategies::StrategyKind;
pub use crate::ir::CacheLevel;
pub use crate::ir::limits::REGISTERS;
pub use name::{LoadName, LoadPlace};
pub use strategy::{Distance, JointScope, Layout, Strategy, Unroll};

use crate::error::{Error, Result};

/// An assignment of strategies to loads, the unrolling of the loop they are in, and the registers that the compiler may use.
///
/// Loads keep the order in which they were written, usually with the most important one first. Two plans are equal if they
/// assign the same, in any order.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    inner: Option<u32>,
    unroll: Option<Unroll>,
    registers: Option<u32>,
    loads: Vec<(LoadName, Strategy)>,
}

impl Plan {
    /// The most loads that one plan may name.
    pub(crate) const MAX_LOADS: usize = 64;
    /// The most iterations of a loop inside that become part of the loop around it.
    pub(crate) const MAX_INNER: u32 = 64;

    /// The plan that leaves the kernel as it is, written `none`.
    pub fn none() -> Plan {
        Plan::default()
    }

    /// Whether this is the plan that leaves the kernel as it is.
    pub fn is_none(&self) -> bool {
        self.leaves_code() && self.registers.is_none()
    }

    /// Whether the operations stay as they are; the compiler may have other registers for them.
    #[doc(hidden)]
    pub fn leaves_code(&self) -> bool {
        self.inner.is_none() && self.unroll.is_none() && self.loads.is_empty()
    }

    /// The same plan, with this many iterations of loops inside as part of the planned loop, 1 to 64; none leaves those loops.
    #[doc(hidden)]
    #[must_use]
    pub fn with_inner(mut self, iterations: Option<u32>) -> Plan {
        self.inner = iterations;
        self
    }

    /// The same plan without its loads.
    #[doc(hidden)]
    #[must_use]
    pub fn without_loads(mut self) -> Plan {
        self.loads.clear();
        self
    }

    /// How many iterations of each loop inside become part of the planned loop, if the plan says.
    pub fn inner(&self) -> Option<u32> {
        self.inner
    }

    /// The same plan with the loop unrolled so.
    #[must_use]
    pub fn unrolled(mut self, unroll: Unroll) -> Plan {
        self.unroll = Some(unroll);
        self
    }

    /// The same plan with this many 32-bit registers of a work-item at most, one of [`REGISTERS`]; none leaves the number to the
    /// compiler.
    #[doc(hidden)]
    #[must_use]
    pub fn with_registers(mut self, most: Option<u32>) -> Plan {
        self.registers = most;
        self
    }

    /// The same plan with a strategy for one more load.
    ///
    /// # Errors
    /// The load is named already, or the plan names `MAX_LOADS` loads.
    pub fn with(mut self, load: LoadName, strategy: Strategy) -> Result<Plan> {
        if self.strategy(&load).is_some() {
            return Err(Error::usage(format!("load `{load}` is named twice")).accepted("one strategy a load"));
        }
        if self.loads.len() == Plan::MAX_LOADS {
            return Err(Error::usage(format!(
                "a plan names at most {} loads",
                Plan::MAX_LOADS
            )));
        }
        self.loads.push((load, strategy));
        Ok(self)
    }

    /// How the loop is unrolled, if the plan says.
    pub fn unroll(&self) -> Option<Unroll> {
        self.unroll
    }

    /// The most 32-bit registers that the compiler may give a work-item, if the plan says.
    pub fn registers(&self) -> Option<u32> {
        self.registers
    }

    /// The loads with their strategies, in the order in which they were written.
    pub fn loads(&self) -> &[(LoadName, Strategy)] {
        &self.loads
    }

    /// The strategy of the load of exactly this name.
    pub(crate) fn strategy(&self, load: &LoadName) -> Option<Strategy> {
        self.loads
            .iter()
            .find(|(name, _)| name == load)
            .map(|&(_, strategy)| strategy)
    }

    /// The loads sorted by name, for equality, order and hash.
    fn sorted(&self) -> Vec<&(LoadName, Strategy)> {
        let mut sorted: Vec<_> = self.loads.iter().collect();
        sorted.sort();
        sorted
    }
}

impl PartialEq for Plan {
    fn eq(&self, other: &Plan) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Plan {}

impl PartialOrd for Plan {
    fn partial_cmp(&self, other: &Plan) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Plan {
    fn cmp(&self, other: &Plan) -> Ordering {
        self.inner
            .cmp(&other.inner)
            .then_with(|| self.unroll.cmp(&other.unroll))
            .then_with(|| self.registers.cmp(&other.registers))
            .then_with(|| self.sorted().cmp(&other.sorted()))
    }
}

impl Hash for Plan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
        self.unroll.hash(state);
        self.registers.hash(state);
        self.sorted().hash(state);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("none");
        }
        let mut separator = "";
        if let Some(inner) = self.inner {
            write!(f, "inner:{inner}")?;
            separator = ",";
        }
        if let Some(unroll) = self.unroll {
            write!(f, "{separator}{unroll}")?;
            separator = ",";
        }
        if let Some(registers) = self.registers {
            write!(f, "{separator}registers:{registers}")?;
            separator = ",";
        }
        let mut left = &self.loads[..];
        while let Some((load, strategy)) = left.first() {
            let alike = left.iter().take_while(|(_, other)| other == strategy);
            let together = LoadName::together(alike.map(|(load, _)| load));
            let (count, name) = together.unwrap_or_else(|| (1, load.to_string()));
            write!(f, "{separator}{name}={strategy}")?;
            separator = ",";
            left = &left[count..];
        }
        Ok(())
    }
}

impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Plan {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn plan(text: &str) -> Plan {
        text.parse().expect("a plan that these tests wrote")
    }

    #[test]
    fn the_order_of_loads_is_kept_but_does_not_distinguish() {
        let one = plan("values=rolling-async:4,indices=rolling-registers:5");
        let other = plan("indices=rolling-registers:5,values=rolling-async:4");
        assert_eq!(one, other);
        assert_ne!(one.to_string(), other.to_string());
        assert_eq!(HashSet::from([one, other]).len(), 1);
    }

    #[test]
    fn plans_that_say_something_else_differ() {
        assert_ne!(plan("values=cache:L2:4"), plan("values=cache:L2:4/nt"));
        assert_ne!(plan("unroll:4"), plan("unroll:full"));
        assert_ne!(plan("values=cache:L2:4"), plan("unroll:2,values=cache:L2:4"));
        assert_ne!(plan("unroll:4"), plan("unroll:4,registers:64"));
        assert_ne!(plan("unroll:4"), plan("inner:4,unroll:4"));
        assert!(!plan("inner:4").leaves_code());
        assert!(plan("none").is_none());
        assert!(!plan("registers:64").is_none());
        assert!(plan("registers:64").leaves_code());
    }

    #[test]
    fn a_load_is_named_once() {
        let load = LoadName::of_param("values").expect("a name");
        let strategy = Strategy::new(
            StrategyKind::RollingRegisters,
            Distance::new(2).expect("in range"),
        );
        let once = Plan::none().with(load.clone(), strategy).expect("first");
        assert!(
            once.with(load, strategy)
                .unwrap_err()
                .to_string()
                .contains("twice")
        );
    }

    #[test]
    fn json_holds_the_spelling() {
        let json = serde_json::to_string(&plan("unroll:2,v=batched-shared:4/plain")).expect("serializable");
        assert_eq!(json, r#""unroll:2,v=batched-shared:4/plain""#);
        assert_eq!(
            serde_json::from_str::<Plan>(&json).expect("read back"),
            plan("unroll:2,v=batched-shared:4/plain")
        );
        assert!(serde_json::from_str::<Plan>(r#""v=batched-shared:0""#).is_err());
    }
}
