//! Which parameters of a captured launch reach different bytes, although they lead into one allocation.
//!
//! PyTorch and memory pools put many tensors into one allocation. Two of them are apart where the bytes are that the kernel's code
//! reaches through each, by its indices' bounds. That depends on the launch's scalars and grid, so that the arithmetic is written
//! down, and whoever launches computes it anew.

use crate::analysis::definitions::Definitions;
use crate::analysis::reach::{Reach, Term, evaluate, reaches};
use crate::capture::Captured;
use crate::front::ptx::{Imported, Origin};
use crate::ir::Kernel;

/// What a captured launch reaches through its parameters.
pub(super) struct Reached<'c> {
    captured: &'c Captured,
    kernel: &'c Kernel,
    origins: &'c [Origin],
    /// By parameter; nothing is known of any if a pointer leads nobody knows where.
    all: Option<Vec<Reach>>,
}

impl<'c> Reached<'c> {
    /// Of the kernel as it was captured: what is read under facts may rest on them.
    pub fn of(captured: &'c Captured, plain: &'c Imported) -> Reached<'c> {
        let kernel = &plain.kernel;
        Reached {
            captured,
            kernel,
            origins: &plain.original.parameters,
            all: reaches(kernel, &Definitions::of(kernel), captured.group),
        }
    }

    /// Whether it makes a difference that two parameters reach the same byte: one is written through, and the other one used.
    pub fn matters(&self, one: usize, other: usize) -> bool {
        let Some(all) = &self.all else { return true };
        let (one, other) = (&all[one], &all[other]);
        one.writes && (other.reads || other.writes) || other.writes && one.reads
    }

    /// Whether two parameters that lead to these addresses reach no byte both.
    pub fn are_apart(&self, one: (usize, u64), other: (usize, u64)) -> bool {
        let reached = |(parameter, address): (usize, u64)| {
            let terms = &self.all.as_ref()?[parameter].terms;
            let (low, high) = evaluate(terms, |number| self.scalar(number), self.captured.groups)?;
            let is_near = low > -(1 << 62) && high < 1 << 62 || low > high;
            is_near.then(|| (low <= high).then(|| (i128::from(address) + low, i128::from(address) + high)))
        };
        match (reached(one), reached(other)) {
            (Some(Some(one)), Some(Some(other))) => one.1 < other.0 || other.1 < one.0,
            (Some(None), Some(_)) | (Some(_), Some(None)) => true,
            _ => false,
        }
    }

    /// The words after `reach` for a parameter, by which the preloaded library computes it; none where it cannot.
    pub fn words(&self, parameter: usize) -> Option<String> {
        let terms = &self.all.as_ref()?[parameter].terms;
        let (index, inside) = self.place(parameter)?;
        let words: Option<Vec<String>> = terms.iter().map(|term| self.word(*term)).collect();
        let words = words.filter(|words| !words.is_empty())?;
        Some(format!("{index} {inside} {}", words.join(" ")))
    }

    fn place(&self, parameter: usize) -> Option<(usize, u64)> {
        match &self.origins[parameter] {
            Origin::Parameter { position, .. } => self.captured.place_of(*position),
            _ => None,
        }
    }

    fn bytes(&self, parameter: usize) -> u32 {
        self.kernel.ty(self.kernel.params[parameter].value).bytes()
    }

    /// A scalar of the launch, read as signed.
    fn scalar(&self, parameter: usize) -> i64 {
        let bytes = self.bytes(parameter);
        let position = match &self.origins[parameter] {
            Origin::Parameter { position, .. } => *position,
            _ => return 0,
        };
        let bits = self.captured.parameter(position, u64::from(bytes)).unwrap_or(0);
        let unused = 64 - 8 * bytes.clamp(1, 8);
        ((bits << unused) as i64) >> unused
    }

    fn word(&self, term: Term) -> Option<String> {
        Some(match term {
            Term::Constant(number) => format!("c:{number}"),
            Term::Scalar(parameter) => {
                let (index, inside) = self.place(parameter)?;
                format!("p:{index}:{inside}:{}", self.bytes(parameter))
            }
            Term::Groups(dimension) => format!("g:{dimension}"),
            Term::Add(a, b) => format!("add:{a}:{b}"),
            Term::Sub(a, b) => format!("sub:{a}:{b}"),
            Term::Mul(a, b) => format!("mul:{a}:{b}"),
            Term::Div(a, b) => format!("div:{a}:{b}"),
            Term::Rem(a, b) => format!("rem:{a}:{b}"),
            Term::And(a, b) => format!("and:{a}:{b}"),
            Term::Or(a, b) => format!("or:{a}:{b}"),
            Term::Min(a, b) => format!("min:{a}:{b}"),
            Term::Max(a, b) => format!("max:{a}:{b}"),
            Term::Join(a, b) => format!("join:{a}:{b}"),
            Term::Meet(a, b) => format!("meet:{a}:{b}"),
            Term::Between(a, b) => format!("between:{a}:{b}"),
            Term::UpTo(a, b) => format!("upto:{a}:{b}"),
            Term::From(a, b) => format!("from:{a}:{b}"),
            Term::Except(a, b) => format!("except:{a}:{b}"),
            Term::Signed(bits, a) => format!("signed:{bits}:{a}"),
            Term::Unsigned(bits, a) => format!("unsigned:{bits}:{a}"),
        })
    }
}
