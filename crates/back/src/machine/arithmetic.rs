//! Pure operations: which recipe each becomes, and which need no instruction at all.

use super::addresses::address_cost;
use super::facts::Facts;
use super::recipe::{self, Recipe, single};
use super::target::Family;
use super::{isa::intel::recipe as recipe_intel, program::Class};
use crate::ir::{
    Accuracy, BinaryOp, CompareOp, ConvertOp, FloatRule, Id, Kernel, NoWrapOp, Op, OpKind, Space, Type,
    UnaryOp, Value,
};
use cranelift_entity::EntitySet;

/// The cost of a pure operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    /// Nothing: the users of the result name the operands instead.
    Free,
    /// These instructions.
    Recipe(Recipe),
    /// One of 32 bits, between instructions that widen the operands and narrow the result.
    Narrow,
}

/// The operations that are part of another one's instruction: a multiplication in an addition
/// (`IMAD`, `LEA`), two additions (`IADD3`), two logical operations (`LOP3`).
#[derive(Default)]
pub(crate) struct Fused(EntitySet<Value>);

impl Fused {
    /// Whether a value's operation is part of that of its only user; decides it in program order.
    pub(crate) fn joins(&mut self, facts: &Facts<'_>, op: &Op) -> bool {
        let joins = facts.target.family == Family::Nvidia && self.can_join(facts, op);
        if joins {
            self.0.insert(op.results[0]);
        }
        joins
    }

    fn can_join(&self, facts: &Facts<'_>, op: &Op) -> bool {
        let value = op.results[0];
        let Some(user) = facts.only_use(value) else {
            return false;
        };
        let mut others = 0;
        op.kind
            .for_each_operand(|operand| others += usize::from(self.0.contains(operand)));
        user.kind
            .for_each_operand(|operand| others += usize::from(self.0.contains(operand)));
        if others > 0 {
            return false;
        }
        let wide = facts.kernel.ty(value) == Type::I64 && facts.needs_upper(value);
        match (Plain::of(&op.kind), Plain::of(&user.kind)) {
            (Some(Plain::Multiply), Some(Plain::Add | Plain::Subtract)) => {
                !wide || is_wide_product(facts, op)
            }
            (Some(Plain::ShiftLeft), Some(Plain::Add)) => has_constant(facts.kernel, op),
            (Some(Plain::Add | Plain::Subtract), Some(Plain::Add | Plain::Subtract)) => true,
            (Some(Plain::Logic), Some(Plain::Logic)) => facts.kernel.ty(value) != Type::Bool,
            _ => false,
        }
    }

    /// Whether an operand of this operation is part of it, and is a multiplication.
    fn multiplies(&self, facts: &Facts<'_>, op: &Op) -> bool {
        let mut multiplies = false;
        op.kind.for_each_operand(|operand| {
            multiplies |=
                self.0.contains(operand) && facts.kind(operand).and_then(Plain::of) == Some(Plain::Multiply);
        });
        multiplies
    }
}

/// Integer operations without their promises.
#[derive(Clone, Copy, PartialEq)]
enum Plain {
    Add,
    Subtract,
    Multiply,
    ShiftLeft,
    Logic,
}

impl Plain {
    fn of(kind: &OpKind) -> Option<Plain> {
        Some(match kind {
            OpKind::NoWrap(NoWrapOp::Add, ..) | OpKind::Binary(BinaryOp::Add, ..) => Plain::Add,
            OpKind::NoWrap(NoWrapOp::Sub, ..) | OpKind::Binary(BinaryOp::Sub, ..) => Plain::Subtract,
            OpKind::NoWrap(NoWrapOp::Mul, ..) | OpKind::Binary(BinaryOp::Mul, ..) => Plain::Multiply,
            OpKind::Binary(BinaryOp::Shl, ..) => Plain::ShiftLeft,
            OpKind::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, ..)
            | OpKind::Unary(UnaryOp::Not, _) => Plain::Logic,
            _ => return None,
        })
    }
}

fn has_constant(kernel: &Kernel, op: &Op) -> bool {
    let mut has = false;
    op.kind
        .for_each_operand(|operand| has |= kernel.as_constant(operand).is_some());
    has
}

