//! Work-groups that wait for each other: one writes, raises a flag that is volatile, and another that has waited for the
//! flag reads. All of them are resident at once.
//!
//! ```c
//! while (g[…] < i + 1) ;                         // volatile
//! __threadfence();                               // most write it, some rely on the order without
//! s = s * 31 + w[…];                             // plain
//! ```

use super::{Generator, ROW, array, binary, compare, local, number, scalar};
use crate::source::tree::{
    Access, Arithmetic, Condition, Expr, Local, Loop, Pointer, Relation, Scalar, Statement,
};

/// How flags are raised and waited for.
#[derive(Clone, Copy)]
struct Signals {
    /// Work-items of a work-group.
    group: u32,
    /// Each work-item has a flag; else the first of a work-group has one for all.
    each: bool,
    fences: Fences,
}

/// Where fences stand.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Fences {
    /// The fences that the memory model requires beside each access to a flag, by the same work-item.
    Beside,
    /// Apart from it by a barrier, where one work-item has the flag for all: a race by the letter.
    Apart,
    /// Nowhere.
    Nowhere,
}

impl Generator {
    /// Chains, rings, or one that produces for the others; with other work around.
    pub(super) fn waiting(&mut self, groups: u32, group: u32, fences: Fences) -> Vec<Statement> {
        let signals = Signals {
            group,
            each: self.random.chance(50),
            fences,
        };
        let mut body = Vec::new();
        if self.random.chance(40) {
            body.extend(self.loop_statement());
        }
        body.extend(match self.random.below(3) {
            0 => self.chain(signals),
            1 => self.producer(signals),
            _ => self.ring(signals, groups),
        });
        if self.random.chance(40) {
            body.extend(self.loop_statement());
        }
        body
    }

    /// Each work-group goes on from what the one before has left, and leaves something for the next.
    fn chain(&mut self, signals: Signals) -> Vec<Statement> {
        let before = binary(
            Arithmetic::Sub,
            Scalar::U32,
            Expr::Item,
            number(Scalar::U32, i64::from(signals.group)),
        );
        let mut receive = self.wait(signals, before.clone(), number(Scalar::I32, 1));
        receive.extend(self.rounds(ROW - 1, |generator, counter| {
            let mut body = vec![take_over(before.clone(), counter.clone())];
            body.extend(generator.statements(2));
            body
        }));
        let first = compare(
            Relation::Greater,
            Scalar::U32,
            Expr::Group,
            number(Scalar::U32, 0),
        );
        let mut statements = vec![Statement::If(first, receive, Vec::new())];
        statements.extend(self.rounds(ROW - 1, |generator, counter| {
            let mut body = generator.accumulate();
            body.push(leave(counter));
            body
        }));
        statements.extend(signal(signals, number(Scalar::I32, 1)));
        statements
    }

    /// The first work-group writes an element a round, the others read it.
    fn producer(&mut self, signals: Signals) -> Vec<Statement> {
        let group = number(Scalar::U32, i64::from(signals.group));
        let theirs = binary(Arithmetic::Rem, Scalar::U32, Expr::Item, group);
        self.rounds(ROW - 1, |generator, counter| {
            let round = generator.cast(Scalar::I32, counter.clone());
            let round = binary(Arithmetic::Add, Scalar::I32, round, number(Scalar::I32, 1));
            let mut produce = generator.accumulate();
            produce.push(leave(counter.clone()));
            produce.extend(signal(signals, round.clone()));
            let mut consume = generator.wait(signals, theirs.clone(), round);
            consume.push(take_over(theirs.clone(), counter));
            consume.extend(generator.statements(2));
            let first = compare(Relation::Equal, Scalar::U32, Expr::Group, number(Scalar::U32, 0));
            vec![Statement::If(first, produce, consume)]
        })
    }

    /// Something goes round: each work-group waits for the one before, the first for the last one's round before.
    fn ring(&mut self, signals: Signals, groups: u32) -> Vec<Statement> {
        let group = i64::from(signals.group);
        let first = || compare(Relation::Equal, Scalar::U32, Expr::Group, number(Scalar::U32, 0));
        let moved = |by: i64| binary(Arithmetic::Add, Scalar::U32, Expr::Item, number(Scalar::U32, by));
        let before = Expr::Choose(
            Box::new(first()),
            Box::new(moved(group * i64::from(groups - 1))),
            Box::new(moved(-group)),
        );
        let slot = number(Scalar::U32, self.random.below(ROW / 2) as i64);
        self.rounds(ROW - 1, |generator, counter| {
            let round = generator.cast(Scalar::I32, counter);
            let next = binary(
                Arithmetic::Add,
                Scalar::I32,
                round.clone(),
                number(Scalar::I32, 1),
            );
            let awaited = Expr::Choose(Box::new(first()), Box::new(round), Box::new(next.clone()));
            let mut body = match generator.random.chance(50) {
                true => generator.statements(1),
                false => Vec::new(),
            };
            body.extend(generator.wait(signals, before.clone(), awaited));
            body.push(take_over(before.clone(), slot.clone()));
            body.extend(generator.accumulate());
            body.push(leave(slot.clone()));
            body.extend(signal(signals, next));
            body
        })
    }

