//! A program as IR: variables and jumps as the recorder of `#[kernel]` has them, which then makes values of them.
//!
//! Where C can be said in several ways in regions, the style says in which: how `&&` and `||` lead on, whether a
//! `continue` repeats the loop's step, whether narrow numbers are computed in their own width, whether signed arithmetic
//! promises not to overflow. All mean the same.

use std::collections::HashMap;

use super::ptx::is_free;
use super::tree::{
    Access, Arithmetic, Condition, Exchange, Expr, Local, Loop, Pointer, Program, Relation, Scalar,
    Statement, Switch,
};
use crate::cleanup;
use crate::error::Result;
use crate::front::lang::record::tree::{Body, Node, TargetId, VariableData, VariableId};
use crate::front::lang::record::{needless, ssa};
use crate::ir::{
    BinaryOp, Builder, CacheUse, CompareOp, ConvertOp, Id, Kernel, LoadData, LoopWishes, NoWrapOp, OpKind,
    Param, Place, PlaceData, PointerFacts, ShuffleOp, Space, Type, UnaryOp, Value, VoteOp, Wrap, verify,
};
use crate::testing::Random;

/// What a launch file says of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its length is known.
    pub length: bool,
    /// Nothing writes it.
    pub read_only: bool,
    /// No other array is the same memory.
    pub unaliased: bool,
}

/// In which of several ways a program is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// A `continue` repeats the step and the test after it.
    pub steps_inside: bool,
    /// Narrow arithmetic in its own width.
    pub narrow: bool,
    /// Signed arithmetic promises not to overflow.
    pub promises: bool,
    /// Right sides of `&&` and `||` without effect are computed in any case.
    pub eager: bool,
    /// Where an `||` ends a loop, its last test jumps back and what follows leaves.
    pub leaves_last: bool,
    /// The kernel is tidied.
    pub tidy: bool,
}

impl Style {
    /// A random one.
    pub fn random(random: &mut Random) -> Style {
        Style {
            steps_inside: random.chance(50),
            narrow: random.chance(50),
            promises: random.chance(40),
            eager: random.chance(40),
            leaves_last: random.chance(60),
            tidy: random.chance(60),
        }
    }
}

/// The program's kernel, verified.
///
/// # Errors
/// The kernel is not well formed, which is our fault.
pub fn translate(program: &Program, known: &[Known], style: Style) -> Result<Kernel> {
    let mut kernel = Kernel::new(program.name());
    let mut declare = |name: &str, ty: Type, facts: Option<PointerFacts>| {
        let value = kernel.value(ty);
        kernel.values[value].name = Some(name.to_owned());
        kernel.params.push(Param {
            name: name.to_owned(),
            value,
            facts,
        });
        value
    };
    let mut arrays = Vec::new();
    for array in &program.arrays {
        arrays.push(declare(array.name, Type::Ptr(Space::Global), None));
    }
    let scalars = program.scalars.iter();
    let scalars: Vec<Value> = scalars
        .map(|scalar| declare(scalar.name, scalar.ty.ir(), None))
        .collect();
    for (number, array) in program.arrays.iter().enumerate() {
        let known = known[number];
        let length = known.length.then(|| kernel.constant(Type::I64, array.length));
        kernel.params[number].facts = Some(PointerFacts {
            element: array.element.ir(),
            align: array.element.ir().bytes(),
            length,
            read_only: known.read_only,
            unaliased: known.unaliased,
        });
    }
    let locals = program
        .locals
        .iter()
        .enumerate()
        .map(|(number, local)| VariableData {
            ty: match local {
                Local::Number(ty) => ty.ir(),
                Local::Pointer(..) => Type::Ptr(Space::Global),
            },
            name: Some(format!("v{number}")),
        });
    let mut translator = Translator {
        program,
        style,
        variables: locals.collect(),
        kernel,
        arrays,
        scalars,
        item: None,
        nodes: Vec::new(),
        targets: 0,
        of_label: HashMap::new(),
        next_of: HashMap::new(),
        lines: 0,
    };
    translator.begin();
    for statement in &program.body {
        translator.statement(statement);
    }
    let Translator {
        mut kernel,
        variables,
        nodes,
        ..
    } = translator;
    ssa::construct(&mut kernel, &variables, Body::new(nodes, 0));
    needless::remove(&mut kernel);
    if style.tidy {
        cleanup::own_exits(&mut kernel);
        cleanup::tidy(&mut kernel);
    }
    verify(&kernel)?;
    Ok(kernel)
}