/// Whether a 64-bit product is one of two widened 32-bit values (`IMAD.WIDE`).
fn is_wide_product(facts: &Facts<'_>, op: &Op) -> bool {
    let (OpKind::NoWrap(NoWrapOp::Mul, _, a, b) | OpKind::Binary(BinaryOp::Mul, a, b)) = op.kind else {
        return false;
    };
    let narrow = |value: Value| {
        let small = facts
            .kernel
            .as_constant(value)
            .is_some_and(|bits| bits <= u64::from(u32::MAX));
        (facts.widened(value), small)
    };
    match (narrow(a), narrow(b)) {
        ((Some((_, x)), _), (Some((_, y)), _)) => x == y,
        ((Some(_), _), (None, small)) | ((None, small), (Some(_), _)) => small,
        _ => false,
    }
}

/// Whether it takes a 64-bit value's upper half or puts a value together from two halves: these are two registers, which
/// are named as such. (`exp` in double precision does both; ptxas has no instruction for either.)
fn only_names_halves(facts: &Facts<'_>, op: &Op) -> bool {
    if facts.kernel.ty(op.results[0]) != Type::I64 {
        return false;
    }
    let is_32 = |count: Value| facts.kernel.as_constant(count) == Some(32);
    match op.kind {
        OpKind::Binary(BinaryOp::ShrU, _, count) => is_32(count),
        // Alone it is a register of zeros below.
        OpKind::Binary(BinaryOp::Shl, _, count) => {
            let uses = &facts.uses[op.results[0]];
            is_32(count) && !uses.is_empty() && uses.iter().all(|user| joins_halves(facts, user.by))
        }
        _ => joins_halves(facts, op),
    }
}

/// Whether an operation joins a lower and an upper half.
fn joins_halves(facts: &Facts<'_>, op: &Op) -> bool {
    let OpKind::Binary(BinaryOp::Or, a, b) = op.kind else {
        return false;
    };
    let is_upper = |value: Value| facts.kernel.as_constant(value).is_none() && facts.lower_is_zero(value);
    let is_lower = |value: Value| facts.kernel.as_constant(value).is_none() && facts.upper_is_zero(value);
    (is_upper(a) && is_lower(b)) || (is_lower(a) && is_upper(b))
}

/// The cost of a pure operation that is not part of another.
pub(crate) fn cost(facts: &Facts<'_>, fused: &Fused, op: &Op) -> Cost {
    let result = op.results[0];
    let ty = facts.kernel.ty(result);
    if is_narrow(facts, op, ty) {
        return Cost::Narrow;
    }
    if facts.target.family == Family::Nvidia && only_names_halves(facts, op) {
        return Cost::Free;
    }
    match op.kind.plain() {
        OpKind::Id(id) => id_cost(facts, *id),
        OpKind::ArrayAddress(_) => Cost::Free,
        OpKind::Unary(unary, a) => unary_cost(facts, *unary, op.kind.rule(), *a, result),
        OpKind::Binary(BinaryOp::FDiv, a, _) => {
            let one = facts.kernel.as_constant(*a) == Some(u64::from(1.0f32.to_bits()));
            Cost::Recipe(division(facts, ty, one))
        }
        OpKind::Binary(binary, _, b) => {
            let constant = facts.kernel.as_constant(*b).is_some();
            let multiplies = fused.multiplies(facts, op);
            Cost::Recipe(binary_recipe(facts, *binary, ty, op, constant, multiplies))
        }
        OpKind::NoWrap(no_wrap, ..) => {
            let plain = (*no_wrap).into();
            let multiplies = fused.multiplies(facts, op);
            Cost::Recipe(binary_recipe(
                facts,
                plain,
                ty,
                op,
                has_constant(facts.kernel, op),
                multiplies,
            ))
        }
        OpKind::Fma(..) => Cost::Recipe(single(float_class(ty))),
        OpKind::Compare(compare, a, _) => Cost::Recipe(compare_recipe(facts, *compare, *a)),
        OpKind::Select(..) => Cost::Recipe(select_recipe(facts, result)),
        OpKind::Convert(convert, a) => convert_cost(facts, *convert, *a, result),
        OpKind::Address {
            base,
            index,
            scale,
            offset,
        } => address_cost(facts, result, *base, *index, *scale, *offset),
        _ => Cost::Free,
    }
}

