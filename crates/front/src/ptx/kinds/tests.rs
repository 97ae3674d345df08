//! Tests of the forms that addresses have in registers.

use crate::ir::print;
use crate::ptx::{Facts, read};

/// The kernel as text that these instructions are read as. `%v` points to global memory, `%s` is the shared address of `sm` and
/// `%g` its generic one, `%p` a predicate.
fn read_as(instructions: &str) -> String {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 v, .param .u64 out, .param .u32 n)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %a<16>;\n.shared .align 4 .b8 sm[256];\n.local .align 8 .b8 table[16];\n\
         ld.param.u64 %a0, [v];\ncvta.to.global.u64 %a1, %a0;\nld.param.u64 %a8, [out];\nld.param.u32 %r0, [n];\n\
         setp.ne.s32 %p0, %r0, 0;\nmov.u64 %a2, sm;\ncvta.shared.u64 %a3, %a2;\n{instructions}\nret;\n}}\n"
    );
    let kernel = read(&text, "k.ptx", None, &Facts::default());
    print(&kernel.unwrap_or_else(|error| panic!("{error}\n{text}")))
}

const STORE: &str = "st.global.u32 [%a8], %r1;";

#[test]
fn an_address_of_one_space_is_known() {
    let text = read_as(&format!("add.s64 %a4, %a3, 8;\nld.u32 %r1, [%a4];\n{STORE}"));
    assert!(!text.contains("generic"), "{text}");
}

#[test]
fn an_address_of_two_spaces_stays_generic() {
    for choice in [
        "selp.b64 %a4, %a1, %a3, %p0;",
        "mov.u64 %a4, %a1;\n@%p0 mov.u64 %a4, %a3;",
        "mov.u64 %a4, %a3;\n@%p0 bra L;\nmov.u64 %a4, %a1;\nL:",
    ] {
        let text = read_as(&format!("{choice}\nld.u32 %r1, [%a4];\n{STORE}"));
        // Both addresses are made generic.
        assert_eq!(text.matches("to_generic").count(), 2, "{choice}\n{text}");
    }
}

#[test]
fn the_bits_of_an_address_are_those_of_the_text() {
    // The generic address of shared memory, compared with a global one.
    let text = read_as(&format!(
        "setp.eq.s64 %p1, %a3, %a1;\nselp.b32 %r1, 1, 2, %p1;\n{STORE}"
    ));
    assert!(text.contains("to_generic"), "{text}");
    // The address in shared memory itself is no generic one.
    let text = read_as(&format!(
        "setp.eq.s64 %p1, %a2, %a1;\nselp.b32 %r1, 1, 2, %p1;\n{STORE}"
    ));
    assert!(!text.contains("to_generic"), "{text}");
}

#[test]
fn what_is_loaded_or_made_of_bits_may_lead_anywhere() {
    for made in [
        "ld.local.u64 %a4, [table];",
        "or.b64 %a4, %a3, 8;",
        "and.b64 %a4, %a3, -16;",
        "st.local.u64 [table], %a3;\nld.local.u64 %a5, [table];\nselp.b64 %a4, %a5, %a1, %p0;",
        "mov.u64 %a4, %a1;\n@%p0 or.b64 %a4, %a3, 4;",
    ] {
        let text = read_as(&format!("{made}\nld.u32 %r1, [%a4];\n{STORE}"));
        assert!(text.contains("to ptr.generic"), "{made}\n{text}");
        assert!(
            !text.contains("load i32 %v") && !text.contains("address %v"),
            "{made}\n{text}"
        );
    }
}

#[test]
fn addresses_of_two_spaces_in_one_register_are_bits() {
    let text = read_as(&format!(
        "mov.u64 %a4, %a2;\n@%p0 mov.u64 %a4, %a1;\n@%p0 ld.global.u32 %r1, [%a4];\n@!%p0 ld.shared.u32 %r1, [%a4];\n{STORE}"
    ));
    assert!(text.contains("bits") && text.contains("to ptr.shared"), "{text}");
    assert!(!text.contains("generic"), "{text}");
}
