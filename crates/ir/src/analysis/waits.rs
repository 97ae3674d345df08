//! Where the work-groups of a kernel may wait: for each other, for another kernel, or for the host.
//!
//! ```text
//! loop 'spin () {                                   the wait: the loop is left by what the load finds
//!   %seen = load i32 %bar, @bar volatile
//!   %few = lt.u %seen, %groups
//!   if %few { continue 'spin } else { break 'spin }
//! }
//! ```
//! A work-group that waits for one that is not resident waits for ever, because that one starts only when a resident one ends.
//! So it matters how many are resident at once, and a rewritten kernel must not leave fewer.
//!
//! A *wait* is a loop with a strong read of global memory, where a decision to leave the loop or to go on with it may depend on
//! the value read. Strong reads are volatile loads, atomic operations with a result, and carried instructions that may read
//! anything and order others' writes. The dependence is followed through operations, results of regions, shuffles, votes, and
//! memory that the loop writes. Three things are no waits:
//!
//! - Reads of shared memory: the writer is of the same work-group, or of the same cluster, all of which is resident.
//! - A loop that tries again until a `compare_exchange` finds what it expects, if each try expects what was found last: it fails
//!   only where another work-item has got on.
//! - A loop that takes numbers from a counter, each turn adding a constant, until they reach a bound: it gets there alone.
//!
//! A wait for the previous launch ([`Dependency::Wait`](crate::ir::Dependency)) is none either: all work-groups of that launch
//! have started when a work-group of this one can.

use std::collections::HashMap;

use super::definitions::{Definition, Definitions};
use super::effects::Effect;
use super::jumps::jumps_out;
use super::roots::{Root, root};
use crate::ir::effects::Memory;
use crate::ir::{
    AtomicOp, BinaryOp, CompareOp, ConvertOp, Kernel, Label, NoWrapOp, Op, OpKind, Place, Region, Space,
    UnaryOp, Value,
};

/// Reads that are followed one by one in a loop; of one with more, all others count as followed, too.
const FOLLOWED: usize = 32;

/// A read that a work-group may wait for in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Where it is written.
    pub place: Place,
    /// Who may write what is awaited.
    pub writer: Writer,
}

/// Who may write what a work-group waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    /// Another work-group of the launch: the kernel writes that memory.
    WorkGroup,
    /// Another work-group, or another kernel or the host: the kernel may write that memory, by a pointer that may alias.
    Anyone,
    /// Another kernel, or the host: nothing in the kernel writes that memory.
    Outside,
}

/// All reads that a work-group of the kernel may wait for, in the order of the text.
pub fn waits(kernel: &Kernel) -> Vec<Wait> {
    let mut loops: Vec<Looped<'_>> = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Loop {
            label, params, body, ..
        } = &op.kind
        {
            loops.push((*label, params, body));
        }
    });
    let has_strong = |body: &Region| {
        let mut has = false;
        body.walk(&mut |op| has |= may_be_strong(op));
        has
    };
    loops.retain(|(.., body)| has_strong(body));
    if loops.is_empty() {
        return Vec::new();
    }
    let definitions = Definitions::of(kernel);
    let mut found: Vec<Wait> = Vec::new();
    for looped in loops {
        let mut reads = Vec::new();
        looped
            .2
            .walk(&mut |op| reads.extend(strong_read(kernel, &definitions, op)));
        let decide = |reads: &[Read<'_>]| Flow::of(kernel, &definitions, looped, reads).decides;
        if !decide(&reads) {
            continue;
        }
        let (few, more) = reads.split_at(reads.len().min(FOLLOWED));
        let alone = few.iter().filter(|&&read| decide(&[read]));
        for read in alone.chain(more) {
            let wait = Wait {
                place: read.op.place,
                writer: writer(kernel, &definitions, read.from),
            };
            if !found.contains(&wait) {
                found.push(wait);
            }
        }
    }
    found
}

/// A loop: its label, its parameters, its body.
type Looped<'k> = (Label, &'k [Value], &'k Region);

/// A strong read in a loop.
#[derive(Clone, Copy)]
struct Read<'k> {
    op: &'k Op,
    /// The memory, where it is known.
    from: Option<Root>,
}

/// Whether an operation reads what others may write at the same time, in some memory.
fn may_be_strong(op: &Op) -> bool {
    op.kind.effects().is_strong_read() && !op.results.is_empty()
}

