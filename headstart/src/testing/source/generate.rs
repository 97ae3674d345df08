//! Random programs: parameters, statements, what addresses are made of.
//!
//! Nothing here proves that a program is defined for a launch: the interpreter says so. Most are, because indices are
//! counters below bounds of loops, masked numbers, or elements of an array of indices.

use super::tree::{
    Access, Arithmetic, ArrayParameter, Condition, Content, Exchange, Expr, Local, Pointer, Program,
    Relation, Role, Scalar, ScalarParameter, Statement, Switch,
};
use crate::testing::Random;

/// Elements of the arrays that all work-items read.
pub(super) const LENGTH: u64 = 64;
/// Elements of a work-item's row in the arrays that are written.
pub(super) const ROW: u64 = 16;

/// The arrays, by number.
pub(super) mod array {
    pub const NUMBERS: usize = 0;
    pub const INDICES: usize = 1;
    pub const FLAGS: usize = 2;
    pub const BYTES: usize = 3;
    pub const WIDE: usize = 4;
    pub const FLOATS: usize = 5;
    pub const SHORTS: usize = 6;
    pub const SPUN: usize = 7;
    pub const ROWS: usize = 8;
    pub const OTHER_ROWS: usize = 9;
    pub const OUT: usize = 10;
    pub const OUT_FLOATS: usize = 11;
}

/// The scalars, by number.
pub(super) mod scalar {
    pub const BOUND: usize = 0;
    pub const OTHER_BOUND: usize = 1;
    pub const START: usize = 2;
    pub const STEP: usize = 3;
    pub const SMALL: usize = 4;
    pub const ANY: usize = 5;
    pub const FLAG: usize = 6;
}

/// The locals that every program has, by number.
pub(super) mod local {
    pub const SUM: usize = 0;
    pub const OTHER_SUM: usize = 1;
    pub const FLOAT: usize = 2;
    pub const AT: usize = 3;
    pub const OTHER_AT: usize = 4;
    pub const DONE: usize = 5;
    pub const POINTER: usize = 6;
}

/// Writes one random program.
pub(super) struct Generator {
    pub random: Random,
    pub locals: Vec<Local>,
    pub labels: u32,
    /// Statements that may still be written.
    pub budget: u32,
    /// Counters of the loops around, with their types, innermost last.
    pub counters: Vec<(usize, Scalar)>,
    /// Loops and branches around.
    pub depth: u32,
    /// Loops around that can be left and continued from here, and blocks and switches that can be left.
    pub loops: Vec<u32>,
    pub blocks: Vec<u32>,
    /// All of the group are here.
    pub together: bool,
    /// The program has barriers and exchanges.
    pub exchanges: bool,
    /// Some work-items of a warp may have returned.
    pub partial: bool,
    pub scalars: Vec<ScalarParameter>,
}

