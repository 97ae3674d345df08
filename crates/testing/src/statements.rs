//! Statements of random kernels: arithmetic, memory, branches.

use super::Size;
use super::tables::{Table, Tables};
use super::values::{Bounded, Pool, constant};
use crate::ir::{
    Array, ArrayData, BinaryOp, Builder, CacheHint, CacheLevel, CacheUse, CompareOp, ConvertOp, FloatRule,
    Id, Kernel, Label, LoadData, LoadId, OpKind, PlaceData, Region, Rounding, Space, Type, UnaryOp, Value,
    verify,
};
use crate::random::Random;
use crate::tune::Workload;

/// The types that random values have.
pub(super) const TYPES: [Type; 4] = [Type::F32, Type::F64, Type::I32, Type::I64];

/// Elements of the private array.
pub(super) const PRIVATE_LENGTH: u64 = 4;

/// Writes one random kernel.
pub(super) struct Generator {
    pub random: Random,
    pub size: Size,
    pub seed: u64,
    /// Statements that may still be written, in the whole kernel.
    budget: u64,
    /// Loops and branches around.
    pub depth: u32,
    /// All work-items of the group are here, with the same trip counts: barriers are possible.
    pub uniform: bool,
    /// The kernel has barriers, so no work-item may end early.
    exchanges: bool,
    /// Whether parts of a sub-group work together.
    pub(super) masks: bool,
    /// The rules that float operations choose from: in most kernels the plain one.
    rules: Vec<FloatRule>,
    /// Loops that may be left or continued from here, innermost last.
    pub loops: Vec<Exits>,
    lines: u32,
}

/// How a loop around can be left or continued before its end.
#[derive(Clone, Debug)]
pub(super) struct Exits {
    pub label: Label,
    pub results: Vec<Type>,
    /// The counters of the next iteration, if they are known already; then come the results.
    pub next: Option<Vec<Value>>,
}

/// What the whole kernel has.
pub(super) struct Frame {
    pub tables: Tables,
    /// The work-item's number in the launch, and in the work-group.
    pub item: Bounded,
    pub local: Bounded,
    /// The first element of the inputs that belongs to this work-item.
    pub row: Value,
    shared: Array,
    landing: Array,
    pub private: Array,
}

impl Generator {
    pub fn new(seed: u64, size: Size) -> Generator {
        Generator {
            random: Random::new(seed),
            size,
            seed,
            budget: 12 * size.statements,
            depth: 0,
            uniform: true,
            exchanges: false,
            masks: false,
            rules: vec![FloatRule::EXACT],
            loops: Vec::new(),
            lines: 0,
        }
    }

    /// The kernel and its launch.
    pub fn workload(mut self) -> Workload {
        let mut kernel = Kernel::new(format!("random_{}", self.seed));
        let tables = Tables::declare(&mut kernel, &mut self.random, self.size.trips);
        self.exchanges = self.random.chance(30);
        self.masks = self.random.chance(50);
        self.rules = rules(&mut self.random);
        // Where no barrier will come, nothing needs to stay together.
        self.uniform = self.exchanges;
        let group = tables.group;
        let mut array = |name: &str, space, length| {
            kernel.arrays.push(ArrayData {
                name: name.to_owned(),
                space,
                element: Type::F32,
                length,
                align: 16,
            })
        };
        let shared = array("exchange", Space::Shared, group);
        let landing = array("landing", Space::Shared, group);
        let private = array("mine", Space::Private, PRIVATE_LENGTH as u32);

        let mut b = Builder::new(&mut kernel, Kernel::NOWHERE);
        let mut pool = Pool::default();
        let (item, local) = item(&mut b, &mut pool, &tables);
        let length = b.i64(tables.row as i64);
        let row = b.mul(item.value, length);
        for value in [tables.flag, tables.scalars[0], tables.scalars[1]] {
            pool.add(value);
        }
        tables.trips.iter().for_each(|&(value, _)| pool.add(value));
        let frame = Frame {
            tables,
            item,
            local,
            row,
            shared,
            landing,
            private,
        };
        for element in 0..PRIVATE_LENGTH {
            let index = b.i64(element as i64);
            let ptr = b.array_address(private);
            let ptr = b.element(ptr, Type::F32, index);
            let value = constant(&mut self.random, &mut b, Type::F32);
            b.store(ptr, value);
        }
        // At least one loop: plans need one.
        self.loop_statement(&mut b, &mut pool, &frame);
        self.statements(&mut b, &mut pool, &frame);
        outputs(&mut b, &pool, &frame);
        b.return_();
        kernel.body = b.finish();
        frame.tables.workload(kernel)
    }

