//! A program as PTX, translated without optimization: every variable has a register, every statement its instructions, every
//! path a branch. The front end sees the shapes that compilers' output has, and more of them.
//!
//! Numbers of less than 32 bits stand in 32-bit registers, extended by their sign.

use std::fmt::Write;

use super::tree::{
    Access, Arithmetic, Condition, Exchange, Expr, Local, Pointer, Program, Relation, Scalar, Statement,
};

/// The module's text. `eager` computes right sides of `&&` and `||` that have no effect and touch no memory without a
/// branch, as compilers do.
pub(crate) fn ptx(program: &Program, eager: bool) -> String {
    let mut writer = Writer {
        program,
        eager,
        text: String::new(),
        registers: [0; 5],
        labels: 0,
        locals: Vec::new(),
        arrays: Vec::new(),
        scalars: Vec::new(),
        item: String::new(),
        group: String::new(),
    };
    writer.parameters();
    writer.statements(&program.body);
    let Writer { text, registers, .. } = writer;
    let parameters = program
        .arrays
        .iter()
        .map(|array| format!(".param .u64 {}", array.name));
    let scalars = program.scalars.iter();
    let scalars = scalars.map(|scalar| format!(".param .{} {}", memory_type(scalar.ty), scalar.name));
    let parameters: Vec<String> = parameters.chain(scalars).collect();
    let mut module = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry {}({})\n{{\n",
        program.name(),
        parameters.join(", ")
    );
    for ((name, ty), count) in KINDS.iter().zip(registers) {
        let _ = writeln!(module, ".reg .{ty} %{name}<{}>;", count + 1);
    }
    module + &text + "DONE:\nret;\n}\n"
}

/// Register names and types.
const KINDS: [(&str, &str); 5] = [
    ("r", "b32"),
    ("rd", "b64"),
    ("f", "f32"),
    ("p", "pred"),
    ("q", "b32"),
];

fn memory_type(ty: Scalar) -> &'static str {
    match ty {
        Scalar::I8 => "s8",
        Scalar::U8 => "u8",
        Scalar::I16 => "s16",
        Scalar::U16 => "u16",
        Scalar::I32 => "s32",
        Scalar::U32 => "u32",
        Scalar::I64 => "s64",
        Scalar::U64 => "u64",
        Scalar::F32 => "f32",
    }
}

/// The type that instructions compute in.
fn wide_type(ty: Scalar) -> &'static str {
    match ty {
        Scalar::I8 | Scalar::I16 | Scalar::I32 => "s32",
        Scalar::U8 | Scalar::U16 | Scalar::U32 => "u32",
        _ => memory_type(ty),
    }
}

fn is_wide(ty: Scalar) -> bool {
    matches!(ty, Scalar::I64 | Scalar::U64)
}

