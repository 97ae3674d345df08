//! The recorder: the kernel under construction and the bodies that are open.

use std::cell::RefCell;
use std::collections::HashMap;

use super::asked::At;
use super::groups;
use super::tree::{Body, Latch, Node, TargetId, VariableData, VariableId};
use crate::Error;
use crate::ir::{
    BinaryOp, Builder, ConvertOp, Kernel, LoadData, LoadId, LoopWishes, Op, OpKind, Place, PlaceData, Type,
    Value,
};

thread_local! {
    static RECORDER: RefCell<Recorder> = RefCell::new(Recorder::new("", ""));
}

/// Calls `use_it` with this thread's recorder.
///
/// The functions of this module call it one after the other, never one inside the other.
pub(crate) fn recorder<R>(use_it: impl FnOnce(&mut Recorder) -> R) -> R {
    RECORDER.with_borrow_mut(use_it)
}

/// Puts another recorder in place and gives back the one before.
pub(super) fn exchange(recorder: Recorder) -> Recorder {
    RECORDER.replace(recorder)
}

/// Records one kernel.
pub(crate) struct Recorder {
    /// The kernel so far; its body is empty until the end.
    pub kernel: Kernel,
    /// The variables so far.
    pub variables: Vec<VariableData>,
    /// The functions that are being inlined, outermost first; the kernel's own is the first.
    pub frames: Vec<Frame>,
    /// The first thing that went wrong.
    pub error: Option<Error>,
    /// For loops that count, how to start their next iteration.
    pub latches: HashMap<TargetId, Latch>,
    /// The first sides of `if`s whose second side is being recorded.
    pub sides: HashMap<usize, Body>,
    /// Names of the slices and arrays, as plans name the loads from them.
    pub roots: Vec<String>,
    /// Which of them a pointer leads to, as far as it was followed.
    pub pointer_roots: HashMap<Value, usize>,
    /// Which of them a variable's pointers lead to.
    variable_roots: HashMap<VariableId, usize>,
    nodes: Vec<Node>,
    open: Vec<Open>,
    loops: HashMap<TargetId, (Option<String>, LoopWishes)>,
    targets: usize,
    places: HashMap<PlaceData, Place>,
    /// Which values are extended ones, to take back an extension that is cut off again.
    extended: HashMap<Value, (ConvertOp, Value)>,
    /// Which values are cut ones that this extension restores.
    cut: HashMap<Value, (ConvertOp, Value)>,
    /// Most groups of asynchronous copies that a wait leaves on their way, where there is a wait.
    pub groups_left: Option<u32>,
}

/// A function that is being recorded.
pub(crate) struct Frame {
    /// The file and line of its definition; they identify it.
    pub definition: (&'static str, u32),
    /// Where it was called.
    pub call: Option<Place>,
}

/// A body that has begun and not ended.
struct Open {
    /// The steps of the body around it.
    outer: Vec<Node>,
    /// How many variables there were when it began.
    variables: usize,
}

impl Recorder {
    /// One for a kernel of this name, written in this file.
    pub(crate) fn new(name: &'static str, file: &'static str) -> Recorder {
        Recorder {
            kernel: Kernel::new(name),
            variables: groups::variables(),
            frames: vec![Frame {
                definition: (file, 0),
                call: None,
            }],
            error: None,
            latches: HashMap::new(),
            sides: HashMap::new(),
            roots: Vec::new(),
            pointer_roots: HashMap::new(),
            variable_roots: HashMap::new(),
            nodes: Vec::new(),
            open: Vec::new(),
            loops: HashMap::new(),
            targets: 0,
            places: HashMap::new(),
            extended: HashMap::new(),
            cut: HashMap::new(),
            groups_left: None,
        }
    }

    /// Notes an error; the first one is kept.
    pub(crate) fn fail(&mut self, at: At, error: Error) {
        let place = self.place(at);
        let error = error.at(self.kernel.describe_place(place));
        self.error.get_or_insert(error);
    }

