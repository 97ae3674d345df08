//! Any text as a module of PTX, seeded with `corpus/`: no panic, no hang, and what is wrong is never our fault.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../headstart/tests/common/modules.rs"]
mod modules;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        modules::check(text);
    }
});
