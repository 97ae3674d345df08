//! What random kernels do together: atomic operations, fences, shuffles, votes, block loads.
//!
//! No kernel uses the result of an atomic operation, and all atomics of a kernel are of one commuting kind: so the results are
//! the same in any order of work-items, and a plan must not change them.

use super::statements::{Frame, Generator, widened};
use super::tables::TALLIES;
use super::values::Pool;
use crate::ir::{
    AtomicOp, BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Id, Kernel, Meeting, MemoryOrder,
    MemoryScope, OpKind, ShuffleOp, Type, Value, VoteOp,
};

/// Work-items of the largest sub-group.
const LARGEST: u32 = 32;

impl Generator {
    /// Changes an element that all work-items change.
    pub fn tally(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        use AtomicOp::{Add, MaxS, MinU, Or, Xor};
        let op = [Add, Xor, MaxS, MinU, Or][(self.seed % 5) as usize];
        let order = *self.random.choose(&[
            MemoryOrder::Relaxed,
            MemoryOrder::Relaxed,
            MemoryOrder::Relaxed,
            MemoryOrder::Release,
            MemoryOrder::AcquireRelease,
        ]);
        let table = frame.tables.tallies.clone();
        let index = self.index(b, pool, TALLIES);
        let ptr = b.element(table.pointer, table.element, index);
        let value = pool.pick(&mut self.random, b, table.element);
        b.atomic(op, table.element, ptr, vec![value], order, MemoryScope::Device);
    }

    /// Orders what comes before and after.
    pub fn fence(&mut self, b: &mut Builder<'_>) {
        let order = *self.random.choose(&[
            MemoryOrder::Release,
            MemoryOrder::AcquireRelease,
            MemoryOrder::SequentiallyConsistent,
        ]);
        let scope = self.random.choose(MemoryScope::ALL).on_device();
        b.fence(order, scope);
    }

    /// A load of a block of the sub-group from an element that all name. All must be here.
    pub fn block(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let table = self.random.choose(&frame.tables.inputs).clone();
        // Elements for every work-item; four of the smallest are as much as a block is aligned by.
        let starts = table.length.saturating_sub(u64::from(LARGEST)) / 4 + 1;
        let first = 4 * self.random.below(starts) as i64;
        let lane = b.id(Id::Lane);
        let lane = b.convert(ConvertOp::ExtendU, Type::I64, lane);
        let first = b.i64(first);
        let index = b.add(first, lane);
        let ptr = b.element(table.pointer, table.element, index);
        let id = self.new_load(b, table.name);
        let cache = CacheUse::Block;
        let value = b.push(OpKind::Load { ptr, id, cache }, &[table.element])[0];
        b.at(Kernel::NOWHERE);
        pool.add(widened(b, value));
    }

    /// A value of another work-item of the sub-group, or a vote of all of them. All must be here.
    pub fn shuffle(&mut self, b: &mut Builder<'_>, pool: &mut Pool) {
        if self.masks && self.random.chance(50) {
            return self.party(b, pool);
        }
        if self.random.chance(30) {
            let truth = pool.pick(&mut self.random, b, Type::Bool);
            let vote = *self.random.choose(VoteOp::ALL);
            let said = b.vote(vote, truth);
            pool.add(said);
            return;
        }
        let ty = *self.random.choose(&super::statements::TYPES);
        let value = pool.pick(&mut self.random, b, ty);
        let by = if self.random.chance(60) {
            let by = self.random.below(32);
            b.i32(by as i32)
        } else {
            let any = pool.pick(&mut self.random, b, Type::I32);
            let mask = b.i32(31);
            b.and(any, mask)
        };
        let op = *self.random.choose(ShuffleOp::ALL);
        let shuffled = b.shuffle(op, value, by);
        pool.add(shuffled);
    }

    /// Collective operations of the work-items for which a condition holds, while the others take another path or do the same
    /// among themselves. All must be here.
    fn party(&mut self, b: &mut Builder<'_>, pool: &mut Pool) {
        let truth = pool.pick(&mut self.random, b, Type::Bool);
        let everybody = self.random.chance(50).then(|| b.i32(-1));
        let holding = b.vote_among(VoteOp::Ballot, truth, everybody);
        let all = b.i32(-1);
        let others = b.binary(BinaryOp::Xor, holding, all);
        let own = b.select(truth, holding, others);
        let ty = *self.random.choose(&super::statements::TYPES);
        let value = pool.pick(&mut self.random, b, ty);
        let asked = pool.pick(&mut self.random, b, Type::Bool);
        let any = pool.pick(&mut self.random, b, Type::I32);
        let (low, meets) = (b.i32(31), self.random.chance(30));
        let any = b.and(any, low);
        let vote = *self.random.choose(&[VoteOp::Any, VoteOp::All]);
        let exchange = |b: &mut Builder<'_>, mask: Value| {
            if meets {
                b.meet(Meeting::SubGroup(Some(mask)));
            }
            // Who is here: a sub-group may be smaller than the mask says.
            let yes = b.bool(true);
            let here = b.vote_among(VoteOp::Ballot, yes, Some(mask));
            let bit = b.binary(BinaryOp::ShrU, here, any);
            let one = b.i32(1);
            let bit = b.and(bit, one);
            let there = b.compare(CompareOp::Eq, bit, one);
            let lane = b.id(Id::Lane);
            let from = b.select(there, any, lane);
            let other = b.shuffle_among(ShuffleOp::Index, value, from, Some(mask));
            vec![other, b.vote_among(vote, asked, Some(mask))]
        };
        let results = match self.random.below(4) {
            // Each in a party of its own.
            0 => exchange(b, own),
            // One side only.
            1 => b.if_(
                truth,
                &[ty, Type::Bool],
                |b| exchange(b, holding),
                |_| vec![value, asked],
            ),
            // The sides with each other: everybody waits for the same, here and there.
            2 => b.if_(
                truth,
                &[ty, Type::Bool],
                |b| exchange(b, all),
                |b| exchange(b, all),
            ),
            _ => b.if_(
                truth,
                &[ty, Type::Bool],
                |b| exchange(b, holding),
                |b| exchange(b, others),
            ),
        };
        let active = b.active();
        let together = b.vote_among(VoteOp::All, truth, Some(active));
        // Who runs it together is the device's affair; that it is somebody is not.
        let alone = b.binary(BinaryOp::Or, together, truth);
        let same = b.compare(CompareOp::Eq, alone, truth);
        for result in results.into_iter().chain([same]) {
            pool.add(result);
        }
    }
}
