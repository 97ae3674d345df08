//! Watches a work-group run and computes the term of each of its values.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::operation::{Operation, address, binary, type_number, unary};
use super::record::{Node, Record, Stored};
use super::terms::{NOT_GLOBAL, OPERATION, Term, TermMemory};
use crate::ir::limits::EXCHANGING_ITEMS;
use crate::ir::{ConvertOp, LoadId, Place, Space, Type};
use headstart_sim::functional::{
    LANES, LaneOp, LaneOpKind, Mask, Observer, Registers, Slot, SubGroup, WorkGroup, from_generic,
    parties_of, shuffle_sources,
};

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

impl TermObserver {
    pub fn new() -> TermObserver {
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
    fn compute(
        &mut self,
        what: Operation,
        (to, operands): (Slot, &[Slot]),
        registers: &Registers,
        mask: Mask,
        sub_group: &SubGroup,
        place: Place,
    ) {
        let terms: Vec<[Term; LANES]> = operands.iter().map(|&slot| self.get(sub_group, slot)).collect();
        let mut result = [Term::KNOWN; LANES];
        for lane in mask.lanes() {
            if terms.iter().all(|term| term[lane].is_known()) {
                continue;
            }
            if terms.iter().any(|term| term[lane] == Term::UNORDERED) {
                result[lane] = Term::UNORDERED;
                continue;
            }
            let bits = |operand: usize| registers.get(operands[operand])[lane];
            if let Some(same) =
                what.passes_on(|operand| terms[operand][lane].is_known().then(|| bits(operand)))
            {
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
                    place,
                    operands,
                };
                record.nodes.entry(result[lane]).or_insert_with(node);
            }
        }
        *self.slot(sub_group, to) = result;
    }

    /// A load or copy is executed: how often this work-item has done so before.
    fn count(&mut self, load: LoadId, item: u32) -> u64 {
        *self.loads.entry(load).or_insert(0) += 1;
        let Some(record) = &mut self.record else {
            return 0;
        };
        let executions = record.executions.entry((load, item)).or_insert(0);
        *executions += 1;
        *executions - 1
    }

    /// A load or copy reads global memory.
    fn record_load(&mut self, term: Term, node: Node) {
        if let Some(record) = &mut self.record
            && !term.is_known()
        {
            record.nodes.entry(term).or_insert(node);
        }
    }
}

/// An address that no other space has.
fn unique(space: Space, address: u64, item: u32) -> u64 {
    match space {
        Space::Generic => {
            let (space, address) = from_generic(address);
            unique(space, address, item)
        }
        Space::Global => address,
        Space::Shared => NOT_GLOBAL | address,
        Space::Private => NOT_GLOBAL << 1 | u64::from(item) << 36 | address,
    }
}

