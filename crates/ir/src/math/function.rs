//! The functions by name, for fronts.

use std::cell::RefCell;

use crate::ir::{Builder, Type, Value};

use super::{
    Arithmetic, Emit, HostNumber, Number, arc, arc_single, error_function, exponential, hyperbolic,
    logarithm, power, remainder, roots, rounding, trigonometric,
};

/// Declares the functions: variant, name, description, arguments, and the expansions.
macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal ($($index:literal),+) $single:path, $double:path;)+) => {
        /// A function that is expanded into basic operations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Function {
            /// Every function.
            pub const ALL: &'static [Function] = &[$(Function::$variant),+];

            /// The name.
            pub fn name(self) -> &'static str {
                match self { $(Function::$variant => $name),+ }
            }

            /// How many arguments it takes.
            pub fn arguments(self) -> usize {
                match self { $(Function::$variant => [$($index),+].len()),+ }
            }

            #[inline(always)]
            fn expand_f32<A: Arithmetic>(self, argument: impl Fn(usize) -> Number<A, f32>) -> Number<A, f32> {
                match self { $(Function::$variant => $single($(argument($index)),+)),+ }
            }

            #[inline(always)]
            fn expand_f64<A: Arithmetic>(self, argument: impl Fn(usize) -> Number<A, f64>) -> Number<A, f64> {
                match self { $(Function::$variant => $double($(argument($index)),+)),+ }
            }
        }
    };
}

functions! {
    /// e to the power of the argument.
    Exp "exp" (0) exponential::exp_f32, exponential::exp_f64;
    /// 2 to the power of the argument.
    Exp2 "exp2" (0) exponential::exp2_f32, exponential::exp2_f64;
    /// The natural logarithm.
    Log "log" (0) logarithm::log_f32, logarithm::log_f64;
    /// The logarithm to base 2.
    Log2 "log2" (0) logarithm::log2_f32, logarithm::log2_f64;
    /// The logarithm to base 10.
    Log10 "log10" (0) logarithm::log10_f32, logarithm::log10_f64;
    /// The sine.
    Sin "sin" (0) trigonometric::sin_f32, trigonometric::sin_f64;
    /// The cosine.
    Cos "cos" (0) trigonometric::cos_f32, trigonometric::cos_f64;
    /// The tangent.
    Tan "tan" (0) trigonometric::tan_f32, trigonometric::tan_f64;
    /// The angle with this sine, from -π/2 to π/2.
    Asin "asin" (0) arc_single::asin_f32, arc::asin_f64;
    /// The angle with this cosine, from 0 to π.
    Acos "acos" (0) arc_single::acos_f32, arc::acos_f64;
    /// The angle with this tangent, from -π/2 to π/2.
    Atan "atan" (0) arc_single::atan_f32, arc::atan_f64;
    /// The angle of the point whose ordinate comes first, from -π to π.
    Atan2 "atan2" (0, 1) arc_single::atan2_f32, arc::atan2_f64;
    /// The hyperbolic sine.
    Sinh "sinh" (0) hyperbolic::sinh_f32, hyperbolic::sinh_f64;
    /// The hyperbolic cosine.
    Cosh "cosh" (0) hyperbolic::cosh_f32, hyperbolic::cosh_f64;
    /// The hyperbolic tangent.
    Tanh "tanh" (0) hyperbolic::tanh_f32, hyperbolic::tanh_f64;
    /// The error function.
    Erf "erf" (0) error_function::erf_f32, error_function::erf_f64;
    /// The first argument to the power of the second.
    Pow "pow" (0, 1) power::pow_f32, power::pow_f64;
    /// The cube root.
    Cbrt "cbrt" (0) roots::cbrt_f32, roots::cbrt_f64;
    /// The length of a vector with these coordinates.
    Hypot "hypot" (0, 1) roots::hypot_f32, roots::hypot_f64;
    /// To the nearest integer, halves away from zero.
    Round "round" (0) rounding::round_f32, rounding::round_f64;
    /// The remainder of the first number by the second, with the first one's sign.
    Rem "rem" (0, 1) remainder::rem_f32, remainder::rem_f64;
}

impl Function {
    /// Appends the function of `arguments`: [`Function::arguments`] values, all `F32` or all `F64`. The
    /// result has the same type.
    pub fn emit(self, builder: &mut Builder<'_>, arguments: &[Value]) -> Value {
        let ty = builder.kernel.ty(arguments[0]);
        let cell = RefCell::new(builder);
        let emit = Emit::new(&cell);
        match ty {
            Type::F32 => self.expand_f32(|index| emit.number(arguments[index])).raw(),
            _ => self.expand_f64(|index| emit.number(arguments[index])).raw(),
        }
    }

    /// The value in single precision, to the bit as in a kernel.
    pub fn f32(self, arguments: &[f32]) -> f32 {
        self.expand_f32(|index| HostNumber::on_host(arguments[index]))
            .raw()
    }

    /// The value in double precision, to the bit as in a kernel.
    pub fn f64(self, arguments: &[f64]) -> f64 {
        self.expand_f64(|index| HostNumber::on_host(arguments[index]))
            .raw()
    }
}
