//! Loops of random programs: the ways in which people count.

use super::{Generator, Here, LENGTH, array, binary, compare, local, number, scalar};
use crate::source::tree::{
    Access, Arithmetic, Condition, Expr, Local, Loop, Pointer, Relation, Scalar, Statement,
};

/// A counter, what bounds it, and how it goes there.
struct Counting {
    counter: usize,
    ty: Scalar,
    bound: Expr,
    label: u32,
    start: Expr,
    step: Expr,
    relation: Relation,
}

impl Counting {
    fn own(&self) -> Option<(usize, Scalar)> {
        Some((self.counter, self.ty))
    }

    fn begin(&self) -> Statement {
        Statement::Assign(self.counter, self.start.clone())
    }

    fn up(&self, by: Expr) -> Statement {
        let sum = binary(Arithmetic::Add, self.ty, Expr::Variable(self.counter), by);
        Statement::Assign(self.counter, sum)
    }

    fn step(&self) -> Statement {
        self.up(self.step.clone())
    }

    fn one(&self) -> Expr {
        number(self.ty, 1)
    }

    /// The counter against its bound.
    fn test(&self, relation: Relation) -> Condition {
        compare(
            relation,
            self.ty,
            Expr::Variable(self.counter),
            self.bound.clone(),
        )
    }

    fn looped(
        &self,
        before: Option<Condition>,
        body: Vec<Statement>,
        step: Vec<Statement>,
        after: Option<Condition>,
    ) -> Statement {
        Statement::Loop(Loop {
            label: self.label,
            before,
            body,
            step,
            after,
        })
    }
}

impl Generator {
    /// A loop, with what stands in front of it.
    pub(crate) fn loop_statement(&mut self) -> Vec<Statement> {
        let here = self.here;
        if !(self.is_together() && self.random.chance(60)) {
            self.here = Here::Anyone;
        }
        let loops = match self.is_together() {
            // Nothing may leave the others behind.
            true => std::mem::take(&mut self.loops),
            false => self.loops.clone(),
        };
        self.depth += 1;
        let statements = match self.random.below(100) {
            0..14 => self.pointer_loop(),
            14..20 => self.halving(),
            _ => self.counted(),
        };
        self.depth -= 1;
        self.loops = loops;
        self.here = here;
        statements
    }

    fn counting(&mut self) -> Counting {
        let parameter = *self
            .random
            .choose(&[scalar::BOUND, scalar::BOUND, scalar::OTHER_BOUND]);
        let ty = self.scalars[parameter].ty;
        let counter = self.new_local(Local::Number(ty));
        let bound = Expr::Parameter(parameter);
        let bound = match self.random.below(10) {
            0 => number(ty, self.random.between(2, 20) as i64),
            1 => binary(Arithmetic::Add, ty, bound, number(ty, 1)),
            2 => binary(Arithmetic::Sub, ty, bound, number(ty, 1)),
            3 if !self.is_together() => {
                // Another one for each work-item.
                let index = Box::new(Expr::Item);
                let count = Expr::Load(Pointer::Array(array::SHORTS), index, Access::Plain);
                let count = self.masked(count, 15);
                self.cast(ty, count)
            }
            4 if self.depth > 1 => match self.counters.last() {
                // A triangle.
                Some(&(outer, _)) => self.cast(ty, Expr::Variable(outer)),
                None => bound,
            },
            _ => bound,
        };
        let label = self.label();
        let step = match self.random.below(10) {
            0 | 1 if ty == self.scalars[scalar::STEP].ty => Expr::Parameter(scalar::STEP),
            2 => number(ty, 2),
            3 => number(ty, 3),
            _ => number(ty, 1),
        };
        let start = match self.random.below(4) {
            0 if ty == self.scalars[scalar::START].ty => Expr::Parameter(scalar::START),
            1 if !self.is_together() => self.cast(ty, Expr::Item),
            _ => number(ty, 0),
        };
        let relation = *self.random.choose(&[
            Relation::Less,
            Relation::Less,
            Relation::Less,
            Relation::LessEqual,
            Relation::NotEqual,
        ]);
        Counting {
            counter,
            ty,
            bound,
            label,
            start,
            step,
            relation,
        }
    }

    /// The body of a loop with this label, around these counters.
    pub(crate) fn body(&mut self, label: u32, counter: Option<(usize, Scalar)>) -> Vec<Statement> {
        let before = self.counters.len();
        self.counters.extend(counter);
        let most = if self.depth > 1 { 2 } else { 4 };
        if !self.is_together() {
            self.loops.push(label);
        }
        let mut body = Vec::new();
        if self.random.chance(60) {
            body.extend(self.accumulate());
        }
        body.extend(self.statements(most));
        self.loops.retain(|&other| other != label);
        self.counters.truncate(before);
        body
    }

