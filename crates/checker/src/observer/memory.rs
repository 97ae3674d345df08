//! Terms in memory: what loads find, stores leave, copies carry and atomic operations change.

use super::super::record::{Node, Stored};
use super::super::terms::{NOT_GLOBAL, Term};
use super::{ATOMIC, Copy, Running, TermObserver};
use crate::ir::{AtomicOp, LoadId, Space, Type};
use headstart_sim::functional::{AccessedMemory, LANES, Slot, from_generic};

/// The memory of an access: where it is, and the type of each element.
#[derive(Clone, Copy)]
pub(super) struct Accessed {
    pub space: Space,
    pub ptr: Slot,
    pub ty: Type,
}

impl Accessed {
    /// By a load or store.
    pub(super) fn by(AccessedMemory { space, ptr, ty, .. }: AccessedMemory) -> Accessed {
        Accessed { space, ptr, ty }
    }
}

impl TermObserver {
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

    pub(super) fn load(&mut self, to: &[Slot], from: Accessed, id: LoadId, running: Running<'_>) {
        let Accessed { space, ptr, ty } = from;
        let addresses = running.registers.get(ptr);
        let places = self.get(running.sub_group, ptr);
        for (lane, item) in running.items() {
            let earlier = self.count(id, item);
            let mut address = unique(space, addresses[lane], item);
            for &slot in to {
                let mut term = self.memory.read(address, ty.bytes());
                if places[lane] == Term::UNORDERED {
                    term = Term::UNORDERED;
                }
                self.slot(running.sub_group, slot)[lane] = term;
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

    pub(super) fn store(&mut self, values: &[Slot], to: Accessed, running: Running<'_>) {
        let Accessed { space, ptr, ty } = to;
        let addresses = running.registers.get(ptr);
        let places = self.get(running.sub_group, ptr);
        for (lane, item) in running.items() {
            let mut address = unique(space, addresses[lane], item);
            for &slot in values {
                let term = self.get(running.sub_group, slot)[lane];
                let bits = running.registers.get(slot)[lane];
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
                        place: running.op.place,
                    };
                    record.stores.insert(address, stored);
                }
                address += u64::from(ty.bytes());
            }
        }
    }

    pub(super) fn copy(
        &mut self,
        to: Slot,
        (target, source): (Slot, Slot),
        bytes: u32,
        id: LoadId,
        running: Running<'_>,
    ) {
        *self.slot(running.sub_group, to) = [Term::KNOWN; LANES];
        for (lane, item) in running.items() {
            let earlier = self.count(id, item);
            let from = running.registers.get(source)[lane];
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
                to: unique(Space::Shared, running.registers.get(target)[lane], item),
                from,
                bytes,
            };
            copies.in_flight.push_back((copies.started, copy));
        }
    }

    pub(super) fn wait(&mut self, token: Slot, running: Running<'_>) {
        for (lane, item) in running.items() {
            let token = running.registers.get(token)[lane];
            let Some(copies) = self.copies.get_mut(&item) else {
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

    /// What it finds depends on the order of the work-items.
    pub(super) fn atomic(
        &mut self,
        atomic: AtomicOp,
        to: &[Slot],
        on: Accessed,
        values: &[Slot],
        running: Running<'_>,
    ) {
        let Accessed { space, ptr, ty } = on;
        let addresses = running.registers.get(ptr);
        for (lane, item) in running.items() {
            let address = unique(space, addresses[lane], item);
            let change = |operand: Option<Slot>| {
                operand.map_or(Term::KNOWN, |slot| {
                    let part =
                        self.get(running.sub_group, slot)[lane].part(running.registers.get(slot)[lane]);
                    Term::made(ATOMIC + atomic as u64, [part])
                })
            };
            let parts = match atomic.can_be_several() {
                true => values.len().max(1),
                false => 1,
            };
            let changes: Vec<Term> = (0..parts).map(|part| change(values.get(part).copied())).collect();
            let is_unordered = self.get(running.sub_group, ptr)[lane] == Term::UNORDERED;
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
            for &to in to {
                self.slot(running.sub_group, to)[lane] = Term::UNORDERED;
            }
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