/// A random program.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x5eed_c0de);
    let exchanges = random.chance(15);
    let types = [
        Scalar::I32,
        Scalar::I32,
        Scalar::I32,
        Scalar::U32,
        Scalar::U32,
        Scalar::I64,
        Scalar::U64,
        Scalar::I8,
        Scalar::U8,
        Scalar::I16,
        Scalar::U16,
    ];
    let (bound, other) = (*random.choose(&types), *random.choose(&types));
    let named = |name, ty, role| ScalarParameter { name, ty, role };
    let scalars = vec![
        named("n", bound, Role::Bound),
        named("k", other, Role::Bound),
        named("start", bound, Role::Start),
        named("step", bound, Role::Step),
        named("z", Scalar::I32, Role::Small),
        named("u", Scalar::U32, Role::Any),
        named("flag", Scalar::I32, Role::Start),
    ];
    let (groups, group) = match exchanges {
        true => (1, *random.choose(&[32, 32, 64])),
        false => (random.between(1, 2) as u32, *random.choose(&[2, 4, 8])),
    };
    let items = u64::from(groups * group);
    let input = |name, element, content| ArrayParameter {
        name,
        element,
        length: LENGTH,
        written: false,
        volatile: false,
        content,
    };
    let rows = |name, element, written, length| ArrayParameter {
        written,
        length,
        ..input(name, element, Content::Any)
    };
    let arrays = vec![
        input("a", Scalar::I32, Content::Any),
        input("b", Scalar::U32, Content::Below(LENGTH)),
        input("m", Scalar::I32, Content::Flags),
        input("c", Scalar::U8, Content::Any),
        input("d", Scalar::I64, Content::Any),
        input("x", Scalar::F32, Content::Floats),
        input("h", Scalar::I16, Content::Below(LENGTH)),
        ArrayParameter {
            volatile: true,
            ..input("f", Scalar::I32, Content::Flags)
        },
        rows("w", Scalar::I32, true, items * ROW),
        rows("r", Scalar::I32, false, items * ROW),
        rows("o", Scalar::U32, true, items * 4),
        ArrayParameter {
            content: Content::Floats,
            ..rows("p", Scalar::F32, true, items)
        },
    ];
    let mut generator = Generator {
        random,
        locals: vec![
            Local::Number(Scalar::U32),
            Local::Number(Scalar::U32),
            Local::Number(Scalar::F32),
            Local::Number(Scalar::I32),
            Local::Number(Scalar::I32),
            Local::Number(Scalar::I32),
            Local::Pointer(Scalar::I32, array::NUMBERS),
        ],
        labels: 0,
        budget: 14,
        counters: Vec::new(),
        depth: 0,
        loops: Vec::new(),
        blocks: Vec::new(),
        together: exchanges,
        exchanges,
        partial: false,
        scalars: scalars.clone(),
    };
    let mut body = Vec::new();
    if generator.random.chance(20) {
        generator.partial = generator.random.chance(50);
        body.extend(generator.early_return());
    }
    for _ in 0..generator.random.between(1, 2) {
        body.extend(generator.loop_statement());
        if generator.exchanges {
            body.extend(generator.together_statement());
        }
    }
    body.extend(outputs());
    Program {
        seed,
        arrays,
        scalars,
        locals: generator.locals,
        body,
        groups,
        group,
        partial: exchanges && generator.partial,
    }
}

/// `o[t*4 + i] = …`
fn outputs() -> Vec<Statement> {
    let row = binary(Arithmetic::Mul, Scalar::U32, Expr::Item, number(Scalar::U32, 4));
    let results = [local::SUM, local::OTHER_SUM, local::AT, local::DONE];
    let mut stores = Vec::new();
    for (at, result) in results.into_iter().enumerate() {
        let index = binary(
            Arithmetic::Add,
            Scalar::U32,
            row.clone(),
            number(Scalar::U32, at as i64),
        );
        let value = match at {
            0 | 1 => Expr::Variable(result),
            _ => Expr::Cast(Scalar::U32, Box::new(Expr::Variable(result))),
        };
        stores.push(Statement::Store(Pointer::Array(array::OUT), index, value));
    }
    let float = Expr::Variable(local::FLOAT);
    stores.push(Statement::Store(
        Pointer::Array(array::OUT_FLOATS),
        Expr::Item,
        float,
    ));
    stores
}

/// A literal.
pub(super) fn number(ty: Scalar, number: i64) -> Expr {
    Expr::Number(ty, ty.bits_of(number))
}

/// Arithmetic.
pub(super) fn binary(op: Arithmetic, ty: Scalar, left: Expr, right: Expr) -> Expr {
    Expr::Binary(op, ty, Box::new(left), Box::new(right))
}

/// A comparison.
pub(super) fn compare(relation: Relation, ty: Scalar, left: Expr, right: Expr) -> Condition {
    Condition::Compare(relation, ty, Box::new(left), Box::new(right))
}

impl Generator {
    pub fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    pub fn new_local(&mut self, local: Local) -> usize {
        self.locals.push(local);
        self.locals.len() - 1
    }

    pub fn type_of(&self, expr: &Expr) -> Scalar {
        match expr {
            Expr::Number(ty, _) | Expr::Binary(_, ty, ..) | Expr::Cast(ty, _) => *ty,
            Expr::Variable(local) | Expr::Step(local, ..) => match self.locals[*local] {
                Local::Number(ty) | Local::Pointer(ty, _) => ty,
            },
            Expr::Parameter(number) => self.scalars[*number].ty,
            Expr::Item => Scalar::U32,
            Expr::Choose(_, then, _) => self.type_of(then),
            Expr::Load(pointer, ..) => self.element_of(pointer),
        }
    }

