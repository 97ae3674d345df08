//! Prefetches.
//!
//! | asked | instruction | reached |
//! |---|---|---|
//! | L1, where the memory's bounds are known | `cp.async.ca`, 4 bytes to a scratch word, under a bounds check | L1 |
//! | L1 elsewhere, L2, L3, L4 | `prefetch.global.L2`, one a cache line | L2 |
//! | in bulk (sm_90) | `cp.async.bulk.prefetch.L2` by one work-item of the sub-group | L2 |
//!
//! `prefetch.global.L1` fills only L2 on the GPUs we know (measured on an H200: the next load takes 466 cycles as after
//! `prefetch.global.L2`, against 83 for a hit in L1). An asynchronous copy of 4 bytes fills L1 without stalling, so an L1 hint
//! becomes one: into a word of shared memory that belongs to the work-item and is never read. Unlike a hint such a copy faults
//! out of bounds, so it runs under a bounds check. It joins the next group that is closed and closes none itself, so the counts
//! that rings wait for do not change.
//!
//! `nontemporal` is a priority in L2: copies and bulk prefetches take a policy that evicts first (`createpolicy`, made
//! once at the kernel's start); `prefetch.global` knows no such priority, and takes the plain one by name, so that it
//! raises none that the line has.
//!
//! A bulk prefetch goes through the uniform datapath. ptxas (13.0, sm_90) writes a loop over the work-items around one
//! whose address it does not know to be the same for all, even under a predicate of one lane; under the
//! predicate of `elect.sync` it writes one instruction.

use super::bounds::Bounds;
use super::emitter::Emitter;
use super::memory::WIDEST;
use super::registers::Class;
use super::{Options, PtxTarget};
use crate::hints::{Form, HintReached, asked, cost};
use crate::ir::{CacheHint, CacheLevel, Kernel, Op, OpKind, PrefetchScope, Value};
use crate::roots::Roots;

/// Bytes of a cache line; a hint fetches one line.
const LINE: u32 = 128;

/// Bytes that a bulk prefetch is aligned to, and a multiple of.
const BULK: i64 = 16;

/// The name of the array of scratch words that L1 hints copy to.
pub(super) const SCRATCH: &str = "prefetch_scratch";

/// The instruction of each prefetch of a kernel.
pub fn prefetches(kernel: &Kernel, options: &Options) -> Vec<HintReached> {
    let roots = Roots::find(kernel);
    let mut hints: Vec<HintReached> = Vec::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Prefetch {
            ptr,
            hint,
            source,
            scope,
            ..
        } = &op.kind
        else {
            return;
        };
        let copied = Bounds::of_copy(kernel, &roots, *ptr, *hint).is_some();
        let in_bulk = *scope == PrefetchScope::Bulk && options.target == PtxTarget::Sm90;
        let (reached, by, why) = match hint.level {
            _ if !source.fills() => (None, "nothing", "it names no level"),
            CacheLevel::L1 if copied => (
                Some(CacheLevel::L1),
                "cp.async",
                "an asynchronous copy to a scratch word fills L1; the L1 hint of the device fills L2 only",
            ),
            CacheLevel::L1 => (
                Some(CacheLevel::L2),
                "prefetch.global.L2",
                "only a copy fills L1, and the bounds that it needs are not known",
            ),
            _ if in_bulk => (
                Some(CacheLevel::L2),
                "cp.async.bulk.prefetch.L2",
                "one request for the range",
            ),
            CacheLevel::L2 => (
                Some(CacheLevel::L2),
                "prefetch.global.L2",
                "the device has this level",
            ),
            CacheLevel::L3 | CacheLevel::L4 => (
                Some(CacheLevel::L2),
                "prefetch.global.L2",
                "the device has two levels: L2 is the nearest",
            ),
        };
        let hint = HintReached {
            place: kernel.describe_place(op.place),
            asked: asked(*hint, *source, *scope),
            level: hint.level,
            reached,
            by: by.to_owned(),
            why: why.to_owned(),
            cost: cost(&op.kind, &Form::nvidia(options.target == PtxTarget::Sm90)),
        };
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    });
    hints
}