    fn counted(&mut self) -> Vec<Statement> {
        let of = self.counting();
        match self.random.below(100) {
            // for (i = start; i < n; i += step)
            0..28 => {
                let test = self.joined(of.test(of.relation), of.own());
                let body = self.body(of.label, of.own());
                vec![of.begin(), of.looped(Some(test), body, vec![of.step()], None)]
            }
            28..36 => self.counted_down(of),
            // while (i-- > 0), while (i--), while (--i)
            36..42 => {
                let stepped = Expr::Step(of.counter, false, self.random.chance(30));
                let relation = *self.random.choose(&[Relation::Greater, Relation::NotEqual]);
                let test = compare(relation, of.ty, stepped, number(of.ty, 0));
                let body = self.body(of.label, of.own());
                vec![
                    Statement::Assign(of.counter, of.bound.clone()),
                    of.looped(Some(test), body, Vec::new(), None),
                ]
            }
            // i = start - 1; while (++i < n)
            42..52 => {
                let after = self.random.chance(70);
                let relation = [Relation::Less, Relation::Less, Relation::LessEqual];
                let stepped = Expr::Step(of.counter, true, after);
                let test = compare(*self.random.choose(&relation), of.ty, stepped, of.bound.clone());
                let body = self.body(of.label, of.own());
                let before = match after {
                    true => binary(Arithmetic::Sub, of.ty, of.start.clone(), of.one()),
                    false => of.start.clone(),
                };
                vec![
                    Statement::Assign(of.counter, before),
                    of.looped(Some(test), body, Vec::new(), None),
                ]
            }
            // do { … } while (i < n)
            52..60 => {
                let test = self.joined(of.test(of.relation), of.own());
                let mut body = self.body(of.label, of.own());
                // A `continue` in front of the step would never end.
                self.step_before_next(&mut body, of.label, &of.step());
                body.push(of.step());
                let do_while = of.looped(None, body, Vec::new(), Some(test));
                match self.random.chance(50) {
                    true => {
                        let guard = compare(Relation::Less, of.ty, of.start.clone(), of.bound.clone());
                        vec![of.begin(), Statement::If(guard, vec![do_while], Vec::new())]
                    }
                    false => vec![of.begin(), do_while],
                }
            }
            60..80 => self.left_inside(of),
            // while (i < n) { …; i++ }, the step somewhere inside
            80..94 => {
                let test = self.joined(of.test(of.relation), of.own());
                let mut body = self.body(of.label, of.own());
                self.step_before_next(&mut body, of.label, &of.step());
                match self.random.chance(70) {
                    true => body.push(of.step()),
                    false => {
                        let at = self.random.below(body.len() as u64 + 1) as usize;
                        body.insert(at, of.step());
                    }
                }
                if self.random.chance(15) {
                    let condition = self.flag(of.counter);
                    body.push(Statement::If(condition, vec![of.up(of.one())], Vec::new()));
                }
                vec![of.begin(), of.looped(Some(test), body, Vec::new(), None)]
            }
            // for (i = 0, j = n; i < j; i++, j--)
            _ => {
                let other = self.new_local(Local::Number(of.ty));
                let (counter, end) = (Expr::Variable(of.counter), Expr::Variable(other));
                let back = binary(Arithmetic::Sub, of.ty, end.clone(), of.one());
                let test = compare(Relation::Less, of.ty, counter, end);
                let body = self.body(of.label, Some((other, of.ty)));
                let steps = vec![of.up(of.one()), Statement::Assign(other, back)];
                vec![
                    of.begin(),
                    Statement::Assign(other, of.bound.clone()),
                    of.looped(Some(test), body, steps, None),
                ]
            }
        }
    }

    /// `for (i = n; i > 0; i--)`, `for (i = n - 1; i >= 0; i--)`
    fn counted_down(&mut self, of: Counting) -> Vec<Statement> {
        let at_end = of.ty.is_signed() && self.random.chance(50);
        let (relation, start) = match at_end {
            true => (
                Relation::GreaterEqual,
                binary(Arithmetic::Sub, of.ty, of.bound.clone(), of.one()),
            ),
            false => (
                *self.random.choose(&[Relation::Greater, Relation::NotEqual]),
                of.bound.clone(),
            ),
        };
        let variable = || Expr::Variable(of.counter);
        let test = compare(relation, of.ty, variable(), number(of.ty, 0));
        let test = self.joined(test, of.own());
        let body = self.body(of.label, of.own());
        let less = binary(Arithmetic::Sub, of.ty, variable(), of.step.clone());
        let step = vec![Statement::Assign(of.counter, less)];
        vec![
            Statement::Assign(of.counter, start),
            of.looped(Some(test), body, step, None),
        ]
    }