    /// Several statements.
    pub fn statements(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let count = self.random.between(1, self.size.statements);
        for _ in 0..count {
            self.statement(b, pool, frame);
        }
    }

    fn statement(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        if self.budget == 0 {
            return;
        }
        self.budget -= 1;
        let nested = self.depth < self.size.nesting;
        match self.random.below(100) {
            0..26 => self.load_statement(b, pool, frame),
            26..30 => self.load_vector(b, pool, frame),
            30..45 if nested => self.loop_statement(b, pool, frame),
            45..60 if nested => self.branch(b, pool, frame),
            60..66 => self.keep(b, frame, pool),
            66..69 => self.private(b, pool, frame),
            69 => self.private_vector(b, pool, frame),
            70..76 if self.uniform => self.exchange(b, pool, frame),
            76..78 => self.copy(b, pool, frame),
            78..80 => self.hint(b, pool, frame),
            80..83 => self.tally(b, pool, frame),
            83 => self.fence(b),
            84..87 if self.uniform => self.shuffle(b, pool),
            87 if self.uniform => self.block(b, pool, frame),
            88..92 => self.narrow(b, pool),
            _ => self.arithmetic(b, pool),
        }
    }

    /// A new load of the source, at a line of its own.
    pub fn new_load(&mut self, b: &mut Builder<'_>, name: &str) -> LoadId {
        self.lines += 1;
        let place = b.kernel.places.push(PlaceData {
            file: "random.rs".to_owned(),
            line: self.lines,
            column: 1,
            inlined_at: None,
        });
        b.at(place);
        b.kernel.loads.push(LoadData::new(name, place))
    }

    /// An index into a table: one that is known to fit, or any number made to fit.
    pub fn index(&mut self, b: &mut Builder<'_>, pool: &Pool, length: u64) -> Value {
        if let Some(index) = pool.index(&mut self.random, length)
            && self.random.chance(85)
        {
            return index.value;
        }
        let any = pool.pick(&mut self.random, b, Type::I64);
        if self.random.chance(50) {
            let mask = b.i64((1i64 << length.ilog2()) - 1);
            return b.and(any, mask);
        }
        let length = b.i64(length as i64);
        b.binary(BinaryOp::RemU, any, length)
    }

    /// A load, and often another one through what it loaded.
    fn load_statement(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let table = self.random.choose(&frame.tables.inputs).clone();
        let index = self.index(b, pool, table.length);
        self.load_chain(b, pool, frame, &table, index);
    }

    /// Loads this element and, where it is an index, often follows it.
    pub fn load_chain(
        &mut self,
        b: &mut Builder<'_>,
        pool: &mut Pool,
        frame: &Frame,
        table: &Table,
        index: Value,
    ) {
        let (mut table, mut index) = (table.clone(), index);
        for _ in 0..3 {
            let ptr = b.element(table.pointer, table.element, index);
            let value = self.load(b, &table, ptr);
            let Some(below) = table.below else {
                pool.add(widened(b, value));
                return;
            };
            let wide = match table.element {
                Type::I64 => value,
                _ => b.convert(ConvertOp::ExtendU, Type::I64, value),
            };
            pool.add_index(Bounded { value: wide, below });
            if self.random.chance(25) {
                return;
            }
            table = self.random.choose(&frame.tables.inputs).clone();
            index = wide;
        }
    }

