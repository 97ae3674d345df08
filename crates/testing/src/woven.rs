//! Operations that C has no words for, woven into the kernel of a random program: private and shared arrays, vectors in
//! memory, halves, rounding rules, block loads, copies, hints, atomics, fences.
//!
//! What they read are values of the program and its read-only arrays; what they compute goes to an array of their own, so
//! that the program computes what it did. No result of an atomic operation is used, and all of them in a kernel commute, so
//! the results are the same in any order of work-items.

use std::collections::HashSet;

use crate::ir::{
    Array, ArrayData, AtomicOp, BinaryOp, Builder, CacheHint, CacheLevel, CacheUse, CompareOp, ConvertOp,
    FloatRule, Id, Kernel, LoadData, LoadId, MemoryOrder, MemoryScope, OpKind, Param, PlaceData,
    PointerFacts, Races, Region, Rounding, Space, Type, UnaryOp, Value, verify,
};
use crate::random::Random;

/// Elements of the private array, and of a work-item's results.
const OWN: u64 = 4;
/// Elements that all work-items change.
const TALLIES: u64 = 8;
/// Work-items of the largest sub-group.
const LARGEST: u64 = 32;

/// An array that the kernel only reads.
pub(crate) struct Input {
    pub pointer: Value,
    pub element: Type,
    pub length: u64,
}

struct Weaver<'r> {
    random: &'r mut Random,
    inputs: Vec<Input>,
    /// The values that are defined where an operation is woven in, and depend on nothing but the launch.
    visible: Vec<Value>,
    /// Numbers made of addresses, which are others on each device.
    places: HashSet<Value>,
    rules: Vec<FloatRule>,
    group: u32,
    tally: AtomicOp,
    /// The array of results and that of tallies.
    results: Value,
    tallies: Value,
    shared: Array,
    private: Array,
    /// No work-item ends early, so that all of a work-group meet at its barriers and outside of branches and loops.
    complete: bool,
    item: Value,
    local: Value,
    lines: u32,
}

/// Weaves operations in, and adds the arrays that they write: their names, elements and lengths.
pub(crate) fn weave(
    kernel: &mut Kernel,
    random: &mut Random,
    inputs: Vec<Input>,
    groups: u32,
    group: u32,
) -> [(Type, u64); 2] {
    for param in &mut kernel.params {
        // Vectors and blocks are aligned by up to 16 bytes.
        if let Some(facts) = &mut param.facts {
            facts.align = 16;
        }
    }
    let lengths = [(Type::I64, u64::from(groups * group) * OWN), (Type::I32, TALLIES)];
    let mut output = |name: &str, (element, length)| {
        let value = kernel.value(Type::Ptr(Space::Global));
        let facts = PointerFacts {
            element,
            align: 16,
            length: Some(kernel.constant(Type::I64, length)),
            read_only: false,
            unaliased: true,
            is_constant: false,
            races: Races::None,
        };
        let facts = Some(facts);
        let name = name.to_owned();
        kernel.params.push(Param { name, value, facts });
        value
    };
    let (results, tallies) = (output("woven", lengths[0]), output("tallies", lengths[1]));
    let mut array = |name: &str, space, length| {
        kernel.arrays.push(ArrayData {
            name: name.to_owned(),
            space,
            element: Type::F32,
            length,
            align: 16,
        })
    };
    let shared = array("exchange", Space::Shared, 2 * group);
    let private = array("mine", Space::Private, OWN as u32);
    let body = std::mem::take(&mut kernel.body);
    let complete = !body.ops.iter().any(|op| op.kind.regions().any(may_end));
    let mut b = Builder::new(kernel, Kernel::NOWHERE);
    let local = b.id(Id::Local(0));
    let before = b.id(Id::Group(0));
    let size = b.i32(group as i32);
    let before = b.mul(before, size);
    let item = b.add(before, local);
    let [item, local] = [item, local].map(|id| b.convert(ConvertOp::ExtendU, Type::I64, id));
    for element in 0..OWN {
        let ptr = b.array_address(private);
        let index = b.i64(element as i64);
        let ptr = b.element(ptr, Type::F32, index);
        let value = b.f32(element as f32 - 1.5);
        b.store(ptr, value);
    }
    let mut region = b.finish();
    let mut weaver = Weaver {
        tally: *random.choose(&[
            AtomicOp::Add,
            AtomicOp::Xor,
            AtomicOp::MaxS,
            AtomicOp::MinU,
            AtomicOp::Or,
        ]),
        rules: rules(random),
        random,
        inputs,
        visible: vec![item, local],
        places: HashSet::new(),
        group,
        results,
        tallies,
        shared,
        private,
        complete,
        item,
        local,
        lines: 0,
    };
    let woven = weaver.region(kernel, body, true);
    region.ops.extend(woven.ops);
    kernel.body = region;
    lengths
}