    fn element_of(&self, pointer: &Pointer) -> Scalar {
        match pointer {
            Pointer::Array(array) => ELEMENTS[*array],
            Pointer::Variable(local) | Pointer::Step(local, ..) => match self.locals[*local] {
                Local::Number(ty) | Local::Pointer(ty, _) => ty,
            },
            Pointer::Moved(inner, _) | Pointer::Choose(_, inner, _) | Pointer::Across(_, inner) => {
                self.element_of(inner)
            }
        }
    }

    /// The number in another type.
    pub fn cast(&self, to: Scalar, expr: Expr) -> Expr {
        match self.type_of(&expr) == to {
            true => expr,
            false => Expr::Cast(to, Box::new(expr)),
        }
    }

    /// `n & mask`, as a `U32`.
    pub fn masked(&self, expr: Expr, mask: u64) -> Expr {
        let expr = self.cast(Scalar::U32, expr);
        binary(
            Arithmetic::And,
            Scalar::U32,
            expr,
            number(Scalar::U32, mask as i64),
        )
    }

    /// Some statements of a body.
    pub fn statements(&mut self, most: u64) -> Vec<Statement> {
        let count = self.random.between(1, most);
        let mut statements = Vec::new();
        for _ in 0..count {
            statements.extend(self.statement());
        }
        statements
    }

    /// One thing that a body does.
    pub fn statement(&mut self) -> Vec<Statement> {
        if self.budget == 0 {
            return self.accumulate();
        }
        self.budget -= 1;
        let nested = self.depth < 3;
        match self.random.below(100) {
            0..30 => self.accumulate(),
            30..42 if nested => self.merged_address(),
            42..54 if nested => self.branch(),
            54..64 if !self.loops.is_empty() && !self.together => self.way_out(),
            64..70 if nested => self.switch(),
            70..78 if nested => self.loop_statement(),
            78..86 => self.rows(),
            86..89 => self.pointer_moves(),
            89..91 if self.together => self.together_statement(),
            91..93 => vec![Statement::Assign(local::DONE, self.small())],
            _ => self.accumulate(),
        }
    }

    /// Another number below a mask.
    fn small(&mut self) -> Expr {
        let load = self.load();
        let masked = self.masked(load, 7);
        self.cast(Scalar::I32, masked)
    }

    /// `s = s * 31 + a[…]`
    pub fn accumulate(&mut self) -> Vec<Statement> {
        if self.random.chance(12) {
            let index = self.index();
            let value = Expr::Load(Pointer::Array(array::FLOATS), Box::new(index), Access::Plain);
            let old = Expr::Variable(local::FLOAT);
            let half = Expr::Number(Scalar::F32, u64::from(0.5f32.to_bits()));
            let scaled = binary(Arithmetic::Mul, Scalar::F32, old, half);
            let sum = binary(Arithmetic::Add, Scalar::F32, scaled, value);
            return vec![Statement::Assign(local::FLOAT, sum)];
        }
        let to = *self
            .random
            .choose(&[local::SUM, local::SUM, local::SUM, local::OTHER_SUM]);
        let load = self.load();
        let value = self.cast(Scalar::U32, load);
        let old = Expr::Variable(to);
        let sum = match self.random.below(5) {
            0 => binary(Arithmetic::Xor, Scalar::U32, old, value),
            1 => binary(Arithmetic::Add, Scalar::U32, old, value),
            _ => {
                let scaled = binary(Arithmetic::Mul, Scalar::U32, old, number(Scalar::U32, 31));
                binary(Arithmetic::Add, Scalar::U32, scaled, value)
            }
        };
        vec![Statement::Assign(to, sum)]
    }

