//! A program as CUDA C.

use std::collections::HashSet;
use std::fmt::Write;

use super::tree::{
    Access, Arithmetic, Condition, Exchange, Expr, Local, Pointer, Program, Relation, Scalar, Statement,
};

/// The kernel's text; several may stand in one file.
pub fn cuda(program: &Program) -> String {
    let mut printer = Printer {
        program,
        text: String::new(),
        indent: 1,
        around: Vec::new(),
        jumped: HashSet::new(),
    };
    printer.statements(&program.body);
    let body = printer.text;
    let arrays = program.arrays.iter().map(|array| {
        let volatile = if array.volatile { "volatile " } else { "" };
        let constant = if array.written { "" } else { "const " };
        format!("{volatile}{constant}{}* {}", name(array.element), array.name)
    });
    let scalars = program
        .scalars
        .iter()
        .map(|scalar| format!("{} {}", name(scalar.ty), scalar.name));
    let parameters: Vec<String> = arrays.chain(scalars).collect();
    let mut text = format!(
        "extern \"C\" __global__ void {}({}) {{\n",
        program.name(),
        parameters.join(", ")
    );
    text.push_str("  unsigned t = blockIdx.x * blockDim.x + threadIdx.x;\n");
    for (number, local) in program.locals.iter().enumerate() {
        let _ = match local {
            Local::Number(ty) => writeln!(text, "  {} v{number} = 0;", name(*ty)),
            Local::Pointer(element, array) => {
                let array = &program.arrays[*array];
                writeln!(text, "  const {}* v{number} = {};", name(*element), array.name)
            }
        };
    }
    if let Some(aside) = &program.aside {
        text.push_str(&aside.declarations);
    }
    text + &body + "}\n"
}

fn name(ty: Scalar) -> &'static str {
    match ty {
        Scalar::I8 => "signed char",
        Scalar::U8 => "unsigned char",
        Scalar::I16 => "short",
        Scalar::U16 => "unsigned short",
        Scalar::I32 => "int",
        Scalar::U32 => "unsigned",
        Scalar::I64 => "long long",
        Scalar::U64 => "unsigned long long",
        Scalar::F32 => "float",
    }
}

/// What `break` and `continue` mean.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    Loop(u32),
    Switch(u32),
}

