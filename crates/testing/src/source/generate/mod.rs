//! Random programs: their parameters, and what all their parts are made with.
//!
//! Nothing here proves that a program is defined for a launch: the interpreter says so. Most are, because indices are
//! counters below bounds of loops, masked numbers, or elements of an array of indices.

use super::tree::{
    Arithmetic, ArrayParameter, Condition, Content, Declared, Expr, Local, Pointer, Program, Relation, Role,
    Scalar, ScalarParameter, Statement,
};
use crate::Random;
use waiting::Fences;

mod addresses;
mod conditions;
mod loops;
mod statements;
mod waiting;
mod warp;

/// Elements of the arrays that all work-items read.
pub(super) const LENGTH: u64 = 64;
/// Elements of a work-item's row in the arrays that are written.
pub(super) const ROW: u64 = 16;

/// The arrays, by number.
pub(super) mod array {
    pub(crate) const NUMBERS: usize = 0;
    pub(crate) const INDICES: usize = 1;
    pub(crate) const FLAGS: usize = 2;
    pub(crate) const BYTES: usize = 3;
    pub(crate) const WIDE: usize = 4;
    pub(crate) const FLOATS: usize = 5;
    pub(crate) const SHORTS: usize = 6;
    pub(crate) const SPUN: usize = 7;
    pub(crate) const ROWS: usize = 8;
    pub(crate) const OTHER_ROWS: usize = 9;
    pub(crate) const OUT: usize = 10;
    pub(crate) const OUT_FLOATS: usize = 11;
    pub(crate) const SIGNALS: usize = 12;
}

/// The scalars, by number.
pub(super) mod scalar {
    pub(crate) const BOUND: usize = 0;
    pub(crate) const OTHER_BOUND: usize = 1;
    pub(crate) const START: usize = 2;
    pub(crate) const STEP: usize = 3;
    pub(crate) const SMALL: usize = 4;
    pub(crate) const ANY: usize = 5;
    pub(crate) const FLAG: usize = 6;
}

/// The locals that every program has, by number.
pub(super) mod local {
    pub(crate) const SUM: usize = 0;
    pub(crate) const OTHER_SUM: usize = 1;
    pub(crate) const FLOAT: usize = 2;
    pub(crate) const AT: usize = 3;
    pub(crate) const OTHER_AT: usize = 4;
    pub(crate) const DONE: usize = 5;
    pub(crate) const POINTER: usize = 6;
}

/// Who is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Here {
    /// All of the work-group.
    Group,
    /// Those of the warp that the mask in this variable names.
    Party(usize),
    /// Not known.
    Anyone,
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
    pub here: Here,
    /// Work-groups wait for each other: none may return.
    pub waits: bool,
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
    let waits = !exchanges && Random::new(seed ^ 0x7a17).chance(8);
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
    let (groups, group) = match (exchanges, waits) {
        (true, _) => (1, *random.choose(&[32, 32, 64])),
        (_, true) => (random.between(2, 4) as u32, *random.choose(&[1, 2, 4, 8, 32])),
        _ => (random.between(1, 2) as u32, *random.choose(&[2, 4, 8])),
    };
    let items = u64::from(groups * group);
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
        here: if exchanges { Here::Group } else { Here::Anyone },
        waits,
        exchanges,
        partial: false,
        scalars: scalars.clone(),
    };
    let mut body = Vec::new();
    let fences = match generator.waits && generator.random.chance(25) {
        false => Fences::Beside,
        true if generator.random.chance(50) => Fences::Apart,
        true => Fences::Nowhere,
    };
    if waits {
        body.extend(generator.waiting(groups, group, fences));
    } else {
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
    }
    body.extend(outputs());
    Program {
        seed,
        arrays: arrays(items),
        scalars,
        locals: generator.locals,
        body,
        groups,
        group,
        partial: exchanges && generator.partial,
        waits,
        unordered: fences != Fences::Beside,
        aside: None,
    }
}

fn arrays(items: u64) -> Vec<ArrayParameter> {
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
    vec![
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
        ArrayParameter {
            written: true,
            volatile: true,
            length: items,
            ..input("g", Scalar::I32, Content::Zeros)
        },
    ]
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
    pub(crate) fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// All of some are here, so that none may leave the others behind.
    pub(crate) fn is_together(&self) -> bool {
        self.here != Here::Anyone
    }

    pub(crate) fn new_local(&mut self, local: Local) -> usize {
        self.locals.push(local);
        self.locals.len() - 1
    }

    pub(crate) fn type_of(&self, expr: &Expr) -> Scalar {
        let declared = Declared {
            locals: &self.locals,
            scalars: &self.scalars,
            element: &|array| ELEMENTS[array],
        };
        declared.type_of(expr)
    }

    /// The number in another type.
    pub(crate) fn cast(&self, to: Scalar, expr: Expr) -> Expr {
        match self.type_of(&expr) == to {
            true => expr,
            false => Expr::Cast(to, Box::new(expr)),
        }
    }

    /// `n & mask`, as a `U32`.
    pub(crate) fn masked(&self, expr: Expr, mask: u64) -> Expr {
        let expr = self.cast(Scalar::U32, expr);
        binary(
            Arithmetic::And,
            Scalar::U32,
            expr,
            number(Scalar::U32, mask as i64),
        )
    }
}

/// What the arrays hold, by number.
const ELEMENTS: [Scalar; 13] = [
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
    Scalar::I32,
];
