//! Integer arithmetic, comparisons of everything.
//!
//! SPIR-V leaves a division by zero and a count beyond the width undefined; the IR defines them, so both are avoided and their
//! results selected. Constant divisors and counts need neither.

use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op as Code, OpenclStd100Op as Std, StorageClass, Word};

use super::emitter::Emitter;
use crate::ir::eval::table;
use crate::ir::{BinaryOp, CompareOp, Type, UnaryOp, Value};

impl Emitter<'_> {
    pub(super) fn integer_unary(&mut self, op: UnaryOp, a: Value) -> Word {
        let ty = self.ty(a);
        let (x, id) = (self.id(a), self.ty_id(ty));
        match op {
            UnaryOp::Not if ty == Type::Bool => self.module.ins(Code::LogicalNot, id, &[x]),
            UnaryOp::Not => self.module.ins(Code::Not, id, &[x]),
            UnaryOp::Neg => self.module.ins(Code::SNegate, id, &[x]),
            UnaryOp::CountLeadingZeros => self.module.opencl(id, Std::clz, &[x]),
            UnaryOp::CountOnes => self.module.opencl(id, Std::popcount, &[x]),
            UnaryOp::ReverseBits => self.reversed(ty, x),
            UnaryOp::TableRow => self.table_row(x),
            _ => unreachable!("the verifier keeps float operations away from integers"),
        }
    }

    /// A row from the module's constants.
    fn table_row(&mut self, index: Word) -> Word {
        let long = self.module.int(64);
        let rows: Vec<Word> = (0..table::ROWS as u64)
            .map(|index| self.module.constant(64, table::row(index)))
            .collect();
        let ty = self.module.array(long, rows.len() as u32);
        let initial = self.module.composite(ty, &rows);
        let class = StorageClass::UniformConstant;
        let variable = self.module.initialized(class, ty, initial);
        if !self.interface.contains(&variable) {
            self.interface.push(variable);
        }
        let last = self.module.constant(64, table::ROWS as u64 - 1);
        let index = self.module.ins(Code::BitwiseAnd, long, &[index, last]);
        let zero = self.module.constant(64, 0);
        let pointer = self.module.pointer(class, long);
        let at = self
            .module
            .ins(Code::InBoundsPtrAccessChain, pointer, &[variable, zero, index]);
        let how = vec![
            Operand::IdRef(at),
            Operand::MemoryAccess(MemoryAccess::ALIGNED),
            Operand::LiteralBit32(8),
        ];
        self.module.make(Code::Load, long, how)
    }

    /// The bits in reverse order: neighbours change places, then pairs, and so on. OpenCL has no function for it.
    fn reversed(&mut self, ty: Type, mut x: Word) -> Word {
        let (bits, id) = (ty.bits(), self.ty_id(ty));
        let mut distance = 1;
        while distance < bits {
            // Ones in every other run of `distance` bits, from the lowest on.
            let mask = (0..bits)
                .filter(|bit| bit / distance % 2 == 0)
                .fold(0u64, |mask, bit| mask | 1 << bit);
            let [mask, count] = [mask, u64::from(distance)].map(|number| self.module.constant(bits, number));
            let high = self.module.ins(Code::ShiftRightLogical, id, &[x, count]);
            let high = self.module.ins(Code::BitwiseAnd, id, &[high, mask]);
            let low = self.module.ins(Code::BitwiseAnd, id, &[x, mask]);
            let low = self.module.ins(Code::ShiftLeftLogical, id, &[low, count]);
            x = self.module.ins(Code::BitwiseOr, id, &[high, low]);
            distance *= 2;
        }
        x
    }

    pub(super) fn integer_binary(&mut self, op: BinaryOp, a: Value, b: Value) -> Word {
        use BinaryOp as B;
        let ty = self.ty(a);
        let (x, y, id) = (self.id(a), self.id(b), self.ty_id(ty));
        let constant = self.kernel.as_constant(b);
        let module = &mut self.module;
        match op {
            B::And if ty == Type::Bool => module.ins(Code::LogicalAnd, id, &[x, y]),
            B::Or if ty == Type::Bool => module.ins(Code::LogicalOr, id, &[x, y]),
            B::Xor if ty == Type::Bool => module.ins(Code::LogicalNotEqual, id, &[x, y]),
            B::Add => module.ins(Code::IAdd, id, &[x, y]),
            B::Sub => module.ins(Code::ISub, id, &[x, y]),
            B::Mul => module.ins(Code::IMul, id, &[x, y]),
            B::And => module.ins(Code::BitwiseAnd, id, &[x, y]),
            B::Or => module.ins(Code::BitwiseOr, id, &[x, y]),
            B::Xor => module.ins(Code::BitwiseXor, id, &[x, y]),
            B::MulHighS => module.opencl(id, Std::s_mul_hi, &[x, y]),
            B::MulHighU => module.opencl(id, Std::u_mul_hi, &[x, y]),
            B::MinS => module.opencl(id, Std::s_min, &[x, y]),
            B::MinU => module.opencl(id, Std::u_min, &[x, y]),
            B::MaxS => module.opencl(id, Std::s_max, &[x, y]),
            B::MaxU => module.opencl(id, Std::u_max, &[x, y]),
            B::Shl | B::ShrS | B::ShrU => self.shift(op, ty, x, y, constant),
            B::DivS | B::DivU | B::RemS | B::RemU => self.divide(op, ty, x, y, constant),
            B::Dot4S | B::Dot4U | B::Dot4SU => self.dot4(op, x, y),
            B::Dot2S | B::Dot2U | B::Dot2SU | B::Dot2US => self.dot2(op, x, y),
            _ => unreachable!("the verifier keeps float operations away from integers"),
        }
    }

    fn shift(&mut self, op: BinaryOp, ty: Type, x: Word, y: Word, constant: Option<u64>) -> Word {
        let (bits, id) = (ty.bits(), self.ty_id(ty));
        let code = match op {
            BinaryOp::Shl => Code::ShiftLeftLogical,
            BinaryOp::ShrU => Code::ShiftRightLogical,
            _ => Code::ShiftRightArithmetic,
        };
        let most = self.module.constant(bits, u64::from(bits) - 1);
        if constant.is_some_and(|count| count < u64::from(bits)) {
            return self.module.ins(code, id, &[x, y]);
        }
        let count = self.module.opencl(id, Std::u_min, &[y, most]);
        let shifted = self.module.ins(code, id, &[x, count]);
        if op == BinaryOp::ShrS {
            return shifted;
        }
        let zero = self.module.constant(bits, 0);
        let boolean = self.module.boolean();
        let beyond = self.module.ins(Code::UGreaterThan, boolean, &[y, most]);
        self.module.ins(Code::Select, id, &[beyond, zero, shifted])
    }

    fn divide(&mut self, op: BinaryOp, ty: Type, x: Word, y: Word, constant: Option<u64>) -> Word {
        let (bits, id, boolean) = (ty.bits(), self.ty_id(ty), self.module.boolean());
        let signed = matches!(op, BinaryOp::DivS | BinaryOp::RemS);
        let quotient = matches!(op, BinaryOp::DivS | BinaryOp::DivU);
        let code = match op {
            BinaryOp::DivS => Code::SDiv,
            BinaryOp::DivU => Code::UDiv,
            BinaryOp::RemS => Code::SRem,
            _ => Code::UMod,
        };
        if constant.is_some_and(|divisor| divisor != 0 && !(signed && divisor == ty.mask())) {
            return self.module.ins(code, id, &[x, y]);
        }
        // A divisor of 0 (and of -1, which one dividend overflows) is replaced by 1, then the result.
        let [none, one, minus_one] = [0, 1, ty.mask()].map(|number| self.module.constant(bits, number));
        let zero = self.module.ins(Code::IEqual, boolean, &[y, none]);
        let mut safe = self.module.ins(Code::Select, id, &[zero, one, y]);
        let mut negative = None;
        if signed {
            let is = self.module.ins(Code::IEqual, boolean, &[y, minus_one]);
            safe = self.module.ins(Code::Select, id, &[is, one, safe]);
            negative = Some(is);
        }
        let mut made = self.module.ins(code, id, &[x, safe]);
        if let (Some(negative), true) = (negative, quotient) {
            let negated = self.module.ins(Code::SNegate, id, &[x]);
            made = self.module.ins(Code::Select, id, &[negative, negated, made]);
        }
        let for_zero = if quotient { none } else { x };
        self.module.ins(Code::Select, id, &[zero, for_zero, made])
    }

    /// The sum of the products of four bytes. Compilers know the pattern where the device has an instruction.
    fn dot4(&mut self, op: BinaryOp, x: Word, y: Word) -> Word {
        let (int, byte) = (self.module.int(32), self.module.int(8));
        let vector = self.module.vector(byte, 4);
        let codes = match op {
            BinaryOp::Dot4S => [Code::SConvert; 2],
            BinaryOp::Dot4U => [Code::UConvert; 2],
            _ => [Code::SConvert, Code::UConvert],
        };
        let [x, y] = [x, y].map(|word| self.module.ins(Code::Bitcast, vector, &[word]));
        let mut sum = self.module.constant(32, 0);
        for index in 0..4 {
            let [p, q] = [(x, codes[0]), (y, codes[1])].map(|(bytes, code)| {
                let one = self.component(byte, bytes, index);
                self.module.ins(code, int, &[one])
            });
            let product = self.module.ins(Code::IMul, int, &[p, q]);
            sum = self.module.ins(Code::IAdd, int, &[sum, product]);
        }
        sum
    }

    /// The sum of the products of two halves and two bytes.
    fn dot2(&mut self, op: BinaryOp, x: Word, y: Word) -> Word {
        let int = self.module.int(32);
        let parts = [
            (x, 16, matches!(op, BinaryOp::Dot2S | BinaryOp::Dot2SU)),
            (y, 8, matches!(op, BinaryOp::Dot2S | BinaryOp::Dot2US)),
        ];
        let [low, high] = [0, 1].map(|index| {
            let [p, q] = parts.map(|(word, bits, is_signed)| {
                let code = if is_signed { Code::SConvert } else { Code::UConvert };
                let narrow = self.module.int(bits);
                let count = self.module.constant(32, u64::from(index * bits));
                let moved = self.module.ins(Code::ShiftRightLogical, int, &[word, count]);
                let part = self.module.ins(Code::UConvert, narrow, &[moved]);
                self.module.ins(code, int, &[part])
            });
            self.module.ins(Code::IMul, int, &[p, q])
        });
        self.module.ins(Code::IAdd, int, &[low, high])
    }

    pub(super) fn compare(&mut self, op: CompareOp, a: Value, b: Value) -> Word {
        let ty = self.ty(a);
        if ty.is_float() {
            return self.float_compare(op, a, b);
        }
        let (mut x, mut y) = (self.id(a), self.id(b));
        if ty.is_pointer() {
            let long = self.module.int(64);
            [x, y] = [x, y].map(|pointer| self.module.ins(Code::ConvertPtrToU, long, &[pointer]));
        }
        let code = match (op, ty) {
            (CompareOp::Eq, Type::Bool) => Code::LogicalEqual,
            (CompareOp::Ne, Type::Bool) => Code::LogicalNotEqual,
            (CompareOp::Eq, _) => Code::IEqual,
            (CompareOp::Ne, _) => Code::INotEqual,
            (CompareOp::LtS, _) => Code::SLessThan,
            (CompareOp::LeS, _) => Code::SLessThanEqual,
            (CompareOp::LtU, _) => Code::ULessThan,
            _ => Code::ULessThanEqual,
        };
        let boolean = self.module.boolean();
        self.module.ins(code, boolean, &[x, y])
    }

    /// One component of a vector.
    pub(super) fn component(&mut self, ty: Word, vector: Word, index: u32) -> Word {
        let operands = vec![Operand::IdRef(vector), Operand::LiteralBit32(index)];
        self.module.make(Code::CompositeExtract, ty, operands)
    }
}