/// Whether it is arithmetic in 16 bits, which we have written with conversions for NVIDIA, so that NaN keeps its bits.
fn is_narrow(facts: &Facts<'_>, op: &Op, ty: Type) -> bool {
    use BinaryOp::{FAdd, FMax, FMaximum, FMin, FMinimum, FMul, FSub};
    let is_arithmetic = matches!(
        op.kind.plain(),
        OpKind::Fma(..) | OpKind::Binary(FAdd | FSub | FMul | FMin | FMax | FMinimum | FMaximum, ..)
    );
    facts.target.family == Family::Nvidia && is_arithmetic && matches!(ty, Type::F16 | Type::Bf16)
}

/// A choice between two values by a predicate: one instruction for each 32 bits.
pub(crate) fn select_recipe(facts: &Facts<'_>, result: Value) -> Recipe {
    integer(facts, facts.width(result) == 2)
}

/// Integer work on 32 or 64 bits: two dependent instructions, or one of 64 bits.
pub(super) fn integer(facts: &Facts<'_>, wide: bool) -> Recipe {
    match (wide, facts.target.family) {
        (false, _) => single(Class::Int32),
        (true, Family::Nvidia) => recipe::CARRIED_64,
        (true, Family::Intel) => single(Class::Int64),
    }
}

fn float_class(ty: Type) -> Class {
    match ty {
        Type::F64 => Class::Fp64,
        Type::F16 | Type::Bf16 => Class::Fp16,
        _ => Class::Fp32,
    }
}

fn is_wide(facts: &Facts<'_>, value: Value) -> bool {
    match facts.kernel.ty(value) {
        Type::I64 => facts.needs_upper(value),
        Type::Ptr(Space::Global | Space::Generic) => true,
        _ => false,
    }
}

fn id_cost(facts: &Facts<'_>, id: Id) -> Cost {
    let intel = facts.target.family == Family::Intel;
    match id {
        Id::GroupSize(_) | Id::GroupCount(_) | Id::MaxSubGroupSize => Cost::Free,
        // The thread's payload has them.
        Id::Local(_) | Id::Group(_) | Id::Lane if intel => Cost::Free,
        Id::Local(_) | Id::Group(_) | Id::Lane => Cost::Recipe(single(Class::ReadId)),
        Id::SubGroup => Cost::Recipe(recipe::SUB_GROUP),
        Id::SubGroupSize | Id::SubGroupCount => Cost::Recipe(recipe::SUB_GROUP_SIZE),
    }
}

fn unary_cost(facts: &Facts<'_>, op: UnaryOp, rule: FloatRule, a: Value, result: Value) -> Cost {
    let ty = facts.kernel.ty(result);
    let wide = is_wide(facts, result);
    Cost::Recipe(match op {
        UnaryOp::Not if ty == Type::Bool => return Cost::Free,
        UnaryOp::FNeg | UnaryOp::FAbs if feeds_floats_only(facts, rule, result) => return Cost::Free,
        UnaryOp::Not | UnaryOp::Neg => integer(facts, wide),
        UnaryOp::FNeg | UnaryOp::FAbs if rule.flush => single(float_class(ty)),
        UnaryOp::FNeg | UnaryOp::FAbs => single(Class::Int32),
        UnaryOp::Sqrt => square_root(facts, ty),
        UnaryOp::NormalReciprocal => match facts.target.family {
            Family::Nvidia => recipe::RECIPROCAL_NORMAL,
            Family::Intel => intel_division(facts),
        },
        UnaryOp::NormalSqrt => match facts.target.family {
            Family::Nvidia => recipe::SQRT_NORMAL,
            Family::Intel if facts.kernel.float_mode.accuracy > Accuracy::Rounded => single(Class::Special),
            Family::Intel => recipe_intel::SQRT_F32,
        },
        UnaryOp::TableExp2 | UnaryOp::TableLog2 | UnaryOp::TableReciprocal => single(Class::Special),
        UnaryOp::TableRow => recipe::TABLE_ROW,
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Trunc | UnaryOp::RoundEven => single(Class::Convert),
        UnaryOp::CountLeadingZeros if facts.kernel.ty(a) == Type::I64 => recipe::LEADING_ZEROS_64,
        UnaryOp::CountLeadingZeros => recipe::LEADING_ZEROS_32,
        UnaryOp::CountOnes | UnaryOp::ReverseBits if wide => recipe::CONVERT_64,
        UnaryOp::CountOnes | UnaryOp::ReverseBits => single(Class::Convert),
        _ => approximation(facts, op, ty, rule),
    })
}

