//! What random kernels do together: atomic operations, fences, shuffles, votes, block loads.
//!
//! No kernel uses what an atomic operation found, and all of a kernel's are of one kind that commutes: so the
//! results are the same in whatever order work-items come, and a plan must not change them.

use super::statements::{Frame, Generator, widened};
use super::tables::TALLIES;
use super::values::Pool;
use crate::ir::{
    AtomicOp, Builder, CacheUse, ConvertOp, Id, Kernel, MemoryOrder, MemoryScope, OpKind, ShuffleOp, Type,
    VoteOp,
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
        let scope = *self.random.choose(MemoryScope::ALL);
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

    /// A value of another work-item of the sub-group, or what all of them say. All must be here.
    pub fn shuffle(&mut self, b: &mut Builder<'_>, pool: &mut Pool) {
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
}
