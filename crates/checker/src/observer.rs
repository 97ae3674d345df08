//! Watches a work-group run and computes the term of each of its values.

mod memory;

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::operation::{Operation, address, binary, type_number, unary};
use super::record::{Node, Record};
use super::terms::{OPERATION, Term, TermMemory};
use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{ConvertOp, LoadId, Type};
use headstart_sim::functional::{
    LANES, LaneOp, LaneOpKind, Mask, Observer, Registers, Slot, SubGroup, WorkGroup, parties_of,
    shuffle_sources,
};
use memory::Accessed;

/// Numbers of atomic operations and votes, behind those of all others.
const ATOMIC: u64 = OPERATION + (1 << 32);
const VOTE: u64 = OPERATION + (2 << 32);
const REDUCE: u64 = OPERATION + (3 << 32);
const GROUP_VOTE: u64 = OPERATION + (4 << 32);

/// The terms of one work-group.
pub(super) struct TermObserver {
    /// Of each slot of each sub-group.
    registers: Vec<Vec<[Term; LANES]>>,
    pub memory: TermMemory,
    copies: HashMap<u32, Copies>,
    /// How often each load was executed, by all work-items together.
    pub loads: BTreeMap<LoadId, u64>,
    /// What terms of extended integers extend, and its type.
    extended: HashMap<Term, (Term, Type)>,
    /// How each term was made, if that is requested.
    pub record: Option<Record>,
}

#[derive(Default)]
struct Copies {
    started: u64,
    in_flight: VecDeque<(u64, Copy)>,
}

struct Copy {
    to: u64,
    from: u64,
    bytes: u32,
}

/// An operation that runs, and the lanes on which it does.
#[derive(Clone, Copy)]
struct Running<'r> {
    op: &'r LaneOp,
    registers: &'r Registers,
    mask: Mask,
    sub_group: &'r SubGroup,
}

impl Running<'_> {
    fn items(&self) -> impl Iterator<Item = (usize, u32)> {
        let sub_group = self.sub_group;
        self.mask.lanes().map(|lane| (lane, sub_group.work_item(lane)))
    }
}

impl TermObserver {
    pub(crate) fn new() -> TermObserver {
        TermObserver {
            registers: Vec::new(),
            memory: TermMemory::default(),
            copies: HashMap::new(),
            loads: BTreeMap::new(),
            extended: HashMap::new(),
            record: None,
        }
    }

    /// One that remembers how each term was made.
    pub(crate) fn recording() -> TermObserver {
        TermObserver {
            record: Some(Record::default()),
            ..TermObserver::new()
        }
    }

    fn get(&self, sub_group: &SubGroup, slot: Slot) -> [Term; LANES] {
        let registers = self.registers.get(sub_group.number() as usize);
        let lanes = registers.and_then(|registers| registers.get(slot.0 as usize));
        lanes.copied().unwrap_or([Term::KNOWN; LANES])
    }

    fn slot(&mut self, sub_group: &SubGroup, slot: Slot) -> &mut [Term; LANES] {
        let number = sub_group.number() as usize;
        if self.registers.len() <= number {
            self.registers.resize(number + 1, Vec::new());
        }
        let registers = &mut self.registers[number];
        if registers.len() <= slot.0 as usize {
            registers.resize(slot.0 as usize + 1, [Term::KNOWN; LANES]);
        }
        &mut registers[slot.0 as usize]
    }