/// Float instructions negate and take magnitudes of their operands for free; flushing ones do so for flushed operands.
fn feeds_floats_only(facts: &Facts<'_>, rule: FloatRule, value: Value) -> bool {
    facts.uses[value].iter().all(|user| match user.by.kind.plain() {
        _ if rule.flush && !user.by.kind.rule().flush => false,
        OpKind::Fma(..) => true,
        OpKind::Binary(op, ..) => matches!(
            op,
            BinaryOp::FAdd
                | BinaryOp::FSub
                | BinaryOp::FMul
                | BinaryOp::FMin
                | BinaryOp::FMax
                | BinaryOp::FMinimum
                | BinaryOp::FMaximum
        ),
        OpKind::Compare(op, ..) => is_float_compare(*op),
        _ => false,
    })
}

fn is_float_compare(op: CompareOp) -> bool {
    matches!(
        op,
        CompareOp::FEq | CompareOp::FNe | CompareOp::FLt | CompareOp::FLe | CompareOp::FUnordered
    )
}

fn square_root(facts: &Facts<'_>, ty: Type) -> Recipe {
    match (facts.target.family, ty) {
        (Family::Nvidia, Type::F64) => recipe::SQRT_F64,
        (Family::Nvidia, _) => recipe::SQRT_F32,
        (Family::Intel, Type::F64) => recipe_intel::SQRT_F64,
        (Family::Intel, _) => recipe_intel::SQRT_F32,
    }
}

/// Intel's units have these functions with subnormal arguments; NVIDIA's compiler scales such arguments before and after.
fn approximation(facts: &Facts<'_>, op: UnaryOp, ty: Type, rule: FloatRule) -> Recipe {
    let flushed = rule.flush || facts.target.family == Family::Intel;
    match op {
        // Steps from the approximation of the upper half, and a way for rare operands, as a division has.
        UnaryOp::ApproximateRsqrt if ty == Type::F64 && !flushed => recipe::RSQRT_F64,
        UnaryOp::ApproximateTanh => single(Class::Special),
        UnaryOp::ApproximateSin | UnaryOp::ApproximateCos => recipe::SIN_APPROXIMATE,
        _ if flushed || ty != Type::F32 => single(Class::Special),
        UnaryOp::ApproximateReciprocal => recipe::RECIPROCAL_APPROXIMATE,
        _ => recipe::SCALED_APPROXIMATE,
    }
}

fn division(facts: &Facts<'_>, ty: Type, reciprocal: bool) -> Recipe {
    match (facts.target.family, ty) {
        (Family::Nvidia, Type::F64) => recipe::DIV_F64,
        (Family::Nvidia, Type::F32) if reciprocal => recipe::RECIPROCAL_F32,
        (Family::Nvidia, _) => recipe::DIV_F32,
        (Family::Intel, Type::F64) => recipe_intel::DIV_F64,
        (Family::Intel, _) => recipe_intel::DIV_F32,
    }
}

/// A division of `f32` that need not be rounded: OpenCL has one operation for all, and the option to build with decides.
fn intel_division(facts: &Facts<'_>) -> Recipe {
    match facts.kernel.float_mode.accuracy {
        Accuracy::Rounded => recipe_intel::DIV_F32,
        Accuracy::OpenCl => recipe_intel::DIV_F32_SCALED,
        Accuracy::Fast => recipe_intel::DIV_F32_FAST,
    }
}

