//! The pure operations on numbers: of one operand, of two, comparisons, conversions.
//!
//! What each computes is said here in words and in [`eval`](super::eval) in code.

/// One operand, same type out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnaryOp {
    /// Complement of every bit (`Bool`: not).
    Not,
    /// Integer: wrapping negation.
    Neg,
    /// Float: the sign bit flipped, NaN included.
    FNeg,
    /// Float: the sign bit cleared, NaN included.
    FAbs,
    /// Float: IEEE square root, rounded to nearest.
    Sqrt,
    /// `F32`: 1/x rounded to nearest, where x and that are normal: for |x| from 2⁻¹²⁶ to 2¹²⁶. A zero with the sign of x for
    /// finite ones beyond, NaN for the rest: zeros, subnormals, infinities, NaN. A GPU has it without the way for rare
    /// operands that a division has; `FDiv` of 1 differs from it outside of that range only.
    NormalReciprocal,
    /// `F32`: √x rounded to nearest, where x is from 2⁻¹⁰¹ to the largest number; NaN for the rest. As
    /// [`NormalReciprocal`](UnaryOp::NormalReciprocal). On NVIDIA's GPUs the steps from the approximation of 1/√x are those
    /// that `sqrt.rn.f32` takes: of two significands the stated error of the approximation alone (2⁻²²·⁹) would leave open
    /// the last bit, which a start within 2⁻²³·³ does not. That x is neither subnormal nor between 2⁻¹²⁶ and 2⁻¹⁰¹ is a
    /// promise: a GPU may there give a root whose last bit is another, or an infinity for a negative x.
    NormalSqrt,
    /// `F32`: 2ˣ as NVIDIA's GPUs have it in one instruction: the quadratics and roundings of
    /// [`eval::table`](super::eval::table), in integers, so that other devices and the host compute the same bits.
    TableExp2,
    /// `F32`: log₂ x, likewise.
    TableLog2,
    /// `F32`: 1/x, likewise.
    TableReciprocal,
    /// `I64`: the coefficients that these take, 26, 16 and 10 bits from above: row x mod 256 of the three tables, one behind
    /// the other. Where a device does not have the functions, they are written out with it.
    TableRow,
    /// Float: to an integer, towards minus infinity.
    Floor,
    /// Float: to an integer, towards plus infinity.
    Ceil,
    /// Float: to an integer, towards zero.
    Trunc,
    /// Float: to the nearest integer, ties to even.
    RoundEven,
    /// Integer: leading zero bits; the width for 0.
    CountLeadingZeros,
    /// Integer: bits set.
    CountOnes,
    /// Integer: bits in reverse order.
    ReverseBits,
    /// `F32`: 1 / x as the hardware approximates it. This one and those below are within a stated error of the exact
    /// result (see [`approximate`](crate::front::lang::approximate)); which bits they have depends on the device.
    /// `F64`, only with [`flush`](crate::ir::FloatRule::flush): of the upper 32 bits of x, with zeros as the lower 32 of the
    /// result, within 2⁻²⁰ of the exact one (PTX ISA 9.0, `rcp.approx.ftz.f64`).
    ApproximateReciprocal,
    /// `F32`: 1 / √x, approximated. `F64`: flushed, as the reciprocal; kept, as NVIDIA's driver has it in software, within a
    /// few units in the last place (PTX ISA 9.0, `rsqrt.approx.f64`, states no error).
    ApproximateRsqrt,
    /// `F32`: √x, approximated.
    ApproximateSqrt,
    /// `F32`: 2ˣ, approximated. `F16`: within 2⁻⁹·⁹, `Bf16`: within 2⁻⁷ of the exact result (PTX ISA 9.0, `ex2.approx`).
    ApproximateExp2,
    /// `F32`: log₂ x, approximated.
    ApproximateLog2,
    /// `F32`: sin x, approximated.
    ApproximateSin,
    /// `F32`: cos x, approximated.
    ApproximateCos,
    /// `F32`: tanh x, approximated. `F16`: within 2⁻¹⁰·⁹⁸⁷ of the exact result, `Bf16`: within 2⁻⁸ (PTX ISA 9.0,
    /// `tanh.approx`).
    ApproximateTanh,
}

