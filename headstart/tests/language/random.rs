//! Random kernels over the language: each does on the simulator (and on the GPU, where there is one) what its ordinary
//! Rust function does on the CPU.
//!
//! The kernels are in `random_kernels.in`, which [`source`] writes from [`SEED`]; `HEADSTART_BLESS=1` rewrites it. They
//! have integers of 8 to 64 bits, floats of 16 to 64, truth values, vectors, structs, private arrays, branches, loops,
//! device functions, mathematical functions, and nothing that Rust would stop at.

#![allow(warnings, clippy::all, reason = "the kernels are random")]

use std::fmt::Write;
use std::path::Path;

use headstart::device::{Device, TypedBuffer, splitmix64};
use headstart::prelude::*;

use crate::agree::{devices, noise};
use crate::conformance::Feature;

/// What the random numbers start with.
const SEED: u64 = 20;

/// How many kernels.
const COUNT: usize = 24;

/// A struct that the kernels compute with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Data)]
pub struct Cell {
    pub weight: f32,
    pub count: u32,
    pub pair: [f32; 2],
    pub level: i16,
}

/// The bits of a float, and the same ones of every NaN.
#[device_fn]
fn bits(x: f32) -> u64 {
    if x.is_nan() { 1 } else { x.to_bits() as u64 }
}

#[device_fn]
fn wide_bits(x: f64) -> u64 {
    if x.is_nan() { 1 } else { x.to_bits() }
}

#[device_fn]
fn mixed(cell: Cell, by: u32) -> Cell {
    if by % 3 == 0 {
        return Cell {
            count: cell.count ^ by,
            ..cell
        };
    }
    Cell {
        weight: cell.weight * 0.5 + by as f32,
        pair: [cell.pair[1], cell.weight],
        ..cell
    }
}

#[device_fn]
fn stepped(x: &mut u32, by: u32) {
    *x = x_after(*x, by);
}

#[device_fn]
fn x_after(x: u32, by: u32) -> u32 {
    x.rotate_left(by % 32).wrapping_mul(by | 1)
}

include!("random_kernels.in");

/// The types of expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ty {
    Bool,
    U8,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    Pair,
    Cell,
}

use Ty::*;

/// The types that variables have.
const TYPES: [Ty; 12] = [Bool, U8, I16, U32, I32, U64, I64, F16, F32, F64, Pair, Cell];

fn name(ty: Ty) -> &'static str {
    match ty {
        Bool => "bool",
        U8 => "u8",
        I16 => "i16",
        U32 => "u32",
        I32 => "i32",
        U64 => "u64",
        I64 => "i64",
        F16 => "f16",
        F32 => "f32",
        F64 => "f64",
        Pair => "[f32; 2]",
        Ty::Cell => "Cell",
    }
}

fn is_integer(ty: Ty) -> bool {
    matches!(ty, U8 | I16 | U32 | I32 | U64 | I64)
}

/// Writes one kernel.
struct Writer {
    state: u64,
    text: String,
    indent: usize,
    /// The variables in scope.
    variables: Vec<(String, Ty)>,
    made: usize,
}