/// How the next iteration of a loop is reached.
#[derive(Clone)]
enum Next {
    /// By leaving a block in front of the step.
    Behind(TargetId),
    /// By what ends an iteration, written here once more.
    Here(TargetId, Loop),
}

struct Translator<'p> {
    program: &'p Program,
    style: Style,
    kernel: Kernel,
    variables: Vec<VariableData>,
    arrays: Vec<Value>,
    scalars: Vec<Value>,
    item: Option<Value>,
    nodes: Vec<Node>,
    targets: usize,
    of_label: HashMap<u32, TargetId>,
    next_of: HashMap<u32, Next>,
    lines: u32,
}

impl Translator<'_> {
    /// Computes the work-item's number, and gives every variable its first value.
    fn begin(&mut self) {
        let item = self.build(|b| {
            let (group, size, local) = (b.id(Id::Group(0)), b.id(Id::GroupSize(0)), b.id(Id::Local(0)));
            let first = b.mul(group, size);
            b.add(first, local)
        });
        self.item = Some(item);
        for (variable, local) in self.program.locals.iter().enumerate() {
            let value = match local {
                Local::Number(ty) => self.kernel.constant(ty.ir(), 0),
                Local::Pointer(_, array) => self.arrays[*array],
            };
            self.nodes.push(Node::Write { variable, value });
        }
    }

    /// Appends operations.
    fn build<T>(&mut self, write: impl FnOnce(&mut Builder<'_>) -> T) -> T {
        self.build_at(Kernel::NOWHERE, write)
    }

    fn build_at<T>(&mut self, place: Place, write: impl FnOnce(&mut Builder<'_>) -> T) -> T {
        let mut builder = Builder::new(&mut self.kernel, place);
        let result = write(&mut builder);
        let ops = builder.finish().ops;
        self.nodes.extend(ops.into_iter().map(Node::Op));
        result
    }

    fn read(&mut self, variable: VariableId) -> Value {
        let result = self.kernel.value(self.variables[variable].ty);
        self.nodes.push(Node::Read { variable, result });
        result
    }

    fn target(&mut self) -> TargetId {
        self.targets += 1;
        self.targets
    }

    /// What `write` appends, as a body of its own.
    fn body(&mut self, write: impl FnOnce(&mut Self)) -> Body {
        let first_own = self.variables.len();
        let outer = std::mem::take(&mut self.nodes);
        write(self);
        let inner = std::mem::replace(&mut self.nodes, outer);
        Body::new(inner, first_own)
    }

    fn block(&mut self, write: impl FnOnce(&mut Self, TargetId)) {
        let target = self.target();
        let body = self.body(|translator| write(translator, target));
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Block { target, body, place });
    }

    fn branch(&mut self, cond: Value, then: impl FnOnce(&mut Self), otherwise: impl FnOnce(&mut Self)) {
        let (then, otherwise) = (self.body(then), self.body(otherwise));
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::If {
            cond,
            then,
            otherwise,
            place,
        });
    }

    fn leave(&mut self, target: TargetId) {
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Leave { target, place });
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign(variable, value) => {
                let value = self.expr(value);
                self.write(*variable, value);
            }
            Statement::Point(variable, pointer) => {
                let value = self.pointer(pointer);
                self.write(*variable, value);
            }
            Statement::Store(pointer, index, value) => {
                let value = self.expr(value);
                let at = self.address(pointer, index);
                self.build(|b| b.store(at, value));
            }
            Statement::If(condition, then, otherwise) => self.conditional(condition, then, otherwise),
            Statement::Loop(looped) => self.looped(looped),
            Statement::Switch(switch) => self.switch(switch),
            Statement::Block(label, body) => self.block(|translator, target| {
                translator.of_label.insert(*label, target);
                translator.statements(body);
            }),
            Statement::Leave(label) => self.leave(self.of_label[label]),
            Statement::Next(label) => match self.next_of[label].clone() {
                Next::Behind(target) => self.leave(target),
                Next::Here(target, looped) => self.end_iteration(&looped, target),
            },
            Statement::Return => self.nodes.push(Node::Return {
                place: Kernel::NOWHERE,
            }),
            Statement::Barrier => self.build(|b| b.barrier()),
            Statement::Shuffle(to, exchange, value, by) => {
                let value = self.expr(value);
                let op = match exchange {
                    Exchange::Index => ShuffleOp::Index,
                    Exchange::Up => ShuffleOp::Up,
                    Exchange::Down => ShuffleOp::Down,
                    Exchange::Xor => ShuffleOp::Xor,
                };
                let value = self.build(|b| {
                    let by = b.i32(*by as i32);
                    b.shuffle(op, value, by)
                });
                self.write(*to, value);
            }
            Statement::Ballot(to, condition) => {
                let truth = self.truth(condition);
                let value = self.build(|b| b.vote(VoteOp::Ballot, truth));
                self.write(*to, value);
            }
        }
    }

    fn write(&mut self, variable: VariableId, value: Value) {
        self.nodes.push(Node::Write { variable, value });
    }

    fn conditional(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let lazy = matches!(
            condition,
            Condition::And(..) | Condition::Or(..) | Condition::Not(_)
        );
        if !lazy || self.style.eager {
            let cond = self.truth(condition);
            self.branch(cond, |t| t.statements(then), |t| t.statements(otherwise));
            return;
        }
        self.block(|translator, end| {
            translator.block(|translator, no| {
                translator.jump(condition, false, no);
                translator.statements(then);
                translator.leave(end);
            });
            translator.statements(otherwise);
        });
    }

    fn looped(&mut self, looped: &Loop) {
        let target = self.target();
        self.of_label.insert(looped.label, target);
        let body = self.body(|translator| {
            if let Some(condition) = &looped.before {
                translator.jump(condition, false, target);
            }
            if translator.style.steps_inside {
                let next = Next::Here(target, looped.clone());
                translator.next_of.insert(looped.label, next);
                translator.statements(&looped.body);
                translator.end_iteration(looped, target);
            } else {
                translator.block(|translator, next| {
                    translator.next_of.insert(looped.label, Next::Behind(next));
                    translator.statements(&looped.body);
                });
                translator.end_iteration(looped, target);
            }
        });
        self.nodes.push(Node::Loop {
            target,
            body,
            place: Kernel::NOWHERE,
            name: Some(format!("loop{}", looped.label)),
            wishes: LoopWishes::default(),
        });
    }

    fn end_iteration(&mut self, looped: &Loop, target: TargetId) {
        self.statements(&looped.step);
        if let Some(condition) = &looped.after {
            self.jump(condition, false, target);
        }
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Next { target, place });
    }

    /// The case's number decides how far in front of the end the switch is entered: blocks inside each other, each left
    /// to the case behind it.
    fn switch(&mut self, switch: &Switch) {
        let on = self.expr(&switch.on);
        let out = self.target();
        self.of_label.insert(switch.label, out);
        let body =
            self.body(|translator| translator.cases(switch, on, out, switch.cases.len(), &mut Vec::new()));
        let place = Kernel::NOWHERE;
        self.nodes.push(Node::Block {
            target: out,
            body,
            place,
        });
    }

    /// Enters the first `count` cases: the dispatch is inside all of their blocks.
    fn cases(
        &mut self,
        switch: &Switch,
        on: Value,
        out: TargetId,
        count: usize,
        entries: &mut Vec<(Option<u32>, TargetId)>,
    ) {
        let Some(last) = count.checked_sub(1) else {
            let cases = entries.clone();
            for &(case, target) in cases.iter().rev() {
                let Some(value) = case else { continue };
                let equal = self.build(|b| {
                    let value = b.i32(value as i32);
                    b.compare(CompareOp::Eq, on, value)
                });
                self.branch(equal, |translator| translator.leave(target), |_| {});
            }
            let default = cases.iter().find(|(case, _)| case.is_none());
            self.leave(default.map_or(out, |&(_, target)| target));
            return;
        };
        let (case, body) = &switch.cases[last];
        self.block(|translator, target| {
            entries.push((*case, target));
            translator.cases(switch, on, out, last, entries);
        });
        self.statements(body);
    }

    /// Leaves the target where the condition is as `sense` says, and goes on where it is not.
    fn jump(&mut self, condition: &Condition, sense: bool, target: TargetId) {
        match condition {
            Condition::Not(inner) => self.jump(inner, !sense, target),
            Condition::And(_, right) | Condition::Or(_, right) if self.style.eager && is_free(right) => {
                let truth = self.truth(condition);
                self.leave_if(truth, sense, target);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let one = matches!(condition, Condition::Or(..)) == sense;
                if one {
                    self.jump(left, sense, target);
                    self.jump(right, sense, target);
                } else if self.style.leaves_last && !matches!(**left, Condition::And(..) | Condition::Or(..))
                {
                    self.block(|translator, skip| {
                        let left = translator.truth(left);
                        let go_on = |_: &mut Self| {};
                        let test = |translator: &mut Self| {
                            translator.jump(right, !sense, skip);
                            translator.leave(target);
                        };
                        match sense {
                            true => translator.branch(left, test, go_on),
                            false => translator.branch(left, go_on, test),
                        }
                    });
                } else {
                    self.block(|translator, skip| {
                        translator.jump(left, !sense, skip);
                        translator.jump(right, sense, target);
                    });
                }
            }
            _ => {
                let truth = self.truth(condition);
                self.leave_if(truth, sense, target);
            }
        }
    }

    fn leave_if(&mut self, truth: Value, sense: bool, target: TargetId) {
        let leave = |translator: &mut Self| translator.leave(target);
        match sense {
            true => self.branch(truth, leave, |_| {}),
            false => self.branch(truth, |_| {}, leave),
        }
    }

    /// The condition as a `Bool`.
    fn truth(&mut self, condition: &Condition) -> Value {
        match condition {
            Condition::Compare(relation, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.build(|b| compare(b, *relation, *ty, left, right))
            }
            Condition::Pointers(relation, left, right) => {
                let (left, right) = (self.pointer(left), self.pointer(right));
                self.build(|b| compare(b, *relation, Scalar::U64, left, right))
            }
            Condition::Not(inner) => {
                let inner = self.truth(inner);
                self.build(|b| b.unary(UnaryOp::Not, inner))
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let is_and = matches!(condition, Condition::And(..));
                let left = self.truth(left);
                if self.style.eager && is_free(right) {
                    let right = self.truth(right);
                    let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
                    return self.build(|b| b.binary(op, left, right));
                }
                let variable = self.temporary(Type::Bool);
                let decided = self.kernel.constant(Type::Bool, u64::from(!is_and));
                let long = |translator: &mut Self| {
                    let right = translator.truth(right);
                    translator.write(variable, right);
                };
                let short = |translator: &mut Self| translator.write(variable, decided);
                match is_and {
                    true => self.branch(left, long, short),
                    false => self.branch(left, short, long),
                }
                self.read(variable)
            }
        }
    }

    fn temporary(&mut self, ty: Type) -> VariableId {
        self.variables.push(VariableData { ty, name: None });
        self.variables.len() - 1
    }

    fn expr(&mut self, expr: &Expr) -> Value {
        let ty = self.program.type_of(expr);
        match expr {
            Expr::Number(ty, bits) => self.kernel.constant(ty.ir(), *bits),
            Expr::Variable(local) => self.read(*local),
            Expr::Parameter(number) => self.scalars[*number],
            Expr::Item => self.item.unwrap_or_else(|| self.kernel.constant(Type::I32, 0)),
            Expr::Binary(op, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.arithmetic(*op, *ty, left, right)
            }
            Expr::Cast(to, inner) => {
                let from = self.program.type_of(inner);
                let inner = self.expr(inner);
                self.build(|b| cast(b, from, *to, inner))
            }
            Expr::Choose(condition, then, otherwise) => {
                let variable = self.temporary(ty.ir());
                let cond = self.truth(condition);
                let writing = |expr: &Expr| {
                    let expr = expr.clone();
                    move |translator: &mut Self| {
                        let value = translator.expr(&expr);
                        translator.write(variable, value);
                    }
                };
                self.branch(cond, writing(then), writing(otherwise));
                self.read(variable)
            }
            Expr::Load(pointer, index, access) => {
                let name = self.array_name(pointer);
                let at = self.address(pointer, index);
                self.lines += 1;
                let place = self.kernel.places.push(PlaceData {
                    file: "source.c".to_owned(),
                    line: self.lines,
                    column: 1,
                    inlined_at: None,
                });
                let id = self.kernel.loads.push(LoadData {
                    name,
                    place,
                    constant: *access == Access::Constant,
                });
                let cache = match access {
                    Access::Volatile => CacheUse::Volatile,
                    Access::Plain | Access::Constant => CacheUse::Default,
                };
                let kind = OpKind::Load { ptr: at, id, cache };
                self.build_at(place, |b| b.push(kind, &[ty.ir()])[0])
            }
            Expr::Step(local, up, after) => {
                let old = self.read(*local);
                let one = self.kernel.constant(ty.ir(), 1);
                let op = if *up { Arithmetic::Add } else { Arithmetic::Sub };
                let new = self.arithmetic(op, ty, old, one);
                self.write(*local, new);
                if *after { new } else { old }
            }
        }
    }

    fn arithmetic(&mut self, op: Arithmetic, ty: Scalar, left: Value, right: Value) -> Value {
        let promises = self.style.promises && matches!(ty, Scalar::I32 | Scalar::I64);
        // As C has it: in an `int`, and back.
        if ty.is_narrow() && !self.style.narrow {
            return self.build(|b| {
                let (left, right) = (cast(b, ty, Scalar::I32, left), cast(b, ty, Scalar::I32, right));
                let wide = b.binary(operation(op, Scalar::I32), left, right);
                cast(b, Scalar::I32, ty, wide)
            });
        }
        self.build(|b| match op {
            Arithmetic::Add if promises => b.no_wrap(NoWrapOp::Add, Wrap::NotSigned, left, right),
            Arithmetic::Sub if promises => b.no_wrap(NoWrapOp::Sub, Wrap::NotSigned, left, right),
            Arithmetic::Mul if promises => b.no_wrap(NoWrapOp::Mul, Wrap::NotSigned, left, right),
            _ => b.binary(operation(op, ty), left, right),
        })
    }

    /// What plans call the array that a pointer is made from.
    fn array_name(&self, pointer: &Pointer) -> String {
        let array = match pointer {
            Pointer::Array(array) => *array,
            Pointer::Variable(local) | Pointer::Step(local, ..) => match self.program.locals[*local] {
                Local::Pointer(_, array) => array,
                Local::Number(_) => 0,
            },
            Pointer::Moved(inner, _) | Pointer::Choose(_, inner, _) | Pointer::Across(_, inner) => {
                return self.array_name(inner);
            }
        };
        self.program.arrays[array].name.to_owned()
    }

    fn pointer(&mut self, pointer: &Pointer) -> Value {
        let size = self.program.element_of(pointer).ir().bytes();
        match pointer {
            Pointer::Array(array) => self.arrays[*array],
            Pointer::Variable(local) => self.read(*local),
            Pointer::Moved(inner, index) => self.address(inner, index),
            Pointer::Choose(condition, one, other) => {
                let variable = self.temporary(Type::Ptr(Space::Global));
                let cond = self.truth(condition);
                let writing = |pointer: &Pointer| {
                    let pointer = pointer.clone();
                    move |translator: &mut Self| {
                        let value = translator.pointer(&pointer);
                        translator.write(variable, value);
                    }
                };
                self.branch(cond, writing(one), writing(other));
                self.read(variable)
            }
            Pointer::Across(from, to) => {
                let (from, to) = (self.pointer(from), self.pointer(to));
                self.build(|b| {
                    let numbers = [from, to].map(|pointer| b.convert(ConvertOp::Bits, Type::I64, pointer));
                    let difference = b.sub(numbers[1], numbers[0]);
                    b.address(from, difference, 1, 0)
                })
            }
            Pointer::Step(local, by, after) => {
                let old = self.read(*local);
                let bytes = by * i64::from(size);
                let new = self.build(|b| {
                    let zero = b.i64(0);
                    b.address(old, zero, 1, bytes)
                });
                self.write(*local, new);
                if *after { new } else { old }
            }
        }
    }

    fn address(&mut self, pointer: &Pointer, index: &Expr) -> Value {
        let size = self.program.element_of(pointer).ir().bytes();
        let base = self.pointer(pointer);
        let ty = self.program.type_of(index);
        let index = self.expr(index);
        self.build(|b| {
            let wide = if ty.is_signed() { Scalar::I64 } else { Scalar::U64 };
            let index = cast(b, ty, wide, index);
            b.address(base, index, size, 0)
        })
    }
}