impl UnaryOp {
    /// What the hardware approximates: devices may differ in the bits.
    pub fn is_approximation(self) -> bool {
        self >= UnaryOp::ApproximateReciprocal
    }
}

/// Two operands of one type, same type out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    /// Integer, wrapping.
    Add,
    /// Integer, wrapping.
    Sub,
    /// Integer, wrapping.
    Mul,
    /// Integer: the upper half of the signed double-width product.
    MulHighS,
    /// Integer: the upper half of the unsigned double-width product.
    MulHighU,
    /// Integer, signed, towards zero; `x / 0 = 0`, `MIN / -1 = MIN`.
    DivS,
    /// Integer, unsigned; `x / 0 = 0`.
    DivU,
    /// Integer, signed, sign of the dividend; `x % 0 = x`, `MIN % -1 = 0`.
    RemS,
    /// Integer, unsigned; `x % 0 = x`.
    RemU,
    /// Integer or `Bool`.
    And,
    /// Integer or `Bool`.
    Or,
    /// Integer or `Bool`.
    Xor,
    /// Left; a count of the width or more (unsigned) gives 0.
    Shl,
    /// Right, sign-filled; a count of the width or more gives the sign everywhere.
    ShrS,
    /// Right, zero-filled; a count of the width or more gives 0.
    ShrU,
    /// Integer, signed.
    MinS,
    /// Integer, unsigned.
    MinU,
    /// Integer, signed.
    MaxS,
    /// Integer, unsigned.
    MaxU,
    /// Float, rounded to nearest even, never contracted.
    FAdd,
    /// Float.
    FSub,
    /// Float.
    FMul,
    /// Float, correctly rounded.
    FDiv,
    /// IEEE 754-2019 minimumNumber: the other operand of a NaN; -0 below +0.
    FMin,
    /// IEEE 754-2019 maximumNumber.
    FMax,
    /// IEEE 754-2019 minimum: NaN if either is one; -0 below +0.
    FMinimum,
    /// IEEE 754-2019 maximum: NaN if either is one.
    FMaximum,
    /// Magnitude of the first, sign of the second.
    CopySign,
    /// `I32`: the sum of the products of their four bytes, taken as signed.
    Dot4S,
    /// `I32`: the sum of the products of their four bytes, taken as unsigned.
    Dot4U,
    /// `F32`: a quotient within 2 ulp, for every divisor; which bits it has depends on the device.
    ApproximateDiv,
    /// `F32`: a quotient within 2 ulp for divisors from 2⁻¹²⁶ to 2¹²⁶; beyond, devices may give 0 or NaN.
    ApproximateDivInRange,
}

impl BinaryOp {
    /// What the hardware approximates: devices may differ in the bits.
    pub fn is_approximation(self) -> bool {
        matches!(self, BinaryOp::ApproximateDiv | BinaryOp::ApproximateDivInRange)
    }
}

/// Integer arithmetic with a promise; see [`OpKind::NoWrap`](super::OpKind::NoWrap).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoWrapOp {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
}

/// In which reading of the bits a [`NoWrap`](super::OpKind::NoWrap) operation does not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wrap {
    /// Not as signed numbers.
    NotSigned,
    /// Not as unsigned numbers.
    NotUnsigned,
    /// As neither.
    Neither,
}

/// Two operands of one type, `Bool` out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CompareOp {
    /// Same bits; integers, `Bool`, pointers.
    Eq,
    /// Other bits.
    Ne,
    /// Signed below.
    LtS,
    /// Signed below or equal.
    LeS,
    /// Unsigned below; pointers too.
    LtU,
    /// Unsigned below or equal; pointers too.
    LeU,
    /// Float equal; false on NaN.
    FEq,
    /// Float not equal; true on NaN.
    FNe,
    /// Float below; false on NaN.
    FLt,
    /// Float below or equal; false on NaN.
    FLe,
    /// True if either is NaN.
    FUnordered,
}