    /// A number from memory.
    pub fn load(&mut self) -> Expr {
        let array = *self.random.choose(&[
            array::NUMBERS,
            array::NUMBERS,
            array::NUMBERS,
            array::INDICES,
            array::FLAGS,
            array::BYTES,
            array::WIDE,
            array::SHORTS,
            array::SPUN,
        ]);
        let access = match array {
            array::SPUN => Access::Volatile,
            _ if self.random.chance(6) => Access::Constant,
            _ => Access::Plain,
        };
        if array == array::NUMBERS && self.random.chance(15) {
            let pointer = Pointer::Variable(local::POINTER);
            let index = self.index();
            return Expr::Load(pointer, Box::new(index), Access::Plain);
        }
        if array == array::NUMBERS && self.random.chance(6) {
            let far = Pointer::Across(
                Box::new(Pointer::Array(array::FLAGS)),
                Box::new(Pointer::Array(array::NUMBERS)),
            );
            let index = self.index();
            return Expr::Load(far, Box::new(index), Access::Plain);
        }
        let index = self.index();
        Expr::Load(Pointer::Array(array), Box::new(index), access)
    }

    /// The innermost counter, or one around.
    pub fn counter(&mut self) -> Option<(usize, Scalar)> {
        match self.random.chance(80) {
            true => self.counters.last().copied(),
            false if self.counters.is_empty() => None,
            false => Some(*self.random.choose(&self.counters.clone())),
        }
    }

    /// An index below [`LENGTH`], in most launches.
    pub fn index(&mut self) -> Expr {
        let counter = self.counter();
        let counted = counter.map(|(counter, _)| Expr::Variable(counter));
        match (self.random.below(100), counted) {
            // As people write it.
            (0..40, Some(counter)) => counter,
            (40..50, Some(counter)) => {
                let sum = self.cast(Scalar::U32, counter);
                let item = binary(Arithmetic::Mul, Scalar::U32, Expr::Item, number(Scalar::U32, 3));
                let sum = binary(Arithmetic::Add, Scalar::U32, item, sum);
                self.masked(sum, LENGTH - 1)
            }
            (50..58, Some(counter)) => {
                let by = self.random.below(5) as i64 - 1;
                let ty = self.type_of(&counter);
                binary(Arithmetic::Add, ty, counter, number(ty, by))
            }
            (58..66, Some(counter)) => {
                let inner = Expr::Load(Pointer::Array(array::INDICES), Box::new(counter), Access::Plain);
                self.masked(inner, LENGTH - 1)
            }
            (66..72, Some(counter)) => self.masked(counter, LENGTH - 1),
            // What merges from several places.
            (72..82, _) => Expr::Variable(local::AT),
            (82..88, Some(counter)) => {
                let at = self.cast(Scalar::U32, Expr::Variable(local::AT));
                let scaled = binary(Arithmetic::Mul, Scalar::U32, at, number(Scalar::U32, 8));
                let low = self.masked(counter, 7);
                let sum = binary(Arithmetic::Add, Scalar::U32, scaled, low);
                self.masked(sum, LENGTH - 1)
            }
            (88..92, _) => self.masked(Expr::Variable(local::OTHER_AT), LENGTH - 1),
            (92..95, _) => self.masked(Expr::Variable(local::SUM), LENGTH - 1),
            (_, Some(counter)) => counter,
            (_, None) => self.masked(Expr::Item, LENGTH - 1),
        }
    }

    /// A number that an address variable may take: an `I32` that is mostly an index.
    fn address_value(&mut self) -> Expr {
        let counted = self.counter().map(|(counter, _)| Expr::Variable(counter));
        match (self.random.below(6), counted) {
            (0, _) | (_, None) => number(Scalar::I32, self.random.below(8) as i64),
            (1 | 2, Some(counter)) => self.cast(Scalar::I32, counter),
            (3, Some(counter)) => {
                // `(i * 5) / z`
                let low = self.masked(counter, 15);
                let low = self.cast(Scalar::I32, low);
                let scaled = binary(Arithmetic::Mul, Scalar::I32, low, number(Scalar::I32, 5));
                binary(
                    Arithmetic::Div,
                    Scalar::I32,
                    scaled,
                    Expr::Parameter(scalar::SMALL),
                )
            }
            (4, _) => {
                let load = self.load();
                let masked = self.masked(load, 31);
                self.cast(Scalar::I32, masked)
            }
            (_, Some(counter)) => {
                let masked = self.masked(counter, 15);
                let index = Expr::Load(Pointer::Array(array::SHORTS), Box::new(masked), Access::Plain);
                self.cast(Scalar::I32, index)
            }
        }
    }