struct Printer<'p> {
    program: &'p Program,
    text: String,
    indent: usize,
    around: Vec<Around>,
    /// Labels that a `goto` names.
    jumped: HashSet<String>,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(self.indent));
    }

    fn inside(&mut self, statements: &[Statement]) {
        self.indent += 1;
        self.statements(statements);
        self.indent -= 1;
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    /// The label behind something, if anything jumps to it.
    fn label(&mut self, label: &str) {
        if self.jumped.contains(label) {
            self.line(&format!("{label}: ;"));
        }
    }

    fn goto(&mut self, label: String) {
        self.line(&format!("goto {label};"));
        self.jumped.insert(label);
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Assign(local, value) => {
                let value = self.expr(value);
                self.line(&format!("v{local} = {value};"));
            }
            Statement::Point(local, pointer) => {
                let pointer = self.pointer(pointer);
                self.line(&format!("v{local} = {pointer};"));
            }
            Statement::Store(pointer, index, value) => {
                let (pointer, index) = (self.pointer(pointer), self.expr(index));
                let value = self.expr(value);
                self.line(&format!("{pointer}[{index}] = {value};"));
            }
            Statement::If(condition, then, otherwise) => {
                let condition = self.condition(condition);
                self.line(&format!("if ({condition}) {{"));
                self.inside(then);
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.inside(otherwise);
                }
                self.line("}");
            }
            Statement::Loop(looped) | Statement::Wait(looped) => {
                // As it is written, so that compilers see a loop of their own.
                self.line("#pragma unroll 1");
                let before = looped.before.as_ref().map(|condition| self.condition(condition));
                let before = before.unwrap_or_default();
                let step = looped.step.iter().map(|statement| match statement {
                    Statement::Assign(local, value) => format!("v{local} = {}", self.expr(value)),
                    Statement::Point(local, pointer) => format!("v{local} = {}", self.pointer(pointer)),
                    other => unreachable!("no step of a loop: {other:?}"),
                });
                let step = step.collect::<Vec<_>>().join(", ");
                match looped.after {
                    Some(_) => self.line("do {"),
                    None => self.line(&format!("for (; {before}; {step}) {{")),
                }
                self.around.push(Around::Loop(looped.label));
                self.inside(&looped.body);
                self.around.pop();
                self.indent += 1;
                self.label(&format!("next{}", looped.label));
                self.indent -= 1;
                match &looped.after {
                    Some(condition) => {
                        let condition = self.condition(condition);
                        self.line(&format!("}} while ({condition});"));
                    }
                    None => self.line("}"),
                }
                self.label(&format!("out{}", looped.label));
            }
            Statement::Switch(switch) => {
                let on = self.expr(&switch.on);
                self.line(&format!("switch ({on}) {{"));
                self.around.push(Around::Switch(switch.label));
                for (case, body) in &switch.cases {
                    match case {
                        Some(value) => self.line(&format!("case {value}u:")),
                        None => self.line("default:"),
                    }
                    self.inside(body);
                }
                self.around.pop();
                self.line("}");
                self.label(&format!("out{}", switch.label));
            }
            Statement::Block(label, body) => {
                self.line("{");
                self.inside(body);
                self.line("}");
                self.label(&format!("out{label}"));
            }
            Statement::Leave(label) => match self.around.last() {
                Some(Around::Loop(inner) | Around::Switch(inner)) if inner == label => self.line("break;"),
                _ => self.goto(format!("out{label}")),
            },
            Statement::Next(label) => {
                let innermost = self
                    .around
                    .iter()
                    .rev()
                    .find(|around| matches!(around, Around::Loop(_)));
                match innermost {
                    Some(Around::Loop(inner)) if inner == label => self.line("continue;"),
                    _ => self.goto(format!("next{label}")),
                }
            }
            Statement::Return => self.line("return;"),
            Statement::Barrier => self.line("__syncthreads();"),
            Statement::Fence => self.line("__threadfence();"),
            Statement::Shuffle(to, exchange, value, by, mask) => {
                let (value, by) = (self.expr(value), self.expr(by));
                let function = match exchange {
                    Exchange::Index => "__shfl_sync",
                    Exchange::Up => "__shfl_up_sync",
                    Exchange::Down => "__shfl_down_sync",
                    Exchange::Xor => "__shfl_xor_sync",
                };
                let mask = mask_name(*mask);
                self.line(&format!("v{to} = {function}({mask}, {value}, {by});"));
            }
            Statement::Ballot(to, condition, mask) => {
                let condition = self.condition(condition);
                let mask = mask_name(*mask);
                self.line(&format!("v{to} = __ballot_sync({mask}, {condition});"));
            }
            Statement::Meet(mask) => self.line(&format!("__syncwarp(v{mask});")),
            Statement::Aside(text) => self.line(text),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Number(ty, bits) => literal(*ty, *bits),
            Expr::Variable(local) => format!("v{local}"),
            Expr::Parameter(number) => self.program.scalars[*number].name.to_owned(),
            Expr::Item => "t".to_owned(),
            Expr::Group => "blockIdx.x".to_owned(),
            Expr::Binary(op, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                let op = match op {
                    Arithmetic::Add => "+",
                    Arithmetic::Sub => "-",
                    Arithmetic::Mul => "*",
                    Arithmetic::Div => "/",
                    Arithmetic::Rem => "%",
                    Arithmetic::And => "&",
                    Arithmetic::Or => "|",
                    Arithmetic::Xor => "^",
                    Arithmetic::Shl => "<<",
                    Arithmetic::Shr => ">>",
                };
                match ty.is_narrow() {
                    // Products of promoted numbers may overflow an `int`, those of unsigned ones may not.
                    true if op == "*" => format!("({})((unsigned){left} * (unsigned){right})", name(*ty)),
                    true => format!("({})({left} {op} {right})", name(*ty)),
                    false => format!("({left} {op} {right})"),
                }
            }
            Expr::Cast(ty, inner) => format!("({}){}", name(*ty), self.expr(inner)),
            Expr::Choose(condition, then, otherwise) => {
                let (condition, then) = (self.condition(condition), self.expr(then));
                format!("({condition} ? {then} : {})", self.expr(otherwise))
            }
            Expr::Load(Pointer::Step(local, by, after), index, _)
                if **index == Expr::Number(Scalar::I32, 0) =>
            {
                format!("*{}", step(*local, *by, *after))
            }
            Expr::Load(pointer, index, access) => {
                let (pointer, index) = (self.pointer(pointer), self.expr(index));
                match access {
                    Access::Constant => format!("__ldg(&{pointer}[{index}])"),
                    Access::Plain | Access::Volatile => format!("{pointer}[{index}]"),
                }
            }
            Expr::Step(local, up, after) => step(*local, if *up { 1 } else { -1 }, *after),
        }
    }

    fn condition(&self, condition: &Condition) -> String {
        match condition {
            Condition::Compare(relation, _, left, right) => {
                format!("{} {} {}", self.expr(left), sign(*relation), self.expr(right))
            }
            Condition::Pointers(relation, left, right) => {
                format!(
                    "{} {} {}",
                    self.pointer(left),
                    sign(*relation),
                    self.pointer(right)
                )
            }
            Condition::Not(inner) => format!("!({})", self.condition(inner)),
            Condition::And(left, right) => {
                format!("({}) && ({})", self.condition(left), self.condition(right))
            }
            Condition::Or(left, right) => {
                format!("({}) || ({})", self.condition(left), self.condition(right))
            }
        }
    }

    fn pointer(&self, pointer: &Pointer) -> String {
        match pointer {
            Pointer::Array(array) => self.program.arrays[*array].name.to_owned(),
            Pointer::Variable(local) => format!("v{local}"),
            Pointer::Moved(inner, index) => format!("({} + {})", self.pointer(inner), self.expr(index)),
            Pointer::Choose(condition, one, other) => format!(
                "({} ? {} : {})",
                self.condition(condition),
                self.pointer(one),
                self.pointer(other)
            ),
            Pointer::Across(from, to) => {
                let (from, address) = (self.pointer(from), self.pointer(to));
                let element = name(self.program.element_of(to));
                let number = "unsigned long long";
                format!("(({element}*)(({number}){from} + (({number}){address} - ({number}){from})))")
            }
            Pointer::Step(local, by, after) => format!("({})", step(*local, *by, *after)),
        }
    }
}

