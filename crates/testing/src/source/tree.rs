//! The syntax tree of a program: the C that people write in kernels, and no more of it.
//!
//! Every expression has a type, and every operation states the type in which it computes, so that C's promotions need no rules
//! here: the printer writes a cast wherever C would promote. Side effects (`i++`, `*p++`) stand where C orders them: nothing
//! else in the same expression mentions their variables.

use crate::ir::Type;

/// A number's type in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// `signed char`
    I8,
    /// `unsigned char`
    U8,
    /// `short`
    I16,
    /// `unsigned short`
    U16,
    /// `int`
    I32,
    /// `unsigned`
    U32,
    /// `long long`
    I64,
    /// `unsigned long long`
    U64,
    /// `float`
    F32,
}

impl Scalar {
    /// Its type in the IR, which has no signs.
    pub(crate) fn ir(self) -> Type {
        match self {
            Scalar::I8 | Scalar::U8 => Type::I8,
            Scalar::I16 | Scalar::U16 => Type::I16,
            Scalar::I32 | Scalar::U32 => Type::I32,
            Scalar::I64 | Scalar::U64 => Type::I64,
            Scalar::F32 => Type::F32,
        }
    }

    /// Whether it has a sign.
    pub(crate) fn is_signed(self) -> bool {
        matches!(
            self,
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 | Scalar::F32
        )
    }

    /// Whether C computes in a wider type and converts back.
    pub(crate) fn is_narrow(self) -> bool {
        self.ir().bits() < 32
    }

    /// A number in the type's bits.
    pub(crate) fn bits_of(self, number: i64) -> u64 {
        match self {
            Scalar::F32 => u64::from((number as f32).to_bits()),
            _ => number as u64 & self.ir().mask(),
        }
    }

    /// The number that an integer's bits stand for.
    pub(crate) fn number(self, bits: u64) -> i128 {
        let width = self.ir().bits();
        match self.is_signed() && bits >> (width - 1) & 1 == 1 {
            true => i128::from(bits) - (1i128 << width),
            false => i128::from(bits),
        }
    }
}

/// Arithmetic on two numbers of one type. Signed arithmetic of 32 and 64 bits must not overflow, no divisor is zero, no
/// shift reaches the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`, integers
    Div,
    /// `%`
    Rem,
    /// `&`
    And,
    /// `|`
    Or,
    /// `^`
    Xor,
    /// `<<`, unsigned
    Shl,
    /// `>>`
    Shr,
}

/// A comparison of two numbers of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

/// How memory is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `p[i]`
    Plain,
    /// `__ldg(&p[i])`: nothing writes this element while the kernel runs.
    Constant,
    /// `p[i]` of a volatile pointer.
    Volatile,
}

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal: type and bits.
    Number(Scalar, u64),
    /// A local variable.
    Variable(usize),
    /// A scalar parameter, by number among the scalars.
    Parameter(usize),
    /// The work-item's number in the launch, a `U32`.
    Item,
    /// The work-group's number, a `U32`.
    Group,
    /// Of two numbers of the type.
    Binary(Arithmetic, Scalar, Box<Expr>, Box<Expr>),
    /// To another type; between integers, or from an integer to a float.
    Cast(Scalar, Box<Expr>),
    /// `c ? a : b`; only the chosen side is evaluated.
    Choose(Box<Condition>, Box<Expr>, Box<Expr>),
    /// `p[i]`
    Load(Pointer, Box<Expr>, Access),
    /// `i++`, `++i`, `i--`, `--i`; true if the value is the one after.
    Step(usize, bool, bool),
}

