//! Any bytes as a module of SPIR-V, seeded with `corpus/spirv/`: no panic, no hang, and what is wrong is never our fault.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../headstart/tests/common/spirv_modules.rs"]
mod spirv_modules;

fuzz_target!(|bytes: &[u8]| {
    spirv_modules::check(bytes);
});
