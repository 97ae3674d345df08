//! The state of writing one kernel: its text so far, the register of each value, and how operands,
//! guards and source lines are spelled.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::Options;
use super::bounds::read_by_bounds_checks;
use super::enclosure::Within;
use super::integer::is_dot;
use super::print::Lines;
use super::registers::{Class, Registers};
use super::tokens::Groups;
use crate::Result;
use crate::banked::BankedConstants;
use crate::ir::{
    BinaryOp, ConvertOp, Dependency, FloatRule, Kernel, Label, Meeting, NoWrapOp, Op, OpKind, Place, Type,
    Value,
};
use crate::nan::NanPlan;
use crate::roots::Roots;

/// A predicate register, or its opposite, under which instructions with an effect run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    /// The predicate.
    pub register: String,
    /// Runs where the predicate is false.
    pub negated: bool,
}

impl Guard {
    /// As it stands in front of an instruction: `@%p1 ` or `@!%p1 `.
    pub(super) fn prefix(&self) -> String {
        format!("@{}{} ", if self.negated { "!" } else { "" }, self.register)
    }
}

/// Where `Break` and `Continue` of a label go.
#[derive(Clone, Debug, Default)]
pub(super) struct PtxScope {
    /// The values that `Break` assigns.
    pub results: Vec<Value>,
    /// The values that `Continue` assigns.
    pub params: Vec<Value>,
    /// The PTX label after the construct.
    pub exit: String,
    /// The PTX label at which the next iteration starts, for loops.
    pub next: String,
}

/// A kernel's text in its parts.
pub(super) struct Written {
    pub instructions: String,
    pub files: Vec<String>,
    pub registers: Registers,
    pub uses_scratch: bool,
    /// The module's declarations for the kernel's printing, and for tables.
    pub declarations: String,
    /// The memory for the values of a line, in bytes.
    pub line_bytes: u32,
    /// The contents of constant memory.
    pub banked: BankedConstants,
}

/// The output so far.
pub(super) struct Emitter<'k> {
    pub kernel: &'k Kernel,
    pub options: &'k Options,
    /// The module around, if there is one already.
    pub within: Option<&'k Within>,
    /// The operation that defines a value.
    pub definitions: SecondaryMap<Value, Option<&'k Op>>,
    /// How many operands a value is.
    pub uses: HashMap<Value, u32>,
    /// Addresses (and index extensions) that every use folds into an instruction of its own.
    pub folded: HashSet<Value>,
    /// The parameters of loops.
    pub loop_params: HashSet<Value>,
    pub groups: Groups<'k>,
    pub nans: NanPlan,
    /// How the operation that is being written rounds and flushes.
    pub rule: FloatRule,
    pub roots: Roots,
    /// Constants that come from constant memory: none inside another's module.
    pub banked: BankedConstants,
    pub registers: Registers,
    pub scopes: HashMap<Label, PtxScope>,
    /// The guard of the `if` that is being written without a branch.
    pub guard: Option<Guard>,
    /// Loads under a predicate whose registers need no value before them: they have one, or are only selected.
    pub initialized: EntitySet<Value>,
    /// A scratch word in shared memory is wanted by L1 prefetches.
    pub scratch: Option<String>,
    /// The printed formats.
    pub lines: Lines,
    /// Rows of tables are read.
    pub reads_rows: bool,
    /// The policy of nontemporal prefetches, which evicts first.
    pub streaming: Option<String>,
    /// Constants that instructions cannot hold, moved to registers at the start.
    preamble: String,
    body: String,
    register_of: HashMap<Value, String>,
    labels: HashMap<String, u32>,
    branched_to: HashSet<String>,
    files: Vec<String>,
    last_place: Option<Place>,
}