    /// The IR's place for a line and column of the function that is being recorded.
    pub(crate) fn place(&mut self, At(line, column): At) -> Place {
        let Some(frame) = self.frames.last() else {
            return Kernel::NOWHERE;
        };
        let data = PlaceData {
            file: frame.definition.0.to_owned(),
            line,
            column,
            inlined_at: frame.call,
        };
        let kernel = &mut self.kernel;
        *self
            .places
            .entry(data)
            .or_insert_with_key(|data| kernel.places.push(data.clone()))
    }

    /// Appends the operations of `write`.
    pub(crate) fn build<R>(&mut self, at: At, write: impl FnOnce(&mut Builder<'_>) -> R) -> R {
        let place = self.place(at);
        let mut builder = Builder::new(&mut self.kernel, place);
        let result = write(&mut builder);
        self.nodes.extend(builder.finish().ops.into_iter().map(Node::Op));
        result
    }

    /// Whether the work-group meets right before, with nothing between that touches memory.
    pub(crate) fn has_just_met(&self) -> bool {
        let last = self.nodes.iter().rev().find(|node| match node {
            Node::Op(op) => !op.kind.is_pure(),
            Node::Read { .. } | Node::Write { .. } => false,
            _ => true,
        });
        matches!(last, Some(Node::Op(op)) if matches!(op.kind, OpKind::Barrier))
    }

    /// Appends a step.
    pub(crate) fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// A new variable.
    pub(crate) fn variable(&mut self, ty: Type, name: Option<&str>) -> VariableId {
        let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
        self.variables.push(VariableData { ty, name });
        self.variables.len() - 1
    }

    /// Assigns to a variable.
    pub(crate) fn write(&mut self, variable: VariableId, value: Value) {
        if let Some(&root) = self.pointer_roots.get(&value) {
            self.variable_roots.insert(variable, root);
        }
        self.push(Node::Write { variable, value });
    }

    /// Reads a variable.
    pub(crate) fn read(&mut self, variable: VariableId) -> Value {
        // A read right behind a write needs no step.
        if let Some(Node::Write {
            variable: written,
            value,
        }) = self.nodes.last()
            && *written == variable
        {
            return *value;
        }
        let result = self.kernel.value(self.variables[variable].ty);
        if let Some(&root) = self.variable_roots.get(&variable) {
            self.pointer_roots.insert(result, root);
        }
        self.push(Node::Read { variable, result });
        result
    }

    /// A new number for a block, loop or function.
    pub(crate) fn target(&mut self) -> TargetId {
        self.targets += 1;
        self.targets
    }

    /// Begins a body: the following operations go into it.
    pub(crate) fn begin(&mut self) {
        let outer = std::mem::take(&mut self.nodes);
        self.open.push(Open {
            outer,
            variables: self.variables.len(),
        });
    }

    /// Ends the body that began last.
    pub(crate) fn end(&mut self) -> Body {
        match self.open.pop() {
            Some(Open { outer, variables }) => {
                let inner = std::mem::replace(&mut self.nodes, outer);
                Body::new(inner, variables)
            }
            None => Body::default(),
        }
    }

    /// Ends the whole.
    pub(crate) fn finish(mut self) -> (Kernel, Vec<VariableData>, Body) {
        while !self.open.is_empty() {
            let body = self.end();
            self.nodes.extend(body.nodes);
        }
        let mut body = Body::new(self.nodes, 0);
        groups::prune(&mut body, self.groups_left);
        (self.kernel, self.variables, body)
    }

    /// A whole number that is known here: a constant, or one just computed from constants.
    pub(crate) fn constant(&self, value: Value) -> Option<u64> {
        if let Some(bits) = self.kernel.as_constant(value) {
            return Some(bits);
        }
        let of = self.nodes.iter().rev().find_map(|node| match node {
            Node::Op(op) if op.results == [value] => Some(&op.kind),
            _ => None,
        })?;
        match of {
            OpKind::Convert(ConvertOp::Truncate | ConvertOp::ExtendU, of) => self.constant(*of),
            OpKind::Binary(op, x, y) => folded(*op, self.constant(*x)?, self.constant(*y)?),
            OpKind::NoWrap(op, _, x, y) => folded((*op).into(), self.constant(*x)?, self.constant(*y)?),
            _ => None,
        }
    }

    /// A load of the source, from the slice or array with this number.
    pub(crate) fn load_id(&mut self, at: At, root: usize) -> LoadId {
        let place = self.place(at);
        let name = self.roots.get(root).cloned().unwrap_or_default();
        self.kernel.loads.push(LoadData::new(name, place))
    }

    /// A load of the source from an unknown slice or array.
    pub(crate) fn load_named(&mut self, at: At, name: &str) -> LoadId {
        let place = self.place(at);
        self.kernel.loads.push(LoadData::new(name, place))
    }

    /// Notes a loop's name and wishes until its end.
    pub(crate) fn note_loop(&mut self, target: TargetId, name: &str, wishes: LoopWishes) {
        let name = (!name.is_empty()).then(|| name.to_owned());
        self.loops.insert(target, (name, wishes));
    }

    /// The note of [`Recorder::note_loop`].
    pub(crate) fn loop_notes(&mut self, target: TargetId) -> (Option<String>, LoopWishes) {
        self.loops.remove(&target).unwrap_or_default()
    }

    /// Cuts a number that fits to a narrower type; `restore` is the extension that gives it back.
    pub(crate) fn cut(&mut self, at: At, to: Type, wide: Value, restore: ConvertOp) -> Value {
        let narrow = self.build(at, |b| b.convert(ConvertOp::Truncate, to, wide));
        self.cut.insert(narrow, (restore, wide));
        narrow
    }

    /// Converts, and takes back an earlier extension where it is of no use any more.
    pub(crate) fn convert(&mut self, at: At, op: ConvertOp, to: Type, value: Value) -> Value {
        if let Some(&(restore, wide)) = self.cut.get(&value)
            && restore == op
            && self.kernel.ty(wide) == to
        {
            return wide;
        }
        let (op, value) = match (op, self.extended.get(&value)) {
            (ConvertOp::Truncate, Some(&(extension, inner))) => {
                let ty = self.kernel.ty(inner);
                match ty.bits().cmp(&to.bits()) {
                    std::cmp::Ordering::Equal if ty == to => return inner,
                    std::cmp::Ordering::Less => (extension, inner),
                    _ => (op, inner),
                }
            }
            // A zero-extended value has a zero sign bit.
            (ConvertOp::ExtendS | ConvertOp::ExtendU, Some(&(ConvertOp::ExtendU, inner))) => {
                (ConvertOp::ExtendU, inner)
            }
            (ConvertOp::ExtendS, Some(&(ConvertOp::ExtendS, inner))) => (ConvertOp::ExtendS, inner),
            _ => (op, value),
        };
        let result = self.build(at, |b| b.convert(op, to, value));
        if matches!(op, ConvertOp::ExtendS | ConvertOp::ExtendU) && self.kernel.as_constant(result).is_none()
        {
            self.extended.insert(result, (op, value));
        }
        result
    }

    /// Appends steps that were recorded aside.
    pub(crate) fn splice(&mut self, nodes: Vec<Node>) {
        self.nodes.extend(nodes);
    }
}

/// Whether an operation may run although its result may not be wanted: it has no effect and is cheap.
pub(super) fn is_cheap(op: &Op) -> bool {
    op.kind.is_pure() && !matches!(op.kind, OpKind::Unary(crate::ir::UnaryOp::Sqrt, _))
}

/// A 32-bit answer about the work-item as Rust sees it: a `usize`.
pub(crate) fn usize_from_u32(
    at: At,
    write: impl FnOnce(&mut Builder<'_>) -> Value,
) -> super::Recorded<usize> {
    recorder(|recorder| {
        let narrow = recorder.build(at, write);
        super::Recorded::new(recorder.convert(at, ConvertOp::ExtendU, Type::I64, narrow))
    })
}

/// A sum, difference or product that does not wrap.
fn folded(op: BinaryOp, x: u64, y: u64) -> Option<u64> {
    match op {
        BinaryOp::Add => x.checked_add(y),
        BinaryOp::Sub => x.checked_sub(y),
        BinaryOp::Mul => x.checked_mul(y),
        _ => None,
    }
}
