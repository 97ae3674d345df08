//! Queries of the lowering about values: their definitions, their uses, and how many of their bits are used.

use std::collections::HashSet;

use cranelift_entity::{EntitySet, SecondaryMap};

use super::target::{Family, Target};
use crate::analysis::uniform::Divergence;
use crate::banked::BankedConstants;
use crate::commits::{commits, labelled};
use crate::ir::{
    BinaryOp, ConvertOp, Id, Kernel, Label, Op, OpClass, OpKind, Region, Space, Type, UnaryOp, Value,
};
use crate::nan::NanPlan;

/// Facts about every value of a kernel.
pub(super) struct Facts<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// The target that it is lowered for.
    pub target: Target,
    /// The operation that makes a value, if one does.
    pub made_by: SecondaryMap<Value, Option<&'k Op>>,
    /// Where a value is used.
    pub uses: SecondaryMap<Value, Vec<Use<'k>>>,
    /// The region that a value is made in; regions are numbered as they are entered.
    pub home: SecondaryMap<Value, u32>,
    /// Conditions on which work-items of a sub-group diverge.
    pub divergence: Divergence,
    /// Values from constant memory.
    pub banked: BankedConstants,
    /// The tokens after whose operations a group of copies is closed.
    pub commits: HashSet<Value>,
    /// Where NaNs are made canonical by instructions that the program shows.
    pub nans: NanPlan,
    /// 64-bit values whose upper half is used.
    upper: EntitySet<Value>,
}

/// One use of a value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use<'k> {
    /// Who uses it.
    pub by: &'k Op,
    /// In which region.
    pub region: u32,
}

impl<'k> Facts<'k> {
    /// Looks at a whole kernel.
    pub(crate) fn of(kernel: &'k Kernel, target: Target) -> Facts<'k> {
        let mut facts = Facts {
            kernel,
            target,
            made_by: kernel.body.makers(),
            uses: SecondaryMap::new(),
            home: SecondaryMap::new(),
            divergence: Divergence::of(kernel),
            banked: match target.family {
                Family::Nvidia => BankedConstants::of(kernel),
                Family::Intel => BankedConstants::default(),
            },
            commits: match target.family {
                Family::Nvidia => commits(kernel, &labelled(kernel)),
                Family::Intel => HashSet::new(),
            },
            nans: match target.rules.canonical_nans {
                true => NanPlan::of(kernel),
                false => NanPlan::default(),
            },
            upper: EntitySet::new(),
        };
        let mut regions = 0;
        facts.region(&kernel.body, &mut regions);
        facts.find_upper_halves();
        facts
    }

    fn region(&mut self, region: &'k Region, regions: &mut u32) {
        let number = *regions;
        *regions += 1;
        for op in &region.ops {
            for &result in &op.results {
                self.home[result] = number;
            }
            op.kind.for_each_operand(|operand| {
                self.uses[operand].push(Use {
                    by: op,
                    region: number,
                })
            });
            for inner in op.kind.regions() {
                self.region(inner, regions);
            }
        }
    }

    /// The only use of a value, if it has just one, in the region where it is made.
    pub(crate) fn only_use(&self, value: Value) -> Option<&'k Op> {
        match &self.uses[value][..] {
            [only] if only.region == self.home[value] => Some(only.by),
            _ => None,
        }
    }

