//! A program as IR: variables and jumps as the recorder of `#[kernel]` has them, which then makes values of them.
//!
//! Where C can be said in several ways in regions, the style says in which: how `&&` and `||` lead on, whether a
//! `continue` repeats the loop's step, whether narrow numbers are computed in their own width, whether signed arithmetic
//! promises not to overflow. All mean the same.

use std::collections::HashMap;

use super::tree::{Local, Loop, Program, Statement};
use crate::Random;
use crate::cleanup;
use crate::error::Result;
use crate::front::lang::record::tree::{Body, Node, TargetId, VariableData, VariableId};
use crate::front::lang::record::{redundant, ssa};
use crate::ir::{Builder, Id, Kernel, Param, Place, PointerFacts, Races, Space, Type, Value, verify};

mod conditions;
mod expressions;
mod statements;

/// A launch file's entries for an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its length is known.
    pub length: bool,
    /// Nothing writes it.
    pub read_only: bool,
    /// No other array is the same memory.
    pub unaliased: bool,
}

/// In which of several ways a program is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// A `continue` repeats the step and the test after it.
    pub steps_inside: bool,
    /// Narrow arithmetic in its own width.
    pub narrow: bool,
    /// Signed arithmetic promises not to overflow.
    pub promises: bool,
    /// Right sides of `&&` and `||` without effect are computed in any case.
    pub eager: bool,
    /// If an `||` ends a loop, its last test jumps back and the code behind it leaves.
    pub leaves_last: bool,
    /// The kernel is tidied.
    pub tidy: bool,
}

impl Style {
    /// A random one.
    pub(crate) fn random(random: &mut Random) -> Style {
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
pub(crate) fn translate(program: &Program, known: &[Known], style: Style) -> Result<Kernel> {
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
            is_constant: false,
            races: Races::None,
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
    redundant::remove(&mut kernel);
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

    /// The statements that `write` appends, as a body of its own.
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

    fn write(&mut self, variable: VariableId, value: Value) {
        self.nodes.push(Node::Write { variable, value });
    }

    fn temporary(&mut self, ty: Type) -> VariableId {
        self.variables.push(VariableData { ty, name: None });
        self.variables.len() - 1
    }
}