/// The read, if an operation is a strong one of memory that other work-groups may write.
fn strong_read<'k>(kernel: &Kernel, definitions: &Definitions, op: &'k Op) -> Option<Read<'k>> {
    if !may_be_strong(op) {
        return None;
    }
    let Memory::At(pointer) = op.kind.effects().reads else {
        return Some(Read { op, from: None });
    };
    let from = root(kernel, definitions, pointer);
    let space = from
        .and_then(|from| from.space(kernel))
        .or(kernel.ty(pointer).space());
    (!matches!(space, Some(Space::Shared | Space::Private))).then_some(Read { op, from })
}

/// Who may write this memory, by what the kernel itself writes.
fn writer(kernel: &Kernel, definitions: &Definitions, awaited: Option<Root>) -> Writer {
    let mut writer = Writer::Outside;
    for effect in definitions.effects() {
        let own = match effect {
            Effect::Write(pointer, ..) => match (root(kernel, definitions, *pointer), awaited) {
                (Some(to), Some(from)) if to == from => Writer::WorkGroup,
                (Some(to), Some(from)) if !to.may_alias(from, kernel) => Writer::Outside,
                _ => Writer::Anyone,
            },
            Effect::Carried(_) => Writer::Anyone,
            _ => Writer::Outside,
        };
        writer = writer.min(own);
    }
    writer
}

/// What a value has to do with a strong read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Taint {
    /// Nothing.
    #[default]
    None,
    /// It is a number that was taken from a counter, or grows with it.
    Ticket,
    /// Whether such a number is below a bound.
    Below,
    /// Whether it is not.
    Beyond,
    /// It depends on it in another way.
    Full,
}

impl Taint {
    fn join(self, other: Taint) -> Taint {
        match (self, other) {
            (Taint::None, taint) | (taint, Taint::None) => taint,
            _ if self == other => self,
            _ => Taint::Full,
        }
    }

    fn of(is_full: bool) -> Taint {
        match is_full {
            true => Taint::Full,
            false => Taint::None,
        }
    }
}

/// Follows the values of some reads through a loop.
struct Flow<'k> {
    kernel: &'k Kernel,
    definitions: &'k Definitions,
    looped: Label,
    params: &'k [Value],
    body: &'k Region,
    reads: &'k [Read<'k>],
    values: HashMap<Value, Taint>,
    /// What was written of them, by memory; none stands for all.
    memory: HashMap<Option<Root>, Taint>,
    /// The blocks, `if`s and loops around the current operation, inside the loop.
    scopes: Vec<(Label, &'k Op)>,
    has_changed: bool,
    /// Whether the loop is left, or goes on, because of them.
    decides: bool,
}