    /// Loads from this address, as an element of the table.
    pub fn load(&mut self, b: &mut Builder<'_>, table: &Table, ptr: Value) -> Value {
        let id = self.new_load(b, table.name);
        let cache = match self.random.below(100) {
            0 => CacheUse::Volatile,
            1..5 => CacheUse::Streaming,
            5..8 => CacheUse::Bypass,
            _ => CacheUse::Default,
        };
        let value = b.push(OpKind::Load { ptr, id, cache }, &[table.element])[0];
        b.at(Kernel::NOWHERE);
        value
    }

    fn arithmetic(&mut self, b: &mut Builder<'_>, pool: &mut Pool) {
        let ty = *self.random.choose(&TYPES);
        let [x, y, z] = [(); 3].map(|()| pool.pick(&mut self.random, b, ty));
        let value = match self.random.below(10) {
            0 => {
                let op = *self
                    .random
                    .choose(&[CompareOp::LtS, CompareOp::LeU, CompareOp::Eq, CompareOp::Ne]);
                let float = *self.random.choose(&[
                    CompareOp::FLt,
                    CompareOp::FLe,
                    CompareOp::FNe,
                    CompareOp::FUnordered,
                ]);
                match ty.is_float() {
                    true => self.ruled(b, OpKind::Compare(float, x, y), Type::Bool),
                    false => b.compare(op, x, y),
                }
            }
            1 => {
                let cond = pool.pick(&mut self.random, b, Type::Bool);
                b.select(cond, x, y)
            }
            2 => self.converted(b, x, ty),
            3 if ty.is_float() => self.ruled(b, OpKind::Fma(x, y, z), ty),
            4 if ty.is_float() => {
                let op = *self
                    .random
                    .choose(&[UnaryOp::FNeg, UnaryOp::FAbs, UnaryOp::Sqrt, UnaryOp::Floor]);
                self.ruled(b, OpKind::Unary(op, x), ty)
            }
            _ if ty.is_float() => {
                use BinaryOp::{FAdd, FDiv, FMax, FMin, FMul, FSub};
                let op = *self
                    .random
                    .choose(&[FAdd, FAdd, FAdd, FSub, FMul, FDiv, FMin, FMax]);
                self.ruled(b, OpKind::Binary(op, x, y), ty)
            }
            3 => {
                let op = *self
                    .random
                    .choose(&[UnaryOp::Not, UnaryOp::Neg, UnaryOp::CountOnes]);
                b.unary(op, x)
            }
            _ => {
                use BinaryOp::{Add, And, DivU, MaxS, MinU, Mul, Or, RemS, Shl, ShrU, Sub, Xor};
                let op = *self.random.choose(&[
                    Add, Add, Sub, Mul, And, Or, Xor, Shl, ShrU, DivU, RemS, MinU, MaxS,
                ]);
                b.binary(op, x, y)
            }
        };
        pool.add(value);
    }

    /// A float operation by one of the kernel's rules, if it can have that.
    fn ruled(&mut self, b: &mut Builder<'_>, kind: OpKind, to: Type) -> Value {
        let rule = *self.random.choose(&self.rules);
        match verify::can_have(b.kernel, rule, &kind, to) {
            true => b.ruled(rule, kind, to),
            false => b.ruled(FloatRule::EXACT, kind, to),
        }
    }

    fn converted(&mut self, b: &mut Builder<'_>, x: Value, from: Type) -> Value {
        match from {
            Type::F32 => self.ruled(b, OpKind::Convert(ConvertOp::FloatToFloat, x), Type::F64),
            Type::F64 if self.random.chance(30) => {
                self.ruled(b, OpKind::Convert(ConvertOp::FloatToFloat, x), Type::F32)
            }
            Type::F64 => b.convert(ConvertOp::FloatToSigned, Type::I32, x),
            Type::I32 if self.random.chance(50) => b.convert(ConvertOp::ExtendS, Type::I64, x),
            Type::I32 => self.ruled(b, OpKind::Convert(ConvertOp::SignedToFloat, x), Type::F32),
            _ if self.random.chance(50) => b.convert(ConvertOp::Truncate, Type::I32, x),
            _ => self.ruled(b, OpKind::Convert(ConvertOp::UnsignedToFloat, x), Type::F64),
        }
    }

