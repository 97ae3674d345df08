//! Loops of random kernels: counted in the ways that sources and compilers count, and ended by data.

use super::statements::{Exits, Frame, Generator, TYPES};
use super::values::{Bounded, Pool};
use crate::ir::{
    BinaryOp, Builder, CompareOp, ConvertOp, Label, LoopWishes, NoWrapOp, OpKind, Type, Value, Wrap,
};

/// How a loop counts and where it tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `while i < n`, at the start; also as `if n <= i { break }`.
    Up,
    /// `while i != n`.
    NotEqual,
    /// `while 0 < left`, the index is `left - 1`.
    Down,
    /// A guard, and the test at the end.
    Rotated,
    /// Something happens before the test.
    Late,
    /// `while i < n`, with a pointer that moves along.
    Pointer,
    /// As compilers unroll: `while left != 0`, several iterations at once, with a pointer that takes a step known at run
    /// time for each.
    Unrolled,
    /// `while i < n`, with two steps an iteration that are known at run time.
    TwoSteps,
    /// No counter: a number is halved until it is zero.
    Halving,
}

/// What a loop counts with.
struct Counting {
    style: Style,
    ty: Type,
    bound: Value,
    /// What the bound is at most.
    most: u64,
    step: u64,
    /// A step known at run time, where the style has one: 0 or 1 for a pointer, 1 or 2 for a counter.
    stride: Option<Value>,
}

impl Generator {
    /// A loop with at least one load, and what it carries out.
    pub fn loop_statement(&mut self, b: &mut Builder<'_>, pool: &mut Pool, frame: &Frame) {
        use Style::{Down, Halving, Late, NotEqual, Pointer, Rotated, TwoSteps, Unrolled, Up};
        let style = *self.random.choose(&[
            Up, Up, Up, NotEqual, Down, Rotated, Late, Pointer, Halving, Unrolled, TwoSteps,
        ]);
        let ty = *self.random.choose(&[Type::I32, Type::I64]);
        let (bound, most, uniform) = match style {
            Halving => (pool.pick(&mut self.random, b, ty), 0, false),
            _ => self.bound(b, pool, frame, ty),
        };
        let step: u64 = match style {
            Up | Late | Rotated => *self.random.choose(&[1, 1, 1, 2, 3]),
            Unrolled => *self.random.choose(&[2, 4]),
            _ => 1,
        };
        let bound = match style {
            Unrolled => {
                let whole = b.constant(ty, step.wrapping_neg());
                b.and(bound, whole)
            }
            _ => bound,
        };
        let stride = match style {
            Unrolled | TwoSteps => {
                let stepped = if style == Unrolled { Type::I64 } else { ty };
                let one = b.constant(stepped, 1);
                let any = pool.pick(&mut self.random, b, stepped);
                let bit = b.and(any, one);
                Some(if style == Unrolled { bit } else { b.add(bit, one) })
            }
            _ => None,
        };
        let counting = Counting {
            style,
            ty,
            bound,
            most,
            step,
            stride,
        };
        let carried: Vec<Type> = (0..self.random.between(1, 3))
            .map(|_| *self.random.choose(&TYPES))
            .collect();
        let initial: Vec<Value> = carried
            .iter()
            .map(|&ty| pool.pick(&mut self.random, b, ty))
            .collect();

        // Barriers inside need that all work-items run alike, so nothing may leave early then.
        let outer_uniform = self.uniform;
        // Steps of its own give a work-item a trip count of its own.
        self.uniform &= uniform && style != TwoSteps;
        let outer_loops = match self.uniform {
            true => std::mem::take(&mut self.loops),
            false => self.loops.clone(),
        };
        self.depth += 1;
        let results = match style {
            Rotated => self.guarded(b, pool, frame, &counting, &carried, &initial),
            _ => self.looped(b, pool, frame, &counting, &carried, &initial),
        };
        self.depth -= 1;
        self.loops = outer_loops;
        self.uniform = outer_uniform;
        results.into_iter().for_each(|value| pool.add(value));
    }

