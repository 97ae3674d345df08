//! Kernels that verify, through everything behind the verifier: plans, back ends, the functional engine.

#![no_main]

use headstart::ir;
use libfuzzer_sys::fuzz_target;

#[path = "../../headstart/tests/common/anything.rs"]
mod anything;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // The last byte chooses the plans, so that text and plans can change apart from each other.
    let seed = u64::from(bytes.last().copied().unwrap_or_default());
    if let Ok(kernel) = ir::parse(text, "fuzzed.hsir")
        && ir::verify(&kernel).is_ok()
    {
        anything::check(&kernel, seed);
    }
});
