//! What bodies do: sums, branches, ways out, rows that are written, pointers that move.

use super::{Generator, Here, ROW, array, binary, compare, local, number, scalar};
use crate::source::tree::{Access, Arithmetic, Expr, Pointer, Relation, Scalar, Statement, Switch};

impl Generator {
    /// Some statements of a body.
    pub(super) fn statements(&mut self, most: u64) -> Vec<Statement> {
        let count = self.random.between(1, most);
        let mut statements = Vec::new();
        for _ in 0..count {
            statements.extend(self.statement());
        }
        statements
    }

    /// One thing that a body does.
    pub(super) fn statement(&mut self) -> Vec<Statement> {
        if self.budget == 0 {
            return self.accumulate();
        }
        self.budget -= 1;
        let nested = self.depth < 3;
        match self.random.below(100) {
            0..30 => self.accumulate(),
            30..42 if nested => self.merged_address(),
            42..54 if nested => self.branch(),
            54..64 if !self.loops.is_empty() && !self.is_together() => self.way_out(),
            64..70 if nested => self.switch(),
            70..78 if nested => self.loop_statement(),
            78..86 => self.rows(),
            86..89 => self.pointer_moves(),
            89..91 if self.is_together() => self.together_statement(),
            91..93 => vec![Statement::Assign(local::DONE, self.small())],
            _ => self.accumulate(),
        }
    }

    /// Another number below a mask.
    pub(super) fn small(&mut self) -> Expr {
        let load = self.load();
        let masked = self.masked(load, 7);
        self.cast(Scalar::I32, masked)
    }

    /// `s = s * 31 + a[…]`
    pub(super) fn accumulate(&mut self) -> Vec<Statement> {
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

    /// A branch, with loads under its condition.
    pub(super) fn branch(&mut self) -> Vec<Statement> {
        let condition = self.condition(2);
        let here = std::mem::replace(&mut self.here, Here::Anyone);
        self.depth += 1;
        let then = self.statements(2);
        let otherwise = match self.random.chance(40) {
            true => self.statements(2),
            false => Vec::new(),
        };
        self.depth -= 1;
        self.here = here;
        vec![Statement::If(condition, then, otherwise)]
    }

    /// `if (…) break;`, `continue;`, `return;`, out of whatever is around.
    pub(super) fn way_out(&mut self) -> Vec<Statement> {
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
            _ if self.exchanges || self.waits => Statement::Next(label),
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
    pub(super) fn switch(&mut self) -> Vec<Statement> {
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
        let here = std::mem::replace(&mut self.here, Here::Anyone);
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
        self.here = here;
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
    pub(super) fn rows(&mut self) -> Vec<Statement> {
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
        // Data that other work-groups wait for are written where their flag is set, and nowhere else.
        if !self.waits && self.random.chance(60) {
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
    pub(super) fn pointer_moves(&mut self) -> Vec<Statement> {
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
    pub(super) fn early_return(&mut self) -> Vec<Statement> {
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
}

fn numbers_moved(by: i64) -> Pointer {
    Pointer::Moved(
        Box::new(Pointer::Array(array::NUMBERS)),
        Box::new(number(Scalar::I32, by)),
    )
}