struct Writer<'p> {
    program: &'p Program,
    eager: bool,
    text: String,
    registers: [usize; 5],
    labels: usize,
    locals: Vec<String>,
    arrays: Vec<String>,
    scalars: Vec<String>,
    item: String,
    group: String,
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn register(&mut self, kind: usize) -> String {
        self.registers[kind] += 1;
        format!("%{}{}", KINDS[kind].0, self.registers[kind])
    }

    fn register_of(&mut self, ty: Scalar) -> String {
        self.register(match ty {
            Scalar::I64 | Scalar::U64 => 1,
            Scalar::F32 => 2,
            _ => 0,
        })
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn parameters(&mut self) {
        let program = self.program;
        for array in &program.arrays {
            let (generic, global) = (self.register(1), self.register(1));
            self.line(&format!("ld.param.u64 {generic}, [{}];", array.name));
            self.line(&format!("cvta.to.global.u64 {global}, {generic};"));
            self.arrays.push(global);
        }
        for scalar in &program.scalars {
            let to = self.register_of(scalar.ty);
            self.line(&format!(
                "ld.param.{} {to}, [{}];",
                memory_type(scalar.ty),
                scalar.name
            ));
            self.scalars.push(to);
        }
        let [item, group, size, local] = [(); 4].map(|()| self.register(0));
        self.line(&format!("mov.u32 {group}, %ctaid.x;\nmov.u32 {size}, %ntid.x;"));
        self.line(&format!("mov.u32 {local}, %tid.x;"));
        self.line(&format!("mad.lo.s32 {item}, {group}, {size}, {local};"));
        self.item = item;
        self.group = group;
        for local in &program.locals {
            let register = match local {
                Local::Number(ty) => {
                    let register = self.register_of(*ty);
                    let zero = if *ty == Scalar::F32 { "0f00000000" } else { "0" };
                    self.line(&format!("mov.{} {register}, {zero};", move_type(*ty)));
                    register
                }
                Local::Pointer(_, array) => {
                    let register = self.register(1);
                    let array = self.arrays[*array].clone();
                    self.line(&format!("mov.u64 {register}, {array};"));
                    register
                }
            };
            self.locals.push(register);
        }
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign(local, value) => {
                let ty = self.program.type_of(value);
                let value = self.expr(value);
                let to = self.locals[*local].clone();
                self.line(&format!("mov.{} {to}, {value};", move_type(ty)));
            }
            Statement::Point(local, pointer) => {
                let pointer = self.pointer(pointer);
                let to = self.locals[*local].clone();
                self.line(&format!("mov.u64 {to}, {pointer};"));
            }
            Statement::Store(pointer, index, value) => {
                let ty = self.program.element_of(pointer);
                let value = self.expr(value);
                let address = self.address(pointer, index);
                let how = match self.program.is_volatile(pointer) {
                    true => "st.volatile.global",
                    false => "st.global",
                };
                self.line(&format!("{how}.{} [{address}], {value};", memory_type(ty)));
            }
            Statement::If(condition, then, otherwise) => {
                let (no, end) = (self.label(), self.label());
                self.jump(condition, false, &no);
                self.statements(then);
                if otherwise.is_empty() {
                    self.line(&format!("{no}:"));
                    return;
                }
                self.line(&format!("bra.uni {end};\n{no}:"));
                self.statements(otherwise);
                self.line(&format!("{end}:"));
            }
            Statement::Loop(looped) | Statement::Wait(looped) => {
                let (next, out) = (format!("NEXT{}", looped.label), format!("OUT{}", looped.label));
                let head = format!("HEAD{}", looped.label);
                // Half of them are tested in front and at the end, as compilers turn them.
                let turned = looped.label % 2 == 0 && looped.before.is_some();
                if let (Some(condition), true) = (&looped.before, turned) {
                    self.jump(condition, false, &out);
                }
                self.line(&format!("{head}:"));
                if let (Some(condition), false) = (&looped.before, turned) {
                    self.jump(condition, false, &out);
                }
                self.statements(&looped.body);
                self.line(&format!("{next}:"));
                self.statements(&looped.step);
                match (&looped.after, &looped.before) {
                    (Some(condition), _) => self.jump(condition, true, &head),
                    (None, Some(condition)) if turned => self.jump(condition, true, &head),
                    _ => self.line(&format!("bra.uni {head};")),
                }
                self.line(&format!("{out}:"));
            }
            Statement::Switch(switch) => {
                let on = self.expr(&switch.on);
                let out = format!("OUT{}", switch.label);
                let labels: Vec<String> = switch.cases.iter().map(|_| self.label()).collect();
                let mut default = out.clone();
                for ((case, _), label) in switch.cases.iter().zip(&labels) {
                    match case {
                        Some(value) => {
                            let truth = self.register(3);
                            self.line(&format!(
                                "setp.eq.s32 {truth}, {on}, {value};\n@{truth} bra {label};"
                            ));
                        }
                        None => default.clone_from(label),
                    }
                }
                self.line(&format!("bra.uni {default};"));
                for ((_, body), label) in switch.cases.iter().zip(&labels) {
                    self.line(&format!("{label}:"));
                    self.statements(body);
                }
                self.line(&format!("{out}:"));
            }
            Statement::Block(label, body) => {
                self.statements(body);
                self.line(&format!("OUT{label}:"));
            }
            Statement::Leave(label) => self.line(&format!("bra.uni OUT{label};")),
            Statement::Next(label) => self.line(&format!("bra.uni NEXT{label};")),
            Statement::Return => self.line("bra.uni DONE;"),
            Statement::Barrier => self.line("bar.sync 0;"),
            Statement::Fence => self.line("fence.acq_rel.gpu;"),
            Statement::Aside(_) => {}
            Statement::Shuffle(to, exchange, value, by, mask) => {
                let (value, by) = (self.expr(value), self.expr(by));
                let (to, mask) = (self.locals[*to].clone(), self.mask(*mask));
                let (mode, bound) = match exchange {
                    Exchange::Index => ("idx", 31),
                    Exchange::Up => ("up", 0),
                    Exchange::Down => ("down", 31),
                    Exchange::Xor => ("bfly", 31),
                };
                self.line(&format!(
                    "shfl.sync.{mode}.b32 {to}, {value}, {by}, {bound}, {mask};"
                ));
            }
            Statement::Ballot(to, condition, mask) => {
                let truth = self.truth(condition);
                let (to, mask) = (self.locals[*to].clone(), self.mask(*mask));
                self.line(&format!("vote.sync.ballot.b32 {to}, {truth}, {mask};"));
            }
            Statement::Meet(mask) => {
                let mask = self.mask(Some(*mask));
                self.line(&format!("bar.warp.sync {mask};"));
            }
        }
    }

    fn mask(&self, mask: Option<usize>) -> String {
        mask.map_or("-1".to_owned(), |mask| self.locals[mask].clone())
    }

    /// Branches to the label where the condition is as `sense` says, and goes on where it is not.
    fn jump(&mut self, condition: &Condition, sense: bool, label: &str) {
        match condition {
            Condition::Not(inner) => self.jump(inner, !sense, label),
            Condition::And(_, right) | Condition::Or(_, right) if self.eager && is_free(right) => {
                let truth = self.truth(condition);
                self.branch(&truth, sense, label);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                // Whether one of them decides.
                let one = matches!(condition, Condition::Or(..)) == sense;
                if one {
                    self.jump(left, sense, label);
                    self.jump(right, sense, label);
                } else {
                    let skip = self.label();
                    self.jump(left, !sense, &skip);
                    self.jump(right, sense, label);
                    self.line(&format!("{skip}:"));
                }
            }
            _ => {
                let truth = self.truth(condition);
                self.branch(&truth, sense, label);
            }
        }
    }

    fn branch(&mut self, truth: &str, sense: bool, label: &str) {
        let not = if sense { "" } else { "!" };
        self.line(&format!("@{not}{truth} bra {label};"));
    }

    /// The condition in a predicate.
    fn truth(&mut self, condition: &Condition) -> String {
        match condition {
            Condition::Compare(relation, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                let truth = self.register(3);
                let relation = match (relation, ty) {
                    // Of a NaN the opposite of equal is true.
                    (Relation::NotEqual, Scalar::F32) => "neu",
                    _ => relation_name(*relation),
                };
                self.line(&format!(
                    "setp.{relation}.{} {truth}, {left}, {right};",
                    wide_type(*ty)
                ));
                truth
            }
            Condition::Pointers(relation, left, right) => {
                let (left, right) = (self.pointer(left), self.pointer(right));
                let truth = self.register(3);
                let relation = relation_name(*relation);
                self.line(&format!("setp.{relation}.u64 {truth}, {left}, {right};"));
                truth
            }
            Condition::Not(inner) => {
                let (inner, truth) = (self.truth(inner), self.register(3));
                self.line(&format!("not.pred {truth}, {inner};"));
                truth
            }
            Condition::And(left, right) | Condition::Or(left, right) if self.eager && is_free(right) => {
                let op = if matches!(condition, Condition::And(..)) {
                    "and"
                } else {
                    "or"
                };
                let (left, right) = (self.truth(left), self.truth(right));
                let truth = self.register(3);
                self.line(&format!("{op}.pred {truth}, {left}, {right};"));
                truth
            }
            Condition::And(..) | Condition::Or(..) => {
                let (truth, number, no) = (self.register(3), self.register(4), self.label());
                self.line(&format!("mov.u32 {number}, 0;"));
                self.jump(condition, false, &no);
                self.line(&format!(
                    "mov.u32 {number}, 1;\n{no}:\nsetp.ne.u32 {truth}, {number}, 0;"
                ));
                truth
            }
        }
    }

    /// The number's register, or a literal.
    fn expr(&mut self, expr: &Expr) -> String {
        let ty = self.program.type_of(expr);
        match expr {
            Expr::Number(Scalar::F32, bits) => format!("0f{bits:08x}"),
            Expr::Number(ty, bits) => match ty.number(*bits) {
                number if number > i128::from(i64::MAX) => format!("{bits:#x}"),
                number => number.to_string(),
            },
            Expr::Variable(local) => {
                // What follows may change the variable; the value is the one of now.
                self.locals[*local].clone()
            }
            Expr::Parameter(number) => self.scalars[*number].clone(),
            Expr::Item => self.item.clone(),
            Expr::Group => self.group.clone(),
            Expr::Binary(op, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                let to = self.register_of(*ty);
                self.binary(*op, *ty, &to, &left, &right);
                to
            }
            Expr::Cast(to_ty, inner) => {
                let from = self.program.type_of(inner);
                let inner = self.expr(inner);
                self.cast(from, *to_ty, inner)
            }
            Expr::Choose(condition, then, otherwise) => {
                let (no, end, to) = (self.label(), self.label(), self.register_of(ty));
                self.jump(condition, false, &no);
                let then = self.expr(then);
                let kind = move_type(ty);
                self.line(&format!("mov.{kind} {to}, {then};\nbra.uni {end};\n{no}:"));
                let otherwise = self.expr(otherwise);
                self.line(&format!("mov.{kind} {to}, {otherwise};\n{end}:"));
                to
            }
            Expr::Load(pointer, index, access) => {
                let address = self.address(pointer, index);
                let to = self.register_of(ty);
                let how = match access {
                    Access::Plain => "ld.global",
                    Access::Constant => "ld.global.nc",
                    Access::Volatile => "ld.volatile.global",
                };
                self.line(&format!("{how}.{} {to}, [{address}];", memory_type(ty)));
                to
            }
            Expr::Step(local, up, after) => {
                let (variable, old) = (self.locals[*local].clone(), self.register_of(ty));
                self.line(&format!("mov.{} {old}, {variable};", move_type(ty)));
                let op = if *up { Arithmetic::Add } else { Arithmetic::Sub };
                self.binary(op, ty, &variable, &variable, "1");
                if *after { variable } else { old }
            }
        }
    }

    fn binary(&mut self, op: Arithmetic, ty: Scalar, to: &str, left: &str, right: &str) {
        let kind = wide_type(ty);
        let bits = if is_wide(ty) { "b64" } else { "b32" };
        // A shift's count has 32 bits.
        let line = match op {
            Arithmetic::Add | Arithmetic::Sub | Arithmetic::Mul if ty == Scalar::F32 => {
                let op = ["add", "sub", "mul"][op as usize];
                format!("{op}.rn.f32 {to}, {left}, {right};")
            }
            Arithmetic::Add => format!("add.{kind} {to}, {left}, {right};"),
            Arithmetic::Sub => format!("sub.{kind} {to}, {left}, {right};"),
            Arithmetic::Mul => format!("mul.lo.{kind} {to}, {left}, {right};"),
            Arithmetic::Div => format!("div.{kind} {to}, {left}, {right};"),
            Arithmetic::Rem => format!("rem.{kind} {to}, {left}, {right};"),
            Arithmetic::And => format!("and.{bits} {to}, {left}, {right};"),
            Arithmetic::Or => format!("or.{bits} {to}, {left}, {right};"),
            Arithmetic::Xor => format!("xor.{bits} {to}, {left}, {right};"),
            Arithmetic::Shl => format!("shl.{bits} {to}, {left}, {right};"),
            Arithmetic::Shr => format!("shr.{kind} {to}, {left}, {right};"),
        };
        self.line(&line);
        self.narrowed(ty, to);
    }

    /// Brings a register to the bits of a narrow type.
    fn narrowed(&mut self, ty: Scalar, register: &str) {
        match ty {
            Scalar::U8 => self.line(&format!("and.b32 {register}, {register}, 255;")),
            Scalar::U16 => self.line(&format!("and.b32 {register}, {register}, 65535;")),
            Scalar::I8 | Scalar::I16 => {
                let kind = memory_type(ty);
                self.line(&format!("cvt.s32.{kind} {register}, {register};"));
            }
            _ => {}
        }
    }

    fn cast(&mut self, from: Scalar, to: Scalar, value: String) -> String {
        let result = self.register_of(to);
        match (is_wide(from), is_wide(to)) {
            _ if to == Scalar::F32 => {
                self.line(&format!("cvt.rn.f32.{} {result}, {value};", wide_type(from)))
            }
            (false, true) => {
                let kind = if from.is_signed() { "s64.s32" } else { "u64.u32" };
                self.line(&format!("cvt.{kind} {result}, {value};"));
            }
            (true, false) => self.line(&format!("cvt.u32.u64 {result}, {value};")),
            _ => self.line(&format!("mov.{} {result}, {value};", move_type(to))),
        }
        self.narrowed(to, &result);
        result
    }

    fn pointer(&mut self, pointer: &Pointer) -> String {
        let size = self.program.element_of(pointer).ir().bytes();
        match pointer {
            Pointer::Array(array) => self.arrays[*array].clone(),
            Pointer::Variable(local) => self.locals[*local].clone(),
            Pointer::Moved(inner, index) => {
                let inner = self.pointer(inner);
                self.moved(inner, size, index)
            }
            Pointer::Choose(condition, one, other) => {
                let (no, end, to) = (self.label(), self.label(), self.register(1));
                self.jump(condition, false, &no);
                let one = self.pointer(one);
                self.line(&format!("mov.u64 {to}, {one};\nbra.uni {end};\n{no}:"));
                let other = self.pointer(other);
                self.line(&format!("mov.u64 {to}, {other};\n{end}:"));
                to
            }
            Pointer::Across(from, to) => {
                let (from, to) = (self.pointer(from), self.pointer(to));
                let (difference, sum) = (self.register(1), self.register(1));
                self.line(&format!("sub.s64 {difference}, {to}, {from};"));
                self.line(&format!("add.s64 {sum}, {from}, {difference};"));
                sum
            }
            Pointer::Step(local, by, after) => {
                let (variable, old) = (self.locals[*local].clone(), self.register(1));
                let bytes = by * i64::from(size);
                self.line(&format!("mov.u64 {old}, {variable};"));
                self.line(&format!("add.s64 {variable}, {variable}, {bytes};"));
                if *after { variable } else { old }
            }
        }
    }

    fn address(&mut self, pointer: &Pointer, index: &Expr) -> String {
        let size = self.program.element_of(pointer).ir().bytes();
        let pointer = self.pointer(pointer);
        self.moved(pointer, size, index)
    }

    fn moved(&mut self, pointer: String, size: u32, index: &Expr) -> String {
        if let Expr::Number(_, 0) = index {
            return pointer;
        }
        let ty = self.program.type_of(index);
        let index = self.expr(index);
        let (bytes, sum) = (self.register(1), self.register(1));
        let kind = wide_type(ty);
        match is_wide(ty) {
            true => self.line(&format!("mul.lo.{kind} {bytes}, {index}, {size};")),
            false => self.line(&format!("mul.wide.{kind} {bytes}, {index}, {size};")),
        }
        self.line(&format!("add.s64 {sum}, {pointer}, {bytes};"));
        sum
    }
}

