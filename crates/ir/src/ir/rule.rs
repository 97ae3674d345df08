//! How one floating-point operation rounds and handles subnormal numbers.
//!
//! The rule belongs to the operation, not to the kernel: nvcc mixes all of them in one function (`expf` adds with
//! `.rm`, multiplies with `.ftz`), and inline PTX does so anyhow.
//!
//! An operation with another rule than [`FloatRule::EXACT`] is [`OpKind::Ruled`](super::OpKind::Ruled) around the
//! plain one. Passes that rewrite arithmetic match plain operations, so they leave a ruled one alone unless they
//! name it; those that only move operations see a pure operation with operands. Nothing can drop a rule by not knowing
//! of it, as it could if the rule stood beside the operator or in [`Op`](super::Op).

use std::fmt;

/// In which direction a result is rounded that the type does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rounding {
    /// To the nearest number, of two equally near ones to the even one.
    #[default]
    Nearest,
    /// Towards zero.
    Zero,
    /// Towards minus infinity.
    Down,
    /// Towards plus infinity.
    Up,
}

impl Rounding {
    /// All of them.
    pub const ALL: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

    /// As PTX and the text form spell it.
    pub fn name(self) -> &'static str {
        match self {
            Rounding::Nearest => "rn",
            Rounding::Zero => "rz",
            Rounding::Down => "rm",
            Rounding::Up => "rp",
        }
    }

    /// The direction with this name.
    pub(crate) fn parse(name: &str) -> Option<Rounding> {
        Rounding::ALL.into_iter().find(|rounding| rounding.name() == name)
    }
}

/// How a floating-point operation rounds, and handles subnormal numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FloatRule {
    /// How the result is rounded.
    pub rounding: Rounding,
    /// Subnormal operands and a subnormal result count as zeros of their sign. Of a conversion these are the ones that
    /// are `F32`.
    pub flush: bool,
    /// A product and the sum that takes it may be computed as one [`Fma`](super::OpKind::Fma), where both say so. The
    /// simulator never does.
    pub contract: bool,
    /// A NaN becomes the integer whose highest bit alone is set, as PTX has it where one of the two types has 64 bits; otherwise
    /// it becomes 0. Only conversions to integers have it.
    pub nan_high: bool,
}

/// An assembler's treatment of a sum with a product as an operand, if the text leaves it a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fused {
    /// Product and sum are rounded each.
    Nothing,
    /// The product on the left is rounded together with the sum.
    Left,
    /// That on the right.
    Right,
}

impl FloatRule {
    /// Rounded to nearest even, subnormal numbers kept, nothing fused: the rule of plain operations.
    pub const EXACT: FloatRule = FloatRule {
        rounding: Rounding::Nearest,
        flush: false,
        contract: false,
        nan_high: false,
    };

    /// As [`EXACT`](FloatRule::EXACT), but subnormal numbers are flushed.
    pub const FLUSHED: FloatRule = FloatRule {
        flush: true,
        ..FloatRule::EXACT
    };

    /// The rule of an operation without the permission to fuse it.
    #[must_use]
    pub fn uncontracted(self) -> FloatRule {
        FloatRule {
            contract: false,
            ..self
        }
    }

    /// Splits the text form's name, such as `fma.ftz.rm`, into the operation and its rule. `None` if a suffix is repeated or
    /// out of order.
    pub(super) fn split(word: &str) -> Option<(&str, FloatRule)> {
        let mut rule = FloatRule::EXACT;
        let mut word = word;
        if let Some(rest) = word.strip_suffix(".contract") {
            (word, rule.contract) = (rest, true);
        }
        if let Some(rest) = word.strip_suffix(".nan") {
            (word, rule.nan_high) = (rest, true);
        }
        if let Some((rest, rounding)) = word
            .rsplit_once('.')
            .and_then(|(rest, last)| Some((rest, Rounding::parse(last)?)))
        {
            if rounding == Rounding::Nearest {
                return None;
            }
            (word, rule.rounding) = (rest, rounding);
        }
        if let Some(rest) = word.strip_suffix(".ftz") {
            (word, rule.flush) = (rest, true);
        }
        Some((word, rule))
    }
}

/// The suffix of the text form: `.ftz`, `.rm`, `.ftz.rm`, `.nan`, `.contract`; nothing for [`FloatRule::EXACT`].
impl fmt::Display for FloatRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.flush {
            f.write_str(".ftz")?;
        }
        if self.rounding != Rounding::Nearest {
            write!(f, ".{}", self.rounding.name())?;
        }
        if self.nan_high {
            f.write_str(".nan")?;
        }
        if self.contract {
            f.write_str(".contract")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_read_back() {
        for rounding in Rounding::ALL {
            for flags in 0..8 {
                let rule = FloatRule {
                    rounding,
                    flush: flags & 1 != 0,
                    contract: flags & 2 != 0,
                    nan_high: flags & 4 != 0,
                };
                for name in ["fadd", "approximate.rcp", "flt"] {
                    assert_eq!(FloatRule::split(&format!("{name}{rule}")), Some((name, rule)));
                }
            }
        }
        assert_eq!(FloatRule::EXACT.to_string(), "");
        assert_eq!(FloatRule::split("fadd.rn"), None);
    }
}
