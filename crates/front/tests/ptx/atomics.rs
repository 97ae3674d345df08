//! Atomic operations of several values at once.

use super::{Facts, floats, named, outputs, read};
use headstart_back::ptx::{Options as Emit, PtxTarget, emit};

/// Each of 64 work-items adds its four numbers to the four at `i & 1`, and keeps what was there before.
const SUMS: &str = ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 in, .param .u64 sums, \
    .param .u64 out)\n{\n.reg .b32 %r<4>;\n.reg .f32 %f<12>;\n.reg .b64 %rd<9>;\nld.param.u64 %rd1, [in];\n\
    ld.param.u64 %rd2, [sums];\nld.param.u64 %rd3, [out];\nmov.u32 %r1, %tid.x;\nand.b32 %r2, %r1, 1;\n\
    mul.wide.u32 %rd4, %r1, 16;\nmul.wide.u32 %rd5, %r2, 16;\nadd.s64 %rd6, %rd1, %rd4;\nadd.s64 %rd7, %rd2, %rd5;\n\
    add.s64 %rd8, %rd3, %rd4;\nld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];\n\
    atom.global.gpu.acq_rel.add.v4.f32 {%f5, %f6, %f7, %f8}, [%rd7], {%f1, %f2, %f3, %f4};\n\
    st.global.v4.f32 [%rd8], {%f5, %f6, %f7, %f8};\nret;\n}\n";

#[test]
fn four_sums_at_once() {
    let launch = "groups = 1\ngroup = 64\n[parameters.in]\nlength = 256\nfill = \"fractions\"\noutput = \"bits\"\n\
        [parameters.sums]\nlength = 8\nfill = \"zero\"\noutput = \"bits\"\n\
        [parameters.out]\nlength = 256\nfill = \"zero\"\noutput = \"bits\"\n";
    let (_, found) = outputs(SUMS, "k", launch);
    let [given, sums, before] = ["in", "sums", "out"].map(|name| floats(named(&found, name)));
    for part in 0..4 {
        for which in 0..2 {
            let own = (0..64).filter(|item| item & 1 == which);
            let mut expected = 0.0f32;
            let mut seen = Vec::new();
            for item in own {
                seen.push(expected);
                expected += given[item * 4 + part];
            }
            assert_eq!(sums[which * 4 + part], expected);
            let own = (0..64).filter(|item| item & 1 == which);
            let kept: Vec<f32> = own.map(|item| before[item * 4 + part]).collect();
            assert_eq!(kept, seen);
        }
    }
}

#[test]
fn they_are_written_as_they_were_read() {
    let kernel = read(SUMS, "k.ptx", None, &Facts::default()).expect("it is read");
    let ptx = emit(&kernel, &Emit::new(PtxTarget::Sm90)).expect("it is written");
    assert!(
        ptx.text.contains("atom.acq_rel.gpu.global.add.v4.f32 {"),
        "{}",
        ptx.text
    );
    // Others are not taken for one of these.
    for (wrong, right) in [
        ("add.v4.f32", "min.v4.s32"),
        ("{%f1, %f2, %f3, %f4};\nst", "{%f1, %f2};\nst"),
        ("add.v4.f32", "add.v2.f32"),
    ] {
        let text = SUMS.replacen(wrong, right, 1);
        let kernel = read(&text, "k.ptx", None, &Facts::default()).expect("it is carried");
        assert!(
            headstart_ir::ir::print(&kernel).contains("anything ends"),
            "{right}"
        );
    }
}