impl<'k> Flow<'k> {
    fn of(
        kernel: &'k Kernel,
        definitions: &'k Definitions,
        (looped, params, body): Looped<'k>,
        reads: &'k [Read<'k>],
    ) -> Flow<'k> {
        let mut flow = Flow {
            kernel,
            definitions,
            looped,
            params,
            body,
            reads,
            values: HashMap::new(),
            memory: HashMap::new(),
            scopes: Vec::new(),
            has_changed: true,
            decides: false,
        };
        while flow.has_changed && !flow.decides {
            flow.has_changed = false;
            flow.region(body, false);
        }
        flow
    }

    fn taint(&self, value: Value) -> Taint {
        self.values.get(&value).copied().unwrap_or_default()
    }

    fn mark(&mut self, value: Value, taint: Taint) {
        self.has_changed |= raise(self.values.entry(value).or_default(), taint);
    }

    fn mark_results(&mut self, op: &Op, taint: Taint) {
        for &result in &op.results {
            self.mark(result, taint);
        }
    }

    /// `under` says whether a read decides that this runs.
    fn region(&mut self, region: &'k Region, under: bool) {
        for op in &region.ops {
            self.op(op, under);
        }
    }

    fn op(&mut self, op: &'k Op, under: bool) {
        let of_control = Taint::of(under);
        if let Some(read) = self.reads.iter().find(|read| std::ptr::eq(read.op, op)) {
            let taint = match takes_a_number(self.kernel, read.op) {
                true => Taint::Ticket,
                false => Taint::Full,
            };
            self.mark_results(op, taint);
        }
        match &op.kind {
            OpKind::Block { label, body } => self.inside(*label, op, body, under),
            OpKind::Loop {
                label,
                params,
                initial,
                body,
                ..
            } => {
                for (&param, &initial) in params.iter().zip(initial) {
                    self.mark(param, self.taint(initial));
                }
                self.inside(*label, op, body, under);
            }
            OpKind::If {
                label,
                cond,
                then,
                otherwise,
            } => {
                let decided = match self.taint(*cond) {
                    Taint::None => false,
                    // It gets there alone.
                    Taint::Below => !self.ends(*label, otherwise) && !self.goes_on(then),
                    Taint::Beyond => !self.ends(*label, then) && !self.goes_on(otherwise),
                    Taint::Ticket | Taint::Full => true,
                };
                if decided {
                    self.decides |= self.leads_out(op, *label, then) || self.leads_out(op, *label, otherwise);
                    self.mark_results(op, Taint::Full);
                }
                self.inside(*label, op, then, under || decided);
                self.inside(*label, op, otherwise, under || decided);
            }
            OpKind::Break(label, values) | OpKind::Continue(label, values) => {
                let to = self.targets(&op.kind, *label);
                for (to, &value) in to.into_iter().zip(values) {
                    self.mark(to, self.taint(value).join(of_control));
                }
            }
            OpKind::Load { ptr, .. } => {
                let of_address = Taint::of(self.taint(*ptr) == Taint::Full);
                self.mark_results(op, self.stored(*ptr).join(of_address));
            }
            OpKind::Store { ptr, values, .. } => self.store(*ptr, values, of_control),
            OpKind::Atomic { ptr, values, .. } => {
                self.mark_results(op, self.stored(*ptr));
                self.store(*ptr, values, of_control);
            }
            kind => {
                let of_control = Taint::of(under && !kind.is_pure());
                self.mark_results(op, self.computed(kind).join(of_control));
            }
        }
    }

    fn inside(&mut self, label: Label, op: &'k Op, region: &'k Region, under: bool) {
        self.scopes.push((label, op));
        self.region(region, under);
        self.scopes.pop();
    }

    /// Whether a side of an `if` leaves the loop.
    fn ends(&self, own: Label, side: &Region) -> bool {
        self.jumps(side, &|kind| match kind {
            OpKind::Break(label, _) => *label != own && !self.scopes.iter().any(|(open, _)| open == label),
            kind => matches!(kind, OpKind::Return),
        })
    }

    /// Whether a side of an `if` starts the loop's next iteration.
    fn goes_on(&self, side: &Region) -> bool {
        self.jumps(
            side,
            &|kind| matches!(kind, OpKind::Continue(label, _) if *label == self.looped),
        )
    }

    /// Whether such a jump leads out of a region.
    fn jumps(&self, region: &Region, is_such: &dyn Fn(&OpKind) -> bool) -> bool {
        jumps_out(region).into_iter().any(|jump| is_such(&jump.kind))
    }

    /// The results or parameters that a jump gives values to.
    fn targets(&self, jump: &OpKind, label: Label) -> Vec<Value> {
        let scope = self.scopes.iter().rev().find(|(open, _)| *open == label);
        match (jump, scope.map(|&(_, op)| op)) {
            (
                OpKind::Continue(..),
                Some(Op {
                    kind: OpKind::Loop { params, .. },
                    ..
                }),
            ) => params.clone(),
            (OpKind::Continue(..), None) if label == self.looped => self.params.to_vec(),
            (OpKind::Break(..), Some(op)) => op.results.clone(),
            _ => Vec::new(),
        }
    }

    /// Whether a side of an `if` leaves the loop, starts its next iteration, or skips what may.
    fn leads_out(&self, op: &Op, own: Label, side: &Region) -> bool {
        self.jumps(side, &|kind| match kind {
            OpKind::Break(label, _) if *label == own => false,
            OpKind::Break(label, _) | OpKind::Continue(label, _) => {
                match self.scopes.iter().rev().find(|(open, _)| open == label) {
                    // What stands behind the `if` in there is skipped.
                    Some(&(_, around)) => !std::ptr::eq(around, op) && self.may_lead_out(around),
                    None => true,
                }
            }
            kind => matches!(kind, OpKind::Return),
        })
    }

    /// Whether something in a block, `if` or loop of the loop's body leaves that body or starts the loop's next iteration.
    fn may_lead_out(&self, around: &Op) -> bool {
        let is_open = |wanted: &Label| self.scopes.iter().any(|(open, _)| open == wanted);
        let beyond = |kind: &OpKind| match kind {
            OpKind::Break(label, _) | OpKind::Continue(label, _) => !is_open(label),
            kind => matches!(kind, OpKind::Return),
        };
        around.kind.regions().any(|region| self.jumps(region, &beyond))
    }

    /// What was written to where a pointer leads.
    fn stored(&self, pointer: Value) -> Taint {
        let from = root(self.kernel, self.definitions, pointer);
        let reaches = |to: &Option<Root>| match (*to, from) {
            (Some(to), Some(from)) => to.may_alias(from, self.kernel),
            _ => true,
        };
        let written = self.memory.iter().filter(|(to, _)| reaches(to));
        written.fold(Taint::None, |all, (_, &taint)| all.join(taint))
    }

    fn store(&mut self, pointer: Value, values: &[Value], of_control: Taint) {
        let taint = values
            .iter()
            .fold(of_control, |all, &value| all.join(self.taint(value)));
        let to = root(self.kernel, self.definitions, pointer);
        self.has_changed |= raise(self.memory.entry(to).or_default(), taint);
    }

    /// What an operation makes of its operands.
    fn computed(&self, kind: &OpKind) -> Taint {
        let mut all = Taint::None;
        kind.for_each_operand(|operand| all = all.join(self.taint(operand)));
        match *kind.plain() {
            OpKind::Compare(CompareOp::LtS | CompareOp::LtU | CompareOp::LeS | CompareOp::LeU, a, b)
                if all == Taint::Ticket =>
            {
                match (self.taint(a), self.taint(b)) {
                    (_, Taint::None) => Taint::Below,
                    (Taint::None, _) => Taint::Beyond,
                    _ => Taint::Full,
                }
            }
            OpKind::Compare(CompareOp::Eq | CompareOp::Ne, a, b)
                if self.is_retried(a, b) || self.is_retried(b, a) =>
            {
                Taint::None
            }
            OpKind::Unary(UnaryOp::Not, _) if all == Taint::Below => Taint::Beyond,
            OpKind::Unary(UnaryOp::Not, _) if all == Taint::Beyond => Taint::Below,
            // A ticket that grows with the counter remains one.
            OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, _)
            | OpKind::Shuffle { .. }
            | OpKind::NoWrap(NoWrapOp::Add, ..)
            | OpKind::Binary(BinaryOp::Add, ..) => all,
            OpKind::NoWrap(NoWrapOp::Mul, _, a, b) | OpKind::Binary(BinaryOp::Mul, a, b)
                if self.is_positive(a) || self.is_positive(b) =>
            {
                all
            }
            _ if all == Taint::None => Taint::None,
            _ => Taint::Full,
        }
    }

    fn is_positive(&self, value: Value) -> bool {
        self.kernel
            .as_constant(value)
            .is_some_and(|bits| bits > 0 && bits < 1 << 31)
    }

    /// Whether `found` is what a `compare_exchange` found, and `expected` what it expected there: what the one before found, or
    /// what was read in the same iteration.
    fn is_retried(&self, found: Value, expected: Value) -> bool {
        let bits = |value: Value| match self.definitions.op(value) {
            Some(&OpKind::Convert(ConvertOp::Bits, from)) => from,
            _ => value,
        };
        let (found, expected) = (bits(found), bits(expected));
        let Some(OpKind::Atomic {
            op: AtomicOp::CompareExchange,
            ptr,
            values,
            ..
        }) = self.definitions.op(found)
        else {
            return false;
        };
        let is_expected = values.first().is_some_and(|&first| bits(first) == expected);
        is_expected
            && match self.definitions.get(expected) {
                Some(Definition::LoopParam { next, .. }) => next.iter().all(|&next| bits(next) == found),
                Some(Definition::Result {
                    kind: OpKind::Load { ptr: from, .. } | OpKind::Atomic { ptr: from, .. },
                    ..
                }) => from == ptr && self.is_inside(expected),
                _ => false,
            }
    }

    /// Whether a value is made anew in each iteration.
    fn is_inside(&self, value: Value) -> bool {
        let mut inside = false;
        self.body.walk(&mut |op| inside |= op.results.contains(&value));
        inside
    }
}

/// Adds to what is known; whether that changes it.
fn raise(known: &mut Taint, taint: Taint) -> bool {
    let before = std::mem::replace(known, known.join(taint));
    *known != before
}

/// Whether an operation takes a number from a counter that it moves on by a constant.
fn takes_a_number(kernel: &Kernel, op: &Op) -> bool {
    match &op.kind {
        OpKind::Atomic {
            op: AtomicOp::Add,
            values,
            ..
        } => {
            let moves = |&value: &Value| kernel.as_constant(value).is_some_and(|bits| bits != 0);
            kernel.ty(values[0]).is_integer() && values.iter().all(moves)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