    /// The result of an operation: known if its operands are, else made of them.
    fn compute(&mut self, what: Operation, to: Slot, operands: &[Slot], running: Running<'_>) {
        let Running {
            op,
            registers,
            mask,
            sub_group,
        } = running;
        let what = what.ruled(op.rule);
        let terms: Vec<[Term; LANES]> = operands.iter().map(|&slot| self.get(sub_group, slot)).collect();
        let mut result = [Term::KNOWN; LANES];
        for lane in mask.lanes() {
            if terms.iter().all(|term| term[lane].is_known()) {
                continue;
            }
            let bits = |operand: usize| registers.get(operands[operand])[lane];
            let known = |operand: usize| terms[operand][lane].is_known().then(|| bits(operand));
            if what.is_decided((0..operands.len()).map(known)) {
                continue;
            }
            if terms.iter().any(|term| term[lane] == Term::UNORDERED) {
                result[lane] = Term::UNORDERED;
                continue;
            }
            if let Some(same) = what.passes_on(known) {
                result[lane] = terms[same][lane];
                continue;
            }
            // The low bits of an extension are the number.
            if let Some((ConvertOp::Truncate, _, into)) = what.width
                && let Some(&(narrow, ty)) = self.extended.get(&terms[0][lane])
                && ty == into
            {
                result[lane] = narrow;
                continue;
            }
            let of = |operand: usize| (terms[operand][lane], bits(operand));
            let operands: Vec<(Term, u64)> = (0..operands.len()).map(of).collect();
            let linear = what.linear.and_then(|(linear, ty)| linear.term(ty, &operands));
            result[lane] = linear.unwrap_or_else(|| {
                let mut parts: Vec<u128> = operands.iter().map(|(term, bits)| term.part(*bits)).collect();
                if what.commutes {
                    parts.sort_unstable();
                }
                Term::made(what.number, parts)
            });
            if let Some((ConvertOp::ExtendU | ConvertOp::ExtendS, from, _)) = what.width {
                self.extended.insert(result[lane], (terms[0][lane], from));
            }
            if let Some(record) = &mut self.record
                && !result[lane].is_known()
            {
                let node = || Node::Computed {
                    what: what.name.clone(),
                    place: op.place,
                    operands,
                };
                record.nodes.entry(result[lane]).or_insert_with(node);
            }
        }
        *self.slot(sub_group, to) = result;
    }
}

impl TermObserver {
    /// What an operation makes. Other lanes of its results may change.
    fn follow(&mut self, running: Running<'_>) {
        let Running { op, sub_group, .. } = running;
        let mut compute =
            |what: Operation, to: Slot, operands: &[Slot]| self.compute(what, to, operands, running);
        match op.kind {
            LaneOpKind::Id { to, .. } | LaneOpKind::ArrayAddress { to, .. } | LaneOpKind::Join { to, .. } => {
                *self.slot(sub_group, to) = [Term::KNOWN; LANES];
            }
            LaneOpKind::Unary { op, ty, to, a } => {
                compute(unary(op, ty), to, &[a]);
            }
            LaneOpKind::Binary { op, ty, to, a, b } => compute(binary(op, ty), to, &[a, b]),
            // A pass may drop the promise.
            LaneOpKind::NoWrap { op, ty, to, a, b, .. } => compute(binary(op.into(), ty), to, &[a, b]),
            LaneOpKind::Fma { ty, to, a, b, c } => compute(Operation::new(3, 0, ty, "fma"), to, &[a, b, c]),
            LaneOpKind::Compare { op, ty, to, a, b } => {
                compute(Operation::new(4, op as u64, ty, op.name()), to, &[a, b]);
            }
            LaneOpKind::Convert {
                op,
                from,
                into,
                to,
                a,
            } => {
                let what = Operation {
                    is_identity: matches!(
                        op,
                        ConvertOp::Bits | ConvertOp::ToGeneric | ConvertOp::FromGeneric
                    ),
                    width: Some((op, from, into)),
                    ..Operation::new(5 + type_number(from), op as u64, into, op.name())
                };
                compute(what, to, &[a]);
            }
            LaneOpKind::Address {
                to,
                base,
                index,
                scale,
                offset,
            } => {
                compute(address(scale, offset), to, &[base, index]);
            }
            LaneOpKind::Select { to, cond, a, b } => {
                let (a, b) = (self.get(sub_group, a), self.get(sub_group, b));
                let cond = running.registers.lanes(cond);
                *self.slot(sub_group, to) =
                    std::array::from_fn(|lane| if cond[lane] != 0 { a[lane] } else { b[lane] });
            }
            LaneOpKind::Load { ref to, memory, id } => {
                self.load(to.as_slice(), Accessed::by(memory), id, running);
            }
            LaneOpKind::Store { ref values, memory } => {
                self.store(values.as_slice(), Accessed::by(memory), running);
            }
            LaneOpKind::Copy {
                to,
                target,
                source,
                bytes,
                id,
            } => self.copy(to, (target, source), bytes, id, running),
            LaneOpKind::Wait { token } => self.wait(token, running),
            LaneOpKind::Atomic {
                op: atomic,
                ref to,
                ty,
                space,
                ptr,
                ref values,
                ..
            } => {
                let on = Accessed { space, ptr, ty };
                self.atomic(atomic, to.as_slice(), on, values.as_slice(), running);
            }
            LaneOpKind::Shuffle { .. }
            | LaneOpKind::Vote { .. }
            | LaneOpKind::Reduce { .. }
            | LaneOpKind::GroupVote { .. } => self.exchange(running),
            LaneOpKind::Active { to } => *self.slot(sub_group, to) = [Term::KNOWN; LANES],
            // Whatever it touches, its results depend on its operands, and on unknown state.
            _ => {
                for &slot in op.results() {
                    *self.slot(sub_group, slot) = [Term::UNORDERED; LANES];
                }
            }
        }
    }