impl TermObserver {
    /// What an operation makes. Other lanes of its results may change.
    fn follow(&mut self, op: &LaneOp, registers: &Registers, mask: Mask, sub_group: &SubGroup) {
        let mut compute = |what: Operation, to: Slot, operands: &[Slot]| {
            let what = what.ruled(op.rule);
            self.compute(what, (to, operands), registers, mask, sub_group, op.place);
        };
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
                let cond = registers.lanes(cond);
                *self.slot(sub_group, to) =
                    std::array::from_fn(|lane| if cond[lane] != 0 { a[lane] } else { b[lane] });
            }
            LaneOpKind::Load {
                to,
                ty,
                space,
                ptr,
                id,
                ..
            } => {
                let addresses = registers.get(ptr);
                let places = self.get(sub_group, ptr);
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let earlier = self.count(id, item);
                    let mut address = unique(space, addresses[lane], item);
                    for &slot in to.as_slice() {
                        let mut term = self.memory.read(address, ty.bytes());
                        if places[lane] == Term::UNORDERED {
                            term = Term::UNORDERED;
                        }
                        self.slot(sub_group, slot)[lane] = term;
                        let node = Node::Loaded {
                            load: id,
                            item,
                            earlier,
                            address,
                        };
                        if address < NOT_GLOBAL {
                            self.record_load(term, node);
                        }
                        address += u64::from(ty.bytes());
                    }
                }
            }
            LaneOpKind::Store {
                values,
                ty,
                space,
                ptr,
                ..
            } => {
                let addresses = registers.get(ptr);
                let places = self.get(sub_group, ptr);
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let mut address = unique(space, addresses[lane], item);
                    for &slot in values.as_slice() {
                        let term = self.get(sub_group, slot)[lane];
                        let bits = registers.get(slot)[lane];
                        if places[lane] == Term::UNORDERED {
                            self.memory.scatter(address, ty.bytes(), term, bits);
                            address += u64::from(ty.bytes());
                            continue;
                        }
                        self.memory.write(address, ty.bytes(), term, bits);
                        if let Some(record) = &mut self.record
                            && address < NOT_GLOBAL
                        {
                            let stored = Stored {
                                term,
                                bits,
                                size: ty.bytes(),
                                item,
                                place: op.place,
                            };
                            record.stores.insert(address, stored);
                        }
                        address += u64::from(ty.bytes());
                    }
                }
            }
            LaneOpKind::Copy {
                to,
                target,
                source,
                bytes,
                id,
            } => {
                *self.slot(sub_group, to) = [Term::KNOWN; LANES];
                for lane in mask.lanes() {
                    let item = sub_group.work_item(lane);
                    let earlier = self.count(id, item);
                    let from = registers.get(source)[lane];
                    let term = self.memory.read(from, bytes.min(8));
                    let node = Node::Loaded {
                        load: id,
                        item,
                        earlier,
                        address: from,
                    };
                    self.record_load(term, node);
                    let copies = self.copies.entry(item).or_default();
                    copies.started += 1;
                    let copy = Copy {
                        to: unique(Space::Shared, registers.get(target)[lane], item),
                        from,
                        bytes,
                    };
                    copies.in_flight.push_back((copies.started, copy));
                }
            }
            LaneOpKind::Wait { token } => {
                for lane in mask.lanes() {
                    let token = registers.get(token)[lane];
                    let Some(copies) = self.copies.get_mut(&sub_group.work_item(lane)) else {
                        continue;
                    };
                    while copies
                        .in_flight
                        .front()
                        .is_some_and(|&(number, _)| number <= token)
                    {
                        if let Some((_, copy)) = copies.in_flight.pop_front() {
                            self.memory.copy(copy.to, copy.from, copy.bytes);
                        }
                    }
                }
            }
            LaneOpKind::Atomic {
                op: atomic,
                ref to,
                ty,
                space,
                ptr,
                ref values,
                ..
            } => {
                let addresses = registers.get(ptr);
                for lane in mask.lanes() {
                    let address = unique(space, addresses[lane], sub_group.work_item(lane));
                    let change = |operand: Option<Slot>| {
                        operand.map_or(Term::KNOWN, |slot| {
                            let part = self.get(sub_group, slot)[lane].part(registers.get(slot)[lane]);
                            Term::made(ATOMIC + atomic as u64, [part])
                        })
                    };
                    let parts = match atomic.can_be_several() {
                        true => values.as_slice().len().max(1),
                        false => 1,
                    };
                    let changes: Vec<Term> = (0..parts)
                        .map(|part| change(values.as_slice().get(part).copied()))
                        .collect();
                    let is_unordered = self.get(sub_group, ptr)[lane] == Term::UNORDERED;
                    for (part, change) in changes.into_iter().enumerate().filter(|_| atomic.writes()) {
                        let address = address.wrapping_add(part as u64 * u64::from(ty.bytes()));
                        if is_unordered {
                            self.memory.scatter(address, ty.bytes(), change, 0);
                            continue;
                        }
                        let before = self.memory.read(address, ty.bytes());
                        let after = match atomic.commutes() {
                            true => before.changed_by(0, change),
                            false => Term::UNORDERED,
                        };
                        self.memory.write(address, ty.bytes(), after, 0);
                    }
                    for &to in to.as_slice() {
                        self.slot(sub_group, to)[lane] = Term::UNORDERED;
                    }
                }
            }
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
                *self.slot(sub_group, to) = sources.map(|source| terms[source]);
            }
            LaneOpKind::Vote { op: vote, to, value } => {
                let (terms, bits) = (self.get(sub_group, value), registers.get(value));
                let result = |of: Mask, named: Option<(Term, u64)>| {
                    let known = of.lanes().all(|lane| terms[lane].is_known());
                    if known && named.is_none_or(|(term, _)| term.is_known()) {
                        return Term::KNOWN;
                    }
                    let named = named.map(|(term, bits)| term.part(bits));
                    let votes = of.lanes().map(|lane| terms[lane].part(bits[lane]));
                    Term::made(VOTE + vote as u64, named.into_iter().chain(votes))
                };
                *self.slot(sub_group, to) = match op.party {
                    None => [result(mask, None); LANES],
                    Some(party) => {
                        let (names, masks) = (self.get(sub_group, party), registers.lanes(party));
                        let parties = parties_of(&masks, mask);
                        std::array::from_fn(|lane| result(parties[lane], Some((names[lane], masks[lane]))))
                    }
                };
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
                let results = std::array::from_fn(|lane| {
                    let of = parties[lane];
                    match of.lanes().all(|lane| terms[lane].is_known()) {
                        true => Term::KNOWN,
                        false => {
                            let values = of.lanes().map(|lane| terms[lane].part(bits[lane]));
                            Term::made(REDUCE + reduce as u64, values)
                        }
                    }
                });
                *self.slot(sub_group, to) = results;
            }
            // Of its own sub-group: each asks for itself.
            LaneOpKind::GroupVote { op: vote, to, value } => {
                let (terms, bits) = (self.get(sub_group, value), registers.get(value));
                let result = match mask.lanes().all(|lane| terms[lane].is_known()) {
                    true => Term::KNOWN,
                    false => {
                        let votes = mask.lanes().map(|lane| terms[lane].part(bits[lane]));
                        Term::made(GROUP_VOTE + vote as u64, votes)
                    }
                };
                *self.slot(sub_group, to) = [result; LANES];
            }
            LaneOpKind::Active { to } => *self.slot(sub_group, to) = [Term::KNOWN; LANES],
            // Whatever it touches, its results depend on its operands, and on unknown state.
            _ => {
                for &slot in op.results() {
                    *self.slot(sub_group, slot) = [Term::UNORDERED; LANES];
                }
            }
        }
    }
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
        if mask == sub_group.mask() {
            return self.follow(op, registers, mask, sub_group);
        }
        // Other lanes may be anywhere, and need their registers.
        let results = op.results();
        let before: Vec<(Slot, [Term; LANES])> = results
            .iter()
            .map(|&slot| (slot, self.get(sub_group, slot)))
            .collect();
        self.follow(op, registers, mask, sub_group);
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