    /// A trip count: its value, its most, and whether all work-items have the same.
    fn bound(&mut self, b: &mut Builder<'_>, pool: &Pool, frame: &Frame, ty: Type) -> (Value, u64, bool) {
        let limit = if self.depth == 0 {
            self.size.trips
        } else {
            self.size.trips.min(5)
        };
        let (value, most, uniform) = match self.random.below(4) {
            0 => {
                let (value, most) = frame.tables.trips[usize::from(ty == Type::I64)];
                (value, most, true)
            }
            1 => {
                let trips = self.random.between(0, limit);
                (b.constant(ty, trips), trips, true)
            }
            2 => {
                let counts = &frame.tables.counts;
                let ptr = b.element(counts.pointer, Type::I32, frame.item.value);
                let count = self.load(b, counts, ptr);
                (count, self.size.trips, false)
            }
            _ => match pool.index(&mut self.random, limit + 1) {
                Some(Bounded { value, below }) => (value, below - 1, false),
                None => {
                    let mask = b.constant(Type::I32, 7);
                    let any = pool.pick(&mut self.random, b, Type::I32);
                    (b.and(any, mask), 7, false)
                }
            },
        };
        let value = match (b.kernel.ty(value), ty) {
            (Type::I32, Type::I64) => b.convert(ConvertOp::ExtendU, ty, value),
            (Type::I64, Type::I32) => b.convert(ConvertOp::Truncate, ty, value),
            _ => value,
        };
        if most <= limit {
            return (value, most, uniform);
        }
        let least = b.constant(ty, limit);
        (b.binary(BinaryOp::MinU, value, least), limit, uniform)
    }

    /// A rotated loop runs at least once, so a test stands before it.
    fn guarded(
        &mut self,
        b: &mut Builder<'_>,
        pool: &Pool,
        frame: &Frame,
        counting: &Counting,
        carried: &[Type],
        initial: &[Value],
    ) -> Vec<Value> {
        let zero = b.constant(counting.ty, 0);
        let some = b.compare(CompareOp::LtS, zero, counting.bound);
        let label = b.kernel.label(None, carried.to_vec());
        // A guard that is the same for all work-items keeps them together, but nobody relies on that.
        self.uniform = false;
        let then = b.region(|b| {
            let results = self.looped(b, pool, frame, counting, carried, initial);
            b.break_(label, results);
        });
        let otherwise = b.region(|b| b.break_(label, initial.to_vec()));
        let kind = OpKind::If {
            label,
            cond: some,
            then,
            otherwise,
        };
        b.push(kind, carried)
    }

    fn looped(
        &mut self,
        b: &mut Builder<'_>,
        pool: &Pool,
        frame: &Frame,
        counting: &Counting,
        carried: &[Type],
        initial: &[Value],
    ) -> Vec<Value> {
        let table = self.random.choose(&frame.tables.inputs).clone();
        let mut start = match counting.style {
            Style::Down | Style::Halving | Style::Unrolled => vec![counting.bound],
            _ => vec![b.constant(counting.ty, 0)],
        };
        if matches!(counting.style, Style::Pointer | Style::Unrolled) {
            start.push(b.element(table.pointer, table.element, frame.row));
        }
        let counters = start.len();
        start.extend(initial);
        let name = self
            .random
            .chance(70)
            .then(|| format!("loop{}", b.kernel.labels.len()));
        b.loop_(name, start, carried, LoopWishes::default(), |b, label, params| {
            let (counter, accumulators) = (params[0], params[counters..].to_vec());
            let mut pool = pool.clone();
            accumulators.iter().for_each(|&value| pool.add(value));
            if counting.style == Style::Late {
                self.load_row(b, &mut pool, frame, counter, counting);
            }
            if counting.style != Style::Rotated {
                let more = self.test(b, counting, counter);
                self.leave_unless(b, more, label, accumulators.clone());
            }
            let mut next = vec![self.next(b, counting, counter)];
            if counting.style == Style::Pointer {
                let size = i64::from(table.element.bytes());
                let zero = b.i64(0);
                let value = self.load(b, &table, params[1]);
                let value = super::statements::widened(b, value);
                pool.add(value);
                next.push(b.address(params[1], zero, 1, size));
            }
            if let (Style::Unrolled, Some(stride)) = (counting.style, counting.stride) {
                let mut at = params[1];
                for _ in 0..counting.step {
                    let value = self.load(b, &table, at);
                    let value = super::statements::widened(b, value);
                    pool.add(value);
                    at = b.element(at, table.element, stride);
                }
                next.push(at);
            }
            self.load_row(b, &mut pool, frame, counter, counting);
            if !self.uniform {
                self.loops.push(Exits {
                    label,
                    results: carried.to_vec(),
                    // The test at the end must not be jumped over.
                    next: (counting.style != Style::Rotated).then(|| next.clone()),
                });
            }
            self.statements(b, &mut pool, frame);
            if !self.uniform {
                self.loops.pop();
            }
            let results: Vec<Value> = carried
                .iter()
                .zip(&accumulators)
                .map(|(&ty, &old)| self.accumulated(b, &pool, ty, old))
                .collect();
            if counting.style == Style::Rotated {
                let more = b.compare(CompareOp::LtS, next[0], counting.bound);
                self.leave_unless(b, more, label, results.clone());
            }
            next.extend(results);
            b.continue_(label, next);
        })
    }