    /// An address variable that gets its value in one of several places, and a load through it.
    fn merged_address(&mut self) -> Vec<Statement> {
        let to = *self.random.choose(&[local::AT, local::AT, local::OTHER_AT]);
        let mut statements = Vec::new();
        if self.random.chance(80) {
            let first = self.random.below(4) as i64;
            statements.push(Statement::Assign(to, number(Scalar::I32, first)));
        }
        match self.random.below(5) {
            0 | 1 => {
                let condition = self.condition(2);
                let value = self.address_value();
                let mut then = vec![Statement::Assign(to, value)];
                if self.random.chance(30) {
                    let inner = self.condition(1);
                    let value = self.address_value();
                    then.push(Statement::If(
                        inner,
                        vec![Statement::Assign(to, value)],
                        Vec::new(),
                    ));
                }
                let mut otherwise = Vec::new();
                if self.random.chance(30) {
                    let value = self.address_value();
                    otherwise.push(Statement::Assign(to, value));
                }
                statements.push(Statement::If(condition, then, otherwise));
            }
            2 | 3 => {
                // A function with several returns.
                let label = self.label();
                let mut body = Vec::new();
                for _ in 0..self.random.between(1, 3) {
                    let condition = self.condition(2);
                    let value = self.address_value();
                    let returned = vec![Statement::Assign(to, value), Statement::Leave(label)];
                    body.push(Statement::If(condition, returned, Vec::new()));
                }
                let value = self.address_value();
                body.push(Statement::Assign(to, value));
                statements.push(Statement::Block(label, body));
            }
            _ => {
                let condition = self.condition(2);
                let (one, other) = (self.address_value(), self.address_value());
                let chosen = Expr::Choose(Box::new(condition), Box::new(one), Box::new(other));
                statements.push(Statement::Assign(to, chosen));
            }
        }
        let index = match to {
            local::AT => Expr::Variable(to),
            _ => self.masked(Expr::Variable(to), LENGTH - 1),
        };
        let load = Expr::Load(Pointer::Array(array::NUMBERS), Box::new(index), Access::Plain);
        let value = self.cast(Scalar::U32, load);
        let scaled = binary(
            Arithmetic::Mul,
            Scalar::U32,
            Expr::Variable(local::SUM),
            number(Scalar::U32, 31),
        );
        let sum = binary(Arithmetic::Add, Scalar::U32, scaled, value);
        statements.push(Statement::Assign(local::SUM, sum));
        statements
    }

    /// A branch, with loads under its condition.
    fn branch(&mut self) -> Vec<Statement> {
        let condition = self.condition(2);
        let together = std::mem::replace(&mut self.together, false);
        self.depth += 1;
        let then = self.statements(2);
        let otherwise = match self.random.chance(40) {
            true => self.statements(2),
            false => Vec::new(),
        };
        self.depth -= 1;
        self.together = together;
        vec![Statement::If(condition, then, otherwise)]
    }

    /// `if (…) break;`, `continue;`, `return;`, out of whatever is around.
    fn way_out(&mut self) -> Vec<Statement> {
        let condition = self.condition(2);
        let label = match self.random.chance(50) {
            true => self.loops[self.loops.len() - 1],
            false => *self.random.choose(&self.loops.clone()),
        };
        let way = match self.random.below(10) {
            0..4 => Statement::Next(label),
            4..8 => Statement::Leave(label),
            8 if !self.blocks.is_empty() => Statement::Leave(*self.random.choose(&self.blocks.clone())),
            8 => Statement::Leave(label),
            _ if self.exchanges => Statement::Next(label),
            _ => Statement::Return,
        };
        let mut then = match self.random.chance(40) {
            true => self.accumulate(),
            false => Vec::new(),
        };
        then.push(way);
        vec![Statement::If(condition, then, Vec::new())]
    }