/// A truth.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Of two numbers of the type.
    Compare(Relation, Scalar, Box<Expr>, Box<Expr>),
    /// Of two pointers into one array.
    Pointers(Relation, Pointer, Pointer),
    /// `!a`
    Not(Box<Condition>),
    /// `a && b`
    And(Box<Condition>, Box<Condition>),
    /// `a || b`
    Or(Box<Condition>, Box<Condition>),
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Pointer {
    /// The first element of an array parameter.
    Array(usize),
    /// A local variable.
    Variable(usize),
    /// `p + i`
    Moved(Box<Pointer>, Box<Expr>),
    /// `c ? p : q`
    Choose(Box<Condition>, Box<Pointer>, Box<Pointer>),
    /// `p + (q - p)` in bytes, which is `q`.
    Across(Box<Pointer>, Box<Pointer>),
    /// `p++` and the like, by this many elements; true if the value is the one after.
    Step(usize, i64, bool),
}

/// What is passed on inside a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// `__shfl_sync`
    Index,
    /// `__shfl_up_sync`
    Up,
    /// `__shfl_down_sync`
    Down,
    /// `__shfl_xor_sync`
    Xor,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `v = e`
    Assign(usize, Expr),
    /// `p = q`
    Point(usize, Pointer),
    /// `p[i] = e`; volatile if the array is.
    Store(Pointer, Expr, Expr),
    /// `if`
    If(Condition, Vec<Statement>, Vec<Statement>),
    /// `for`, `while`, `do`.
    Loop(Loop),
    /// `switch`
    Switch(Switch),
    /// Statements that can be left: what stays of a function with several returns, once it is inlined.
    Block(u32, Vec<Statement>),
    /// Leaves a loop, switch or block: `break`, or a `goto` behind it.
    Leave(u32),
    /// The next iteration of a loop: `continue`, or a `goto` to its end.
    Next(u32),
    /// `return`
    Return,
    /// `__syncthreads()`
    Barrier,
    /// A loop that waits for what another work-group does.
    Wait(Loop),
    /// `__threadfence()`
    Fence,
    /// A value of another work-item of the warp, by a number below 32, among those that a mask in a variable names; among
    /// all of the warp if there is none. All of them are here.
    Shuffle(usize, Exchange, Expr, Expr, Option<usize>),
    /// `__ballot_sync`, of those that a mask names.
    Ballot(usize, Condition, Option<usize>),
    /// `__syncwarp`, of those that a mask names.
    Meet(usize),
    /// A block of CUDA C that changes no variable and no array of the program: nothing but a compiler of CUDA C sees it.
    Aside(String),
}

/// A loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Loop {
    /// What leaves and continues it.
    pub label: u32,
    /// Tested before an iteration.
    pub before: Option<Condition>,
    /// What each iteration does.
    pub body: Vec<Statement>,
    /// The step at the end of each iteration, after a `continue`, too. None if a test comes after.
    pub step: Vec<Statement>,
    /// Tested after an iteration.
    pub after: Option<Condition>,
}

/// A `switch`.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// What leaves it.
    pub label: u32,
    /// A `U32`.
    pub on: Expr,
    /// Its cases in order; each falls through to the next. None is `default`.
    pub cases: Vec<(Option<u32>, Vec<Statement>)>,
}

/// What an array parameter holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Any bits.
    Any,
    /// Numbers below this.
    Below(u64),
    /// Zeros and ones.
    Flags,
    /// Small whole numbers as floats.
    Floats,
    /// Floats of all widths and integers that are unusual, several in an element.
    Special,
    /// Zeros.
    Zeros,
}

/// An array parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayParameter {
    /// Its name.
    pub name: &'static str,
    /// Its elements.
    pub element: Scalar,
    /// How many.
    pub length: u64,
    /// The kernel may write it.
    pub written: bool,
    /// Every access is volatile.
    pub volatile: bool,
    /// What it holds at first.
    pub content: Content,
}

/// What a scalar parameter is for: which values are worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A bound of loops.
    Bound,
    /// Where loops start.
    Start,
    /// By how much they go.
    Step,
    /// A small positive number.
    Small,
    /// Anything.
    Any,
}

/// A scalar parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarParameter {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub ty: Scalar,
    /// What it is for.
    pub role: Role,
}

