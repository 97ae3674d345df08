//! Conditions: of counters, of data, and what joins them.

use super::{Generator, array, binary, compare, local, number, scalar};
use crate::source::tree::{Access, Arithmetic, Condition, Expr, Pointer, Relation, Scalar};

impl Generator {
    /// A condition that joins up to this number of others.
    pub(super) fn condition(&mut self, depth: u32) -> Condition {
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