fn binary_recipe(
    facts: &Facts<'_>,
    op: BinaryOp,
    ty: Type,
    whole: &Op,
    constant: bool,
    multiplies: bool,
) -> Recipe {
    let wide = ty == Type::I64 && facts.needs_upper(whole.results[0]) && !works_on_one_half(facts, whole);
    let whole_64 = ty == Type::I64;
    let intel = facts.target.family == Family::Intel;
    match op {
        // The multiplication that is part of it decides the unit; a 64-bit sum comes with it.
        BinaryOp::Add | BinaryOp::Sub if multiplies => single(Class::IntMultiply),
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => integer(facts, wide),
        BinaryOp::Mul if intel => intel_product(facts, whole, wide),
        BinaryOp::Mul if !wide => single(Class::IntMultiply),
        BinaryOp::Mul if is_wide_product(facts, whole) => single(Class::IntMultiply),
        BinaryOp::Mul if constant => recipe::SCALE_64,
        BinaryOp::Mul => recipe::MUL_64,
        BinaryOp::MulHighS | BinaryOp::MulHighU if whole_64 => recipe::MUL_HIGH_64,
        BinaryOp::MulHighS | BinaryOp::MulHighU if intel => recipe_intel::MUL_HIGH_32,
        BinaryOp::MulHighS | BinaryOp::MulHighU => single(Class::IntMultiply),
        BinaryOp::DivS | BinaryOp::DivU | BinaryOp::RemS | BinaryOp::RemU if whole_64 => recipe::DIV_64,
        BinaryOp::DivU | BinaryOp::RemU | BinaryOp::DivS | BinaryOp::RemS if constant => {
            recipe::DIV_CONSTANT_32
        }
        BinaryOp::DivU => recipe::DIV_U32,
        BinaryOp::RemU => recipe::REM_U32,
        BinaryOp::DivS | BinaryOp::RemS => recipe::DIV_S32,
        BinaryOp::Shl if wide && !constant && !intel => recipe::SHIFT_64,
        BinaryOp::Shl => integer(facts, wide),
        BinaryOp::ShrS | BinaryOp::ShrU if whole_64 && !constant && !intel => recipe::SHIFT_64,
        BinaryOp::ShrS | BinaryOp::ShrU => integer(facts, wide),
        BinaryOp::MinS | BinaryOp::MinU | BinaryOp::MaxS | BinaryOp::MaxU if whole_64 && !intel => {
            recipe::MIN_64
        }
        BinaryOp::MinS | BinaryOp::MinU | BinaryOp::MaxS | BinaryOp::MaxU => integer(facts, whole_64),
        BinaryOp::FMin | BinaryOp::FMax | BinaryOp::FMinimum | BinaryOp::FMaximum
            if ty == Type::F64 && !intel =>
        {
            recipe::MIN_F64
        }
        BinaryOp::CopySign => single(Class::Int32),
        BinaryOp::Dot2S | BinaryOp::Dot2U | BinaryOp::Dot2SU | BinaryOp::Dot2US if intel => {
            recipe_intel::DOT_2
        }
        // IDP.2A.
        BinaryOp::Dot2S | BinaryOp::Dot2U | BinaryOp::Dot2SU | BinaryOp::Dot2US => single(Class::Int32),
        // One instruction on every device here: IDP.4A, DP4A.
        BinaryOp::Dot4S | BinaryOp::Dot4U | BinaryOp::Dot4SU => single(Class::Int32),
        BinaryOp::ApproximateDiv | BinaryOp::ApproximateDivInRange if intel => intel_division(facts),
        BinaryOp::ApproximateDiv => recipe::DIV_APPROXIMATE,
        BinaryOp::ApproximateDivInRange => recipe::DIV_APPROXIMATE_IN_RANGE,
        BinaryOp::FAdd
        | BinaryOp::FSub
        | BinaryOp::FMul
        | BinaryOp::FDiv
        | BinaryOp::FMin
        | BinaryOp::FMax
        | BinaryOp::FMinimum
        | BinaryOp::FMaximum => single(float_class(ty)),
        // Written out before.
        BinaryOp::LibraryPow
        | BinaryOp::LibraryAtan2
        | BinaryOp::LibraryHypot
        | BinaryOp::LibraryPowr
        | BinaryOp::LibraryPown
        | BinaryOp::NativePowr
        | BinaryOp::NativeDivide
        | BinaryOp::HalfPowr
        | BinaryOp::HalfDivide => single(float_class(ty)),
    }
}

/// A product: a shift by a constant, one multiplication for 16 bits, or alternating `mul` and `macl`.
fn intel_product(facts: &Facts<'_>, op: &Op, wide: bool) -> Recipe {
    let mut constant = None;
    op.kind
        .for_each_operand(|operand| constant = constant.or(facts.kernel.as_constant(operand)));
    match constant {
        Some(factor) if factor.is_power_of_two() => integer(facts, wide),
        Some(factor) if !wide && factor < 1 << 16 => single(Class::IntMultiply),
        _ if !wide => recipe_intel::MUL_32,
        _ if is_wide_product(facts, op) => recipe_intel::MUL_WIDE,
        _ => recipe_intel::MUL_64,
    }
}