    /// Changes the work-item's own element of what is both read and written.
    fn keep(&mut self, b: &mut Builder<'_>, frame: &Frame, pool: &mut Pool) {
        let table = &frame.tables.kept;
        let ptr = b.element(table.pointer, table.element, frame.item.value);
        let old = self.load(b, table, ptr);
        pool.add(old);
        if self.random.chance(60) {
            let term = pool.pick(&mut self.random, b, Type::F32);
            let new = b.binary(BinaryOp::FAdd, old, term);
            b.store(ptr, new);
        }
    }

    fn private(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let any = pool.pick(&mut self.random, b, Type::I64);
        let mask = b.i64(PRIVATE_LENGTH as i64 - 1);
        let index = b.and(any, mask);
        let array = b.array_address(frame.private);
        let ptr = b.element(array, Type::F32, index);
        if self.random.chance(50) {
            let value = pool.pick(&mut self.random, b, Type::F32);
            b.store(ptr, value);
        } else {
            let id = self.new_load(b, "mine");
            pool.add(b.load(Type::F32, ptr, id));
            b.at(Kernel::NOWHERE);
        }
    }

    /// Every work-item reads what another one of the group wrote.
    fn exchange(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let value = pool.pick(&mut self.random, b, Type::F32);
        let array = b.array_address(frame.shared);
        let own = b.element(array, Type::F32, frame.local.value);
        b.store(own, value);
        b.barrier();
        let group = u64::from(frame.tables.group);
        let distance = self.random.below(group);
        let distance = b.i64(distance as i64);
        let sum = b.add(frame.local.value, distance);
        let group = b.i64(group as i64);
        let other = b.binary(BinaryOp::RemU, sum, group);
        let ptr = b.element(array, Type::F32, other);
        let id = self.new_load(b, "exchange");
        pool.add(b.load(Type::F32, ptr, id));
        b.at(Kernel::NOWHERE);
        b.barrier();
    }

    /// An asynchronous copy of the kernel's own.
    fn copy(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let Some(table) = frame
            .tables
            .inputs
            .iter()
            .find(|table| table.element == Type::F32)
        else {
            return;
        };
        let index = self.index(b, pool, table.length);
        let from = b.element(table.pointer, Type::F32, index);
        let array = b.array_address(frame.landing);
        let to = b.element(array, Type::F32, frame.local.value);
        let id = self.new_load(b, table.name);
        let token = b.copy(to, from, 4, id);
        b.wait(token);
        let id = self.new_load(b, "landing");
        pool.add(b.load(Type::F32, to, id));
        b.at(Kernel::NOWHERE);
    }

    fn hint(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let table = self.random.choose(&frame.tables.inputs);
        let index = self.index(b, pool, table.length);
        let ptr = b.element(table.pointer, table.element, index);
        let hint = CacheHint {
            level: *self.random.choose(CacheLevel::ALL),
            nontemporal: self.random.chance(20),
        };
        b.prefetch(ptr, table.element.bytes(), hint, None);
    }

    fn branch(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        let cond = self.condition(b, pool);
        let results: Vec<Type> = (0..self.random.below(3))
            .map(|_| *self.random.choose(&TYPES))
            .collect();
        let label = b.kernel.label(None, results.clone());
        let uniform = std::mem::replace(&mut self.uniform, false);
        self.depth += 1;
        let then = self.side(b, pool, frame, label, &results);
        let otherwise = match results.is_empty() && self.random.chance(50) {
            true => b.region(|b| b.break_(label, Vec::new())),
            false => self.side(b, pool, frame, label, &results),
        };
        self.depth -= 1;
        self.uniform = uniform;
        let kind = OpKind::If {
            label,
            cond,
            then,
            otherwise,
        };
        b.push(kind, &results)
            .into_iter()
            .for_each(|value| pool.add(value));
    }

