//! The methods that a kernel can call, each with the number of its arguments.

/// Methods of scalars. Every one is a function of the same name in the library's `record::methods`.
pub const METHODS: [(&str, usize); 64] = [
    ("abs", 0),
    ("abs_diff", 1),
    ("acos", 0),
    ("asin", 0),
    ("atan", 0),
    ("atan2", 1),
    ("cbrt", 0),
    ("ceil", 0),
    ("clamp", 2),
    ("copysign", 1),
    ("cos", 0),
    ("cosh", 0),
    ("count_ones", 0),
    ("count_zeros", 0),
    ("div_ceil", 1),
    ("erf", 0),
    ("exp", 0),
    ("exp2", 0),
    ("floor", 0),
    ("fract", 0),
    ("funnel_shl", 2),
    ("funnel_shr", 2),
    ("hypot", 1),
    ("is_finite", 0),
    ("is_infinite", 0),
    ("is_multiple_of", 1),
    ("is_nan", 0),
    ("is_power_of_two", 0),
    ("leading_ones", 0),
    ("leading_zeros", 0),
    ("ln", 0),
    ("log10", 0),
    ("log2", 0),
    ("max", 1),
    ("min", 1),
    ("mul_add", 2),
    ("powf", 1),
    ("recip", 0),
    ("reverse_bits", 0),
    ("rotate_left", 1),
    ("rotate_right", 1),
    ("round", 0),
    ("round_ties_even", 0),
    ("saturating_sub", 1),
    ("signum", 0),
    ("sin", 0),
    ("sinh", 0),
    ("sqrt", 0),
    ("swap_bytes", 0),
    ("tan", 0),
    ("tanh", 0),
    ("to_bits", 0),
    ("to_f32", 0),
    ("to_f64", 0),
    ("trailing_ones", 0),
    ("trailing_zeros", 0),
    ("trunc", 0),
    ("unsigned_abs", 0),
    ("wrapping_add", 1),
    ("wrapping_mul", 1),
    ("wrapping_neg", 0),
    ("wrapping_shl", 1),
    ("wrapping_shr", 1),
    ("wrapping_sub", 1),
];

/// Methods of atomic elements, each with the number of its values; an order comes behind them.
pub const ATOMIC_METHODS: [(&str, usize); 11] = [
    ("compare_and_swap", 2),
    ("fetch_add", 1),
    ("fetch_and", 1),
    ("fetch_max", 1),
    ("fetch_min", 1),
    ("fetch_or", 1),
    ("fetch_sub", 1),
    ("fetch_xor", 1),
    ("load", 0),
    ("store", 1),
    ("swap", 1),
];

/// Methods of pointers, each with the number of its arguments. Every one is a function of the same name in the
/// library's `record::places`.
pub const POINTER_METHODS: [(&str, usize); 6] = [
    ("add", 1),
    ("generic", 0),
    ("prefetch", 1),
    ("raw", 0),
    ("read", 0),
    ("span", 1),
];

/// Methods that give elements of a view, to be prefetched. Every one is a function of the same name in the library's
/// `record::views`.
pub const VIEW_METHODS: [&str; 2] = ["block", "span"];

/// Functions that make a pointer to an element.
pub const POINTERS: [&str; 4] = ["generic_ptr", "global_ptr", "private_ptr", "shared_ptr"];

/// Methods of slices and arrays.
pub const MEMORY_METHODS: [&str; 2] = ["is_empty", "len"];

/// Methods whose result would depend on the platform's mathematical library, or that Rust has not settled yet:
/// the ordinary copy of the body calls ours instead, so that both copies give the same bits.
pub const OWN_METHODS: [&str; 22] = [
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "funnel_shl",
    "funnel_shr",
    "hypot",
    "ln",
    "log10",
    "log2",
    "powf",
    "round",
    "sin",
    "sinh",
    "tan",
    "tanh",
];

/// The scalar types that the language has by name, for `u32::min(a, b)` and `f32::from(x)`.
pub const SCALARS: [&str; 15] = [
    "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize", "f16", "bf16", "f32", "f64",
    "bool",
];

/// The integer types by name.
pub const INTEGERS: [&str; 10] = [
    "i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize",
];

/// The method that was most likely meant: it begins like the name that was written, for more than half of both.
pub fn near(written: &str) -> Option<&'static str> {
    let alike = |name: &str| {
        name.bytes()
            .zip(written.bytes())
            .take_while(|(one, other)| one == other)
            .count()
    };
    let names = METHODS.iter().map(|(name, _)| *name);
    names
        .filter(|name| 2 * alike(name) > name.len().max(written.len()))
        .max_by_key(|name| alike(name))
}

/// The accepted methods, as an error message lists them.
pub fn list() -> String {
    METHODS
        .iter()
        .map(|(name, _)| *name)
        .collect::<Vec<_>>()
        .join(", ")
}