fn step(local: usize, by: i64, after: bool) -> String {
    match (by, after) {
        (1, false) => format!("v{local}++"),
        (1, true) => format!("++v{local}"),
        (-1, false) => format!("v{local}--"),
        (-1, true) => format!("--v{local}"),
        // The value before is the one after, moved back.
        (_, false) => format!("((v{local} += {by}) - ({by}))"),
        (_, true) => format!("(v{local} += {by})"),
    }
}

fn mask_name(mask: Option<usize>) -> String {
    mask.map_or("0xffffffffu".to_owned(), |mask| format!("v{mask}"))
}

fn sign(relation: Relation) -> &'static str {
    match relation {
        Relation::Less => "<",
        Relation::LessEqual => "<=",
        Relation::Greater => ">",
        Relation::GreaterEqual => ">=",
        Relation::Equal => "==",
        Relation::NotEqual => "!=",
    }
}

fn literal(ty: Scalar, bits: u64) -> String {
    let number = ty.number(bits);
    match ty {
        Scalar::F32 => format!("{:?}f", f32::from_bits(bits as u32)),
        Scalar::U32 => format!("{number}u"),
        Scalar::U64 => format!("{number}ull"),
        Scalar::I64 if number == i128::from(i64::MIN) => "(-9223372036854775807ll - 1)".to_owned(),
        Scalar::I64 => format!("({number}ll)"),
        Scalar::I32 if number == i128::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        Scalar::I32 if number < 0 => format!("({number})"),
        Scalar::I32 => format!("{number}"),
        _ => format!("({})({number})", name(ty)),
    }
}