    /// How a value is made.
    pub(crate) fn kind(&self, value: Value) -> Option<&'k OpKind> {
        self.made_by[value].map(|op| &op.kind)
    }

    /// Whether an operation uses more than the lower 32 bits.
    pub(crate) fn needs_upper(&self, value: Value) -> bool {
        self.upper.contains(value)
    }

    /// 32-bit registers of a value: none for truth values, tokens, and values in uniform registers.
    pub(crate) fn width(&self, value: Value) -> u8 {
        let uniform = !self.divergence.differs(value) && self.is_uniform_arithmetic(value);
        match self.kernel.ty(value) {
            Type::Bool | Type::Token => 0,
            Type::I8 | Type::I16 | Type::I32 | Type::I64 if uniform => 0,
            Type::I8 | Type::I16 | Type::I32 | Type::F16 | Type::Bf16 | Type::F32 => 1,
            Type::I64 => 1 + u8::from(self.needs_upper(value)),
            Type::F64 | Type::Ptr(Space::Global | Space::Generic) => 2,
            Type::Ptr(Space::Shared | Space::Private) => 1,
        }
    }

    /// Whether one work-item's instruction makes it, for all of the sub-group.
    pub(crate) fn is_scalar(&self, value: Value) -> bool {
        self.target.rules.scalar_instructions && !self.divergence.differs(value)
    }

    /// Whether the scalar unit can make it; on Intel one lane's worth of a register, so none either.
    fn is_uniform_arithmetic(&self, value: Value) -> bool {
        match self.kind(value).map(OpKind::plain) {
            None => true,
            Some(kind) if kind.class() == OpClass::Effect => false,
            Some(OpKind::Convert(convert, _)) => !matches!(
                convert,
                ConvertOp::FloatToSigned | ConvertOp::FloatToUnsigned | ConvertOp::Bits
            ),
            Some(_) => true,
        }
    }

    /// Marks the values whose upper half reaches an address in global memory, a comparison, memory.
    fn find_upper_halves(&mut self) {
        let mut results: SecondaryMap<Label, &[Value]> = SecondaryMap::with_default(&[]);
        let mut params: SecondaryMap<Label, &[Value]> = SecondaryMap::with_default(&[]);
        // Needed if the first is needed.
        let mut passes: SecondaryMap<Value, Vec<Value>> = SecondaryMap::new();
        let mut work: Vec<Value> = Vec::new();
        let kernel = self.kernel;
        kernel.body.walk(&mut |op| {
            if let Some(label) = op.kind.label() {
                results[label] = &op.results;
            }
            let mut pass = |to: &[Value], from: &[Value]| {
                for (&to, &from) in to.iter().zip(from) {
                    passes[to].push(from);
                }
            };
            match &op.kind {
                OpKind::Binary(
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::Shl,
                    a,
                    b,
                )
                | OpKind::NoWrap(_, _, a, b) => {
                    pass(&op.results, &[*a]);
                    pass(&op.results, &[*b]);
                }
                OpKind::Unary(UnaryOp::Not | UnaryOp::Neg, a) => pass(&op.results, &[*a]),
                OpKind::Select(_, a, b) => {
                    pass(&op.results, &[*a]);
                    pass(&op.results, &[*b]);
                }
                OpKind::Convert(ConvertOp::Truncate, _) => {}
                OpKind::Address { base, index, .. } => {
                    if !matches!(kernel.ty(*base), Type::Ptr(Space::Shared | Space::Private)) {
                        work.push(*index);
                    }
                }
                OpKind::Loop {
                    label,
                    params: own,
                    initial,
                    ..
                } => {
                    params[*label] = own;
                    pass(own, initial);
                }
                OpKind::Break(label, values) => pass(results[*label], values),
                OpKind::Continue(label, values) => pass(params[*label], values),
                kind => kind.for_each_operand(|operand| work.push(operand)),
            }
        });
        while let Some(value) = work.pop() {
            if kernel.ty(value) == Type::I64 && self.upper.insert(value) {
                work.extend(passes[value].iter().copied());
            }
        }
    }

    /// A value of 32 bits or fewer that this is the widening of, and whether signs were filled in.
    pub(crate) fn widened(&self, value: Value) -> Option<(Value, bool)> {
        match self.kind(value)? {
            OpKind::Convert(ConvertOp::ExtendU, narrow) => Some((*narrow, false)),
            OpKind::Convert(ConvertOp::ExtendS, narrow) => Some((*narrow, true)),
            _ => None,
        }
    }

    /// Whether the lower half of a 64-bit integer is known to be zero.
    pub(crate) fn lower_is_zero(&self, value: Value) -> bool {
        if let Some(bits) = self.kernel.as_constant(value) {
            return bits as u32 == 0;
        }
        match self.kind(value) {
            Some(OpKind::Binary(BinaryOp::Shl, _, count)) => {
                self.kernel.as_constant(*count).is_some_and(|count| count >= 32)
            }
            _ => false,
        }
    }

    /// Whether the upper half of a 64-bit integer is known to be zero.
    pub(crate) fn upper_is_zero(&self, value: Value) -> bool {
        if let Some(bits) = self.kernel.as_constant(value) {
            return bits >> 32 == 0;
        }
        match self.kind(value) {
            Some(OpKind::Convert(ConvertOp::ExtendU, _)) => true,
            Some(OpKind::Binary(BinaryOp::ShrU, _, count)) => {
                self.kernel.as_constant(*count).is_some_and(|count| count >= 32)
            }
            _ => false,
        }
    }

    /// Whether a value needs no register of its own because instructions can name it directly:
    /// constants, scalar parameters, sizes of the launch.
    pub(crate) fn is_immediate(&self, value: Value) -> bool {
        if self.kernel.as_constant(value).is_some() {
            return true;
        }
        match self.kind(value) {
            None => !self.kernel.ty(value).is_pointer() && self.kernel.param_of(value).is_some(),
            Some(OpKind::Id(id)) => {
                matches!(id, Id::GroupSize(_) | Id::GroupCount(_) | Id::MaxSubGroupSize)
            }
            Some(OpKind::ArrayAddress(_)) => true,
            Some(_) => false,
        }
    }

    /// Where a constant lies in constant memory, if it does.
    pub(crate) fn banked_constant(&self, value: Value) -> Option<usize> {
        self.banked
            .position(self.kernel.ty(value), self.kernel.as_constant(value)?)
    }

    /// Whether a constant is moved to a register once: no instruction of Intel's holds one of 64 bits.
    pub(crate) fn is_moved_constant(&self, value: Value) -> bool {
        self.target.family == Family::Intel
            && self.kernel.ty(value) == Type::F64
            && self.kernel.as_constant(value).is_some()
    }

    /// Whether a double-precision constant has to be built in registers: an instruction holds only
    /// its upper half.
    pub(crate) fn is_wide_constant(&self, value: Value) -> bool {
        self.target.family == Family::Nvidia
            && self.kernel.ty(value) == Type::F64
            && self
                .kernel
                .as_constant(value)
                .is_some_and(|bits| bits as u32 != 0)
    }

    /// The double-precision constant that has to be built in registers because the same instruction holds another one
    /// already: the factor of `x * 0.125 + 0.5`. In loops it comes from constant memory.
    pub(crate) fn second_constant(&self, op: &Op) -> Option<Value> {
        let OpKind::Fma(a, b, c) = *op.kind.plain() else {
            return None;
        };
        let held = |value: Value| {
            let constant = self.kernel.as_constant(value);
            constant.is_some_and(|bits| bits != 0) && !self.is_wide_constant(value)
        };
        let is_double = self.target.family == Family::Nvidia && self.kernel.ty(c) == Type::F64;
        let second = match (is_double, held(a), held(b), held(c)) {
            (true, true, _, true) => Some(a),
            (true, _, true, true) => Some(b),
            _ => None,
        };
        second.filter(|&constant| self.banked_constant(constant).is_none())
    }
}
