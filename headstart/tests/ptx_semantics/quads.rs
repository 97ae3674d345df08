//! Registers of 128 bits, and the operations on 16 bytes at once.

use headstart::front::ptx::{Facts, read};
use headstart::ir::print;
use headstart_testing::ptxas::Ptxas;

use super::output;

/// A kernel on 16-byte elements: the output, inputs and what stands between; `%a0` is the work-item's element of the output, `%a1` of
/// the input, `%a2` the first of the output.
fn module(body: &str) -> String {
    format!(
        ".version 8.4\n.target sm_90\n.address_size 64\n\
         .visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1)\n{{\n\
         .reg .b128 %q<6>; .reg .b64 %a<4>, %l<8>, %off; .reg .b32 %i, %t<2>; .reg .pred %p;\n\
         .shared .align 16 .b8 tile[512];\n\
         ld.param.u64 %a0, [k_param_0];\ncvta.to.global.u64 %a0, %a0;\nld.param.u64 %a1, [k_param_1];\n\
         cvta.to.global.u64 %a1, %a1;\nmov.u64 %a2, %a0;\nmov.u32 %i, %tid.x;\nmul.wide.u32 %off, %i, 16;\n\
         add.s64 %a0, %a0, %off;\nadd.s64 %a1, %a1, %off;\n{body}\nret;\n}}\n"
    )
}

const LAUNCH: &str = "kernel = \"k\"\ngroups = 1\ngroup = 32\n[parameters.param_0]\nlength = 128\nfill = \"zero\"\noutput = \"bits\"\n\
    [parameters.param_1]\nlength = 128\nfill = \"sequence\"\n";

/// What a kernel leaves, as words; and that it is the same read from the text form and assembles in its module.
fn ran(body: &str) -> Vec<u32> {
    let text = module(body);
    let facts = Facts::default();
    let kernel = read(&text, "k.ptx", Some("k"), &facts).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = print(&kernel);
    let again = headstart::ir::read(&printed, "k.hsir").expect("it is read again");
    assert_eq!(print(&again), printed);
    if let Some(ptxas) = Ptxas::find() {
        let assembled = ptxas.assemble_module(&text);
        assembled.unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    output(&text, LAUNCH)
}

/// A work-item's value of the input, as words: two numbers of 64 bits.
fn value(item: u32) -> [u32; 4] {
    [2 * item, 0, 2 * item + 1, 0]
}

#[test]
fn registers_of_128_bits_are_moved() {
    // Read, taken apart, put together the other way round, and written.
    let found = ran(
        "ld.global.nc.b128 %q0, [%a1];\nmov.b128 {%l0, %l1}, %q0;\nmov.b128 %q1, {%l1, %l0};\nmov.b128 %q2, %q1;\n\
         st.global.b128 [%a0], %q2;",
    );
    let expected: Vec<u32> = (0..32).flat_map(|item| [2 * item + 1, 0, 2 * item, 0]).collect();
    assert_eq!(found[..128], expected);
    // Through shared memory, under a predicate.
    let found = ran(
        "ld.global.L1::no_allocate.b128 %q0, [%a1];\nmov.u32 %t0, tile;\nmad.lo.u32 %t0, %i, 16, %t0;\n\
         st.shared.b128 [%t0], %q0;\nsetp.lt.u32 %p, %i, 16;\nld.volatile.shared.b128 %q3, [%t0];\n\
         @%p st.global.b128 [%a0], %q3;",
    );
    let expected: Vec<u32> = (0..32)
        .flat_map(|item| if item < 16 { value(item) } else { [0; 4] })
        .collect();
    assert_eq!(found[..128], expected);
}

#[test]
fn sixteen_bytes_are_exchanged_at_once() {
    // Each takes the value of the one before, the lowest first.
    let found = ran(
        "ld.global.b128 %q0, [%a1];\natom.relaxed.gpu.global.exch.b128 %q1, [%a2], %q0;\nsetp.ne.u32 %p, %i, 0;\n\
         @%p st.global.b128 [%a0], %q1;",
    );
    let expected: Vec<u32> = (0..32)
        .flat_map(|item| value(if item == 0 { 31 } else { item - 1 }))
        .collect();
    assert_eq!(found[..128], expected);
    // Only the first finds zeros in its place: the others get its value.
    let found = ran(
        "ld.global.b128 %q0, [%a1+16];\nmov.b64 %l0, 0;\nmov.b128 %q1, {%l0, %l0};\n\
         atom.acq_rel.cta.cas.b128 %q2, [%a2], %q1, %q0;\nsetp.ne.u32 %p, %i, 0;\n@%p st.global.b128 [%a0], %q2;",
    );
    assert_eq!(found[..128], [value(1); 32].concat());
    // Half of what is expected is not enough.
    let found = ran(
        "ld.global.b128 %q0, [%a1+16];\nmov.b64 %l0, 0;\nmov.b64 %l1, 1;\nmov.b128 %q1, {%l0, %l1};\n\
         atom.relaxed.sys.global.cas.b128 _, [%a2], %q1, %q0;",
    );
    assert!(found.iter().all(|&word| word == 0), "{found:?}");
}

#[test]
fn sixteen_bytes_are_published_at_once() {
    let found = ran(
        "ld.global.b128 %q0, [%a1];\nst.release.gpu.global.b128 [%a0], %q0;\nld.acquire.gpu.global.b128 %q1, [%a0];\n\
         mov.b128 {%l0, %l1}, %q1;\nadd.u64 %l0, %l0, 1;\nmov.b128 %q2, {%l0, %l1};\nst.relaxed.cta.global.b128 [%a0], %q2;",
    );
    let expected: Vec<u32> = (0..32)
        .flat_map(|item| [2 * item + 1, 0, 2 * item + 1, 0])
        .collect();
    assert_eq!(found[..128], expected);
}