impl Writer {
    fn below(&mut self, end: usize) -> usize {
        self.state = self.state.wrapping_add(1);
        (splitmix64(self.state, SEED) >> 33) as usize % end
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "    ".repeat(self.indent));
    }

    /// A variable of this type, if there is one.
    fn variable(&mut self, ty: Ty) -> Option<String> {
        let known: Vec<String> = self
            .variables
            .iter()
            .filter(|(_, other)| *other == ty)
            .map(|(name, _)| name.clone())
            .collect();
        (!known.is_empty()).then(|| known[self.below(known.len())].clone())
    }

    /// An expression of this type.
    fn expression(&mut self, ty: Ty, depth: usize) -> String {
        if depth == 0 || self.below(5) == 0 {
            return self.leaf(ty);
        }
        let below = depth - 1;
        if self.below(9) == 0 {
            let (c, a, b) = (
                self.expression(Bool, below),
                self.expression(ty, below),
                self.expression(ty, below),
            );
            return format!("(if {c} {{ {a} }} else {{ {b} }})");
        }
        match ty {
            Bool => self.truth(below),
            F16 => {
                let (a, b) = (self.expression(F16, below), self.expression(F16, below));
                match self.below(3) {
                    0 => format!("f16::from_f32({})", self.expression(F32, below)),
                    1 => format!("({a} + {b})"),
                    _ => format!("({a} * {b})"),
                }
            }
            F32 | F64 => self.float(ty, below),
            Pair => match self.below(3) {
                0 => format!("{}.pair", self.expression(Ty::Cell, below)),
                _ => format!(
                    "[{}, {}]",
                    self.expression(F32, below),
                    self.expression(F32, below)
                ),
            },
            Ty::Cell => match self.below(3) {
                0 => format!(
                    "mixed({}, {})",
                    self.expression(Ty::Cell, below),
                    self.expression(U32, below)
                ),
                1 => format!(
                    "(Cell {{ count: {}, ..{} }})",
                    self.expression(U32, below),
                    self.expression(Ty::Cell, below)
                ),
                _ => format!(
                    "(Cell {{ weight: {}, count: {}, pair: {}, level: {} }})",
                    self.expression(F32, below),
                    self.expression(U32, below),
                    self.expression(Pair, below),
                    self.expression(I16, below)
                ),
            },
            _ => self.integer(ty, below),
        }
    }

    fn truth(&mut self, below: usize) -> String {
        match self.below(5) {
            0 => format!("(!{})", self.expression(Bool, below)),
            1 => {
                let op = self.pick(&["&&", "||", "^", "=="]);
                format!(
                    "({} {op} {})",
                    self.expression(Bool, below),
                    self.expression(Bool, below)
                )
            }
            _ => {
                let ty = [U8, I16, U32, I32, U64, I64, F32, F64][self.below(8)];
                let op = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!(
                    "({} {op} {})",
                    self.expression(ty, below),
                    self.expression(ty, below)
                )
            }
        }
    }

    fn float(&mut self, ty: Ty, below: usize) -> String {
        let (a, b) = (self.expression(ty, below), self.expression(ty, below));
        match self.below(10) {
            0 => format!("({a}).mul_add({b}, {})", self.expression(ty, below)),
            1 => format!(
                "({a}).{}()",
                self.pick(&["abs", "sqrt", "floor", "ceil", "trunc", "recip", "signum"])
            ),
            2 => format!(
                "({a}).{}()",
                self.pick(&["exp", "exp2", "ln", "sin", "cos", "tanh", "cbrt", "atan"])
            ),
            // Not the sign of a NaN, which is the processor's affair.
            3 => format!(
                "({a}).copysign(({}) as {})",
                self.expression(I32, below),
                name(ty)
            ),
            4 => {
                let from = [U8, I16, U32, I32, U64, I64][self.below(6)];
                format!("(({}) as {})", self.expression(from, below), name(ty))
            }
            5 if ty == F32 => match self.below(3) {
                0 => format!("f32::from({})", self.expression(F16, below)),
                1 => format!("{}.weight", self.expression(Ty::Cell, below)),
                _ => format!("{}[{}]", self.expression(Pair, below), self.pick(&["0", "1"])),
            },
            5 => format!("(({}) as f64)", self.expression(F32, below)),
            6 if ty == F32 => format!("(({}) as f32)", self.expression(F64, below)),
            _ => format!("({a} {} {b})", self.pick(&["+", "-", "*", "/", "%"])),
        }
    }

    fn integer(&mut self, ty: Ty, below: usize) -> String {
        let (a, b) = (self.expression(ty, below), self.expression(ty, below));
        match self.below(11) {
            0..=2 => format!(
                "({a}).{}({b})",
                self.pick(&["wrapping_add", "wrapping_sub", "wrapping_mul"])
            ),
            3 => format!("({a} {} {b})", self.pick(&["&", "|", "^"])),
            4 => format!(
                "({a}).{}(({}) % 64)",
                self.pick(&["wrapping_shl", "wrapping_shr", "rotate_left", "rotate_right"]),
                self.expression(U32, below)
            ),
            // Odd, and so not zero; of signed ones not -1 either, for the least number has no opposite.
            5 => match ty {
                U8 | U32 | U64 => format!("({a} {} ({b} | 1))", self.pick(&["/", "%"])),
                _ => format!("({a} {} (({b} & 63) | 1))", self.pick(&["/", "%"])),
            },
            6 => format!("({a}).{}({b})", self.pick(&["min", "max"])),
            7 => {
                let from = TYPES[self.below(7)];
                let from = if from == ty { F32 } else { from };
                format!("(({}) as {})", self.expression(from, below), name(ty))
            }
            8 => format!("(({}) as {})", self.expression(F64, below), name(ty)),
            9 if ty == U32 => match self.below(4) {
                0 => format!("{}.count", self.expression(Ty::Cell, below)),
                1 => format!("x_after({a}, {b})"),
                2 => format!("dot4_u8({a}, {b}, {})", self.expression(U32, below)),
                _ => format!("({}).count_ones()", self.expression(U64, below)),
            },
            9 if ty == I16 => format!("{}.level", self.expression(Ty::Cell, below)),
            9 if ty == I32 => format!(
                "dot4_i8({}, {}, {a})",
                self.expression(U32, below),
                self.expression(U32, below)
            ),
            _ => format!("(!{a})"),
        }
    }

    fn leaf(&mut self, ty: Ty) -> String {
        if self.below(4) != 0
            && let Some(variable) = self.variable(ty)
        {
            return variable;
        }
        let number = self.below(120);
        match ty {
            Bool => self.pick(&["true", "false"]).to_owned(),
            U8 => format!("{number}u8"),
            I16 => format!("(-{number}i16)"),
            U32 => match self.below(3) {
                0 => format!("{number}u32"),
                _ => format!("integers[(i + {number}) % integers.len()]"),
            },
            I32 => format!("(-{number}i32)"),
            U64 => format!("{number}u64"),
            I64 => format!("(-{number}i64)"),
            F16 => format!("f16::from_f32({number}.25)"),
            F32 => match self.below(3) {
                0 => format!("{number}.5f32"),
                _ => format!("floats[(i + {number}) % floats.len()]"),
            },
            F64 => format!("{number}.125f64"),
            Pair => format!("pairs[(i + {number}) % pairs.len()]"),
            Ty::Cell => format!("cells[(i + {number}) % cells.len()]"),
        }
    }

    /// Opens a block, writes statements into it, closes it; what it declared is gone.
    fn block(&mut self, head: &str, depth: usize, statements: usize) {
        self.line(head);
        self.indent += 1;
        let known = self.variables.len();
        for _ in 0..statements {
            self.statement(depth);
        }
        self.variables.truncate(known);
        self.indent -= 1;
    }

    fn statement(&mut self, depth: usize) {
        match self.below(if depth == 0 { 6 } else { 10 }) {
            0 | 1 => {
                let ty = TYPES[self.below(TYPES.len())];
                let value = self.expression(ty, 3);
                self.made += 1;
                let variable = format!("v{}", self.made);
                self.line(&format!("let mut {variable}: {} = {value};", name(ty)));
                self.variables.push((variable, ty));
            }
            2 | 3 => {
                let ty = TYPES[self.below(TYPES.len())];
                if let Some(variable) = self.variable(ty) {
                    let value = self.expression(ty, 3);
                    self.line(&format!("{variable} = {value};"));
                }
            }
            4 => self.part(),
            5 => {
                if let Some(variable) = self.variable(U32) {
                    // What is borrowed cannot be read meanwhile.
                    let at = self.below(50);
                    self.line(&format!(
                        "stepped(&mut {variable}, integers[(i + {at}) % integers.len()]);"
                    ));
                }
            }
            6 | 7 => {
                let condition = self.expression(Bool, 2);
                let count = 1 + self.below(3);
                self.block(&format!("if {condition} {{"), depth - 1, count);
                if self.below(2) == 0 {
                    self.block("} else {", depth - 1, 2);
                }
                self.line("}");
            }
            8 => {
                self.made += 1;
                let counter = format!("j{}", self.made);
                let (end, step) = (2 + self.below(4), 1 + self.below(2));
                let known = self.variables.len();
                self.block(
                    &format!("for {counter} in (0..{end}u32).step_by({step}) {{"),
                    depth - 1,
                    2,
                );
                self.variables.truncate(known);
                if let Some(variable) = self.variable(U32) {
                    self.line(&format!("    {variable} = {variable}.wrapping_add({counter});"));
                }
                if self.below(3) == 0 {
                    let condition = self.expression(Bool, 1);
                    self.line(&format!("    if {condition} {{ break; }}"));
                }
                self.line("}");
            }
            _ => {
                self.made += 1;
                let array = format!("a{}", self.made);
                let value = self.expression(U64, 2);
                self.line(&format!("let mut {array} = [{value}; 4];"));
                let (at, with) = (self.expression(U32, 2), self.expression(U64, 2));
                self.line(&format!("{array}[({at}) as usize % 4] ^= {with};"));
                let at = self.expression(U32, 2);
                self.line(&format!("sum = sum.wrapping_add({array}[({at}) as usize % 4]);"));
            }
        }
    }

    /// Changes a part of a variable.
    fn part(&mut self) {
        match self.below(3) {
            0 => {
                if let Some(variable) = self.variable(Ty::Cell) {
                    let value = self.expression(F32, 2);
                    let at = self.expression(U32, 1);
                    self.line(&format!("{variable}.pair[({at}) as usize % 2] += {value};"));
                }
            }
            1 => {
                if let Some(variable) = self.variable(Pair) {
                    let value = self.expression(F32, 2);
                    self.line(&format!("{variable}[1] = {value};"));
                }
            }
            _ => {
                if let Some(variable) = self.variable(Ty::Cell) {
                    let value = self.expression(I16, 2);
                    self.line(&format!("{variable}.level = {value};"));
                }
            }
        }
    }

    /// Adds what the variables hold to the output.
    fn ending(&mut self) {
        for (variable, ty) in self.variables.clone() {
            let word = match ty {
                Bool => format!("{variable} as u64"),
                F16 => format!("bits(f32::from({variable}))"),
                F32 => format!("bits({variable})"),
                F64 => format!("wide_bits({variable})"),
                Pair => format!("bits({variable}[0]) ^ bits({variable}[1]).rotate_left(7)"),
                Ty::Cell => format!(
                    "bits({variable}.weight) ^ bits({variable}.pair[0]) ^ ({variable}.count as u64) << 32 ^ ({variable}.level as u64) << 16"
                ),
                _ => format!("{variable} as u64"),
            };
            self.line(&format!("sum = sum.rotate_left(9).wrapping_add({word});"));
        }
        self.line("output[i] = sum;");
    }
}

