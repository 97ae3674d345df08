//! The kernel language: kernels as Rust functions.
//!
//! ```
//! use headstart::prelude::*;
//!
//! /// Adds up what the indices point to, `items` for each work-item.
//! #[kernel(work_group = 128)]
//! pub fn sum(indices: &[u32], values: &[f32], result: &mut [f32], items: u32) {
//!     let mut total = 0.0;
//!     for j in 0..items as usize {
//!         let index = indices[j * global_size() + global_id()];
//!         total += values[index as usize];
//!     }
//!     result[global_id()] = total;
//! }
//!
//! let kernel = sum::kernel()?;
//! assert_eq!(kernel.group_size, Some([128, 1, 1]));
//!
//! // The same function on the CPU.
//! let indices: Vec<u32> = (0..256).map(|i| i * 7 % 256).collect();
//! let mut result = vec![0.0; 128];
//! sum::reference(Geometry::new(1, 128), &indices, &[0.5; 256], &mut result, 2)?;
//! assert_eq!(result, vec![1.0; 128]);
//! # Ok::<(), headstart::Error>(())
//! ```
//!
//! `#[kernel]` keeps the function and adds a type of the same name, so that one `use` imports both:
//!
//! | | |
//! |---|---|
//! | `sum::kernel()` | its IR, a [`Kernel`](crate::ir::Kernel) |
//! | `sum::compile(device)` | the kernel, ready to launch: a `Compiled` |
//! | `sum::over_range(device)` | the same for a range of work-items, with work-groups chosen by the runtime: an `OverRange` |
//! | `sum::arguments(&indices, &values, &mut result, items)` | arguments, checked at compile time |
//! | `sum::reference(geometry, …)` | the plain function, run on the CPU for every work-item |
//!
//! # What is accepted
//!
//! - **Types:** `i8` to `i64`, `isize`, `u8` to `u64`, `usize`, `f16`, `bf16` (of the crate `half`), `f32`, `f64`,
//!   `bool`, vectors, structs, tuples of them. Literals get their types as in Rust. Slices are indexed by `usize`.
//! - **Vectors:** `[T; N]` of 1 to 16 parts, as values (`let [x, y] = a[i];`, `v[k]`, `v[k] += x`) and in memory
//!   (`&[[T; N]]`, `a[i] = [x, y];`, `a[i][k]`), there by aligned vector accesses. The argument for a slice of
//!   vectors is a buffer of `T`.
//! - **Structs** of these that derive [`Data`](data::Data): literals with `..rest`, fields, patterns in `let`.
//! - **Parameters** of a kernel: `&[T]`, `&mut [T]` of scalars, vectors and structs, `&[Atomic<T>]`, views
//!   ([`View2<T, ReadOnly>`](view)), scalars, vectors and structs by value, and `#[constant]` scalars, whose value is
//!   given when the kernel is built: `kernel(…)` takes them. They may stand in the attribute's sizes.
//! - **Device functions** (`#[device_fn]`): called from kernels and each other, inlined, not recursive. They
//!   also take `&[T; N]`, `&mut [T; N]`, `&mut T`, references to views, and tuples, and return values and tuples.
//! - **Generics:** types bounded by [`Number`](scalar::Number), [`Integer`](scalar::Integer),
//!   [`Float`](scalar::Float); constants.
//! - **Statements:** `let`, `let mut`, tuple patterns, shadowing, assignment and destructuring assignment, `+=` and the other
//!   compound assignments, `if`/`else` (as expressions too), `while`, `loop` with `break value`, `for` over `a..b`, `a..=b`,
//!   `.rev()`, `.step_by(s)`, labels on loops and blocks, `break`, `continue`, early `return`, inner `const`, `type`, `use`,
//!   and constants of the program.
//! - **Arrays:** private ones are `let mut a = [x; N]`, shared ones `let mut tile = shared::<T, N>()`. An array of up to 16
//!   elements can be used as a vector value: `f(a)`, `b[i] = a;`, `a = b[i];`. A part of a slice or array is one again:
//!   `let row = &a[i..j];`, `f(&mut a[i..])`.
//! - **Operators:** all of Rust's on scalars, `as`, `&&` and `||` with their short circuit.
//! - **Methods:** `abs abs_diff acos asin atan atan2 cbrt ceil clamp copysign cos cosh count_ones count_zeros
//!   div_ceil erf exp exp2 floor fract funnel_shl funnel_shr hypot is_finite is_infinite is_multiple_of
//!   is_nan is_power_of_two leading_ones leading_zeros ln log10 log2 max min mul_add powf recip reverse_bits
//!   rotate_left rotate_right round round_ties_even saturating_sub signum sin sinh sqrt swap_bytes tan tanh
//!   to_bits trailing_ones trailing_zeros trunc unsigned_abs wrapping_add wrapping_mul wrapping_neg
//!   wrapping_shl wrapping_shr wrapping_sub`, `len` and `is_empty` of slices, `f32::from(x)`,
//!   `f32::from_bits(x)`, `u32::min(a, b)`. `select(c, a, b)` chooses without a branch.
//! - **Approximations:** `approximate_rsqrt(x)` and the others of [`approximate`] are the device's own instructions.
//! - **Work-items:** the functions of [`work_item`], `barrier()`.
//! - **Atomics:** `bins[i].fetch_add(1, Ordering::Relaxed)` on `&[Atomic<T>]` and `shared::<Atomic<T>, N>()`, with
//!   the methods of [`atomic::Atomic`], and `fence(Ordering::AcqRel)`.
//!   `fetch_min` and `fetch_max` of floats, too. [`dot4_i8`](fn@dot::dot4_i8), `dot4_u8` and `dot4_i8_u8` multiply bytes.
//! - **Sub-groups and work-groups together:** shuffles, votes, reductions and scans of [`sub_group`],
//!   `sub_group_barrier()` and [`named_barrier::<1, 2>()`](fn@work_item::named_barrier). [`block`] loads and stores:
//!   `sub_group_load(&values[first..])`, `let [a, b, c, d] = sub_group_load_block(&values[first..]);`.
//! - **A work-group's work:** `for i in work_items(count) { … }` divides it among the work-items, with a barrier before and after:
//!   see [`work_items`](fn@work_item::work_items).
//! - **Printing:** `print!("{x} {:x}", y)` and `println!`, of scalars, and `{v:?}` of vectors. The simulator hands the lines over with the
//!   launch's `Outcome`, in the order of the work-items; NVIDIA's driver writes them to the
//!   standard output. Each keeps about a megabyte of a launch.
//! - **Loops** take `#[unroll]`, `#[unroll(N)]`, `#[unroll(0)]` (keep the loop) and `#[prefetch("PLAN")]`.
//! - **Hints:** [`prefetch`](fn@hint::prefetch) and [`joint_prefetch`](fn@hint::joint_prefetch), of elements, pointers
//!   and views: `prefetch(&values[i], L1)`, `joint_prefetch(work_group(), &values[i..i + n], [L2, L1_NT])`.
//! - **Asynchronous copies** ([`mod@pipeline`]): `pipeline_memcpy_async(&mut tile[i..], &values[j..])`, `pipeline_commit()`,
//!   `pipeline_wait_prior(3)`.
//! - **Pointers** ([`mod@pointer`]): `let p = global_ptr(&values[i]);`, `shared_ptr`, `private_ptr`, `generic_ptr`, with
//!   `add(n) read() raw() span(n) generic() prefetch(n)`.
//! - **Intel's cache controls** ([`lsc`]): `lsc_prefetch_uint(p, 0, LSC_LDCC_L1C_L3C)`, `lsc_load`.
//! - **Sizes:** `#[kernel(work_group = 128, sub_group = 32)]`, `work_group = (16, 8)`, or any constant
//!   expression over the const generics and constant parameters.
//!
//! Anything else is a compile error at its own position that lists the accepted forms. A call of a function without
//! `#[device_fn]` is also an error. If the function is in the same module as the kernel, the message says so; otherwise the compiler
//! reports a missing module or type of that name.
//!
//! # Semantics
//!
//! Rust's semantics, with these additions. An overflow of `+`, `-`, `*` and an index out of bounds are
//! errors that stop a debug build; in a kernel the simulator reports them, and a real device wraps or does
//! anything. `x / 0` of integers is 0 and `x % 0` is `x`; a shift by the width or more shifts everything out; for `min` and
//! `max`, -0 is below +0, which Rust leaves open. `exp`, `powf`, `erf` and their like have the same
//! bits everywhere, and the errors listed in [`math`](crate::math); the reference computes them so too.
//!
//! # How it works
//!
//! The macro emits the body twice: once unmodified, so that the compiler checks it and reports errors at the user's
//! source, and the CPU can run it; and once rewritten into calls of [`record`], which write the
//! IR when they run; variables become SSA there.

/// The type that bears the name of a function of the language; its `device` is called where kernels are recorded.
macro_rules! device_form {
    ($name:ident { $($function:tt)+ }) => {
        #[doc(hidden)]
        #[allow(non_camel_case_types, reason = "it bears the function's name")]
        pub struct $name {}

        impl $name { $($function)+ }
    };
}

pub mod approximate;
pub mod atomic;
pub mod block;
pub mod data;
pub mod dot;
pub mod geometry;
pub mod hint;
pub mod lsc;
mod mathematics;
pub mod pipeline;
pub mod pointer;
#[doc(hidden)]
pub mod record;
#[doc(hidden)]
pub mod reference;
pub mod scalar;
pub mod select;
pub mod sub_group;
pub mod view;
pub mod work_item;

// Compilers name them in messages: their short names need a place that is not hidden.
pub use record::{Place, Recorded};
