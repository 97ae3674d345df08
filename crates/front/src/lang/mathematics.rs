//! Which functions of [`math`](crate::math) the language has, under which of Rust's names.

/// Applies a macro to the list of functions: Rust's method with its arguments, then the name in
/// [`math`](crate::math). `erf` is the one that Rust has not settled yet.
macro_rules! for_each_function {
    ($apply:ident) => {
        $apply! {
            acos(x): Acos;
            asin(x): Asin;
            atan(x): Atan;
            atan2(y, x): Atan2;
            cbrt(x): Cbrt;
            cos(x): Cos;
            cosh(x): Cosh;
            erf(x): Erf;
            exp(x): Exp;
            exp2(x): Exp2;
            hypot(x, y): Hypot;
            ln(x): Log;
            log10(x): Log10;
            log2(x): Log2;
            powf(x, y): Pow;
            round(x): Round;
            sin(x): Sin;
            sinh(x): Sinh;
            tan(x): Tan;
            tanh(x): Tanh;
        }
    };
}
pub(super) use for_each_function;