fn operation(op: Arithmetic, ty: Scalar) -> BinaryOp {
    let signed = ty.is_signed();
    match (op, ty) {
        (Arithmetic::Add, Scalar::F32) => BinaryOp::FAdd,
        (Arithmetic::Sub, Scalar::F32) => BinaryOp::FSub,
        (Arithmetic::Mul, Scalar::F32) => BinaryOp::FMul,
        (Arithmetic::Add, _) => BinaryOp::Add,
        (Arithmetic::Sub, _) => BinaryOp::Sub,
        (Arithmetic::Mul, _) => BinaryOp::Mul,
        (Arithmetic::Div, _) if signed => BinaryOp::DivS,
        (Arithmetic::Div, _) => BinaryOp::DivU,
        (Arithmetic::Rem, _) if signed => BinaryOp::RemS,
        (Arithmetic::Rem, _) => BinaryOp::RemU,
        (Arithmetic::And, _) => BinaryOp::And,
        (Arithmetic::Or, _) => BinaryOp::Or,
        (Arithmetic::Xor, _) => BinaryOp::Xor,
        (Arithmetic::Shl, _) => BinaryOp::Shl,
        (Arithmetic::Shr, _) if signed => BinaryOp::ShrS,
        (Arithmetic::Shr, _) => BinaryOp::ShrU,
    }
}