    /// `for (i = 0; i < (n & most); i++)`, the same for all work-items.
    fn rounds(&mut self, most: u64, body: impl FnOnce(&mut Self, Expr) -> Vec<Statement>) -> Vec<Statement> {
        let (label, ty) = (self.label(), Scalar::U32);
        let counter = self.new_local(Local::Number(ty));
        let bound = self.masked(Expr::Parameter(scalar::BOUND), most);
        self.counters.push((counter, ty));
        self.depth += 1;
        let loops = std::mem::take(&mut self.loops);
        let body = body(self, Expr::Variable(counter));
        self.loops = loops;
        self.depth -= 1;
        self.counters.pop();
        let next = binary(Arithmetic::Add, ty, Expr::Variable(counter), number(ty, 1));
        vec![
            Statement::Assign(counter, number(ty, 0)),
            Statement::Loop(Loop {
                label,
                before: Some(compare(Relation::Less, ty, Expr::Variable(counter), bound)),
                body,
                step: vec![Statement::Assign(counter, next)],
                after: None,
            }),
        ]
    }

    /// Waits until the flag of a work-item, or of its work-group, has reached a number.
    fn wait(&mut self, signals: Signals, item: Expr, number_awaited: Expr) -> Vec<Statement> {
        let label = self.label();
        let flag = Expr::Load(
            Pointer::Array(array::SIGNALS),
            Box::new(flag_of(signals, item)),
            Access::Volatile,
        );
        let missing = compare(Relation::Less, Scalar::I32, flag, number_awaited);
        let looped = match self.random.below(3) {
            0 => (None, Some(missing)),
            _ => (Some(missing), None),
        };
        let wait = Statement::Wait(Loop {
            label,
            before: looped.0,
            body: Vec::new(),
            step: Vec::new(),
            after: looped.1,
        });
        let all = signals.each || self.random.chance(50);
        let fence = || vec![Statement::Fence];
        let (beside, after) = match signals.fences {
            Fences::Beside => (fence(), Vec::new()),
            Fences::Apart => (Vec::new(), fence()),
            Fences::Nowhere => (Vec::new(), Vec::new()),
        };
        let wait = [vec![wait], beside].concat();
        let wait = match all {
            true => wait,
            // One for all.
            false => vec![
                Statement::If(is_first(signals), wait, Vec::new()),
                Statement::Barrier,
            ],
        };
        [wait, after].concat()
    }
}

/// Raises the flag, after what was written.
fn signal(signals: Signals, to: Expr) -> Vec<Statement> {
    let flag = flag_of(signals, Expr::Item);
    let raise = Statement::Store(Pointer::Array(array::SIGNALS), flag, to);
    let fenced = match signals.fences {
        Fences::Beside => vec![Statement::Fence, raise.clone()],
        Fences::Apart | Fences::Nowhere => vec![raise.clone()],
    };
    let raised = match signals.each {
        true => fenced,
        false => vec![
            Statement::Barrier,
            Statement::If(is_first(signals), fenced, Vec::new()),
        ],
    };
    match signals.fences {
        Fences::Apart => [vec![Statement::Fence], raised].concat(),
        Fences::Beside | Fences::Nowhere => raised,
    }
}

/// Whether it is the first of its work-group.
fn is_first(signals: Signals) -> Condition {
    let group = number(Scalar::U32, i64::from(signals.group));
    let local = binary(Arithmetic::Rem, Scalar::U32, Expr::Item, group);
    compare(Relation::Equal, Scalar::U32, local, number(Scalar::U32, 0))
}

/// The number of the flag of a work-item, or of the first of its work-group.
fn flag_of(signals: Signals, item: Expr) -> Expr {
    let group = number(Scalar::U32, i64::from(signals.group));
    match signals.each {
        true => item,
        false => binary(Arithmetic::Div, Scalar::U32, item, group),
    }
}

fn element(item: Expr, at: Expr) -> Expr {
    let row = binary(
        Arithmetic::Mul,
        Scalar::U32,
        item,
        number(Scalar::U32, ROW as i64),
    );
    binary(Arithmetic::Add, Scalar::U32, row, at)
}

/// `s = s * 31 + w[…]` of another work-item's row.
fn take_over(item: Expr, at: Expr) -> Statement {
    let index = Box::new(element(item, at));
    let theirs = Expr::Load(Pointer::Array(array::ROWS), index, Access::Plain);
    let theirs = Expr::Cast(Scalar::U32, Box::new(theirs));
    let old = Expr::Variable(local::SUM);
    let scaled = binary(Arithmetic::Mul, Scalar::U32, old, number(Scalar::U32, 31));
    Statement::Assign(local::SUM, binary(Arithmetic::Add, Scalar::U32, scaled, theirs))
}

/// `w[…] = s` in the own row.
fn leave(at: Expr) -> Statement {
    let value = Expr::Cast(Scalar::I32, Box::new(Expr::Variable(local::SUM)));
    Statement::Store(Pointer::Array(array::ROWS), element(Expr::Item, at), value)
}