    /// A `switch` that falls through here and there.
    fn switch(&mut self) -> Vec<Statement> {
        let label = self.label();
        let on = match self.random.below(3) {
            0 => {
                let load = self.load();
                self.masked(load, 3)
            }
            1 => match self.counter() {
                Some((counter, _)) => self.masked(Expr::Variable(counter), 3),
                None => self.masked(Expr::Item, 3),
            },
            _ => self.masked(Expr::Parameter(scalar::ANY), 3),
        };
        let together = std::mem::replace(&mut self.together, false);
        self.depth += 1;
        self.blocks.push(label);
        let mut cases = Vec::new();
        let default = self.random.below(6);
        for value in 0..self.random.between(2, 3) {
            let mut body = match self.random.chance(60) {
                true => {
                    let value = self.address_value();
                    vec![Statement::Assign(local::AT, value)]
                }
                false => self.statements(1),
            };
            if self.random.chance(65) {
                let next = self.loops.last().filter(|_| self.random.chance(15)).copied();
                body.push(next.map_or(Statement::Leave(label), Statement::Next));
            }
            cases.push((Some(value as u32), body));
            if default == value {
                let body = self.accumulate();
                cases.push((None, body));
            }
        }
        self.blocks.pop();
        self.depth -= 1;
        self.together = together;
        let mut statements = vec![Statement::Switch(Switch { label, on, cases })];
        let load = Expr::Load(
            Pointer::Array(array::NUMBERS),
            Box::new(Expr::Variable(local::AT)),
            Access::Plain,
        );
        let value = self.cast(Scalar::U32, load);
        let sum = binary(
            Arithmetic::Add,
            Scalar::U32,
            Expr::Variable(local::OTHER_SUM),
            value,
        );
        statements.push(Statement::Assign(local::OTHER_SUM, sum));
        statements
    }

    /// Reads and writes of the work-item's own row, through parameters that may be the same memory.
    fn rows(&mut self) -> Vec<Statement> {
        let row = binary(
            Arithmetic::Mul,
            Scalar::U32,
            Expr::Item,
            number(Scalar::U32, ROW as i64),
        );
        // The upper half of a row is never written.
        let at = |generator: &mut Self, mask: u64, add: i64| {
            let low = match generator.counter() {
                Some((counter, _)) if generator.random.chance(80) => Expr::Variable(counter),
                _ => Expr::Variable(local::SUM),
            };
            let low = generator.masked(low, mask);
            let low = match add {
                0 => low,
                _ => binary(Arithmetic::Or, Scalar::U32, low, number(Scalar::U32, add)),
            };
            binary(Arithmetic::Add, Scalar::U32, row.clone(), low)
        };
        let mut statements = Vec::new();
        if self.random.chance(70) {
            let array = *self.random.choose(&[array::ROWS, array::OTHER_ROWS]);
            let (index, access) = match array == array::OTHER_ROWS && self.random.chance(35) {
                true => (at(self, ROW / 2 - 1, ROW as i64 / 2), Access::Constant),
                false => (at(self, ROW - 1, 0), Access::Plain),
            };
            let load = Expr::Load(Pointer::Array(array), Box::new(index), access);
            let value = self.cast(Scalar::U32, load);
            let scaled = binary(
                Arithmetic::Mul,
                Scalar::U32,
                Expr::Variable(local::SUM),
                number(Scalar::U32, 17),
            );
            let sum = binary(Arithmetic::Add, Scalar::U32, scaled, value);
            statements.push(Statement::Assign(local::SUM, sum));
        }
        if self.random.chance(60) {
            let index = at(self, ROW / 2 - 1, 0);
            let value = Expr::Cast(Scalar::I32, Box::new(Expr::Variable(local::SUM)));
            let to = Box::new(Pointer::Array(array::ROWS));
            let to = match self.random.chance(12) {
                true => Pointer::Across(Box::new(Pointer::Array(array::FLAGS)), to),
                false => *to,
            };
            statements.push(Statement::Store(to, index, value));
        }
        if self.random.chance(50) {
            statements.reverse();
        }
        statements
    }