    /// What lanes get from each other.
    fn exchange(&mut self, running: Running<'_>) {
        let Running {
            op,
            registers,
            mask,
            sub_group,
        } = running;
        let (to, results) = match op.kind {
            LaneOpKind::Shuffle {
                op: shuffle,
                to,
                value,
                by,
                ..
            } => {
                let terms = self.get(sub_group, value);
                // A mask decides who takes part, not the result.
                let size = match op.party {
                    Some(_) => EXCHANGING_ITEMS,
                    None => mask.count(),
                };
                let sources = shuffle_sources(shuffle, registers.get(by), size);
                (to, sources.map(|source| terms[source]))
            }
            LaneOpKind::Vote { op: vote, to, value } => {
                let (terms, bits) = (self.get(sub_group, value), registers.get(value));
                let result = |of: Mask, named| together(VOTE + vote as u64, of, &terms, bits, named);
                let results = match op.party {
                    None => [result(mask, None); LANES],
                    Some(party) => {
                        let (names, masks) = (self.get(sub_group, party), registers.lanes(party));
                        let parties = parties_of(&masks, mask);
                        std::array::from_fn(|lane| result(parties[lane], Some((names[lane], masks[lane]))))
                    }
                };
                (to, results)
            }
            LaneOpKind::Reduce {
                op: reduce,
                to,
                value,
            } => {
                let (terms, bits) = (self.get(sub_group, value), registers.get(value));
                let parties = match op.party {
                    None => [mask; LANES],
                    Some(party) => parties_of(registers.get(party), mask),
                };
                let result = |of: Mask| together(REDUCE + reduce as u64, of, &terms, bits, None);
                (to, parties.map(result))
            }
            // Of its own sub-group: each asks for itself.
            LaneOpKind::GroupVote { op: vote, to, value } => {
                let (terms, bits) = (self.get(sub_group, value), registers.get(value));
                let result = together(GROUP_VOTE + vote as u64, mask, &terms, bits, None);
                (to, [result; LANES])
            }
            _ => return,
        };
        *self.slot(sub_group, to) = results;
    }
}

/// What lanes make of their values, and of the mask that names them: known if all that is.
fn together(number: u64, of: Mask, terms: &[Term; LANES], bits: &[u64], named: Option<(Term, u64)>) -> Term {
    let known = of.lanes().all(|lane| terms[lane].is_known());
    if known && named.is_none_or(|(term, _)| term.is_known()) {
        return Term::KNOWN;
    }
    let named = named.map(|(term, bits)| term.part(bits));
    let values = of.lanes().map(|lane| terms[lane].part(bits[lane]));
    Term::made(number, named.into_iter().chain(values))
}

impl Observer for TermObserver {
    fn op(
        &mut self,
        op: &LaneOp,
        registers: &Registers,
        mask: Mask,
        sub_group: &SubGroup,
        _group: &WorkGroup<'_>,
    ) {
        let running = Running {
            op,
            registers,
            mask,
            sub_group,
        };
        if mask == sub_group.mask() {
            return self.follow(running);
        }
        // Other lanes may be anywhere, and need their registers.
        let results = op.results();
        let before: Vec<(Slot, [Term; LANES])> = results
            .iter()
            .map(|&slot| (slot, self.get(sub_group, slot)))
            .collect();
        self.follow(running);
        for (slot, before) in before {
            let after = self.slot(sub_group, slot);
            for lane in (0..LANES).filter(|&lane| !mask.contains(lane)) {
                after[lane] = before[lane];
            }
        }
    }

    fn assign(&mut self, moves: &[(Slot, Slot)], _registers: &Registers, mask: Mask, sub_group: &SubGroup) {
        let before: Vec<[Term; LANES]> = moves.iter().map(|&(_, from)| self.get(sub_group, from)).collect();
        for (&(to, _), from) in moves.iter().zip(before) {
            let to = self.slot(sub_group, to);
            for lane in mask.lanes() {
                to[lane] = from[lane];
            }
        }
    }
}
