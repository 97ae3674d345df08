//! Reads, and the addresses that they use.

use super::{Generator, LENGTH, array, binary, local, number, scalar};
use crate::source::tree::{Access, Arithmetic, Expr, Pointer, Scalar, Statement};

impl Generator {
    /// A number from memory.
    pub(super) fn load(&mut self) -> Expr {
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
    pub(super) fn counter(&mut self) -> Option<(usize, Scalar)> {
        match self.random.chance(80) {
            true => self.counters.last().copied(),
            false if self.counters.is_empty() => None,
            false => Some(*self.random.choose(&self.counters.clone())),
        }
    }

    /// An index below [`LENGTH`], in most launches.
    pub(super) fn index(&mut self) -> Expr {
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
    pub(super) fn address_value(&mut self) -> Expr {
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
    pub(super) fn merged_address(&mut self) -> Vec<Statement> {
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
}