/// The text of all kernels.
fn source() -> String {
    let mut text = format!(
        "// Written by `random.rs` beside it from the seed {SEED}: {COUNT} kernels. `HEADSTART_BLESS=1` rewrites it.\n"
    );
    for number in 0..COUNT {
        let mut writer = Writer {
            state: (number as u64) << 32,
            text: String::new(),
            indent: 1,
            variables: Vec::new(),
            made: 0,
        };
        writer.line("let i = global_id();");
        writer.line("let mut sum = 0u64;");
        for (variable, ty, value) in [
            ("u", U32, "integers[i]"),
            ("f", F32, "floats[i]"),
            ("c", Ty::Cell, "cells[i]"),
        ] {
            writer.line(&format!("let mut {variable}: {} = {value};", name(ty)));
            writer.variables.push((variable.to_owned(), ty));
        }
        for _ in 0..9 {
            writer.statement(2);
        }
        writer.ending();
        let _ = write!(
            text,
            "\n#[kernel]\nfn random_{number}(integers: &[u32], floats: &[f32], pairs: &[[f32; 2]], cells: &[Cell], \
             output: &mut [u64]) {{\n{}}}\n",
            writer.text
        );
    }
    let _ = writeln!(
        text,
        "\nmacro_rules! for_each_random_kernel {{\n    ($apply:ident) => {{"
    );
    for number in 0..COUNT {
        let _ = writeln!(text, "        $apply!(random_{number});");
    }
    text.push_str("    };\n}\n");
    text
}