impl<'k> Emitter<'k> {
    pub(super) fn new(kernel: &'k Kernel, options: &'k Options) -> Emitter<'k> {
        let definitions = kernel.body.makers();
        let mut uses: HashMap<Value, u32> = HashMap::new();
        let mut addresses = HashSet::new();
        let mut kept = HashSet::new();
        let mut loop_params = HashSet::new();
        kernel.body.walk(&mut |op| {
            op.kind
                .for_each_operand(|value| *uses.entry(value).or_default() += 1);
            if let OpKind::Loop { params, .. } = &op.kind {
                loop_params.extend(params.iter().copied());
            }
            match &op.kind {
                OpKind::ArrayAddress(_) => {
                    addresses.insert(op.results[0]);
                }
                OpKind::Address { base, index, .. } => {
                    if kernel.as_constant(*index).is_some() {
                        addresses.insert(op.results[0]);
                    } else {
                        kept.insert(*base);
                    }
                }
                // A 32-bit index is extended by the instruction that makes the address.
                OpKind::Convert(ConvertOp::ExtendU | ConvertOp::ExtendS, narrow)
                    if kernel.ty(*narrow) == Type::I32 && kernel.ty(op.results[0]) == Type::I64 =>
                {
                    addresses.insert(op.results[0]);
                    kept.insert(*narrow);
                }
                // These take an offset beside the register.
                OpKind::Load { .. } | OpKind::Copy { .. } => {}
                OpKind::Prefetch { count, .. } => kept.extend(count),
                OpKind::Store { values, .. } | OpKind::Atomic { values, .. } => kept.extend(values),
                other => other.for_each_operand(|value| {
                    kept.insert(value);
                }),
            }
        });
        let mut folded: HashSet<Value> = addresses.difference(&kept).copied().collect();
        folded.extend(added_dots(kernel, &definitions, &uses));
        let nans = NanPlan::of(kernel);
        let roots = Roots::find(kernel);
        for value in read_by_bounds_checks(kernel, &roots) {
            *uses.entry(value).or_default() += 1;
        }
        Emitter {
            kernel,
            options,
            within: None,
            definitions,
            uses,
            folded,
            loop_params,
            groups: Groups::of(kernel),
            nans,
            rule: FloatRule::EXACT,
            roots,
            banked: BankedConstants::of(kernel),
            registers: Registers::default(),
            scopes: HashMap::new(),
            guard: None,
            initialized: EntitySet::new(),
            scratch: None,
            lines: Lines::default(),
            reads_rows: false,
            streaming: None,
            preamble: String::new(),
            body: String::new(),
            register_of: HashMap::new(),
            labels: HashMap::new(),
            branched_to: HashSet::new(),
            files: Vec::new(),
            last_place: None,
        }
    }

    /// The output: the instructions, constants first, and the source files that they name.
    pub(super) fn finish(self) -> Written {
        let rows = self.declared_rows();
        Written {
            instructions: self.preamble + &self.body,
            files: self.files,
            registers: self.registers,
            uses_scratch: self.scratch.is_some(),
            declarations: self.lines.declarations() + &rows,
            line_bytes: self.lines.bytes,
            banked: self.banked,
        }
    }

    // Lines.

    /// Writes an instruction that runs regardless of the guard: it has no effect except its result.
    pub(super) fn ins(&mut self, text: impl AsRef<str>) {
        let _ = writeln!(self.body, "\t{};", text.as_ref());
    }

    /// Writes an instruction, or a block of some in braces.
    pub(super) fn line(&mut self, text: &str) {
        let end = if text.ends_with('}') && text.starts_with('{') {
            ""
        } else {
            ";"
        };
        let _ = writeln!(self.body, "\t{text}{end}");
    }

    /// Writes an instruction that runs only where the guard holds.
    pub(super) fn guarded(&mut self, text: impl AsRef<str>) {
        let prefix = self.guard.as_ref().map(Guard::prefix).unwrap_or_default();
        let _ = writeln!(self.body, "\t{prefix}{};", text.as_ref());
    }

    /// The name of a variable that the text declares for itself: two blocks of an entry have two.
    pub(super) fn variable(&self, name: &str) -> String {
        let stem = self.within.map_or("", |within| &within.stem);
        format!("{stem}{name}")
    }

    /// A PTX label that is not taken yet, with this name if it can be had.
    pub(super) fn new_label(&mut self, name: &str) -> String {
        // A block's labels must not be those of the entry around it.
        let name = self.variable(&super::registers::identifier(name));
        let count = self.labels.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 {
            format!("${name}")
        } else {
            format!("${name}_{count}")
        }
    }

    /// Writes a branch.
    pub(super) fn branch(&mut self, label: &str, guard: Option<&Guard>) {
        self.branched_to.insert(label.to_owned());
        let prefix = guard.map(Guard::prefix).unwrap_or_default();
        let _ = writeln!(self.body, "\t{prefix}bra {label};");
    }

    /// Writes a label that is branched to from below.
    pub(super) fn label(&mut self, label: &str) {
        let _ = writeln!(self.body, "{label}:");
    }

    /// Whether something branches to a label.
    pub(super) fn is_branched_to(&self, label: &str) -> bool {
        self.branched_to.contains(label)
    }

    /// Writes a label if something has branched to it.
    pub(super) fn label_if_used(&mut self, label: &str) {
        if self.is_branched_to(label) {
            self.label(label);
        }
    }

    /// States that the following text comes from this place.
    fn at(&mut self, place: Place) {
        if !self.options.lines || self.last_place == Some(place) {
            return;
        }
        let data = &self.kernel.places[place];
        if data.file.is_empty() || data.line == 0 {
            return;
        }
        if let Some(within) = self.within {
            let known = within.files.iter().find(|(_, path)| *path == data.file);
            if let Some((number, _)) = known {
                let _ = writeln!(self.body, "\t.loc {number} {} {}", data.line, data.column);
                self.last_place = Some(place);
            }
            return;
        }
        let file = match self.files.iter().position(|file| *file == data.file) {
            Some(index) => index,
            None => {
                self.files.push(data.file.clone());
                self.files.len() - 1
            }
        };
        let _ = writeln!(self.body, "\t.loc {} {} {}", file + 1, data.line, data.column);
        self.last_place = Some(place);
    }

    // Values.

    /// The register of a value, made when first asked for.
    pub(super) fn register(&mut self, value: Value) -> String {
        if let Some(register) = self.register_of.get(&value) {
            return register.clone();
        }
        let data = &self.kernel.values[value];
        let class = Class::of(data.ty).expect("tokens are never asked for a register");
        let register = match &data.name {
            Some(name) => self.registers.named(class, name, value.as_u32()),
            None => self.registers.fresh(class),
        };
        self.register_of.insert(value, register.clone());
        register
    }

    /// Whether a value has a register yet.
    pub(super) fn has_register(&self, value: Value) -> bool {
        self.register_of.contains_key(&value)
    }

    /// Makes two values share a register: a write to one is read as the other.
    pub(super) fn share(&mut self, value: Value, register: String) {
        self.register_of.insert(value, register);
    }

    /// A new register for an intermediate result.
    pub(super) fn temporary(&mut self, class: Class) -> String {
        self.registers.fresh(class)
    }

    /// A value as an operand: an immediate for a constant that instructions can hold, or its register.
    pub(super) fn operand(&mut self, value: Value) -> String {
        let Some(bits) = self.kernel.as_constant(value) else {
            return self.register(value);
        };
        let ty = self.kernel.ty(value);
        let banked = self.banked.position(ty, bits);
        if let (None, Some(literal)) = (banked, literal(ty, bits)) {
            return literal;
        }
        if let Some(register) = self.register_of.get(&value) {
            return register.clone();
        }
        let class = Class::of(ty).expect("token constants are not operands of instructions");
        let register = self.registers.fresh(class);
        let _ = match (class, banked) {
            (_, Some(position)) => {
                let constant = super::constant_name(self.kernel, position);
                writeln!(
                    self.preamble,
                    "\tld.const.{} {register}, [{constant}];",
                    class.ptx()
                )
            }
            (Class::Predicate, _) => writeln!(self.preamble, "\tsetp.ne.b32 {register}, {bits}, 0;"),
            _ => writeln!(self.preamble, "\tmov.{} {register}, {bits:#06x};", class.ptx()),
        };
        self.register_of.insert(value, register.clone());
        register
    }

    /// The type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    /// The operation that defines a value, if one does.
    pub(super) fn definition(&self, value: Value) -> Option<&'k OpKind> {
        self.definitions[value].map(|op| &op.kind)
    }

    /// Writes one operation.
    pub(super) fn op(&mut self, op: &'k Op) -> Result<()> {
        if op.results.len() == 1 && self.folded.contains(&op.results[0]) {
            return Ok(());
        }
        self.at(op.place);
        self.rule = op.kind.rule();
        match op.kind.plain() {
            OpKind::Ruled(..) => unreachable!("the verifier keeps rules away from ruled operations"),
            OpKind::Id(id) => self.id(op.results[0], *id),
            OpKind::ArrayAddress(_) | OpKind::Address { .. } => self.address(op),
            OpKind::Unary(unary, a) if self.ty(*a).is_float() => self.float_unary(op.results[0], *unary, *a),
            OpKind::Unary(unary, a) => self.integer_unary(op.results[0], *unary, *a),
            OpKind::Binary(binary, a, b) if self.ty(*a).is_float() => {
                self.float_binary(op.results[0], *binary, *a, *b);
            }
            OpKind::Binary(binary, a, b) => self.integer_binary(op.results[0], *binary, *a, *b),
            OpKind::NoWrap(no_wrap, _, a, b) => self.integer_binary(op.results[0], (*no_wrap).into(), *a, *b),
            OpKind::Fma(a, b, c) => self.fma(op.results[0], *a, *b, *c),
            OpKind::Compare(compare, a, b) => self.compare(op.results[0], *compare, *a, *b),
            OpKind::Select(cond, a, b) => self.select(op.results[0], *cond, *a, *b),
            OpKind::Convert(convert, a) => self.convert(op.results[0], *convert, *a),
            OpKind::Load { ptr, id, cache } => self.load(&op.results, *ptr, *id, *cache),
            OpKind::Store { ptr, values, cache } => self.store(*ptr, values, *cache),
            OpKind::Copy { to, from, bytes, .. } => self.copy(*to, *from, *bytes),
            OpKind::Join(_) => {}
            OpKind::Wait(_) => {
                if let Some(in_flight) = self.groups.wait(op) {
                    self.guarded(format!("cp.async.wait_group {in_flight}"));
                }
            }
            OpKind::Prefetch { .. } => self.prefetch(op),
            OpKind::Barrier => self.ins("bar.sync 0"),
            OpKind::Meet(Meeting::SubGroup(mask)) => {
                let party = self.party(*mask);
                self.ins(format!("bar.warp.sync {party}"));
            }
            OpKind::Meet(Meeting::Named { number, sub_groups }) => {
                self.ins(format!("bar.sync {number}, {}", sub_groups.saturating_mul(32)));
            }
            OpKind::Depend(Dependency::Launch) => self.ins("griddepcontrol.launch_dependents"),
            OpKind::Depend(Dependency::Wait) => self.ins("griddepcontrol.wait"),
            OpKind::Print { text, values } => self.print(text, values),
            OpKind::Atomic { .. } => self.atomic(op),
            OpKind::Fence(order, scope) => self.fence(*order, *scope),
            OpKind::Shuffle {
                op: shuffle,
                value,
                by,
                mask,
            } => {
                self.shuffle(op.results[0], *shuffle, *value, *by, *mask);
            }
            OpKind::Vote(vote, value, mask) => self.vote(op.results[0], *vote, *value, *mask),
            OpKind::Reduce(reduce, value, mask) => self.reduce(op.results[0], *reduce, *value, *mask),
            OpKind::GroupVote(vote, value) => self.group_vote(op.results[0], *vote, *value),
            OpKind::Opaque(what, values) => self.opaque(&op.results, what, values)?,
            OpKind::Active => {
                let to = self.register(op.results[0]);
                self.ins(format!("activemask.b32 {to}"));
            }
            OpKind::Block { .. } | OpKind::If { .. } | OpKind::Loop { .. } => self.construct(op)?,
            OpKind::Break(..) | OpKind::Continue(..) | OpKind::Return | OpKind::Trap => {
                unreachable!("terminators are written with their region")
            }
        }
        for &result in &op.results {
            if self.nans.after(result) {
                let canonical = self.canonical(result);
                let register = self.register(result);
                let class = Class::of(self.ty(result)).expect("floats have registers");
                self.ins(format!("mov.{} {register}, {canonical}", class.ptx()));
            } else if self.ty(result) == Type::Token && self.groups.commits_after(result) {
                self.guarded("cp.async.commit_group");
            }
        }
        Ok(())
    }
}

