//! A violated rule: which one, how, and where.

use crate::ir::kernel::Place;

/// The result of checking a rule.
pub(super) type Check<T = ()> = Result<T, Violation>;

/// The verifier's rules, numbered as its documentation numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rule {
    Size = 1,
    Tables,
    Params,
    Facts,
    Arrays,
    Geometry,
    Constants,
    Terminators,
    Definitions,
    Uses,
    Labels,
    Break,
    Continue,
    Loops,
    Results,
    Pure,
    Access,
    Copy,
    Tokens,
    Prefetch,
    Condition,
    Atomic,
    Collective,
    Print,
    Floats,
}

/// A broken rule.
#[derive(Debug)]
pub(super) struct Violation {
    pub rule: Rule,
    pub what: String,
    /// Where, once that is known.
    pub place: Option<Place>,
    /// The operation as text, if it is one's fault.
    pub operation: Option<String>,
}

impl Rule {
    /// This rule is broken in this way.
    pub(crate) fn broken(self, what: impl Into<String>) -> Violation {
        Violation {
            rule: self,
            what: what.into(),
            place: None,
            operation: None,
        }
    }

    /// Checks a condition; `what` describes the broken rule if it does not hold.
    pub(crate) fn check(self, holds: bool, what: impl FnOnce() -> String) -> Check {
        match holds {
            true => Ok(()),
            false => Err(self.broken(what())),
        }
    }
}
