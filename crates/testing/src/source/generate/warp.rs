//! What work-items do together: barriers, shuffles, votes.

use super::{Generator, Here, LENGTH, ROW, array, binary, compare, local, number, scalar};
use crate::source::tree::{
    Access, Arithmetic, Condition, Exchange, Expr, Local, Loop, Pointer, Relation, Scalar, Statement,
};

impl Generator {
    /// A barrier, or an exchange inside the warp.
    pub(super) fn together_statement(&mut self) -> Vec<Statement> {
        if let Here::Party(mask) = self.here {
            return self.party_statement(mask);
        }
        match self.random.below(12) {
            0 => vec![Statement::Barrier],
            1..4 => self.pass_on(),
            // All of the warp must be there.
            _ if self.partial => vec![Statement::Barrier],
            4 => self.ballot(None),
            5..8 => {
                let exchange = self.exchange();
                let by = *self.random.choose(&[1, 2, 4, 8, 16, 31]);
                let value = Expr::Variable(local::SUM);
                let by = number(Scalar::U32, by);
                vec![Statement::Shuffle(local::OTHER_SUM, exchange, value, by, None)]
            }
            8 => self.party_loop(),
            _ => self.party(),
        }
    }

    fn exchange(&mut self) -> Exchange {
        let ways = [Exchange::Index, Exchange::Up, Exchange::Down, Exchange::Xor];
        *self.random.choose(&ways)
    }

    /// `ballot = __ballot_sync(mask, …)`, and into a sum.
    fn ballot(&mut self, mask: Option<usize>) -> Vec<Statement> {
        let condition = self.condition(1);
        let ballot = self.new_local(Local::Number(Scalar::U32));
        let (old, new) = (Expr::Variable(local::OTHER_SUM), Expr::Variable(ballot));
        let sum = binary(Arithmetic::Xor, Scalar::U32, old, new);
        vec![
            Statement::Ballot(ballot, condition, mask),
            Statement::Assign(local::OTHER_SUM, sum),
        ]
    }

    /// `mask = __ballot_sync(all, c); if (c) { … }`: the body is run by the work-items for which the condition is true.
    fn party(&mut self) -> Vec<Statement> {
        let (condition, around) = (self.party_condition(), self.mask());
        let mask = self.new_local(Local::Number(Scalar::U32));
        let mut statements = vec![Statement::Ballot(mask, condition.clone(), around)];
        let then = self.inside_party(mask);
        let mut otherwise = Vec::new();
        if self.random.chance(30) {
            // The others are the rest.
            let rest = self.new_local(Local::Number(Scalar::U32));
            let all = around.map_or(number(Scalar::U32, -1), Expr::Variable);
            let others = binary(Arithmetic::Xor, Scalar::U32, all, Expr::Variable(mask));
            otherwise.push(Statement::Assign(rest, others));
            otherwise.extend(self.inside_party(rest));
        }
        statements.push(Statement::If(condition, then, otherwise));
        statements
    }

    /// The mask of those who are here.
    fn mask(&self) -> Option<usize> {
        match self.here {
            Here::Party(mask) => Some(mask),
            Here::Group | Here::Anyone => None,
        }
    }

    /// A condition that differs inside the warp, often by the lane; nothing in it changes before it is asked again.
    fn party_condition(&mut self) -> Condition {
        let lane = self.masked(Expr::Item, 31);
        match self.random.below(6) {
            0 | 1 => {
                let bound = self.masked(Expr::Parameter(scalar::ANY), 31);
                compare(Relation::Less, Scalar::U32, lane, bound)
            }
            2 => {
                let bit = *self.random.choose(&[1, 2, 4, 16]);
                let bit = self.masked(Expr::Item, bit);
                compare(Relation::NotEqual, Scalar::U32, bit, number(Scalar::U32, 0))
            }
            3 => {
                let index = self.masked(Expr::Item, LENGTH - 1);
                let flag = Expr::Load(Pointer::Array(array::FLAGS), Box::new(index), Access::Plain);
                compare(Relation::NotEqual, Scalar::I32, flag, number(Scalar::I32, 0))
            }
            _ => self.condition(1),
        }
    }

    /// Collective operations of the work-items in this mask, which are all here.
    fn inside_party(&mut self, mask: usize) -> Vec<Statement> {
        let here = std::mem::replace(&mut self.here, Here::Party(mask));
        // None may leave the others behind.
        let loops = std::mem::take(&mut self.loops);
        self.depth += 1;
        let mut statements = self.party_statement(mask);
        for _ in 0..self.random.below(3) {
            statements.extend(match self.random.chance(50) {
                true => self.statement(),
                false => self.party_statement(mask),
            });
        }
        self.depth -= 1;
        self.loops = loops;
        self.here = here;
        statements
    }

