//! Addresses as a pointer that advances with the loop plus a constant offset.
//!
//! Before: `x = mul j, 32; y = add base, x; p = address indices + y × 4 + 128` in every iteration.
//! After: `q` is a parameter of the loop that starts at the first address and grows by 128 bytes;
//! `p = address q + 0 × 0 + 128`, which a load takes as its offset for free.
//!
//! An address is a root pointer plus a sum of terms. The terms are added from the outermost loop
//! inwards, each where it is first known, so that the invariant part is computed once; those that are
//! a loop's own counters become a pointer that is carried.
//!
//! The constant part of a copy's source address is split: copies into shared memory have an immediate offset of twelve bits
//! only (`LDGSTS`; ptxas 13.0 uses two additions for each copy beyond that). The rest goes into the pointer before the loop,
//! where neighbouring copies share it.

use std::collections::HashMap;
use std::mem;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::affine::{Atom, PointerSum, Sum, Sums};
use crate::ir::{
    BinaryOp, ConvertOp, Kernel, Label, NoWrapOp, Op, OpKind, Place, Region, Type, Value, Wrap, eval,
};

/// Reduces every address of the kernel.
pub(crate) fn reduce(kernel: &mut Kernel) {
    let mut body = mem::take(&mut kernel.body);
    let depth = SecondaryMap::new();
    let mut copied = EntitySet::new();
    body.walk(&mut |op| {
        if let OpKind::Copy { from, .. } = op.kind {
            copied.insert(from);
        }
    });
    let mut reducer = Reducer {
        kernel,
        sums: Sums::default(),
        depth,
        copied,
        reduced: HashMap::new(),
        frames: vec![Frame::default()],
    };
    reducer.region(&mut body);
    kernel.body = body;
}

/// A loop that is being rewritten; the outermost frame is the kernel itself.
#[derive(Default)]
struct Frame {
    /// The step of a loop parameter, in each widening that stays exact.
    steps: HashMap<Atom, Sum>,
    /// The parameters' initial values.
    initial: HashMap<Value, Value>,
    /// Operations to put before the loop.
    before: Vec<Op>,
    /// Pointers to carry.
    carried: Vec<Carried>,
    /// Pointers that are available everywhere in the loop, by their definition.
    known: HashMap<(Value, Vec<(Atom, u64)>), Value>,
    /// Pointers that lie some bytes behind others, for copies.
    moved: Vec<Moved>,
}

/// `root + bytes`, known before a loop.
#[derive(Clone, Copy)]
struct Moved {
    root: Value,
    bytes: i64,
    pointer: Value,
}

/// The constants that an instruction that copies adds to an address.
const NEAR: std::ops::Range<i64> = -2048..2048;

/// A pointer that a loop carries.
struct Carried {
    param: Value,
    initial: Value,
    step: Sum,
}

struct Reducer<'k> {
    kernel: &'k mut Kernel,
    sums: Sums,
    /// How many loops are around a value's definition.
    depth: SecondaryMap<Value, u32>,
    /// The sources of asynchronous copies.
    copied: EntitySet<Value>,
    /// The addresses that were rewritten, as they were.
    reduced: HashMap<Value, PointerSum>,
    frames: Vec<Frame>,
}