/// Dot products of bytes that only one addition uses: the instruction adds, too. One of two that are added to each
/// other stays.
fn added_dots<'k>(
    kernel: &'k Kernel,
    definitions: &SecondaryMap<Value, Option<&'k Op>>,
    uses: &HashMap<Value, u32>,
) -> Vec<Value> {
    let is_dot = |value: &Value| {
        let kind = definitions[*value].map(|op| &op.kind);
        let dot = matches!(kind, Some(OpKind::Binary(op, ..)) if is_dot(*op));
        dot && uses.get(value) == Some(&1)
    };
    let mut added = Vec::new();
    kernel.body.walk(&mut |op| {
        if let OpKind::Binary(BinaryOp::Add, a, b) | OpKind::NoWrap(NoWrapOp::Add, _, a, b) = &op.kind {
            added.extend([*a, *b].into_iter().find(is_dot));
        }
    });
    added
}

/// A constant as PTX spells it, if instructions of its type take constants.
pub(super) fn literal(ty: Type, bits: u64) -> Option<String> {
    match ty {
        Type::F32 => Some(format!("0f{bits:08X}")),
        Type::F64 => Some(format!("0d{bits:016X}")),
        Type::F16 | Type::Bf16 | Type::Bool | Type::Token => None,
        Type::I8 | Type::I16 => Some(bits.to_string()),
        Type::I32 => Some((bits as u32 as i32).to_string()),
        Type::I64 | Type::Ptr(_) => Some(match i32::try_from(bits as i64) {
            Ok(small) => small.to_string(),
            Err(_) => format!("{bits:#x}"),
        }),
    }
}