    /// The pointer variable goes on, goes back, or is chosen anew.
    fn pointer_moves(&mut self) -> Vec<Statement> {
        let pointer = local::POINTER;
        let numbers = || Box::new(Pointer::Array(array::NUMBERS));
        let to = match self.random.below(4) {
            0 => numbers_moved(self.random.below(8) as i64),
            1 => {
                let condition = self.condition(1);
                let flags = Box::new(Pointer::Array(array::FLAGS));
                Pointer::Choose(Box::new(condition), numbers(), flags)
            }
            2 => {
                let index = Expr::Variable(local::AT);
                Pointer::Moved(numbers(), Box::new(index))
            }
            _ => {
                let step = number(Scalar::I32, self.random.between(1, 2) as i64);
                Pointer::Moved(Box::new(Pointer::Variable(pointer)), Box::new(step))
            }
        };
        vec![Statement::Point(pointer, to)]
    }

    /// `if (…) return;` in front of everything.
    fn early_return(&mut self) -> Vec<Statement> {
        let condition = match self.exchanges && !self.partial {
            // All of a group, or none.
            true => compare(
                Relation::Greater,
                Scalar::I32,
                Expr::Parameter(scalar::FLAG),
                number(Scalar::I32, 3),
            ),
            false => {
                let item = self.cast(Scalar::I32, Expr::Item);
                compare(Relation::Equal, Scalar::I32, item, Expr::Parameter(scalar::FLAG))
            }
        };
        vec![Statement::If(condition, vec![Statement::Return], Vec::new())]
    }

    /// A barrier, or an exchange inside the warp.
    pub fn together_statement(&mut self) -> Vec<Statement> {
        match self.random.below(8) {
            0 => vec![Statement::Barrier],
            1..4 => self.pass_on(),
            // All of the warp must be there.
            _ if self.partial => vec![Statement::Barrier],
            4 => {
                let condition = self.condition(1);
                let ballot = self.new_local(Local::Number(Scalar::U32));
                let sum = binary(
                    Arithmetic::Xor,
                    Scalar::U32,
                    Expr::Variable(local::OTHER_SUM),
                    Expr::Variable(ballot),
                );
                vec![
                    Statement::Ballot(ballot, condition),
                    Statement::Assign(local::OTHER_SUM, sum),
                ]
            }
            _ => {
                let exchange =
                    *self
                        .random
                        .choose(&[Exchange::Index, Exchange::Up, Exchange::Down, Exchange::Xor]);
                let by = *self.random.choose(&[1, 2, 4, 8, 16, 31]);
                let value = Expr::Variable(local::SUM);
                vec![Statement::Shuffle(local::OTHER_SUM, exchange, value, by)]
            }
        }
    }

    /// Writes an element, and reads the one that another work-item wrote, with barriers between.
    fn pass_on(&mut self) -> Vec<Statement> {
        let low = match self.counter() {
            Some((counter, _)) => self.masked(Expr::Variable(counter), ROW / 2 - 1),
            None => number(Scalar::U32, 0),
        };
        let at = |item: Expr| {
            let row = binary(
                Arithmetic::Mul,
                Scalar::U32,
                item,
                number(Scalar::U32, ROW as i64),
            );
            binary(Arithmetic::Add, Scalar::U32, row, low.clone())
        };
        let value = Expr::Cast(Scalar::I32, Box::new(Expr::Variable(local::SUM)));
        let distance = *self.random.choose(&[1, 1, 2, 16]);
        let other = binary(
            Arithmetic::Xor,
            Scalar::U32,
            Expr::Item,
            number(Scalar::U32, distance),
        );
        let array = *self.random.choose(&[array::ROWS, array::OTHER_ROWS]);
        let theirs = Expr::Load(Pointer::Array(array), Box::new(at(other)), Access::Plain);
        let theirs = Expr::Cast(Scalar::U32, Box::new(theirs));
        let scaled = binary(
            Arithmetic::Mul,
            Scalar::U32,
            Expr::Variable(local::SUM),
            number(Scalar::U32, 5),
        );
        let sum = binary(Arithmetic::Add, Scalar::U32, scaled, theirs);
        vec![
            Statement::Store(Pointer::Array(array::ROWS), at(Expr::Item), value),
            Statement::Barrier,
            Statement::Assign(local::SUM, sum),
            Statement::Barrier,
        ]
    }

