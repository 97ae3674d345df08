//! Where a difference begins: the two expressions are walked down side by side, to the first part that
//! differs.

use super::record::{Node, Record, Stored};
use super::terms::Term;
use super::{Run, of_derived};
use crate::ir::Kernel;
use crate::{Error, Result};

/// The error that says that a byte of global memory was written otherwise by a work-group.
pub(super) fn difference(plain: &Run, derived: &Run, group: u64, address: u64) -> Error {
    explain(plain, derived, group, address).unwrap_or_else(of_derived)
}

fn explain(plain: &Run, derived: &Run, group: u64, address: u64) -> Result<Error> {
    let right = Side::new(plain, group)?;
    let found = Side::new(derived, group)?;
    let stored = [&right, &found].map(|side| side.record.stored(address));
    let what = match stored {
        [Some(one), Some(other)] => right.first_difference(one, &found, other),
        [Some(_), None] => "the derived kernel does not write it".to_owned(),
        [None, _] => "the plain kernel does not write it".to_owned(),
    };
    let element = plain.element(address);
    let error = Error::bug(format!("the derived kernel differs at {element}: {what}"));
    let Some((side, stored)) = stored[1]
        .map(|stored| (&found, stored))
        .or(stored[0].map(|stored| (&right, stored)))
    else {
        return Ok(error);
    };
    let who = side.run.work_item(group, stored.item);
    let place = side.kernel().describe_place(stored.place);
    Ok(error.at(format!("{place}, {who}")))
}

/// One kernel's account of how its values were made.
struct Side<'r> {
    run: &'r Run,
    group: u64,
    record: Record,
}

impl<'r> Side<'r> {
    fn new(run: &'r Run, group: u64) -> Result<Side<'r>> {
        let record = run.again(group)?.record.unwrap_or_default();
        Ok(Side { run, group, record })
    }

    fn kernel(&self) -> &Kernel {
        self.run.kernel()
    }

    /// Follows the first operand that differs, as long as the operations are the same.
    fn first_difference(&self, right: &Stored, other: &Side<'_>, found: &Stored) -> String {
        let (mut one, mut two) = ((right.term, right.bits), (found.term, found.bits));
        // Integer sums may lead back to where they came from.
        let mut steps = 0..self.record.nodes.len();
        while let (Some(_), Some(making), Some(other_making)) =
            (steps.next(), self.node(one.0), other.node(two.0))
        {
            let (
                Node::Computed { what, operands, .. },
                Node::Computed {
                    what: other_what,
                    operands: other_operands,
                    ..
                },
            ) = (making, other_making)
            else {
                break;
            };
            if what != other_what || operands.len() != other_operands.len() {
                break;
            }
            // A commuting operation may have its operands the other way round: like stands against like.
            let mut pairs: Vec<_> = operands.iter().zip(other_operands).collect();
            if let ([a, b], [c, d]) = (&operands[..], &other_operands[..])
                && self.kind(a) != other.kind(c)
                && (self.kind(a), self.kind(b)) == (other.kind(d), other.kind(c))
            {
                pairs = vec![(a, d), (b, c)];
            }
            let differs = |(one, two): &(&(Term, u64), &(Term, u64))| one.0.part(one.1) != two.0.part(two.1);
            let Some((next, other_next)) = pairs.into_iter().find(differs) else {
                break;
            };
            (one, two) = (*next, *other_next);
        }
        let bits = match right.bits == found.bits {
            true => "the bits are the same with these data".to_owned(),
            false => format!("it gives bits {:#x}, not {:#x}", found.bits, right.bits),
        };
        format!(
            "it uses {} where the plain kernel uses {}; {bits}",
            other.describe(two.0, two.1),
            self.describe(one.0, one.1)
        )
    }

    fn node(&self, term: Term) -> Option<&Node> {
        self.record.nodes.get(&term)
    }

    /// What sort of thing made an operand.
    fn kind(&self, operand: &(Term, u64)) -> Option<&str> {
        self.node(operand.0).map(Node::kind)
    }

    /// A value as people read it.
    fn describe(&self, term: Term, bits: u64) -> String {
        match self.node(term) {
            Some(Node::Loaded {
                load,
                item,
                earlier,
                address,
            }) => {
                let data = &self.kernel().loads[*load];
                format!(
                    "{}, which {} reads by load `{}` ({}) in iteration {earlier}",
                    self.run.element(*address),
                    self.run.work_item(self.group, *item),
                    data.name,
                    self.kernel().describe_place(data.place),
                )
            }
            Some(Node::Computed { what, place, .. }) => {
                format!(
                    "the result of `{what}` at {}",
                    self.kernel().describe_place(*place)
                )
            }
            None if term.is_known() => format!("a value that no load gave, bits {bits:#x}"),
            None => "a value put together from parts of others".to_owned(),
        }
    }
}
