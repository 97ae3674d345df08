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

/// Which of the parameters `p`, `q` and `n` are pointers.
fn pointers(instructions: &str) -> [bool; 3] {
    let text = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n\
         .visible .entry k(.param .u64 p, .param .u64 q, .param .u64 n, .param .u32 i)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %a<16>;\n.shared .align 8 .b8 sm[64];\n.local .align 16 .b8 table[64];\n\
         ld.param.u64 %a0, [p];\nld.param.u64 %a1, [q];\nld.param.u64 %a2, [n];\nld.param.u32 %r0, [i];\n\
         setp.ne.s64 %p0, %a2, 0;\nmul.wide.u32 %a3, %r0, 8;\nmov.u64 %a4, table;\nadd.s64 %a5, %a4, %a3;\n{instructions}\nret;\n}}\n"
    );
    let kernel = read(&text, "k.ptx", None, &Facts::default());
    let kernel = kernel.unwrap_or_else(|error| panic!("{error}\n{text}"));
    [0, 1, 2].map(|number: usize| kernel.params[number].facts.is_some())
}

#[test]
fn all_alternatives_of_an_address_are_pointers() {
    for choice in [
        "selp.b64 %a6, %a0, %a1, %p0;",
        "mov.u64 %a6, %a0;\n@%p0 mov.u64 %a6, %a1;",
        "selp.b64 %a7, %a1, 0, %p0;\n@%p0 mov.u64 %a7, %a0;\nadd.s64 %a6, %a7, %a3;",
        "add.s64 %a7, %a1, 16;\nselp.b64 %a8, %a0, %a7, %p0;\nmad.lo.s64 %a6, %a2, 4, %a8;",
    ] {
        let found = pointers(&format!("{choice}\nld.global.u32 %r1, [%a6];"));
        assert_eq!(found, [true, true, false], "{choice}");
        assert_eq!(pointers(choice), [false; 3], "{choice}");
    }
    // Either may be the offset.
    let sum = pointers("selp.b64 %a6, %a0, %a1, %p0;\nadd.s64 %a7, %a6, %a2;\nld.global.u32 %r1, [%a7];");
    assert_eq!(sum, [false; 3]);
}

#[test]
fn what_is_loaded_from_a_table_and_followed_are_pointers() {
    let stores = "st.local.v2.u64 [%a4], {%a0, %a1};\nst.local.u64 [%a4+16], %a2;";
    for (loads, expected) in [
        (
            "ld.local.u64 %a6, [%a4+8];\nadd.s64 %a6, %a6, %a3;",
            [false, true, false],
        ),
        ("ld.local.v2.u64 {%a7, %a6}, [table];", [false, true, false]),
        ("ld.local.v2.u64 {%a6, %a7}, [table];", [true, false, false]),
        (
            "cvta.local.u64 %a8, %a4;\nadd.s64 %a9, %a8, 8;\nld.u64 %a6, [%a9+-8];",
            [true, false, false],
        ),
    ] {
        let text = format!("{stores}\n{loads}\nld.global.u32 %r1, [%a6];");
        assert_eq!(pointers(&text), expected, "{loads}");
    }
    // At a place that only the run tells, all that is there.
    let followed = "ld.local.u64 %a6, [%a5];\nld.u32 %r1, [%a6];";
    let both = format!("st.local.v2.u64 [%a4], {{%a0, %a1}};\n{followed}");
    assert_eq!(pointers(&both), [true, true, false]);
    let shared = "st.shared.u64 [sm], %a0;\nst.shared.u64 [sm+8], %a1;\nmov.u32 %r2, sm;\nshl.b32 %r3, %r0, 3;\n\
                  add.s32 %r2, %r2, %r3;\nld.shared.u64 %a6, [%r2];\nld.u32 %r1, [%a6];";
    assert_eq!(pointers(shared), [true, true, false]);
    // An index that is kept in memory, too, is no other candidate.
    let index = format!(
        "{stores}\nst.local.u32 [%a4+24], %r0;\nld.local.u32 %r4, [%a4+24];\ncvt.u64.u32 %a8, %r4;\nld.local.u64 %a6, [%a4];\n\
         add.s64 %a9, %a6, %a8;\nld.global.u32 %r1, [%a9];"
    );
    assert_eq!(pointers(&index), [true, false, false]);
    // A number that is only read back is none.
    let read_back = format!("{stores}\nld.local.u64 %a6, [%a4+16];\nst.global.u64 [%a0], %a6;");
    assert_eq!(pointers(&read_back), [true, false, false]);
}

#[test]
fn what_a_table_leads_to_is_seen_as_what_is_loaded_there() {
    let text = ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 i)\n{\n\
         .reg .b32 %r<4>;\n.reg .b64 %a<8>;\n.local .align 8 .b8 table[16];\nld.param.u64 %a0, [p];\nld.param.u32 %r0, [i];\n\
         ld.global.nc.u32 %r2, [%a0];\nmov.u64 %a1, table;\nst.local.u64 [%a1], %a0;\nmul.wide.u32 %a2, %r0, 8;\nadd.s64 %a3, %a1, %a2;\n\
         ld.local.u64 %a4, [%a3];\nst.u32 [%a4], %r2;\nret;\n}\n";
    let kernel = read(text, "k.ptx", None, &Facts::default()).expect("a kernel");
    let facts = kernel.params[0].facts.expect("a pointer");
    assert_eq!(facts.element, crate::ir::Type::I32);
    assert!(!facts.read_only, "it is written through the table");
}