fn move_type(ty: Scalar) -> &'static str {
    match ty {
        Scalar::F32 => "f32",
        _ if is_wide(ty) => "u64",
        _ => "u32",
    }
}

fn relation_name(relation: Relation) -> &'static str {
    match relation {
        Relation::Less => "lt",
        Relation::LessEqual => "le",
        Relation::Greater => "gt",
        Relation::GreaterEqual => "ge",
        Relation::Equal => "eq",
        Relation::NotEqual => "ne",
    }
}

/// Whether a condition may be computed where it is not asked for: it has no effect and touches no memory.
pub(super) fn is_free(condition: &Condition) -> bool {
    match condition {
        Condition::Compare(_, _, left, right) => is_free_number(left) && is_free_number(right),
        Condition::Pointers(..) => false,
        Condition::Not(inner) => is_free(inner),
        Condition::And(left, right) | Condition::Or(left, right) => is_free(left) && is_free(right),
    }
}

fn is_free_number(expr: &Expr) -> bool {
    match expr {
        Expr::Number(..) | Expr::Variable(_) | Expr::Parameter(_) | Expr::Item | Expr::Group => true,
        Expr::Binary(_, _, left, right) => is_free_number(left) && is_free_number(right),
        Expr::Cast(_, inner) => is_free_number(inner),
        Expr::Choose(..) | Expr::Load(..) | Expr::Step(..) => false,
    }
}