impl Reducer<'_> {
    fn innermost(&self) -> u32 {
        self.frames.len() as u32 - 1
    }

    fn region(&mut self, region: &mut Region) {
        let mut ops = Vec::with_capacity(region.ops.len());
        for mut op in mem::take(&mut region.ops) {
            for &result in &op.results {
                self.depth[result] = self.innermost();
            }
            match &mut op.kind {
                OpKind::Loop { .. } => self.loop_(&mut op, &mut ops),
                OpKind::Address { .. } => self.address(&mut op, &mut ops),
                kind => {
                    for inner in kind.regions_mut() {
                        self.region(inner);
                    }
                }
            }
            self.sums.note(&op);
            ops.push(op);
        }
        region.ops = ops;
    }

    fn loop_(&mut self, op: &mut Op, ops: &mut Vec<Op>) {
        let place = op.place;
        let OpKind::Loop {
            label,
            params,
            initial,
            body,
            ..
        } = &mut op.kind
        else {
            return;
        };
        let steps = self.steps(*label, params, body);
        let starts = params.iter().copied().zip(initial.iter().copied()).collect();
        self.frames.push(Frame {
            steps,
            initial: starts,
            ..Frame::default()
        });
        for &param in params.iter() {
            self.depth[param] = self.innermost();
        }
        self.region(body);
        let Some(frame) = self.frames.pop() else {
            return;
        };
        let mut nexts = Vec::new();
        for carried in &frame.carried {
            params.push(carried.param);
            initial.push(carried.initial);
        }
        ops.extend(frame.before);
        // Bump the carried pointers where the loop continues; there is one such place.
        if !frame.carried.is_empty() {
            let mut bumps = Vec::new();
            for carried in &frame.carried {
                let mut next = carried.param;
                for (&atom, &coefficient) in &carried.step.terms {
                    next = self.plus(next, atom, coefficient, place, &mut bumps);
                }
                nexts.push(self.offset(next, carried.step.constant as i64, place, &mut bumps));
            }
            continue_with(body, *label, &nexts, &bumps);
        }
    }

    /// The amount by which each parameter of a loop grows, if it is invariant and there is one back edge.
    fn steps(&self, label: Label, params: &[Value], body: &Region) -> HashMap<Atom, Sum> {
        let mut continues = Vec::new();
        let mut inside = Sums::default();
        let defined = body.defined(params);
        body.walk(&mut |op| match &op.kind {
            OpKind::Continue(to, values) if *to == label => continues.push(values.clone()),
            kind if kind.is_pure() => inside.note(op),
            _ => {}
        });
        let [values] = &continues[..] else {
            return HashMap::new();
        };
        let mut steps = HashMap::new();
        for (&param, &value) in params.iter().zip(values) {
            match self.kernel.ty(param) {
                Type::I64 => {
                    let mut step = inside.integer(self.kernel, value);
                    let once = step.terms.remove(&Atom::Whole(param)) == Some(1);
                    if once && step.terms.keys().all(|atom| !defined.contains(atom.value())) {
                        steps.insert(Atom::Whole(param), step);
                    }
                }
                Type::I32 => steps.extend(narrow_steps(self.kernel, body, param, value)),
                _ => {}
            }
        }
        steps
    }

    /// Rewrites an address as a pointer that is known and a constant offset.
    fn address(&mut self, op: &mut Op, ops: &mut Vec<Op>) {
        let OpKind::Address {
            base,
            index,
            scale,
            offset,
        } = op.kind
        else {
            return;
        };
        let index = self.sums.integer(self.kernel, index);
        let further = |mut pointer: PointerSum| {
            pointer.bytes.add(&index, u64::from(scale));
            pointer.bytes.constant = pointer.bytes.constant.wrapping_add(offset as u64);
            pointer
        };
        let known = self.sums.pointer(self.kernel, base);
        // An access that was already rewritten starts at a pointer inside the loop.
        let whole = further(self.reduced.get(&base).unwrap_or(&known).clone());
        let copied = self.copied.contains(op.results[0]);
        let pointer = if copied { whole.clone() } else { further(known) };
        self.reduced.insert(op.results[0], whole);
        let mut constant = pointer.bytes.constant as i64;
        let mut current = pointer.root;
        if copied && !NEAR.contains(&constant) && !pointer.bytes.terms.is_empty() {
            let moved = self.moved(current, constant, op.place);
            (current, constant) = moved.unwrap_or((current, constant));
        }
        let mut level = self.depth[current];
        let mut terms: Vec<(Atom, u64)> = pointer.bytes.terms.into_iter().collect();
        terms.sort_by_key(|&(atom, _)| (self.depth[atom.value()], atom));
        let mut rest = &terms[..];
        while let Some(&(first, _)) = rest.first() {
            level = level.max(self.depth[first.value()]);
            let count = rest
                .iter()
                .take_while(|(atom, _)| self.depth[atom.value()] <= level)
                .count();
            let (group, further) = rest.split_at(count);
            current = self.extend(current, group, level, op.place, ops);
            rest = further;
        }
        let zero = self.kernel.constant(Type::I64, 0);
        op.kind = OpKind::address(current, zero, 0, constant);
    }

    /// A pointer known before the next inner loop that lies near `root + bytes`, and the rest.
    fn moved(&mut self, root: Value, bytes: i64, place: Place) -> Option<(Value, i64)> {
        let level = self.depth[root];
        if level == self.innermost() {
            return None;
        }
        let inner = level as usize + 1;
        let near = |moved: &&Moved| moved.root == root && NEAR.contains(&bytes.wrapping_sub(moved.bytes));
        if let Some(&Moved {
            bytes: by, pointer, ..
        }) = self.frames[inner].moved.iter().find(near)
        {
            return Some((pointer, bytes.wrapping_sub(by)));
        }
        // The first one is at the near end: the others lie behind it.
        let by = bytes.wrapping_sub(NEAR.start);
        let mut before = mem::take(&mut self.frames[inner].before);
        let pointer = self.offset(root, by, place, &mut before);
        self.depth[pointer] = level;
        self.frames[inner].before = before;
        self.frames[inner].moved.push(Moved {
            root,
            bytes: by,
            pointer,
        });
        Some((pointer, NEAR.start))
    }

    /// `pointer` plus terms that are known `level` loops deep.
    fn extend(
        &mut self,
        pointer: Value,
        group: &[(Atom, u64)],
        level: u32,
        place: Place,
        ops: &mut Vec<Op>,
    ) -> Value {
        let counts = |frame: &Frame, atom: &Atom| frame.steps.contains_key(atom);
        let (counters, others): (Vec<(Atom, u64)>, Vec<(Atom, u64)>) = group
            .iter()
            .copied()
            .partition(|(atom, _)| counts(&self.frames[level as usize], atom));
        // A pointer from inside the loop cannot start outside it.
        let (counters, others) = if self.depth[pointer] < level || counters.is_empty() {
            (counters, others)
        } else {
            (Vec::new(), group.to_vec())
        };
        let mut current = pointer;
        if !counters.is_empty() {
            current = self.carried(current, counters, level, place);
        }
        if others.is_empty() {
            return current;
        }
        if level == self.innermost() {
            for (atom, coefficient) in others {
                current = self.plus(current, atom, coefficient, place, ops);
            }
            return current;
        }
        // Known before the next inner loop: computed there, once.
        let key = (current, others.clone());
        let inner = level as usize + 1;
        if let Some(&known) = self.frames[inner].known.get(&key) {
            return known;
        }
        let mut before = mem::take(&mut self.frames[inner].before);
        for (atom, coefficient) in others {
            current = self.plus(current, atom, coefficient, place, &mut before);
            self.depth[current] = self.depth[current].min(level);
        }
        self.frames[inner].before = before;
        self.frames[inner].known.insert(key, current);
        current
    }

    /// A pointer that a loop carries: it starts at `pointer` plus the counters' initial values.
    fn carried(&mut self, pointer: Value, counters: Vec<(Atom, u64)>, level: u32, place: Place) -> Value {
        let frame = level as usize;
        let key = (pointer, counters.clone());
        if let Some(&known) = self.frames[frame].known.get(&key) {
            return known;
        }
        let mut before = mem::take(&mut self.frames[frame].before);
        let mut initial = pointer;
        let mut step = Sum::default();
        for &(atom, coefficient) in &counters {
            let start = self.frames[frame].initial[&atom.value()];
            initial = self.plus(initial, atom.with_value(start), coefficient, place, &mut before);
            // It may still be the pointer itself, which is known further outside.
            self.depth[initial] = self.depth[initial].min(level - 1);
            step.add(&self.frames[frame].steps[&atom], coefficient);
        }
        let param = self.kernel.value_like(pointer);
        self.kernel.values[param].name = None;
        self.depth[param] = level;
        let frame = &mut self.frames[frame];
        frame.before = before;
        frame.carried.push(Carried { param, initial, step });
        frame.known.insert(key, param);
        param
    }

    /// `pointer + atom × coefficient`, as an operation.
    fn plus(
        &mut self,
        pointer: Value,
        atom: Atom,
        coefficient: u64,
        place: Place,
        ops: &mut Vec<Op>,
    ) -> Value {
        if let Some(bits) = self.kernel.as_constant(atom.value()) {
            let bits = match atom {
                Atom::Signed(value) => eval::signed(self.kernel.ty(value), bits) as u64,
                Atom::Whole(_) | Atom::Unsigned(_) => bits,
            };
            return self.offset(pointer, bits.wrapping_mul(coefficient) as i64, place, ops);
        }
        let index = match atom {
            Atom::Whole(value) => value,
            Atom::Unsigned(value) => {
                self.push(OpKind::Convert(ConvertOp::ExtendU, value), Type::I64, place, ops)
            }
            Atom::Signed(value) => {
                self.push(OpKind::Convert(ConvertOp::ExtendS, value), Type::I64, place, ops)
            }
        };
        let ty = self.kernel.ty(pointer);
        match u32::try_from(coefficient) {
            Ok(scale) => self.push(OpKind::address(pointer, index, scale, 0), ty, place, ops),
            Err(_) => {
                let factor = self.kernel.constant(Type::I64, coefficient);
                let product = OpKind::Binary(BinaryOp::Mul, index, factor);
                let index = self.push(product, Type::I64, place, ops);
                self.push(OpKind::address(pointer, index, 1, 0), ty, place, ops)
            }
        }
    }

    /// `pointer + offset`.
    fn offset(&mut self, pointer: Value, offset: i64, place: Place, ops: &mut Vec<Op>) -> Value {
        if offset == 0 {
            return pointer;
        }
        let zero = self.kernel.constant(Type::I64, 0);
        let ty = self.kernel.ty(pointer);
        self.push(OpKind::address(pointer, zero, 0, offset), ty, place, ops)
    }

    fn push(&mut self, kind: OpKind, ty: Type, place: Place, ops: &mut Vec<Op>) -> Value {
        let result = self.kernel.value(ty);
        self.depth[result] = self.innermost();
        ops.push(Op::new(kind, vec![result], place));
        result
    }
}

