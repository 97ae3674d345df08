//! What each PTX instruction means: against the same in Rust.

mod calls;
mod copies;
mod edits;
mod lockstep;
mod loops;
mod masks;
mod numbers;
mod phases;
mod quads;
mod together;
mod words;

use headstart::device::sim::functional::Options;
use headstart::front::ptx::import;
use headstart::tune::{FileSubject, LaunchFile, Subject};
use headstart_testing::run;

/// The output `param_0` of an entry under a launch file.
fn output(text: &str, launch: &str) -> Vec<u32> {
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let imported = import(text, "test.ptx", Some("k"), &launch.facts());
    let imported = imported.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let workload = FileSubject::of_module(imported, launch)
        .workload()
        .expect("a workload");
    let outputs = run(&workload, &workload.kernel, Options::CHECKING);
    let outputs = outputs.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let output = outputs.iter().find(|(name, _)| name == "param_0");
    words_of(&output.expect("an output").1)
}

/// The words of a buffer.
fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks()
        .0
        .iter()
        .copied()
        .map(u32::from_le_bytes)
        .collect()
}

/// What `%d`, `%x` and so on are.
const REGISTERS: &str = ".reg .b64 %a<4>, %off, %wd, %wx, %wy, %wz; .reg .b32 %i<5>, %d, %x, %y, %z, %t<4>; .reg .f32 %f<5>; \
    .reg .b16 %h<5>; .reg .f64 %e<5>; .reg .pred %p, %q;";