/// Between types. The operand's and the result's types complete the meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ConvertOp {
    /// Integer (or `Bool`) to a wider integer, zero-filled.
    ExtendU,
    /// Integer to a wider integer, sign-filled.
    ExtendS,
    /// Integer to a narrower integer: the low bits.
    Truncate,
    /// Float to float, rounded to nearest even; the canonical NaN for NaN.
    FloatToFloat,
    /// Signed integer to float, rounded to nearest even.
    SignedToFloat,
    /// Unsigned integer to float, rounded to nearest even.
    UnsignedToFloat,
    /// Float to signed integer: towards zero, clamped to the range, 0 for NaN.
    FloatToSigned,
    /// Float to unsigned integer: towards zero, clamped to the range, 0 for NaN.
    FloatToUnsigned,
    /// Same bits, another type of the same size (integers, floats, pointers).
    Bits,
    /// A pointer to global, shared or private memory as a generic one.
    ToGeneric,
    /// A generic pointer as one into the result's space; undefined address if it points elsewhere.
    FromGeneric,
}

/// The spelling of an operation's variants in the text form; one list for printer and parser.
macro_rules! spelled {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// Every variant, in the order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The spelling in the text form.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The variant spelled `name` in the text form.
            pub fn parse(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }
    };
}

pub(super) use spelled;

spelled!(UnaryOp {
    Not = "not", Neg = "neg", FNeg = "fneg", FAbs = "fabs", Sqrt = "sqrt",
    NormalReciprocal = "normal.rcp", NormalSqrt = "normal.sqrt", TableExp2 = "table.exp2",
    TableLog2 = "table.log2", TableReciprocal = "table.rcp", TableRow = "table.row", Floor = "floor", Ceil = "ceil",
    Trunc = "ftrunc", RoundEven = "round_even", CountLeadingZeros = "clz", CountOnes = "popcount",
    ReverseBits = "reverse_bits", ApproximateReciprocal = "approximate.rcp", ApproximateRsqrt = "approximate.rsqrt",
    ApproximateSqrt = "approximate.sqrt", ApproximateExp2 = "approximate.exp2", ApproximateLog2 = "approximate.log2",
    ApproximateSin = "approximate.sin", ApproximateCos = "approximate.cos", ApproximateTanh = "approximate.tanh",
});
spelled!(BinaryOp {
    Add = "add", Sub = "sub", Mul = "mul", MulHighS = "mulhi.s", MulHighU = "mulhi.u", DivS = "div.s",
    DivU = "div.u", RemS = "rem.s", RemU = "rem.u", And = "and", Or = "or", Xor = "xor", Shl = "shl",
    ShrS = "shr.s", ShrU = "shr.u", MinS = "min.s", MinU = "min.u", MaxS = "max.s", MaxU = "max.u",
    FAdd = "fadd", FSub = "fsub", FMul = "fmul", FDiv = "fdiv", FMin = "fmin", FMax = "fmax",
    FMinimum = "fminimum", FMaximum = "fmaximum",
    CopySign = "copysign", Dot4S = "dot4.s", Dot4U = "dot4.u",
    ApproximateDiv = "approximate.div", ApproximateDivInRange = "approximate.div_in_range",
});
spelled!(NoWrapOp { Add = "add", Sub = "sub", Mul = "mul" });
spelled!(Wrap { NotSigned = "nsw", NotUnsigned = "nuw", Neither = "nw" });
spelled!(CompareOp {
    Eq = "eq", Ne = "ne", LtS = "lt.s", LeS = "le.s", LtU = "lt.u", LeU = "le.u", FEq = "feq", FNe = "fne",
    FLt = "flt", FLe = "fle", FUnordered = "funordered",
});
spelled!(ConvertOp {
    ExtendU = "extend.u", ExtendS = "extend.s", Truncate = "truncate", FloatToFloat = "float_to_float",
    SignedToFloat = "signed_to_float", UnsignedToFloat = "unsigned_to_float",
    FloatToSigned = "float_to_signed", FloatToUnsigned = "float_to_unsigned", Bits = "bits",
    ToGeneric = "to_generic", FromGeneric = "from_generic",
});