    /// The test before an iteration.
    fn test(&mut self, b: &mut Builder<'_>, counting: &Counting, counter: Value) -> Value {
        let zero = b.constant(counting.ty, 0);
        let signed = *self.random.choose(&[CompareOp::LtS, CompareOp::LtU]);
        match counting.style {
            Style::NotEqual => b.compare(CompareOp::Ne, counter, counting.bound),
            Style::Down => b.compare(signed, zero, counter),
            Style::Unrolled => b.compare(CompareOp::Ne, counter, zero),
            Style::Halving => b.compare(CompareOp::Ne, counter, zero),
            _ if self.random.chance(30) => {
                let op = if signed == CompareOp::LtS {
                    CompareOp::LeS
                } else {
                    CompareOp::LeU
                };
                let done = b.compare(op, counting.bound, counter);
                b.unary(crate::ir::UnaryOp::Not, done)
            }
            _ => b.compare(signed, counter, counting.bound),
        }
    }

    /// Leaves the loop where the condition is false.
    fn leave_unless(&mut self, b: &mut Builder<'_>, more: Value, label: Label, values: Vec<Value>) {
        if self.random.chance(30) {
            let done = b.unary(crate::ir::UnaryOp::Not, more);
            b.break_if(done, label, values);
            return;
        }
        let own = b.kernel.label(None, Vec::new());
        let then = b.region(|b| b.break_(own, Vec::new()));
        let otherwise = b.region(|b| b.break_(label, values));
        let kind = OpKind::If {
            label: own,
            cond: more,
            then,
            otherwise,
        };
        b.push(kind, &[]);
    }

    fn next(&mut self, b: &mut Builder<'_>, counting: &Counting, counter: Value) -> Value {
        let step = b.constant(counting.ty, counting.step);
        let wrap = *self.random.choose(Wrap::ALL);
        match counting.style {
            Style::Halving => {
                let one = b.constant(counting.ty, 1);
                b.binary(BinaryOp::ShrU, counter, one)
            }
            Style::Down if self.random.chance(50) => b.sub(counter, step),
            Style::Down => b.no_wrap(NoWrapOp::Sub, wrap, counter, step),
            Style::Unrolled => b.sub(counter, step),
            Style::TwoSteps => {
                let stride = counting.stride.unwrap_or(step);
                let promised = self.random.chance(60);
                let mut sum = counter;
                for _ in 0..2 {
                    sum = match promised {
                        true => b.no_wrap(NoWrapOp::Add, wrap, sum, stride),
                        false => b.add(stride, sum),
                    };
                }
                sum
            }
            _ if self.random.chance(40) => b.add(counter, step),
            _ => b.no_wrap(NoWrapOp::Add, wrap, counter, step),
        }
    }

    /// Loads of this iteration: from the work-item's own row, or from the counter itself.
    fn load_row(
        &mut self,
        b: &mut Builder<'_>,
        pool: &mut Pool,
        frame: &Frame,
        counter: Value,
        counting: &Counting,
    ) {
        if counting.style == Style::Halving {
            pool.add(counter);
            return;
        }
        let one = b.constant(counting.ty, 1);
        let index = match counting.style {
            Style::Down | Style::Unrolled => b.sub(counter, one),
            _ => counter,
        };
        let index = match counting.ty {
            Type::I64 => index,
            _ if self.random.chance(50) => b.convert(ConvertOp::ExtendS, Type::I64, index),
            _ => b.convert(ConvertOp::ExtendU, Type::I64, index),
        };
        // Before a late test the counter may stand one step beyond the bound.
        let beyond = if counting.style == Style::Late {
            counting.step + 1
        } else {
            0
        };
        let below = (counting.most + beyond).max(1);
        if below > frame.tables.row {
            return;
        }
        pool.add_index(Bounded { value: index, below });
        let at = b.add(frame.row, index);
        let at = Bounded {
            value: at,
            below: frame.tables.items() * frame.tables.row,
        };
        pool.add_index(at);
        for _ in 0..self.random.between(1, 2) {
            let table = self.random.choose(&frame.tables.inputs).clone();
            self.load_chain(b, pool, frame, &table, at.value);
        }
    }

    /// What an accumulator becomes: it and something new.
    fn accumulated(&mut self, b: &mut Builder<'_>, pool: &Pool, ty: Type, old: Value) -> Value {
        let term = pool.pick(&mut self.random, b, ty);
        let op = match ty.is_float() {
            true => *self
                .random
                .choose(&[BinaryOp::FAdd, BinaryOp::FAdd, BinaryOp::FMax, BinaryOp::FSub]),
            false => *self.random.choose(&[BinaryOp::Add, BinaryOp::Xor, BinaryOp::Sub]),
        };
        b.binary(op, old, term)
    }
}