/// A local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// A number, 0 at first.
    Number(Scalar),
    /// A pointer to elements of this type: to this array at first.
    Pointer(Scalar, usize),
}

/// A kernel, as it is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Where it comes from.
    pub seed: u64,
    /// Its array parameters, which come first.
    pub arrays: Vec<ArrayParameter>,
    /// Its scalar parameters.
    pub scalars: Vec<ScalarParameter>,
    /// Its local variables.
    pub locals: Vec<Local>,
    /// What each work-item does.
    pub body: Vec<Statement>,
    /// Work-groups.
    pub groups: u32,
    /// Work-items of a work-group.
    pub group: u32,
    /// Some of a work-group return in front of its barriers.
    pub partial: bool,
    /// Work-groups wait for each other.
    pub waits: bool,
    /// No fence separates their wait from the reads after it: correct on a device whose compiler keeps the order, a race by the
    /// memory model.
    pub unordered: bool,
    /// What its asides need.
    pub aside: Option<Aside>,
}

/// What the asides of a program need, and what they are about.
#[derive(Clone, Debug, PartialEq)]
pub struct Aside {
    /// Declarations in front of the body.
    pub declarations: String,
    /// What the asides do.
    pub features: Vec<&'static str>,
}

impl Program {
    /// Its name.
    pub(crate) fn name(&self) -> String {
        format!("k{}", self.seed)
    }

    /// Work-items of a launch.
    pub(crate) fn items(&self) -> u64 {
        u64::from(self.groups) * u64::from(self.group)
    }

    /// The type of a number.
    pub(crate) fn type_of(&self, expr: &Expr) -> Scalar {
        self.declared(|declared| declared.type_of(expr))
    }

    /// Whether accesses through a pointer are volatile.
    pub(crate) fn is_volatile(&self, pointer: &Pointer) -> bool {
        matches!(pointer, Pointer::Array(array) if self.arrays[*array].volatile)
    }

    /// What a pointer points to.
    pub(crate) fn element_of(&self, pointer: &Pointer) -> Scalar {
        self.declared(|declared| declared.element_of(pointer))
    }

    fn declared<R>(&self, ask: impl FnOnce(Declared<'_>) -> R) -> R {
        ask(Declared {
            locals: &self.locals,
            scalars: &self.scalars,
            element: &|array| self.arrays[array].element,
        })
    }
}

/// What an expression's type follows from.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'p> {
    /// Variables.
    pub locals: &'p [Local],
    /// Scalar parameters.
    pub scalars: &'p [ScalarParameter],
    /// What an array's elements are.
    pub element: &'p dyn Fn(usize) -> Scalar,
}

impl Declared<'_> {
    /// The type of a number.
    pub(crate) fn type_of(self, expr: &Expr) -> Scalar {
        match expr {
            Expr::Number(ty, _) | Expr::Binary(_, ty, ..) | Expr::Cast(ty, _) => *ty,
            Expr::Variable(local) | Expr::Step(local, ..) => self.of_local(*local),
            Expr::Parameter(number) => self.scalars[*number].ty,
            Expr::Item | Expr::Group => Scalar::U32,
            Expr::Choose(_, then, _) => self.type_of(then),
            Expr::Load(pointer, ..) => self.element_of(pointer),
        }
    }

    /// What a pointer points to.
    pub(crate) fn element_of(self, pointer: &Pointer) -> Scalar {
        match pointer {
            Pointer::Array(array) => (self.element)(*array),
            Pointer::Variable(local) | Pointer::Step(local, ..) => self.of_local(*local),
            Pointer::Moved(inner, _) | Pointer::Choose(_, inner, _) | Pointer::Across(_, inner) => {
                self.element_of(inner)
            }
        }
    }

    fn of_local(self, local: usize) -> Scalar {
        match self.locals[local] {
            Local::Number(ty) | Local::Pointer(ty, _) => ty,
        }
    }
}