    /// What is done with a mask.
    fn party_statement(&mut self, mask: usize) -> Vec<Statement> {
        match self.random.below(10) {
            0 => vec![Statement::Meet(mask)],
            1 => self.ballot(Some(mask)),
            2 if self.depth < 3 => self.party(),
            3 | 4 if self.depth < 3 => self.loop_statement(),
            _ => {
                let exchange = self.exchange();
                let by = self.partner(exchange, mask);
                let got = self.new_local(Local::Number(Scalar::U32));
                let value = Expr::Variable(local::SUM);
                let (old, new) = (Expr::Variable(local::SUM), Expr::Variable(got));
                let scaled = binary(Arithmetic::Mul, Scalar::U32, old, number(Scalar::U32, 3));
                let sum = binary(Arithmetic::Add, Scalar::U32, scaled, new);
                vec![
                    Statement::Shuffle(got, exchange, value, by, Some(mask)),
                    Statement::Assign(local::SUM, sum),
                ]
            }
        }
    }

    /// By how much, so that the other one is among those that the mask names, or the work-item itself. Now and then the
    /// plain distance, which is right for some masks.
    fn partner(&mut self, exchange: Exchange, mask: usize) -> Expr {
        let ty = Scalar::U32;
        let by = *self.random.choose(&[1, 1, 2, 4, 8, 16]);
        if self.random.chance(25) {
            return number(ty, by);
        }
        let lane = self.masked(Expr::Item, 31);
        let by = number(ty, by);
        let (op, inside, otherwise) = match exchange {
            Exchange::Index => (None, None, lane.clone()),
            Exchange::Up => {
                let inside = compare(Relation::GreaterEqual, ty, lane.clone(), by.clone());
                (Some(Arithmetic::Sub), Some(inside), number(ty, 0))
            }
            Exchange::Down => {
                let other = binary(Arithmetic::Add, ty, lane.clone(), by.clone());
                let inside = compare(Relation::Less, ty, other, number(ty, 32));
                (Some(Arithmetic::Add), Some(inside), number(ty, 0))
            }
            Exchange::Xor => (Some(Arithmetic::Xor), None, number(ty, 0)),
        };
        let other = op.map_or(by.clone(), |op| binary(op, ty, lane, by.clone()));
        let other = self.masked(other, 31);
        let bit = binary(Arithmetic::Shr, ty, Expr::Variable(mask), other);
        let bit = self.masked(bit, 1);
        let named = compare(Relation::NotEqual, ty, bit, number(ty, 0));
        let named = match inside {
            Some(inside) => Condition::And(Box::new(inside), Box::new(named)),
            None => named,
        };
        Expr::Choose(Box::new(named), Box::new(by), Box::new(otherwise))
    }

    /// Each lane has iterations of its own, and the mask says who goes on.
    ///
    /// ```c
    /// mask = __ballot_sync(all, i < n);
    /// for (i = lane; i < n; i += 16) { …; mask = __ballot_sync(mask, i + 16 < n); }
    /// ```
    fn party_loop(&mut self) -> Vec<Statement> {
        let (label, ty) = (self.label(), Scalar::U32);
        let counter = self.new_local(Local::Number(ty));
        let mask = self.new_local(Local::Number(ty));
        let bound = self.masked(Expr::Parameter(scalar::ANY), LENGTH - 1);
        let step = number(ty, *self.random.choose(&[3, 8, 16, 32]));
        let next = binary(Arithmetic::Add, ty, Expr::Variable(counter), step);
        let goes_on = |at: Expr| compare(Relation::Less, ty, at, bound.clone());
        let lane = self.masked(Expr::Item, 31);
        let around = self.mask();
        self.counters.push((counter, ty));
        let mut body = self.accumulate();
        body.extend(self.inside_party(mask));
        self.counters.pop();
        body.push(Statement::Ballot(mask, goes_on(next.clone()), Some(mask)));
        vec![
            Statement::Assign(counter, lane),
            Statement::Ballot(mask, goes_on(Expr::Variable(counter)), around),
            Statement::Loop(Loop {
                label,
                before: Some(goes_on(Expr::Variable(counter))),
                body,
                step: vec![Statement::Assign(counter, next)],
                after: None,
            }),
        ]
    }

    /// Writes an element, and reads the one that another work-item wrote, with barriers between.
    pub(super) fn pass_on(&mut self) -> Vec<Statement> {
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
}
