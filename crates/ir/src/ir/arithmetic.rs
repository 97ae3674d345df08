//! The pure operations on numbers: of one operand, of two, comparisons, conversions.
//!
//! The meaning of each is stated here in words and in [`eval`](super::eval) in code. A row has everything else about an
//! operation: its spelling in the text form, its operands, the rounding rules it can have. Printer, parser and verifier read
//! them from here; see [`table`](super::table).

use super::table::{family, words};

family! {
    /// One operand, same type out.
    pub enum UnaryOp {
        /// Complement of every bit (`Bool`: not).
        Not = "not": IntegerOrBool;
        /// Integer: wrapping negation.
        Neg = "neg": Integer;
        /// Float: the sign bit flipped, NaN included.
        FNeg = "fneg": Float, flushes F16 F32;
        /// Float: the sign bit cleared, NaN included.
        FAbs = "fabs": Float, flushes F16 F32;
        /// Float: IEEE square root, rounded to nearest.
        Sqrt = "sqrt": Float, rounds F32 F64, flushes F32;
        /// `F32`: 1/x rounded to nearest, where x and that are normal: for |x| from 2⁻¹²⁶ to 2¹²⁶. A zero with the sign
        /// of x for finite ones beyond, NaN for the rest: zeros, subnormals, infinities, NaN. A GPU has it without the
        /// way for rare operands that a division has; `FDiv` of 1 differs from it outside of that range only.
        NormalReciprocal = "normal.rcp": F32;
        /// `F32`: √x rounded to nearest, if x is from 2⁻¹⁰¹ to the largest number; NaN otherwise. As
        /// [`NormalReciprocal`](UnaryOp::NormalReciprocal). On NVIDIA's GPUs the steps from the approximation of 1/√x are those
        /// of `sqrt.rn.f32`. For two significands the stated error of the approximation alone (2⁻²²·⁹) would leave the last bit
        /// open; a start within 2⁻²³·³ does not. That x is neither subnormal nor between 2⁻¹²⁶ and 2⁻¹⁰¹ is a promise:
        /// otherwise a GPU may give a root with another last bit, or an infinity for a negative x.
        NormalSqrt = "normal.sqrt": F32;
        /// `F32`: 2ˣ as NVIDIA's GPUs have it in one instruction: the quadratics and roundings of
        /// [`eval::table`](super::eval::table), in integers, so that other devices and the host compute the same bits.
        TableExp2 = "table.exp2": F32;
        /// `F32`: log₂ x, likewise.
        TableLog2 = "table.log2": F32;
        /// `F32`: 1/x, likewise.
        TableReciprocal = "table.rcp": F32;
        /// `I64`: the coefficients that these take, 26, 16 and 10 bits from above: row x mod 256 of the three tables,
        /// one behind the other. Where a device does not have the functions, they are written out with it.
        TableRow = "table.row": I64;
        /// Float: to an integer, towards minus infinity.
        Floor = "floor": Float, flushes F32;
        /// Float: to an integer, towards plus infinity.
        Ceil = "ceil": Float, flushes F32;
        /// Float: to an integer, towards zero.
        Trunc = "ftrunc": Float, flushes F32;
        /// Float: to the nearest integer, ties to even.
        RoundEven = "round_even": Float, flushes F32;
        /// Integer: leading zero bits; the width for 0.
        CountLeadingZeros = "clz": Integer;
        /// Integer: bits set.
        CountOnes = "popcount": Integer;
        /// Integer: bits in reverse order.
        ReverseBits = "reverse_bits": Integer;
        /// `F32`: 1 / x as the hardware approximates it. This one and those below are within a stated error of the
        /// exact result (see `approximate`); which bits they have depends on the
        /// device. `F64`, only with [`flush`](crate::ir::FloatRule::flush): of the upper 32 bits of x, with zeros as
        /// the lower 32 of the result, within 2⁻²⁰ of the exact one (PTX ISA 9.0, `rcp.approx.ftz.f64`).
        ApproximateReciprocal = "approximate.rcp": F32OrF64, flushes F32 F64, flushes_always F64;
        /// `F32`: 1 / √x, approximated. `F64`: flushed, as the reciprocal; kept, as NVIDIA's driver has it in software,
        /// within a few units in the last place (PTX ISA 9.0, `rsqrt.approx.f64`, states no error).
        ApproximateRsqrt = "approximate.rsqrt": F32OrF64, flushes F32 F64;
        /// `F32`: √x, approximated.
        ApproximateSqrt = "approximate.sqrt": F32, flushes F32;
        /// `F32`: 2ˣ, approximated. `F16`: within 2⁻⁹·⁹, `Bf16`: within 2⁻⁷ of the exact result (PTX ISA 9.0,
        /// `ex2.approx`).
        ApproximateExp2 = "approximate.exp2": F16Bf16OrF32, flushes Bf16 F32, flushes_always Bf16;
        /// `F32`: log₂ x, approximated.
        ApproximateLog2 = "approximate.log2": F32, flushes F32;
        /// `F32`: sin x, approximated.
        ApproximateSin = "approximate.sin": F32, flushes F32;
        /// `F32`: cos x, approximated.
        ApproximateCos = "approximate.cos": F32, flushes F32;
        /// `F32`: tanh x, approximated. `F16`: within 2⁻¹⁰·⁹⁸⁷ of the exact result, `Bf16`: within 2⁻⁸ (PTX ISA 9.0,
        /// `tanh.approx`).
        ApproximateTanh = "approximate.tanh": F16Bf16OrF32;
        /// eˣ by the device's own library, in imported kernels: within a few units in the last place, and which bits it has
        /// depends on the device. So are those below.
        LibraryExp = "library.exp": F16F32OrF64;
        /// 2ˣ.
        LibraryExp2 = "library.exp2": F16F32OrF64;
        /// 10ˣ.
        LibraryExp10 = "library.exp10": F16F32OrF64;
        /// The natural logarithm.
        LibraryLog = "library.log": F16F32OrF64;
        /// The logarithm to base 2.
        LibraryLog2 = "library.log2": F16F32OrF64;
        /// The logarithm to base 10.
        LibraryLog10 = "library.log10": F16F32OrF64;
        /// The sine.
        LibrarySin = "library.sin": F16F32OrF64;
        /// The cosine.
        LibraryCos = "library.cos": F16F32OrF64;
        /// The tangent.
        LibraryTan = "library.tan": F16F32OrF64;
        /// The arc sine.
        LibraryAsin = "library.asin": F16F32OrF64;
        /// The arc cosine.
        LibraryAcos = "library.acos": F16F32OrF64;
        /// The arc tangent.
        LibraryAtan = "library.atan": F16F32OrF64;
        /// The hyperbolic sine.
        LibrarySinh = "library.sinh": F16F32OrF64;
        /// The hyperbolic cosine.
        LibraryCosh = "library.cosh": F16F32OrF64;
        /// The hyperbolic tangent.
        LibraryTanh = "library.tanh": F16F32OrF64;
        /// The error function.
        LibraryErf = "library.erf": F16F32OrF64;
        /// The cube root.
        LibraryCbrt = "library.cbrt": F16F32OrF64;
        /// 1 / √x.
        LibraryRsqrt = "library.rsqrt": F16F32OrF64;
        /// The natural logarithm of 1 + x.
        LibraryLog1p = "library.log1p": F16F32OrF64;
        /// eˣ − 1.
        LibraryExpm1 = "library.expm1": F16F32OrF64;
        /// 1 less the error function.
        LibraryErfc = "library.erfc": F16F32OrF64;
        /// The sine, as the function that computes both has it.
        LibrarySinOfBoth = "library.sincos.sin": F16F32OrF64;
        /// The cosine, as the function that computes both has it.
        LibraryCosOfBoth = "library.sincos.cos": F16F32OrF64;
        /// eˣ by OpenCL's function of this name, whose error is up to the device. So are those below.
        NativeExp = "native.exp": F32;
        /// 10ˣ.
        NativeExp10 = "native.exp10": F32;
        /// The natural logarithm.
        NativeLog = "native.log": F32;
        /// The logarithm to base 10.
        NativeLog10 = "native.log10": F32;
        /// The tangent.
        NativeTan = "native.tan": F32;
        /// eˣ by OpenCL's function of this name: within 8192 units in the last place. So are those below; angles are at most
        /// 2¹⁶.
        HalfExp = "half.exp": F32;
        /// 2ˣ.
        HalfExp2 = "half.exp2": F32;
        /// 10ˣ.
        HalfExp10 = "half.exp10": F32;
        /// The natural logarithm.
        HalfLog = "half.log": F32;
        /// The logarithm to base 2.
        HalfLog2 = "half.log2": F32;
        /// The logarithm to base 10.
        HalfLog10 = "half.log10": F32;
        /// The sine.
        HalfSin = "half.sin": F32;
        /// The cosine.
        HalfCos = "half.cos": F32;
        /// The tangent.
        HalfTan = "half.tan": F32;
        /// 1 / x.
        HalfReciprocal = "half.recip": F32;
        /// 1 / √x.
        HalfRsqrt = "half.rsqrt": F32;
        /// √x.
        HalfSqrt = "half.sqrt": F32;
    }
}