/// Whether a work-item may end inside.
fn may_end(region: &Region) -> bool {
    let mut ends = false;
    region.walk(&mut |op| ends |= op.kind.effects().ends);
    ends
}

/// What float operations of a kernel round and flush by: mostly all alike, and exactly.
fn rules(random: &mut Random) -> Vec<FloatRule> {
    let mut rules = vec![FloatRule::EXACT];
    match random.below(100) {
        0..16 => rules.push(FloatRule::FLUSHED),
        16..26 => {
            let rounded = |rule, rounding| FloatRule { rounding, ..rule };
            rules.extend([FloatRule::FLUSHED, rounded(FloatRule::FLUSHED, Rounding::Down)]);
            rules.extend(Rounding::ALL.map(|rounding| rounded(FloatRule::EXACT, rounding)));
        }
        _ => {}
    }
    rules
}

impl Weaver<'_> {
    fn region(&mut self, kernel: &mut Kernel, region: Region, is_outermost: bool) -> Region {
        let depth = self.visible.len();
        let mut ops = Vec::new();
        for mut op in region.ops {
            let meets = self.complete && (is_outermost || matches!(op.kind, OpKind::Barrier));
            if self.random.chance(if is_outermost { 25 } else { 12 }) {
                let mut b = Builder::new(kernel, Kernel::NOWHERE);
                let values = self.aside(&mut b, meets);
                if self.random.chance(60) {
                    values.iter().for_each(|&value| self.keep(&mut b, value));
                }
                ops.extend(b.finish().ops);
                self.visible.extend(values);
            }
            let around = self.visible.len();
            if let OpKind::Loop { params, .. } = &op.kind {
                self.visible.extend(params);
            }
            for inner in op.kind.regions_mut() {
                *inner = self.region(kernel, std::mem::take(inner), false);
            }
            self.visible.truncate(around);
            if self.is_of_places(kernel, &op.kind) {
                self.places.extend(&op.results);
            } else {
                self.visible.extend(&op.results);
            }
            ops.push(op);
        }
        self.visible.truncate(depth);
        Region { ops }
    }

    /// Whether an operation's results depend on where the arrays lie. A program keeps no such number in a variable.
    fn is_of_places(&self, kernel: &Kernel, op: &OpKind) -> bool {
        let mut found = matches!(op, OpKind::Convert(ConvertOp::Bits, from) if kernel.ty(*from).is_pointer());
        if !matches!(op, OpKind::Load { .. } | OpKind::Atomic { .. }) {
            op.for_each_operand(|operand| found |= self.places.contains(&operand));
        }
        found
    }

    /// A few operations, and the values that they make. `meets` says that all of the work-group is here.
    fn aside(&mut self, b: &mut Builder<'_>, meets: bool) -> Vec<Value> {
        match self.random.below(20) {
            0..3 if meets => self.exchange(b),
            3 if meets => self.block(b),
            0..4 => self.vector(b),
            4..6 => self.private(b),
            6 => self.copy(b),
            7 => self.hint(b),
            8 => self.tally(b),
            9 => {
                let order = [
                    MemoryOrder::Release,
                    MemoryOrder::AcquireRelease,
                    MemoryOrder::SequentiallyConsistent,
                ];
                let scope = self.random.choose(MemoryScope::ALL).on_device();
                b.fence(*self.random.choose(&order), scope);
                Vec::new()
            }
            10..15 => self.narrow(b),
            _ => self.wide(b),
        }
    }

    /// A value of this type: one of the program's, late ones more often, or a constant.
    fn pick(&mut self, b: &mut Builder<'_>, ty: Type) -> Value {
        let of_type = |value: &&Value| b.kernel.ty(**value) == ty;
        let fitting: Vec<Value> = self.visible.iter().rev().filter(of_type).copied().collect();
        let late = &fitting[..fitting.len().min(4)];
        match self.random.below(10) {
            1..7 if !late.is_empty() => *self.random.choose(late),
            7.. if !fitting.is_empty() => *self.random.choose(&fitting),
            _ => {
                let small = self.random.below(9) as f64 - 3.0;
                let special = [f64::NAN, f64::NEG_INFINITY, -0.0, 1e-40];
                let odd = self.random.chance(10);
                let float = if odd {
                    *self.random.choose(&special)
                } else {
                    small * 0.25
                };
                match ty {
                    Type::F32 => b.f32(float as f32),
                    Type::F64 => b.f64(float),
                    Type::Bool => b.bool(odd),
                    _ if odd => {
                        let bits = self.random.bits();
                        b.constant(ty, bits)
                    }
                    _ => b.constant(ty, small as i64 as u64),
                }
            }
        }
    }

    /// An index of which the low bits are clear, below a power of two.
    fn index(&mut self, b: &mut Builder<'_>, below: u64, clear: u64) -> Value {
        let any = self.pick(b, Type::I64);
        let mask = b.i64(((below - 1) & !(clear - 1)) as i64);
        b.and(any, mask)
    }

    fn new_load(&mut self, b: &mut Builder<'_>, name: &str) -> LoadId {
        self.lines += 1;
        let place = b.kernel.places.push(PlaceData {
            file: "woven.rs".to_owned(),
            line: self.lines,
            column: 1,
            inlined_at: None,
        });
        b.kernel.loads.push(LoadData::new(name, place))
    }

    fn load(
        &mut self,
        b: &mut Builder<'_>,
        ptr: Value,
        element: Type,
        parts: u32,
        cache: CacheUse,
    ) -> Vec<Value> {
        let id = self.new_load(b, "woven");
        let values = b.push(OpKind::Load { ptr, id, cache }, &vec![element; parts as usize]);
        values.into_iter().map(|value| widened(b, value)).collect()
    }

    /// Adds a value to one of the work-item's results.
    fn keep(&mut self, b: &mut Builder<'_>, value: Value) {
        let value = match b.kernel.ty(value) {
            Type::I64 => value,
            Type::F64 => b.convert(ConvertOp::Bits, Type::I64, value),
            Type::F32 => {
                let bits = b.convert(ConvertOp::Bits, Type::I32, value);
                b.convert(ConvertOp::ExtendU, Type::I64, bits)
            }
            Type::Bool | Type::I32 => b.convert(ConvertOp::ExtendU, Type::I64, value),
            _ => return,
        };
        let own = b.i64(OWN as i64);
        let first = b.mul(self.item, own);
        let at = b.i64(self.random.below(OWN) as i64);
        let index = b.add(first, at);
        let ptr = b.element(self.results, Type::I64, index);
        let id = self.new_load(b, "kept");
        let old = b.load(Type::I64, ptr, id);
        let factor = b.i64(31);
        let old = b.mul(old, factor);
        let sum = b.add(old, value);
        b.store(ptr, sum);
    }

    /// Every work-item reads what another one of the group wrote.
    fn exchange(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let value = self.pick(b, Type::F32);
        let array = b.array_address(self.shared);
        let own = b.element(array, Type::F32, self.local);
        b.store(own, value);
        b.barrier();
        let distance = b.i64(self.random.below(u64::from(self.group)) as i64);
        let sum = b.add(self.local, distance);
        let group = b.i64(i64::from(self.group));
        let other = b.binary(BinaryOp::RemU, sum, group);
        let ptr = b.element(array, Type::F32, other);
        let values = self.load(b, ptr, Type::F32, 1, CacheUse::Default);
        b.barrier();
        values
    }

    /// A load of a block of the sub-group from an element that all name.
    fn block(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let &Input {
            pointer,
            element,
            length,
        } = self.random.choose(&self.inputs);
        let first = b.i64(16 * self.random.below((length - LARGEST) / 16) as i64);
        let lane = b.id(Id::Lane);
        let lane = b.convert(ConvertOp::ExtendU, Type::I64, lane);
        let index = b.add(first, lane);
        let ptr = b.element(pointer, element, index);
        self.load(b, ptr, element, 1, CacheUse::Block)
    }

    /// One, two or four elements that lie together.
    fn vector(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let &Input {
            pointer,
            element,
            length,
        } = self.random.choose(&self.inputs);
        let parts = *self.random.choose(&[1, 2, 16 / element.bytes().max(4)]);
        let index = self.index(b, length, u64::from(parts));
        let ptr = b.element(pointer, element, index);
        let caches = [
            CacheUse::Default,
            CacheUse::Default,
            CacheUse::Streaming,
            CacheUse::Bypass,
        ];
        let cache = *self.random.choose(&caches);
        self.load(b, ptr, element, parts, cache)
    }

    /// Elements of the private array, written or read.
    fn private(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let parts = *self.random.choose(&[1, 2, 4]);
        let index = self.index(b, OWN, parts);
        let array = b.array_address(self.private);
        let ptr = b.element(array, Type::F32, index);
        if self.random.chance(50) {
            return self.load(b, ptr, Type::F32, parts as u32, CacheUse::Default);
        }
        let values = (0..parts).map(|_| self.pick(b, Type::F32)).collect();
        let cache = CacheUse::Default;
        b.push(OpKind::Store { ptr, values, cache }, &[]);
        Vec::new()
    }

    /// An asynchronous copy of the kernel's own.
    fn copy(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let floats = self.inputs.iter().find(|input| input.element == Type::F32);
        let Some(&Input { pointer, length, .. }) = floats else {
            return Vec::new();
        };
        let index = self.index(b, length, 1);
        let from = b.element(pointer, Type::F32, index);
        let array = b.array_address(self.shared);
        let group = b.i64(i64::from(self.group));
        let landing = b.add(self.local, group);
        let to = b.element(array, Type::F32, landing);
        let id = self.new_load(b, "copied");
        let token = b.copy(to, from, 4, id);
        b.wait(token);
        self.load(b, to, Type::F32, 1, CacheUse::Default)
    }

    fn hint(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let &Input {
            pointer,
            element,
            length,
        } = self.random.choose(&self.inputs);
        let index = self.index(b, length, 1);
        let ptr = b.element(pointer, element, index);
        let hint = CacheHint {
            level: *self.random.choose(CacheLevel::ALL),
            nontemporal: self.random.chance(20),
        };
        b.prefetch(ptr, element.bytes(), hint, None);
        Vec::new()
    }

    /// Changes an element that all work-items change.
    fn tally(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let orders = [
            MemoryOrder::Relaxed,
            MemoryOrder::Relaxed,
            MemoryOrder::Release,
            MemoryOrder::AcquireRelease,
        ];
        let order = *self.random.choose(&orders);
        let index = self.index(b, TALLIES, 1);
        let ptr = b.element(self.tallies, Type::I32, index);
        let value = self.pick(b, Type::I32);
        b.atomic(
            self.tally,
            Type::I32,
            ptr,
            vec![value],
            order,
            MemoryScope::Device,
        );
        Vec::new()
    }

    /// Wide values made narrow, something computed, and the result made wide again.
    fn narrow(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let narrow = *self
            .random
            .choose(&[Type::F16, Type::F16, Type::Bf16, Type::I8, Type::I16]);
        let (wide, op) = match narrow.is_float() {
            true => (Type::F32, ConvertOp::FloatToFloat),
            false => (Type::I32, ConvertOp::Truncate),
        };
        let [x, y, z] = [(); 3].map(|()| {
            let value = self.pick(b, wide);
            b.convert(op, narrow, value)
        });
        let result = self.computed(b, narrow, [x, y, z]);
        vec![widened(b, result)]
    }

    /// Arithmetic on 32 and 64 bits, with conversions between them.
    fn wide(&mut self, b: &mut Builder<'_>) -> Vec<Value> {
        let ty = *self.random.choose(&[Type::F32, Type::F64, Type::I32, Type::I64]);
        let [x, y, z] = [(); 3].map(|()| self.pick(b, ty));
        if self.random.chance(70) {
            return vec![self.computed(b, ty, [x, y, z])];
        }
        let (op, to) = match ty {
            Type::F32 => (ConvertOp::FloatToFloat, Type::F64),
            Type::F64 if self.random.chance(30) => (ConvertOp::FloatToFloat, Type::F32),
            Type::F64 => (ConvertOp::FloatToSigned, Type::I32),
            Type::I32 if self.random.chance(50) => (ConvertOp::ExtendS, Type::I64),
            Type::I32 => (ConvertOp::SignedToFloat, Type::F32),
            _ if self.random.chance(50) => (ConvertOp::Truncate, Type::I32),
            _ => (ConvertOp::UnsignedToFloat, Type::F64),
        };
        vec![self.ruled(b, OpKind::Convert(op, x), to)]
    }

    fn computed(&mut self, b: &mut Builder<'_>, ty: Type, [x, y, z]: [Value; 3]) -> Value {
        use BinaryOp::{
            Add, And, DivS, DivU, FAdd, FDiv, FMax, FMin, FMul, FSub, MaxS, MinU, Mul, Or, RemS, RemU, Shl,
            ShrS, ShrU, Sub, Xor,
        };
        let float = ty.is_float();
        match self.random.below(10) {
            0 => {
                let floats = [
                    CompareOp::FLt,
                    CompareOp::FLe,
                    CompareOp::FNe,
                    CompareOp::FUnordered,
                ];
                let integers = [CompareOp::LtS, CompareOp::LeU, CompareOp::Eq, CompareOp::Ne];
                let op = *self.random.choose(if float { &floats } else { &integers });
                self.ruled(b, OpKind::Compare(op, x, y), Type::Bool)
            }
            1 => {
                let cond = self.pick(b, Type::Bool);
                b.select(cond, x, y)
            }
            2 if float => self.ruled(b, OpKind::Fma(x, y, z), ty),
            2 | 3 => {
                let floats = [UnaryOp::FNeg, UnaryOp::FAbs, UnaryOp::Sqrt, UnaryOp::Floor];
                let integers = [UnaryOp::Not, UnaryOp::Neg, UnaryOp::CountOnes, UnaryOp::Not];
                let op = *self.random.choose(if float { &floats } else { &integers });
                self.ruled(b, OpKind::Unary(op, x), ty)
            }
            _ => {
                let floats = [FAdd, FAdd, FSub, FMul, FDiv, FMin, FMax];
                let integers = [
                    Add, Sub, Mul, And, Or, Xor, Shl, ShrS, ShrU, DivS, DivU, RemS, RemU, MinU, MaxS,
                ];
                let op = *self
                    .random
                    .choose(if float { &floats[..] } else { &integers[..] });
                self.ruled(b, OpKind::Binary(op, x, y), ty)
            }
        }
    }

    /// An operation by one of the kernel's rules, if it can have that.
    fn ruled(&mut self, b: &mut Builder<'_>, kind: OpKind, to: Type) -> Value {
        let rule = *self.random.choose(&self.rules);
        match verify::can_have(b.kernel, rule, &kind, to) {
            true => b.ruled(rule, kind, to),
            false => b.ruled(FloatRule::EXACT, kind, to),
        }
    }
}

/// A value in a type of 32 or 64 bits, or a truth value.
fn widened(b: &mut Builder<'_>, value: Value) -> Value {
    match b.kernel.ty(value) {
        Type::I8 | Type::I16 => b.convert(ConvertOp::ExtendS, Type::I32, value),
        Type::F16 | Type::Bf16 => b.convert(ConvertOp::FloatToFloat, Type::F32, value),
        _ => value,
    }
}
