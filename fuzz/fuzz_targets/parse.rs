//! The parser of the text form on any bytes: no panic, no hang, and what is accepted survives a round trip.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../headstart/tests/common/round_trip.rs"]
mod round_trip;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        round_trip::check(text);
    }
});