impl UnaryOp {
    /// Approximations of the hardware or the device's library: devices may differ in the bits.
    pub fn is_approximation(self) -> bool {
        self >= UnaryOp::ApproximateReciprocal
    }
}

family! {
    /// Two operands of one type, same type out.
    pub enum BinaryOp {
        /// Integer, wrapping.
        Add = "add": Integer;
        /// Integer, wrapping.
        Sub = "sub": Integer;
        /// Integer, wrapping.
        Mul = "mul": Integer;
        /// Integer: the upper half of the signed double-width product.
        MulHighS = "mulhi.s": Integer;
        /// Integer: the upper half of the unsigned double-width product.
        MulHighU = "mulhi.u": Integer;
        /// Integer, signed, towards zero; `x / 0 = 0`, `MIN / -1 = MIN`.
        DivS = "div.s": Integer;
        /// Integer, unsigned; `x / 0 = 0`.
        DivU = "div.u": Integer;
        /// Integer, signed, sign of the dividend; `x % 0 = x`, `MIN % -1 = 0`.
        RemS = "rem.s": Integer;
        /// Integer, unsigned; `x % 0 = x`.
        RemU = "rem.u": Integer;
        /// Integer or `Bool`.
        And = "and": IntegerOrBool;
        /// Integer or `Bool`.
        Or = "or": IntegerOrBool;
        /// Integer or `Bool`.
        Xor = "xor": IntegerOrBool;
        /// Left; a count of the width or more (unsigned) gives 0.
        Shl = "shl": Integer;
        /// Right, sign-filled; a count of the width or more gives the sign everywhere.
        ShrS = "shr.s": Integer;
        /// Right, zero-filled; a count of the width or more gives 0.
        ShrU = "shr.u": Integer;
        /// Integer, signed.
        MinS = "min.s": Integer;
        /// Integer, unsigned.
        MinU = "min.u": Integer;
        /// Integer, signed.
        MaxS = "max.s": Integer;
        /// Integer, unsigned.
        MaxU = "max.u": Integer;
        /// Float, rounded to nearest even, never contracted.
        FAdd = "fadd": Float, rounds F32 F64, flushes F16 F32, contracts F32 F64;
        /// Float.
        FSub = "fsub": Float, rounds F32 F64, flushes F16 F32, contracts F32 F64;
        /// Float.
        FMul = "fmul": Float, rounds F32 F64, flushes F16 F32, contracts F32 F64;
        /// Float, correctly rounded.
        FDiv = "fdiv": Float, rounds F32 F64, flushes F32;
        /// IEEE 754-2019 minimumNumber: the other operand of a NaN; -0 below +0.
        FMin = "fmin": Float, flushes F16 F32;
        /// IEEE 754-2019 maximumNumber.
        FMax = "fmax": Float, flushes F16 F32;
        /// IEEE 754-2019 minimum: NaN if either is one; -0 below +0.
        FMinimum = "fminimum": Float, flushes F16 F32;
        /// IEEE 754-2019 maximum: NaN if either is one.
        FMaximum = "fmaximum": Float, flushes F16 F32;
        /// Magnitude of the first, sign of the second.
        CopySign = "copysign": Float;
        /// `I32`: the sum of the products of their four bytes, taken as signed.
        Dot4S = "dot4.s": I32;
        /// `I32`: the sum of the products of their four bytes, taken as unsigned.
        Dot4U = "dot4.u": I32;
        /// `I32`: the sum of the products of their four bytes, those of the first taken as signed, of the second as
        /// unsigned.
        Dot4SU = "dot4.su": I32;
        /// `I32`: the sum of the products of the first's two halves and the second's lower two bytes, all taken as signed.
        Dot2S = "dot2.s": I32;
        /// As [`BinaryOp::Dot2S`], all taken as unsigned.
        Dot2U = "dot2.u": I32;
        /// As [`BinaryOp::Dot2S`], the bytes taken as unsigned.
        Dot2SU = "dot2.su": I32;
        /// As [`BinaryOp::Dot2S`], the halves taken as unsigned.
        Dot2US = "dot2.us": I32;
        /// `F32`: a quotient within 2 ulp, for every divisor; which bits it has depends on the device.
        ApproximateDiv = "approximate.div": F32, flushes F32;
        /// `F32`: a quotient within 2 ulp for divisors from 2⁻¹²⁶ to 2¹²⁶; beyond, devices may give 0 or NaN.
        ApproximateDivInRange = "approximate.div_in_range": F32, flushes F32;
        /// The first to the power of the second by the device's own library, as [`UnaryOp::LibraryExp`]. So are those below.
        LibraryPow = "library.pow": F16F32OrF64;
        /// The angle of the point whose ordinate comes first.
        LibraryAtan2 = "library.atan2": F16F32OrF64;
        /// The length of a vector with these coordinates.
        LibraryHypot = "library.hypot": F16F32OrF64;
        /// The first, which is not negative, to the power of the second.
        LibraryPowr = "library.powr": F16F32OrF64;
        /// The first to the power of an integer: that whose bits the second has.
        LibraryPown = "library.pown": F32OrF64;
        /// The first to the power of the second by OpenCL's function of this name, whose error is up to the device.
        NativePowr = "native.powr": F32;
        /// The quotient, likewise.
        NativeDivide = "native.divide": F32;
        /// The first to the power of the second, as [`UnaryOp::HalfExp`].
        HalfPowr = "half.powr": F32;
        /// The quotient, likewise.
        HalfDivide = "half.divide": F32;
    }
}