    /// `for (;;) { …; if (i >= n) break; …; i++ }`, the test anywhere
    fn left_inside(&mut self, of: Counting) -> Vec<Statement> {
        let mut body = self.body(of.label, of.own());
        let mut test = of.test(Relation::GreaterEqual);
        if self.random.chance(25) {
            let flag = self.flag(of.counter);
            test = match self.random.chance(50) {
                true => Condition::And(Box::new(test), Box::new(flag)),
                false => Condition::Or(Box::new(test), Box::new(flag)),
            };
        }
        let leave = Statement::If(test, vec![Statement::Leave(of.label)], Vec::new());
        let at = match self.is_together() {
            // What stands between barriers belongs together.
            true => self.random.below(2) as usize * body.len(),
            false => self.random.below(body.len() as u64 + 1) as usize,
        };
        body.insert(at, leave);
        match self.random.chance(60) {
            true => vec![of.begin(), of.looped(None, body, vec![of.step()], None)],
            false => {
                self.step_before_next(&mut body, of.label, &of.step());
                body.push(of.step());
                vec![of.begin(), of.looped(None, body, Vec::new(), None)]
            }
        }
    }

    /// The test of a loop, joined with another one here and there: `i < n && m[i]`, `i < n || m[i]`.
    fn joined(&mut self, test: Condition, counter: Option<(usize, Scalar)>) -> Condition {
        if self.is_together() || !self.random.chance(35) {
            return test;
        }
        let before = self.counters.len();
        self.counters.extend(counter);
        let other = match (counter, self.random.chance(70)) {
            (Some((counter, _)), true) => self.flag(counter),
            _ => self.condition(1),
        };
        self.counters.truncate(before);
        let (mut one, mut two) = (Box::new(test), Box::new(other));
        if self.random.chance(20) {
            std::mem::swap(&mut one, &mut two);
        }
        match self.random.chance(50) {
            true => Condition::And(one, two),
            false => Condition::Or(one, two),
        }
    }

    /// `m[i] != 0`
    fn flag(&mut self, counter: usize) -> Condition {
        let index = Box::new(Expr::Variable(counter));
        let flag = Expr::Load(Pointer::Array(array::FLAGS), index, Access::Plain);
        compare(Relation::NotEqual, Scalar::I32, flag, number(Scalar::I32, 0))
    }

