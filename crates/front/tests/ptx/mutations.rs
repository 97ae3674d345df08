//! Modules without end: an error, never a stack that overflows.

use super::{Facts, read};

#[test]
fn what_is_too_deep_or_too_much_is_refused() {
    let head =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .pred %p<3>;\n.reg .b32 %r<3>;\n";
    let many = 3000;
    let mut branches = head.to_owned();
    for level in 0..many {
        branches.push_str(&format!("LOOP{level}:\nadd.u32 %r1, %r1, 1;\n"));
    }
    for level in (0..many).rev() {
        branches.push_str(&format!(
            "setp.ne.u32 %p1, %r1, {level};\n@%p1 bra LOOP{level};\n"
        ));
    }
    let blocks = format!("{head}{}", "{".repeat(100_000));
    let operands = format!("{head}mov.u32 %r1, {}1;\n}}", "{".repeat(100_000));
    for text in [format!("{branches}ret;\n}}"), blocks, operands] {
        let error = read(&text, "deep.ptx", None, &Facts::default()).expect_err("too deep");
        assert_eq!(error.fault(), headstart_ir::Fault::Input, "{error}");
    }
}