impl BinaryOp {
    /// Approximations of the hardware or the device's library: devices may differ in the bits.
    pub fn is_approximation(self) -> bool {
        self >= BinaryOp::ApproximateDiv
    }

    /// Gives the same bits, whichever operand comes first.
    pub fn commutes(self) -> bool {
        use BinaryOp::{Add, And, FAdd, FMul, MaxS, MaxU, MinS, MinU, Mul, MulHighS, MulHighU, Or, Xor};
        matches!(
            self,
            Add | Mul | MulHighS | MulHighU | And | Or | Xor | MinS | MinU | MaxS | MaxU | FAdd | FMul
        )
    }
}

words! {
    /// Integer arithmetic with a promise; see [`OpKind::NoWrap`](super::OpKind::NoWrap).
    pub enum NoWrapOp {
        /// Addition.
        Add = "add",
        /// Subtraction.
        Sub = "sub",
        /// Multiplication.
        Mul = "mul",
    }
}

/// The same without the promise.
impl From<NoWrapOp> for BinaryOp {
    fn from(op: NoWrapOp) -> BinaryOp {
        match op {
            NoWrapOp::Add => BinaryOp::Add,
            NoWrapOp::Sub => BinaryOp::Sub,
            NoWrapOp::Mul => BinaryOp::Mul,
        }
    }
}