/// Whether a 64-bit operation has work to do on one half only: the other is zero, or passes through.
fn works_on_one_half(facts: &Facts<'_>, op: &Op) -> bool {
    let (OpKind::Binary(_, a, b) | OpKind::NoWrap(_, _, a, b)) = op.kind else {
        return false;
    };
    let half = |value: Value| facts.lower_is_zero(value) || facts.upper_is_zero(value);
    match op.kind {
        OpKind::Binary(BinaryOp::Shl | BinaryOp::ShrU, ..) => {
            facts.kernel.as_constant(b).is_some_and(|count| count >= 32)
        }
        OpKind::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, ..) => half(a) || half(b),
        // A carry goes up only.
        OpKind::Binary(BinaryOp::Add, ..) | OpKind::NoWrap(NoWrapOp::Add, ..) => {
            facts.lower_is_zero(a) || facts.lower_is_zero(b)
        }
        OpKind::Binary(BinaryOp::Sub, ..) | OpKind::NoWrap(NoWrapOp::Sub, ..) => facts.lower_is_zero(b),
        _ => false,
    }
}

fn compare_recipe(facts: &Facts<'_>, op: CompareOp, a: Value) -> Recipe {
    if is_float_compare(op) {
        return single(float_class(facts.kernel.ty(a)));
    }
    let wide = matches!(
        facts.kernel.ty(a),
        Type::I64 | Type::Ptr(Space::Global | Space::Generic)
    );
    if wide && facts.target.family == Family::Intel {
        return match facts.widened(a).is_some() || !facts.divergence.differs(a) {
            true => recipe_intel::COMPARE_HALVES,
            false => recipe_intel::COMPARE_64,
        };
    }
    integer(facts, wide)
}

fn convert_cost(facts: &Facts<'_>, op: ConvertOp, a: Value, result: Value) -> Cost {
    let from = facts.kernel.ty(a);
    let wide = facts.kernel.ty(result) == Type::I64 && facts.needs_upper(result);
    match op {
        // A move to every other word, or from there.
        ConvertOp::ExtendU | ConvertOp::ExtendS
            if facts.target.family == Family::Intel && wide && from != Type::Bool =>
        {
            Cost::Recipe(single(Class::Int64))
        }
        ConvertOp::Truncate
            if facts.target.family == Family::Intel
                && facts.divergence.differs(a)
                && facts.needs_upper(a)
                && facts.widened(a).is_none() =>
        {
            Cost::Recipe(single(Class::Int64))
        }
        // The upper half is the zero register.
        ConvertOp::ExtendU if from == Type::I32 => Cost::Free,
        // A truth value becomes a number by a selection.
        ConvertOp::ExtendU if from == Type::Bool => Cost::Recipe(single(Class::Int32)),
        ConvertOp::ExtendU if matches!(facts.kind(a), Some(OpKind::Load { .. })) => Cost::Free,
        ConvertOp::ExtendS if from == Type::I32 && takes_signs(facts, result) => Cost::Free,
        ConvertOp::ExtendU | ConvertOp::ExtendS => Cost::Recipe(single(Class::Int32)),
        ConvertOp::Truncate | ConvertOp::Bits | ConvertOp::ToGeneric | ConvertOp::FromGeneric => Cost::Free,
        // `HADD2.F32` and `F2FP.PACK_AB`: nothing for the slow unit.
        ConvertOp::FloatToFloat if is_between_16_and_32(facts, from, result) => {
            Cost::Recipe(single(match from {
                Type::F32 => Class::Int32,
                _ => Class::Fp16,
            }))
        }
        ConvertOp::FloatToFloat
        | ConvertOp::SignedToFloat
        | ConvertOp::UnsignedToFloat
        | ConvertOp::FloatToSigned
        | ConvertOp::FloatToUnsigned => Cost::Recipe(single(Class::Convert)),
    }
}

fn is_between_16_and_32(facts: &Facts<'_>, from: Type, result: Value) -> bool {
    let to = facts.kernel.ty(result);
    let is_half = |ty: Type| matches!(ty, Type::F16 | Type::Bf16);
    let is_it = (is_half(from) && to == Type::F32) || (from == Type::F32 && is_half(to));
    is_it && facts.target.family == Family::Nvidia
}

/// Whether every user of a sign extension does it itself: `IMAD.WIDE`, or work on the lower half.
fn takes_signs(facts: &Facts<'_>, value: Value) -> bool {
    if !facts.needs_upper(value) {
        return true;
    }
    facts.target.family == Family::Nvidia
        && facts.uses[value].iter().all(|user| match &user.by.kind {
            OpKind::Address { .. } => true,
            OpKind::Binary(BinaryOp::Mul, ..) | OpKind::NoWrap(NoWrapOp::Mul, ..) => {
                is_wide_product(facts, user.by)
            }
            _ => false,
        })
}