fn compare(b: &mut Builder<'_>, relation: Relation, ty: Scalar, left: Value, right: Value) -> Value {
    let (less, less_equal) = match ty {
        Scalar::F32 => (CompareOp::FLt, CompareOp::FLe),
        _ if ty.is_signed() => (CompareOp::LtS, CompareOp::LeS),
        _ => (CompareOp::LtU, CompareOp::LeU),
    };
    let is_float = ty == Scalar::F32;
    match relation {
        Relation::Less => b.compare(less, left, right),
        Relation::LessEqual => b.compare(less_equal, left, right),
        Relation::Greater => b.compare(less, right, left),
        Relation::GreaterEqual => b.compare(less_equal, right, left),
        Relation::Equal => b.compare(if is_float { CompareOp::FEq } else { CompareOp::Eq }, left, right),
        Relation::NotEqual => b.compare(if is_float { CompareOp::FNe } else { CompareOp::Ne }, left, right),
    }
}

fn cast(b: &mut Builder<'_>, from: Scalar, to: Scalar, value: Value) -> Value {
    let (from_bits, to_bits) = (from.ir().bits(), to.ir().bits());
    if to == Scalar::F32 && from != Scalar::F32 {
        let op = match from.is_signed() {
            true => ConvertOp::SignedToFloat,
            false => ConvertOp::UnsignedToFloat,
        };
        return b.convert(op, Type::F32, value);
    }
    let op = match (from_bits < to_bits, from.is_signed()) {
        _ if from_bits == to_bits => return value,
        (true, true) => ConvertOp::ExtendS,
        (true, false) => ConvertOp::ExtendU,
        (false, _) => ConvertOp::Truncate,
    };
    b.convert(op, to.ir(), value)
}