words! {
    /// In which reading of the bits a [`NoWrap`](super::OpKind::NoWrap) operation does not wrap.
    pub enum Wrap {
        /// Not as signed numbers.
        NotSigned = "nsw",
        /// Not as unsigned numbers.
        NotUnsigned = "nuw",
        /// As neither.
        Neither = "nw",
    }
}

family! {
    /// Two operands of one type, `Bool` out.
    pub enum CompareOp {
        /// Same bits; integers, `Bool`, pointers.
        Eq = "eq": IntegerBoolOrPointer;
        /// Other bits.
        Ne = "ne": IntegerBoolOrPointer;
        /// Signed below.
        LtS = "lt.s": Integer;
        /// Signed below or equal.
        LeS = "le.s": Integer;
        /// Unsigned below; pointers too.
        LtU = "lt.u": IntegerOrPointer;
        /// Unsigned below or equal; pointers too.
        LeU = "le.u": IntegerOrPointer;
        /// Float equal; false on NaN.
        FEq = "feq": Float, flushes F16 F32;
        /// Float not equal; true on NaN.
        FNe = "fne": Float, flushes F16 F32;
        /// Float below; false on NaN.
        FLt = "flt": Float, flushes F16 F32;
        /// Float below or equal; false on NaN.
        FLe = "fle": Float, flushes F16 F32;
        /// True if either is NaN.
        FUnordered = "funordered": Float, flushes F16 F32;
    }
}

words! {
    /// Between types. The operand's and the result's types complete the meaning.
    pub enum ConvertOp {
        /// Integer (or `Bool`) to a wider integer, zero-filled.
        ExtendU = "extend.u",
        /// Integer to a wider integer, sign-filled.
        ExtendS = "extend.s",
        /// Integer to a narrower integer: the low bits.
        Truncate = "truncate",
        /// Float to float, rounded to nearest even; the canonical NaN for NaN.
        FloatToFloat = "float_to_float",
        /// Signed integer to float, rounded to nearest even.
        SignedToFloat = "signed_to_float",
        /// Unsigned integer to float, rounded to nearest even.
        UnsignedToFloat = "unsigned_to_float",
        /// Float to signed integer: towards zero, clamped to the range, 0 for NaN.
        FloatToSigned = "float_to_signed",
        /// Float to unsigned integer: towards zero, clamped to the range, 0 for NaN.
        FloatToUnsigned = "float_to_unsigned",
        /// Same bits, another type of the same size (integers, floats, pointers).
        Bits = "bits",
        /// A pointer to global, shared or private memory as a generic one.
        ToGeneric = "to_generic",
        /// A generic pointer as one into the result's space; undefined address if it points elsewhere.
        FromGeneric = "from_generic",
    }
}
