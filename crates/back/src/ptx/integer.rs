//! Integers, truth values, comparisons and selections.
//!
//! 8- and 16-bit integers live zero-extended in 32-bit registers: operations that could leave other bits
//! above are followed by a mask, and signed operations start with a sign extension. Divisions keep the
//! IR's promise for a divisor of zero and for the one quotient that does not fit; a constant divisor
//! needs neither.

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::{BinaryOp, CompareOp, Id, OpKind, Type, UnaryOp, Value};

/// The width of the registers that hold this integer type.
fn width(ty: Type) -> u32 {
    if ty.bytes() == 8 { 64 } else { 32 }
}

/// Whether it is a dot product of bytes, or of halves and bytes, which an instruction adds to something.
pub(super) fn is_dot(op: BinaryOp) -> bool {
    use BinaryOp::{Dot2S, Dot2SU, Dot2U, Dot2US, Dot4S, Dot4SU, Dot4U};
    matches!(op, Dot4S | Dot4U | Dot4SU | Dot2S | Dot2U | Dot2SU | Dot2US)
}

impl Emitter<'_> {
    pub(super) fn id(&mut self, result: Value, id: Id) {
        let r = self.register(result);
        self.id_into(&r, id);
    }

    /// The answer to a question about the work-item, into a register.
    pub(super) fn id_into(&mut self, r: &str, id: Id) {
        let axis = |dimension: u8| ["x", "y", "z"][usize::from(dimension.min(2))];
        match id {
            Id::Local(d) => self.ins(format!("mov.u32 {r}, %tid.{}", axis(d))),
            Id::Group(d) => self.ins(format!("mov.u32 {r}, %ctaid.{}", axis(d))),
            Id::GroupSize(d) => {
                let size = self.group_size(d);
                self.ins(format!("mov.u32 {r}, {size}"));
            }
            Id::GroupCount(d) => self.ins(format!("mov.u32 {r}, %nctaid.{}", axis(d))),
            Id::Lane => self.ins(format!("mov.u32 {r}, %laneid")),
            Id::SubGroup => {
                let item = self.linear_item();
                self.ins(format!("shr.u32 {r}, {item}, 5"));
            }
            Id::SubGroupSize => {
                // The last sub-group has the work-items that the full ones leave.
                let item = self.linear_item();
                let items = self.group_items();
                self.ins(format!("and.b32 {r}, {item}, -32"));
                self.ins(format!("sub.u32 {r}, {items}, {r}"));
                self.ins(format!("min.u32 {r}, {r}, 32"));
            }
            Id::MaxSubGroupSize => self.ins(format!("mov.u32 {r}, 32")),
            Id::SubGroupCount => {
                let items = self.group_items();
                self.ins(format!("add.u32 {r}, {items}, 31"));
                self.ins(format!("shr.u32 {r}, {r}, 5"));
            }
        }
    }

    /// The work-group's size along a dimension: a number where the kernel requires one.
    fn group_size(&self, dimension: u8) -> String {
        let dimension = usize::from(dimension.min(2));
        match self.kernel.group_size {
            Some(size) => size[dimension].to_string(),
            None => format!("%ntid.{}", ["x", "y", "z"][dimension]),
        }
    }

    /// Number of work-items in the work-group.
    fn group_items(&mut self) -> String {
        if let Some(size) = self.kernel.group_size {
            return size.iter().product::<u32>().to_string();
        }
        let items = self.temporary(Class::B32);
        let size = self.temporary(Class::B32);
        self.ins(format!("mov.u32 {items}, %ntid.x"));
        for axis in ["y", "z"] {
            self.ins(format!("mov.u32 {size}, %ntid.{axis}"));
            self.ins(format!("mul.lo.u32 {items}, {items}, {size}"));
        }
        items
    }

    /// Position of the work-item in its work-group, all dimensions counted.
    pub(super) fn linear_item(&mut self) -> String {
        let item = self.temporary(Class::B32);
        if matches!(self.kernel.group_size, Some([_, 1, 1])) {
            self.ins(format!("mov.u32 {item}, %tid.x"));
            return item;
        }
        let part = self.temporary(Class::B32);
        let size = self.temporary(Class::B32);
        self.ins(format!("mov.u32 {item}, %tid.z"));
        for (dimension, axis) in [(1, "y"), (0, "x")] {
            let extent = self.group_size(dimension);
            self.ins(format!("mov.u32 {part}, %tid.{axis}"));
            self.ins(format!("mov.u32 {size}, {extent}"));
            self.ins(format!("mad.lo.u32 {item}, {item}, {size}, {part}"));
        }
        item
    }

    pub(super) fn integer_unary(&mut self, result: Value, op: UnaryOp, a: Value) {
        let ty = self.ty(a);
        let bits = width(ty);
        let r = self.register(result);
        let a = self.operand(a);
        if ty == Type::Bool {
            self.ins(format!("not.pred {r}, {a}"));
            return;
        }
        match op {
            UnaryOp::Not => self.ins(format!("not.b{bits} {r}, {a}")),
            UnaryOp::Neg => self.ins(format!("neg.s{bits} {r}, {a}")),
            UnaryOp::TableRow => {
                self.table_row(&r, &a);
                return;
            }
            UnaryOp::CountLeadingZeros | UnaryOp::CountOnes => {
                let name = if op == UnaryOp::CountOnes { "popc" } else { "clz" };
                if bits == 64 {
                    let count = self.temporary(Class::B32);
                    self.ins(format!("{name}.b64 {count}, {a}"));
                    self.ins(format!("cvt.u64.u32 {r}, {count}"));
                } else {
                    self.ins(format!("{name}.b32 {r}, {a}"));
                    if op == UnaryOp::CountLeadingZeros && ty.bits() < 32 {
                        self.ins(format!("sub.u32 {r}, {r}, {}", 32 - ty.bits()));
                    }
                }
                return;
            }
            UnaryOp::ReverseBits => {
                self.ins(format!("brev.b{bits} {r}, {a}"));
                if ty.bits() < 32 {
                    self.ins(format!("shr.u32 {r}, {r}, {}", 32 - ty.bits()));
                }
                return;
            }
            _ => unreachable!("the verifier keeps float operations away from integers"),
        }
        self.mask(ty, &r);
    }

    /// Clears the bits above a narrow integer after an operation.
    pub(super) fn mask(&mut self, ty: Type, register: &str) {
        if matches!(ty, Type::I8 | Type::I16) {
            self.ins(format!("and.b32 {register}, {register}, {:#x}", ty.mask()));
        }
    }

    /// A narrow integer as a signed 32-bit one; others as they are.
    pub(super) fn sign_extended(&mut self, ty: Type, operand: String) -> String {
        if !matches!(ty, Type::I8 | Type::I16) {
            return operand;
        }
        if let Ok(bits) = operand.parse::<u64>() {
            return crate::ir::eval::signed(ty, bits).to_string();
        }
        let extended = self.temporary(Class::B32);
        self.ins(format!("cvt.s32.s{} {extended}, {operand}", ty.bits()));
        extended
    }

    /// `r = rest + x · y` of four bytes, or of two halves and two bytes.
    fn dot(&mut self, r: &str, op: BinaryOp, x: Value, y: Value, rest: &str) {
        use BinaryOp::{Dot2S, Dot2SU, Dot2U, Dot2US, Dot4S, Dot4U};
        let sign = |signed: bool| if signed { "s32" } else { "u32" };
        let of_x = sign(!matches!(op, Dot4U | Dot2U | Dot2US));
        let of_y = sign(matches!(op, Dot4S | Dot2S | Dot2US));
        let (mut name, mut upper) = ("dp4a", None);
        if matches!(op, Dot2S | Dot2U | Dot2SU | Dot2US) {
            upper = self.lower_half_of(y);
            name = if upper.is_some() { "dp2a.hi" } else { "dp2a.lo" };
        }
        let (x, y) = (self.operand(x), self.operand(upper.unwrap_or(y)));
        self.ins(format!("{name}.{of_x}.{of_y} {r}, {x}, {y}, {rest}"));
    }

    /// The word whose upper half is the lower half of this one.
    fn lower_half_of(&self, value: Value) -> Option<Value> {
        match *self.definition(value)? {
            OpKind::Binary(BinaryOp::ShrU, word, count) => {
                (self.kernel.as_constant(count) == Some(16)).then_some(word)
            }
            _ => None,
        }
    }

    /// The dot product of bytes that is added here, if the sum is all that it is for; and the other summand.
    fn dot_in(&self, a: Value, b: Value) -> Option<(BinaryOp, Value, Value, Value)> {
        [(a, b), (b, a)].into_iter().find_map(|(dot, rest)| {
            match *self.definition(dot).filter(|_| self.folded.contains(&dot))? {
                OpKind::Binary(op, p, q) if is_dot(op) => Some((op, p, q, rest)),
                _ => None,
            }
        })
    }

    pub(super) fn integer_binary(&mut self, result: Value, op: BinaryOp, a: Value, b: Value) {
        use BinaryOp as B;
        let ty = self.ty(a);
        let bits = width(ty);
        let r = self.register(result);
        let divisor = self.kernel.as_constant(b);
        if matches!(op, B::Shl | B::ShrS | B::ShrU) {
            self.shift(&r, op, ty, a, b);
            return;
        }
        if op == B::Add
            && let Some((dot, p, q, rest)) = self.dot_in(a, b)
        {
            let rest = self.operand(rest);
            return self.dot(&r, dot, p, q, &rest);
        }
        if is_dot(op) {
            return self.dot(&r, op, a, b, "0");
        }
        let (x, y) = (self.operand(a), self.operand(b));
        if ty == Type::Bool {
            let name = match op {
                B::And => "and",
                B::Or => "or",
                _ => "xor",
            };
            self.ins(format!("{name}.pred {r}, {x}, {y}"));
            return;
        }
        let signed = matches!(op, B::DivS | B::RemS | B::MinS | B::MaxS | B::MulHighS);
        let (x, y) = if signed {
            (self.sign_extended(ty, x), self.sign_extended(ty, y))
        } else {
            (x, y)
        };
        match op {
            B::Add => self.ins(format!("add.s{bits} {r}, {x}, {y}")),
            B::Sub => self.ins(format!("sub.s{bits} {r}, {x}, {y}")),
            B::Mul => self.ins(format!("mul.lo.s{bits} {r}, {x}, {y}")),
            B::MulHighS | B::MulHighU if ty.bits() < 32 => {
                self.ins(format!("mul.lo.s32 {r}, {x}, {y}"));
                self.ins(format!("shr.u32 {r}, {r}, {}", ty.bits()));
            }
            B::MulHighS => self.ins(format!("mul.hi.s{bits} {r}, {x}, {y}")),
            B::MulHighU => self.ins(format!("mul.hi.u{bits} {r}, {x}, {y}")),
            B::DivS | B::DivU | B::RemS | B::RemU => self.divide(&r, op, ty, &x, &y, divisor),
            B::And => self.ins(format!("and.b{bits} {r}, {x}, {y}")),
            B::Or => self.ins(format!("or.b{bits} {r}, {x}, {y}")),
            B::Xor => self.ins(format!("xor.b{bits} {r}, {x}, {y}")),
            B::MinS => self.ins(format!("min.s{bits} {r}, {x}, {y}")),
            B::MaxS => self.ins(format!("max.s{bits} {r}, {x}, {y}")),
            B::MinU => self.ins(format!("min.u{bits} {r}, {x}, {y}")),
            B::MaxU => self.ins(format!("max.u{bits} {r}, {x}, {y}")),
            _ => unreachable!("the verifier keeps float operations away from integers"),
        }
        if !matches!(
            op,
            B::And | B::Or | B::Xor | B::MinU | B::MaxU | B::DivU | B::RemU
        ) {
            self.mask(ty, &r);
        }
    }

    /// PTX clamps a 32-bit count to the width, as the IR requires; longer counts are clamped before.
    fn shift(&mut self, r: &str, op: BinaryOp, ty: Type, a: Value, b: Value) {
        let bits = width(ty);
        let mut x = self.operand(a);
        let count = match self.kernel.as_constant(b) {
            Some(count) => count.min(64).to_string(),
            None if bits == 64 => {
                let long = self.register(b);
                let clamped = self.temporary(Class::B64);
                let count = self.temporary(Class::B32);
                self.ins(format!("min.u64 {clamped}, {long}, 64"));
                self.ins(format!("cvt.u32.u64 {count}, {clamped}"));
                count
            }
            None => self.register(b),
        };
        let name = match op {
            BinaryOp::Shl => format!("shl.b{bits}"),
            BinaryOp::ShrU => format!("shr.u{bits}"),
            _ => {
                x = self.sign_extended(ty, x);
                format!("shr.s{bits}")
            }
        };
        self.ins(format!("{name} {r}, {x}, {count}"));
        if op != BinaryOp::ShrU {
            self.mask(ty, r);
        }
    }

    fn divide(&mut self, r: &str, op: BinaryOp, ty: Type, x: &str, y: &str, divisor: Option<u64>) {
        let bits = width(ty);
        let class = if bits == 64 { Class::B64 } else { Class::B32 };
        let signed = matches!(op, BinaryOp::DivS | BinaryOp::RemS);
        let quotient = matches!(op, BinaryOp::DivS | BinaryOp::DivU);
        let name = if quotient { "div" } else { "rem" };
        let sign = if signed { "s" } else { "u" };
        let minus_one = ty.mask();
        if divisor.is_some_and(|divisor| divisor != 0 && !(signed && divisor == minus_one)) {
            self.ins(format!("{name}.{sign}{bits} {r}, {x}, {y}"));
            return;
        }
        // A divisor of 0 (and of -1, which one dividend overflows) is replaced by 1, then the result.
        let zero = self.temporary(Class::Predicate);
        let safe = self.temporary(class);
        let raw = self.temporary(class);
        self.ins(format!("setp.eq.s{bits} {zero}, {y}, 0"));
        self.ins(format!("selp.b{bits} {safe}, 1, {y}, {zero}"));
        let negative = signed.then(|| {
            let negative = self.temporary(Class::Predicate);
            self.ins(format!("setp.eq.s{bits} {negative}, {y}, -1"));
            self.ins(format!("selp.b{bits} {safe}, 1, {safe}, {negative}"));
            negative
        });
        self.ins(format!("{name}.{sign}{bits} {raw}, {x}, {safe}"));
        if let (Some(negative), true) = (&negative, quotient) {
            let negated = self.temporary(class);
            self.ins(format!("neg.s{bits} {negated}, {x}"));
            self.ins(format!("selp.b{bits} {raw}, {negated}, {raw}, {negative}"));
        }
        let for_zero = if quotient { "0" } else { x };
        self.ins(format!("selp.b{bits} {r}, {for_zero}, {raw}, {zero}"));
    }

    pub(super) fn compare(&mut self, result: Value, op: CompareOp, a: Value, b: Value) {
        let ty = self.ty(a);
        let r = self.register(result);
        if ty.is_float() {
            self.float_compare(&r, op, ty, a, b);
            return;
        }
        let (x, y) = (self.operand(a), self.operand(b));
        if ty == Type::Bool {
            let not = self.temporary(Class::Predicate);
            // False lies below true; as a signed bit, true is -1 and lies below false.
            match op {
                CompareOp::Ne => self.ins(format!("xor.pred {r}, {x}, {y}")),
                CompareOp::Eq => {
                    self.ins(format!("xor.pred {not}, {x}, {y}"));
                    self.ins(format!("not.pred {r}, {not}"));
                }
                CompareOp::LtU | CompareOp::LeU => {
                    let name = if op == CompareOp::LtU { "and" } else { "or" };
                    self.ins(format!("not.pred {not}, {x}"));
                    self.ins(format!("{name}.pred {r}, {not}, {y}"));
                }
                _ => {
                    let name = if op == CompareOp::LtS { "and" } else { "or" };
                    self.ins(format!("not.pred {not}, {y}"));
                    self.ins(format!("{name}.pred {r}, {x}, {not}"));
                }
            }
            return;
        }
        let bits = match Class::of(ty) {
            Some(Class::B64) => 64,
            _ => 32,
        };
        let (name, sign) = match op {
            CompareOp::Eq => ("eq", "s"),
            CompareOp::Ne => ("ne", "s"),
            CompareOp::LtS => ("lt", "s"),
            CompareOp::LeS => ("le", "s"),
            CompareOp::LtU => ("lt", "u"),
            _ => ("le", "u"),
        };
        let (x, y) = if matches!(op, CompareOp::LtS | CompareOp::LeS) {
            (self.sign_extended(ty, x), self.sign_extended(ty, y))
        } else {
            (x, y)
        };
        self.ins(format!("setp.{name}.{sign}{bits} {r}, {x}, {y}"));
    }

    pub(super) fn select(&mut self, result: Value, cond: Value, a: Value, b: Value) {
        let Some(class) = Class::of(self.ty(result)) else {
            return;
        };
        let r = self.register(result);
        let (c, x, y) = (self.operand(cond), self.operand(a), self.operand(b));
        self.selection(class, &r, &c, &x, &y);
    }

    /// `r = c ? x : y`.
    pub(super) fn selection(&mut self, class: Class, r: &str, c: &str, x: &str, y: &str) {
        if class == Class::Predicate {
            let (not, first, second) = (
                self.temporary(class),
                self.temporary(class),
                self.temporary(class),
            );
            self.ins(format!("and.pred {first}, {c}, {x}"));
            self.ins(format!("not.pred {not}, {c}"));
            self.ins(format!("and.pred {second}, {not}, {y}"));
            self.ins(format!("or.pred {r}, {first}, {second}"));
        } else {
            self.ins(format!("selp.{} {r}, {x}, {y}, {c}", class.ptx()));
        }
    }
}