    /// Writes the step in front of every `continue` of the loop.
    fn step_before_next(&mut self, body: &mut Vec<Statement>, label: u32, step: &Statement) {
        let mut at = 0;
        while at < body.len() {
            match &mut body[at] {
                Statement::Next(other) if *other == label => {
                    body.insert(at, step.clone());
                    at += 1;
                }
                Statement::If(_, then, otherwise) => {
                    self.step_before_next(then, label, step);
                    self.step_before_next(otherwise, label, step);
                }
                Statement::Loop(inner) => self.step_before_next(&mut inner.body, label, step),
                Statement::Block(_, inner) => self.step_before_next(inner, label, step),
                Statement::Switch(switch) => {
                    let bodies = switch.cases.iter_mut();
                    bodies.for_each(|(_, inner)| self.step_before_next(inner, label, step));
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Loops whose pointer walks: to an end, or a number of times.
    fn pointer_loop(&mut self) -> Vec<Statement> {
        let label = self.label();
        let pointer = self.new_local(Local::Pointer(Scalar::I32, array::NUMBERS));
        let from = *self
            .random
            .choose(&[array::NUMBERS, array::NUMBERS, array::FLAGS]);
        let first = Box::new(Pointer::Array(from));
        let bound = Expr::Parameter(scalar::BOUND);
        let ty = self.scalars[scalar::BOUND].ty;
        let walk = |by: i64, after: bool| {
            let zero = Box::new(number(Scalar::I32, 0));
            Expr::Load(Pointer::Step(pointer, by, after), zero, Access::Plain)
        };
        let start = match self.random.chance(70) {
            true => Pointer::Array(from),
            false => {
                let by = number(Scalar::I32, self.random.below(4) as i64);
                Pointer::Moved(first.clone(), Box::new(by))
            }
        };
        let take = |value: Expr| {
            let value = Expr::Cast(Scalar::U32, Box::new(value));
            let old = Expr::Variable(local::SUM);
            let scaled = binary(Arithmetic::Mul, Scalar::U32, old, number(Scalar::U32, 31));
            Statement::Assign(local::SUM, binary(Arithmetic::Add, Scalar::U32, scaled, value))
        };
        let here = || {
            let zero = Box::new(number(Scalar::I32, 0));
            Expr::Load(Pointer::Variable(pointer), zero, Access::Plain)
        };
        let begin = Statement::Point(pointer, start);
        let looped = |before, body, step| {
            Statement::Loop(Loop {
                label,
                before: Some(before),
                body,
                step,
                after: None,
            })
        };
        match self.random.below(4) {
            // for (p = a; p < a + n; p++), for (…; p != a + n; p += 2)
            0 | 1 => {
                let end = Pointer::Moved(first, Box::new(bound));
                let relation = *self.random.choose(&[Relation::Less, Relation::NotEqual]);
                let mut test = Condition::Pointers(relation, Pointer::Variable(pointer), end);
                if !self.is_together() && self.random.chance(30) {
                    let flag = compare(Relation::NotEqual, Scalar::I32, here(), number(Scalar::I32, 0));
                    test = match self.random.chance(70) {
                        true => Condition::And(Box::new(test), Box::new(flag)),
                        false => Condition::Or(Box::new(test), Box::new(flag)),
                    };
                }
                let by = *self.random.choose(&[1, 1, 2, 3]);
                let step = Pointer::Moved(
                    Box::new(Pointer::Variable(pointer)),
                    Box::new(number(Scalar::I32, by)),
                );
                let mut body = vec![take(here())];
                body.extend(self.body(label, None));
                vec![begin, looped(test, body, vec![Statement::Point(pointer, step)])]
            }
            // while (n--) s = s * 31 + *p++;
            2 => {
                let counter = self.new_local(Local::Number(ty));
                let test = compare(
                    Relation::NotEqual,
                    ty,
                    Expr::Step(counter, false, false),
                    number(ty, 0),
                );
                let by = *self.random.choose(&[1, 1, 2]);
                let mut body = vec![take(walk(by, false))];
                body.extend(self.body(label, Some((counter, ty))));
                vec![
                    begin,
                    Statement::Assign(counter, bound),
                    looped(test, body, Vec::new()),
                ]
            }
            // for (i = n; i > 0; i--) s = s * 31 + *--p;  from the end, or p += step
            _ => {
                let counter = self.new_local(Local::Number(ty));
                let begin = match self.random.chance(50) {
                    true => Statement::Point(
                        pointer,
                        Pointer::Moved(first, Box::new(number(Scalar::I32, LENGTH as i64))),
                    ),
                    false => begin,
                };
                let back = matches!(&begin, Statement::Point(_, Pointer::Moved(_, by)) if **by == number(Scalar::I32, LENGTH as i64));
                let test = compare(Relation::Less, ty, Expr::Variable(counter), bound);
                let mut body = match back {
                    true => vec![take(walk(-1, true))],
                    false => {
                        let by = Expr::Parameter(scalar::SMALL);
                        let step = Pointer::Moved(Box::new(Pointer::Variable(pointer)), Box::new(by));
                        vec![take(here()), Statement::Point(pointer, step)]
                    }
                };
                body.extend(self.body(label, Some((counter, ty))));
                let next = binary(Arithmetic::Add, ty, Expr::Variable(counter), number(ty, 1));
                vec![
                    begin,
                    Statement::Assign(counter, number(ty, 0)),
                    looped(test, body, vec![Statement::Assign(counter, next)]),
                ]
            }
        }
    }

    /// `for (i = n; i != 0; i >>= 1)`, `for (i = 1; i < n; i <<= 1)`
    fn halving(&mut self) -> Vec<Statement> {
        let label = self.label();
        let ty = Scalar::U32;
        let counter = self.new_local(Local::Number(ty));
        let bound = Expr::Parameter(scalar::BOUND);
        let bound = self.masked(bound, LENGTH - 1);
        let variable = || Expr::Variable(counter);
        let halves = self.random.chance(50);
        let (start, test, op) = match halves {
            true => (
                bound,
                compare(Relation::NotEqual, ty, variable(), number(ty, 0)),
                Arithmetic::Shr,
            ),
            false => (
                number(ty, 1),
                compare(Relation::Less, ty, variable(), bound),
                Arithmetic::Shl,
            ),
        };
        let test = self.joined(test, Some((counter, ty)));
        let body = self.body(label, Some((counter, ty)));
        let step = Statement::Assign(counter, binary(op, ty, variable(), number(ty, 1)));
        vec![
            Statement::Assign(counter, start),
            Statement::Loop(Loop {
                label,
                before: Some(test),
                body,
                step: vec![step],
                after: None,
            }),
        ]
    }
}