    /// A condition that joins up to so many others.
    pub fn condition(&mut self, depth: u32) -> Condition {
        if depth > 0 && self.random.chance(45) {
            let (left, right) = (self.condition(depth - 1), self.condition(depth - 1));
            let (left, right) = (Box::new(left), Box::new(right));
            return match self.random.below(5) {
                0 | 1 => Condition::And(left, right),
                2 | 3 => Condition::Or(left, right),
                _ => Condition::Not(Box::new(Condition::And(left, right))),
            };
        }
        let counted = self.counter();
        match (self.random.below(100), counted) {
            (0..25, Some((counter, ty))) => {
                // Against something that the loop does not change.
                let counter = self.cast(Scalar::I32, Expr::Variable(counter));
                let other = match self.random.below(4) {
                    0 => Expr::Parameter(scalar::SMALL),
                    1 => Expr::Parameter(scalar::FLAG),
                    2 if ty == self.scalars[scalar::OTHER_BOUND].ty => {
                        self.cast(Scalar::I32, Expr::Parameter(scalar::OTHER_BOUND))
                    }
                    _ => number(Scalar::I32, self.random.below(20) as i64),
                };
                let relation = *self.random.choose(&[
                    Relation::Less,
                    Relation::LessEqual,
                    Relation::Greater,
                    Relation::GreaterEqual,
                    Relation::Equal,
                    Relation::NotEqual,
                ]);
                compare(relation, Scalar::I32, counter, other)
            }
            (25..45, Some((counter, _))) => {
                // `i % z < flag`
                let low = self.masked(Expr::Variable(counter), 255);
                let low = self.cast(Scalar::I32, low);
                let rest = binary(Arithmetic::Rem, Scalar::I32, low, Expr::Parameter(scalar::SMALL));
                compare(Relation::Less, Scalar::I32, rest, Expr::Parameter(scalar::FLAG))
            }
            (45..75, _) => {
                let index = self.index();
                let array = *self.random.choose(&[array::FLAGS, array::FLAGS, array::SPUN]);
                let access = match array {
                    array::SPUN => Access::Volatile,
                    _ => Access::Plain,
                };
                let flag = Expr::Load(Pointer::Array(array), Box::new(index), access);
                let relation = *self.random.choose(&[Relation::NotEqual, Relation::Equal]);
                compare(relation, Scalar::I32, flag, number(Scalar::I32, 0))
            }
            (75..85, _) => {
                let load = self.load();
                let load = self.cast(Scalar::I32, load);
                compare(Relation::Less, Scalar::I32, load, Expr::Parameter(scalar::SMALL))
            }
            (85..90, _) => compare(
                Relation::Equal,
                Scalar::I32,
                Expr::Variable(local::DONE),
                number(Scalar::I32, 0),
            ),
            (90..95, _) => {
                let low = self.masked(Expr::Variable(local::SUM), 3);
                compare(Relation::NotEqual, Scalar::U32, low, number(Scalar::U32, 0))
            }
            _ => compare(
                Relation::Less,
                Scalar::I32,
                Expr::Parameter(scalar::FLAG),
                Expr::Parameter(scalar::SMALL),
            ),
        }
    }
}

fn numbers_moved(by: i64) -> Pointer {
    Pointer::Moved(
        Box::new(Pointer::Array(array::NUMBERS)),
        Box::new(number(Scalar::I32, by)),
    )
}

/// What the arrays hold, by number.
const ELEMENTS: [Scalar; 12] = [
    Scalar::I32,
    Scalar::U32,
    Scalar::I32,
    Scalar::U8,
    Scalar::I64,
    Scalar::F32,
    Scalar::I16,
    Scalar::I32,
    Scalar::I32,
    Scalar::I32,
    Scalar::U32,
    Scalar::F32,
];