    /// A condition that is not always the same.
    pub fn condition(&mut self, b: &mut Builder<'_>, pool: &Pool) -> Value {
        if self.random.chance(30) {
            return pool.pick(&mut self.random, b, Type::Bool);
        }
        let ty = *self.random.choose(&[Type::I32, Type::I64]);
        let value = pool.pick(&mut self.random, b, ty);
        let mask = b.constant(ty, 3);
        let low = b.and(value, mask);
        let zero = b.constant(ty, 0);
        b.compare(CompareOp::Eq, low, zero)
    }

    /// One side of a branch: it yields results, or leaves a loop around or the kernel.
    fn side(
        &mut self,
        b: &mut Builder<'_>,
        pool: &Pool,
        frame: &Frame,
        label: Label,
        results: &[Type],
    ) -> Region {
        b.region(|b| {
            let mut pool = pool.clone();
            self.statements(b, &mut pool, frame);
            let values = |this: &mut Generator, b: &mut Builder<'_>, types: &[Type]| -> Vec<Value> {
                types
                    .iter()
                    .map(|&ty| pool.pick(&mut this.random, b, ty))
                    .collect()
            };
            let leaves = self.random.chance(15);
            if leaves && !self.loops.is_empty() {
                let exits = self.random.choose(&self.loops).clone();
                let results = values(self, b, &exits.results);
                match exits.next {
                    Some(mut next) if self.random.chance(60) => {
                        next.extend(results);
                        b.continue_(exits.label, next);
                    }
                    _ => b.break_(exits.label, results),
                }
            } else if leaves && !self.exchanges && self.random.chance(20) {
                b.return_();
            } else {
                let values = values(self, b, results);
                b.break_(label, values);
            }
        })
    }
}

/// What float operations of a kernel round and flush by: mostly all alike, and exactly.
fn rules(random: &mut Random) -> Vec<FloatRule> {
    let directed = |rounding| FloatRule {
        rounding,
        ..FloatRule::EXACT
    };
    match random.below(100) {
        0..8 => vec![FloatRule::FLUSHED],
        8..16 => vec![FloatRule::EXACT, FloatRule::FLUSHED],
        16..26 => {
            let both = FloatRule {
                rounding: Rounding::Down,
                ..FloatRule::FLUSHED
            };
            let mut rules = vec![FloatRule::EXACT, FloatRule::FLUSHED, both];
            rules.extend(Rounding::ALL.map(directed));
            rules
        }
        _ => vec![FloatRule::EXACT],
    }
}

/// The work-item's numbers.
fn item(b: &mut Builder<'_>, pool: &mut Pool, tables: &Tables) -> (Bounded, Bounded) {
    let group = b.id(Id::Group(0));
    let local = b.id(Id::Local(0));
    let width = b.i32(tables.group as i32);
    let before = b.mul(group, width);
    let item = b.add(before, local);
    pool.add(item);
    let local = Bounded {
        value: b.convert(ConvertOp::ExtendU, Type::I64, local),
        below: u64::from(tables.group),
    };
    let item = Bounded {
        value: b.convert(ConvertOp::ExtendU, Type::I64, item),
        below: tables.items(),
    };
    pool.add_index(local);
    pool.add_index(item);
    (item, local)
}

/// A loaded value in one of the types that random values have.
pub(super) fn widened(b: &mut Builder<'_>, value: Value) -> Value {
    match b.kernel.ty(value) {
        Type::I8 => b.convert(ConvertOp::ExtendS, Type::I32, value),
        Type::F16 => b.convert(ConvertOp::FloatToFloat, Type::F32, value),
        _ => value,
    }
}

/// Stores what came out, combined, so that a wrong bit anywhere is likely to show.
fn outputs(b: &mut Builder<'_>, pool: &Pool, frame: &Frame) {
    for table in &frame.tables.outputs {
        let values = pool.last(b, table.element, 6);
        let op = if table.element.is_float() {
            BinaryOp::FAdd
        } else {
            BinaryOp::Xor
        };
        let Some(combined) = values.into_iter().reduce(|x, y| b.binary(op, x, y)) else {
            continue;
        };
        let ptr = b.element(table.pointer, table.element, frame.item.value);
        b.store(ptr, combined);
    }
}