impl Emitter<'_> {
    /// Writes a prefetch in a form that the device has.
    pub(super) fn prefetch(&mut self, op: &Op) {
        let OpKind::Prefetch {
            ptr,
            bytes,
            count,
            hint,
            scope,
            ..
        } = op.kind
        else {
            return;
        };
        if scope == PrefetchScope::Bulk {
            self.prefetch_in_bulk(ptr, bytes, count, hint);
            return;
        }
        // The first byte of each line that the range may touch, and its last byte.
        let mut offsets: Vec<i64> = (0..bytes.max(1)).step_by(LINE as usize).map(i64::from).collect();
        if !(bytes.is_power_of_two() && bytes <= WIDEST) && bytes > 1 {
            offsets.push(i64::from(bytes) - 1);
        }
        let to_l1 = hint.level == CacheLevel::L1 && self.scratch.is_some();
        if to_l1
            && offsets
                .iter()
                .all(|&offset| self.prefetch_to_l1(ptr, offset, hint.nontemporal))
        {
            return;
        }
        let name = if hint.nontemporal {
            "L2::evict_normal"
        } else {
            "L2"
        };
        for offset in offsets {
            let location = self.location_at(ptr, offset);
            self.guarded(format!("prefetch.global.{name} {location}"));
        }
    }

    /// Writes one request for a range: its ends moved outwards to where such a request may begin and end, which
    /// stays inside their sectors.
    fn prefetch_in_bulk(&mut self, ptr: Value, bytes: u32, count: Option<Value>, hint: CacheHint) {
        let (base, offset) = self.base_and_offset(ptr);
        let (start, end, size) = (
            self.temporary(Class::B64),
            self.temporary(Class::B64),
            self.temporary(Class::B64),
        );
        self.ins(format!("add.s64 {start}, {base}, {offset}"));
        match count {
            Some(count) => {
                let count = self.operand(count);
                self.ins(format!("mad.lo.s64 {end}, {count}, {bytes}, {start}"));
            }
            None => self.ins(format!("add.s64 {end}, {start}, {bytes}")),
        }
        self.ins(format!("and.b64 {start}, {start}, -{BULK}"));
        self.ins(format!("add.s64 {end}, {end}, {}", BULK - 1));
        self.ins(format!("and.b64 {end}, {end}, -{BULK}"));
        self.ins(format!("sub.s64 {size}, {end}, {start}"));
        let (narrow, elected) = (self.temporary(Class::B32), self.temporary(Class::Predicate));
        self.ins(format!("cvt.u32.u64 {narrow}, {size}"));
        self.ins(format!("elect.sync _|{elected}, 0xffffffff"));
        let mut guard = elected;
        if count.is_some() {
            // A request for nothing is not allowed.
            let (some, both) = (self.temporary(Class::Predicate), self.temporary(Class::Predicate));
            self.ins(format!("setp.ne.u32 {some}, {narrow}, 0"));
            self.ins(format!("and.pred {both}, {some}, {guard}"));
            guard = both;
        }
        let guard = self.also(guard);
        let outer = self.guard.replace(guard);
        match self.streaming.clone().filter(|_| hint.nontemporal) {
            Some(policy) => self.guarded(format!(
                "cp.async.bulk.prefetch.L2.global.L2::cache_hint [{start}], {narrow}, {policy}"
            )),
            None => self.guarded(format!("cp.async.bulk.prefetch.L2.global [{start}], {narrow}")),
        }
        self.guard = outer;
    }

    /// Writes an L1 hint for the word that holds the byte at `offset`. False if it has no bounds to check.
    fn prefetch_to_l1(&mut self, ptr: Value, offset: i64, nontemporal: bool) -> bool {
        let bounds = Bounds::of(self.kernel, &self.roots, ptr);
        let Some((scratch, bounds)) = self.scratch.clone().zip(bounds) else {
            return false;
        };
        let (root, length, element) = (bounds.start, bounds.length, bounds.element.bytes());

        let inside = self.temporary(Class::Predicate);
        let exact = match self.definition(ptr) {
            Some(OpKind::Address {
                base,
                index,
                scale,
                offset: 0,
            }) if *base == root && *scale == element => (element >= 4 && offset == 0).then_some(*index),
            _ => None,
        };
        let location = if let Some(index) = exact {
            let (index, length) = (self.long_index(index), self.operand(length));
            self.ins(format!("setp.lt.u64 {inside}, {index}, {length}"));
            self.location(ptr)
        } else {
            // The word's distance from the start, and whether it leaves room for its own four bytes.
            let (base, start) = self.base_and_offset(ptr);
            let (word, distance, most) = (
                self.temporary(Class::B64),
                self.temporary(Class::B64),
                self.temporary(Class::B64),
            );
            let (first, length) = (self.operand(root), self.operand(length));
            self.ins(format!("add.s64 {word}, {base}, {}", start + offset));
            self.ins(format!("and.b64 {word}, {word}, -4"));
            self.ins(format!("sub.s64 {distance}, {word}, {first}"));
            self.ins(format!("add.s64 {distance}, {distance}, 4"));
            self.ins(format!("mul.lo.s64 {most}, {length}, {element}"));
            self.ins(format!("setp.le.u64 {inside}, {distance}, {most}"));
            format!("[{word}]")
        };
        let guard = self.also(inside);
        let outer = self.guard.replace(guard);
        match self.streaming.clone().filter(|_| nontemporal) {
            Some(policy) => self.guarded(format!(
                "cp.async.ca.shared.global.L2::cache_hint [{scratch}], {location}, 4, {policy}"
            )),
            None => self.guarded(format!("cp.async.ca.shared.global [{scratch}], {location}, 4")),
        }
        self.guard = outer;
        true
    }

    /// Prepares the work-item's scratch word, if the kernel has an L1 hint that can use one; and the policy that evicts
    /// first, if something nontemporal can.
    pub(super) fn prepare_prefetches(&mut self) {
        let (mut copied, mut evicted_first) = (false, false);
        self.kernel.body.walk(&mut |op| {
            if let OpKind::Prefetch { ptr, hint, scope, .. } = &op.kind {
                let copies = Bounds::of_copy(self.kernel, &self.roots, *ptr, *hint).is_some();
                copied |= copies;
                evicted_first |= hint.nontemporal && (copies || *scope == PrefetchScope::Bulk);
            }
        });
        if copied {
            let word = self.temporary(Class::B32);
            let item = self.linear_item();
            let scratch = self.variable(SCRATCH);
            self.ins(format!("mov.u32 {word}, {scratch}"));
            self.ins(format!("mad.lo.u32 {word}, {item}, 4, {word}"));
            self.scratch = Some(word);
        }
        if evicted_first {
            let policy = self.temporary(Class::B64);
            self.ins(format!(
                "createpolicy.fractional.L2::evict_first.b64 {policy}, 1.0"
            ));
            self.streaming = Some(policy);
        }
    }
}
