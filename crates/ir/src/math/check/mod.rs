//! The contract of every function, measured: errors, special values, costs.
//!
//! `f32` functions of one argument are measured on all 2³² arguments if `HEADSTART_EXHAUSTIVE` is set, and
//! else on a sample; samples start from `HEADSTART_SEED`, or else from the clock, and say which.

mod agreement;
mod arc;
mod cost;
mod double_double;
mod error_function;
mod errors;
mod exact;
mod hyperbolic;
mod normal;
mod power;
mod roots;
mod special;
mod trigonometry;

use super::Function;

/// A function's promises; the table in the module's documentation, as data.
pub(crate) struct Contract {
    /// Which.
    pub function: Function,
    /// Largest error in single precision, in units in the last place.
    pub error_f32: f64,
    /// Operations in single precision.
    pub cost_f32: usize,
    /// Largest error in double precision, in units in the last place.
    pub error_f64: f64,
    /// Operations in double precision, all, and those on doubles.
    pub cost_f64: (usize, usize),
}

/// Every function's contract.
pub(crate) const CONTRACTS: &[Contract] = &[
    contract(Function::Exp, (1.94, 10), (1.00, 28, 18)),
    contract(Function::Exp2, (2.06, 6), (0.90, 27, 17)),
    contract(Function::Log, (0.93, 20), (0.86, 44, 23)),
    contract(Function::Log2, (0.97, 22), (0.90, 44, 23)),
    contract(Function::Sin, (1.54, 23), (1.52, 29, 15)),
    contract(Function::Cos, (1.54, 24), (1.52, 30, 15)),
    contract(Function::Tan, (3.23, 19), (3.10, 27, 22)),
    contract(Function::Log10, (0.94, 23), (0.90, 45, 24)),
    contract(Function::Asin, (1.67, 18), (2.15, 28, 23)),
    contract(Function::Acos, (1.19, 20), (1.25, 29, 20)),
    contract(Function::Atan, (1.62, 17), (1.40, 32, 28)),
    contract(Function::Atan2, (2.10, 35), (1.85, 49, 35)),
    contract(Function::Sinh, (1.63, 24), (1.70, 38, 25)),
    contract(Function::Cosh, (1.36, 16), (1.65, 36, 23)),
    contract(Function::Tanh, (1.99, 15), (2.70, 27, 22)),
    contract(Function::Erf, (1.80, 25), (1.95, 50, 45)),
    contract(Function::Pow, (0.55, 42), (1.70, 131, 94)),
    contract(Function::Cbrt, (1.00, 16), (0.75, 48, 9)),
    contract(Function::Hypot, (1.02, 18), (1.02, 17, 9)),
    contract(Function::Round, (0.0, 3), (0.0, 3, 3)),
    contract(Function::Rem, (0.0, 16), (0.0, 16, 6)),
];

/// Error and cost in single precision; error and costs in double precision.
const fn contract(function: Function, single: (f64, usize), double: (f64, usize, usize)) -> Contract {
    Contract {
        function,
        error_f32: single.0,
        cost_f32: single.1,
        error_f64: double.0,
        cost_f64: (double.1, double.2),
    }
}

/// Whether all arguments are tried, where that is possible.
fn exhaustive() -> bool {
    std::env::var_os("HEADSTART_EXHAUSTIVE").is_some()
}

/// Where random arguments start; printed, so that a failure can be repeated.
pub fn seed() -> u64 {
    let seed = match std::env::var("HEADSTART_SEED") {
        Ok(text) => text.parse().expect("HEADSTART_SEED is a number"),
        Err(_) => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.expect("the clock is past 1970").as_nanos() as u64
        }
    };
    println!("HEADSTART_SEED={seed}");
    seed
}

/// A stream of random bits (SplitMix64).
pub(crate) struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `[low, high)`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / (1u64 << 53) as f64)
    }
}

#[test]
fn every_function_has_a_contract_and_the_documentation_states_it() {
    let documentation = include_str!("../mod.rs");
    for function in Function::ALL {
        let found: Vec<_> = CONTRACTS.iter().filter(|c| c.function == *function).collect();
        assert_eq!(found.len(), 1, "{}", function.name());
        let Contract {
            error_f32,
            cost_f32,
            error_f64,
            cost_f64: (all, doubles),
            ..
        } = found[0];
        let name = function.name();
        let row =
            format!("//! | {name} | {error_f32:.2} | {cost_f32} | {error_f64:.2} | {all} ({doubles}) |");
        assert!(documentation.contains(&row), "the documentation lacks\n{row}");
    }
}
