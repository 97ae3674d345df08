//! Flow graphs in PTX, described by bytes: the structured kernel computes what the text means.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../headstart/tests/common/flow.rs"]
mod flow;

fuzz_target!(|bytes: &[u8]| {
    flow::check(bytes);
});
