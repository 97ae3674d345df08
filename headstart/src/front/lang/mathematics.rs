//! Which functions of [`math`](crate::math) the language has, under which of Rust's names.

/// Applies a macro to the list of functions: Rust's method, then the name in [`math`](crate::math).
macro_rules! for_each_function {
    ($apply:ident) => {
        $apply! {
            cos: Cos;
            exp: Exp;
            exp2: Exp2;
            ln: Log;
            log10: Log10;
            log2: Log2;
            sin: Sin;
            tan: Tan;
        }
    };
}
pub(super) use for_each_function;