/// The step of a 32-bit counter: a constant, in the interpretations in which it promises not to wrap.
fn narrow_steps(kernel: &Kernel, body: &Region, param: Value, next: Value) -> Vec<(Atom, Sum)> {
    let mut steps = Vec::new();
    body.walk(&mut |op| {
        if let OpKind::NoWrap(NoWrapOp::Add, wrap, a, b) = op.kind
            && op.results[0] == next
            && a == param
            && let Some(bits) = kernel.as_constant(b)
        {
            let step = |constant: u64| Sum {
                constant,
                ..Sum::default()
            };
            if wrap != Wrap::NotSigned {
                steps.push((Atom::Unsigned(param), step(bits)));
            }
            if wrap != Wrap::NotUnsigned {
                steps.push((Atom::Signed(param), step(eval::signed(Type::I32, bits) as u64)));
            }
        }
    });
    steps
}

/// Passes further values where the loop continues, after the operations that compute them.
fn continue_with(region: &mut Region, label: Label, values: &[Value], bumps: &[Op]) {
    for op in &mut region.ops {
        for inner in op.kind.regions_mut() {
            continue_with(inner, label, values, bumps);
        }
    }
    if let Some(Op {
        kind: OpKind::Continue(to, passed),
        ..
    }) = region.ops.last_mut()
        && *to == label
    {
        passed.extend(values.iter().copied());
        // In front of the loop's test at the bottom, so that it stays at the bottom.
        let last = region.ops.len() - 1;
        let at = match region.ops[..last].last() {
            Some(Op {
                kind: OpKind::If { .. },
                results,
                ..
            }) if results.is_empty() => last - 1,
            _ => last,
        };
        region.ops.splice(at..at, bumps.iter().cloned());
    }
}