#[test]
fn the_kernels_are_those_of_the_seed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/random_kernels.in");
    let source = source();
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        std::fs::write(&path, &source).expect("the file can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == source,
        "random_kernels.in is not up to date; HEADSTART_BLESS=1 rewrites it"
    );
}

#[test]
fn random_kernels_agree() {
    const ITEMS: usize = 96;
    let noise = noise(ITEMS * 4);
    let integers = &noise[..ITEMS];
    // Small and large numbers, zeros, infinities and NaNs among them.
    let floats: Vec<f32> = noise[ITEMS..ITEMS * 2]
        .iter()
        .map(|&bits| match bits % 8 {
            0 => f32::from_bits(bits),
            1 => (bits >> 8) as f32 * -1e-3,
            2 => [0.0, -0.0, f32::INFINITY, f32::NAN][(bits >> 8) as usize % 4],
            _ => (bits >> 16) as f32 / 1000.0 - 20.0,
        })
        .collect();
    let flat: Vec<f32> = noise[ITEMS * 2..ITEMS * 3]
        .iter()
        .map(|&bits| bits as f32 / 1e8)
        .collect();
    let pairs: Vec<[f32; 2]> = flat.chunks(2).map(|pair| [pair[0], pair[1]]).collect();
    let cells: Vec<Cell> = (0..ITEMS)
        .map(|i| Cell {
            weight: floats[ITEMS - 1 - i],
            count: noise[ITEMS * 3 + i],
            pair: pairs[i / 2],
            level: noise[i] as i16,
        })
        .collect();
    let geometry = Geometry::new(3, 32);
    let devices = devices();
    let mut kernels = 0;
    macro_rules! check {
        ($kernel:ident) => {{
            kernels += 1;
            let mut expected = vec![0u64; ITEMS];
            $kernel::reference(geometry, integers, &floats, &pairs, &cells, &mut expected).expect("runs");
            for device in &devices {
                let device: &dyn Device = &**device;
                let queue = device.queue().expect("a queue");
                let integers = TypedBuffer::from_slice(device, integers).expect("fits");
                let floats = TypedBuffer::from_slice(device, &floats).expect("fits");
                let pairs = TypedBuffer::from_slice(device, &flat).expect("fits");
                let cells = TypedBuffer::from_slice(device, &cells).expect("fits");
                let mut output = TypedBuffer::from_slice(device, &[0u64; ITEMS]).expect("fits");
                let arguments = $kernel::arguments(&integers, &floats, &pairs, &cells, &mut output);
                let Some(compiled) = crate::agree::taken(device, $kernel::compile(device)) else {
                    continue;
                };
                let text = headstart::ir::print(compiled.program().kernel());
                let event = compiled.launch(&*queue, geometry, arguments);
                event.wait().unwrap_or_else(|error| panic!("{error}\n{text}"));
                let found = output.read(&*queue).expect("written");
                let name = stringify!($kernel);
                assert_eq!(found, expected, "{name} on {}\n{text}", device.description().name);
            }
            crate::agree::lowers($kernel::kernel());
        }};
    }
    for_each_random_kernel!(check);
    assert_eq!(kernels, COUNT);
    let names: Vec<&str> = devices
        .iter()
        .map(|device| device.description().name.as_str())
        .collect();
    println!(
        "{kernels} kernels from the seed {SEED:#x}, each on {ITEMS} work-items, agree on {}",
        names.join(", ")
    );
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "random kernels over all of this",
    spelled: "24 kernels from a seed: `tests/language/random.rs`",
    kernel: random_0::kernel,
    test: random_kernels_agree,
}];
