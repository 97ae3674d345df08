//! What is fused, what keeps the permission, and what is left open, in entries of a few instructions.

use super::Fused::{self, Left, Nothing, Right};
use crate::ir::print;

fn contracted(text: &str) -> String {
    print(&imported(text).kernel)
}

fn imported(text: &str) -> super::super::Imported {
    decided(text, None)
}

fn decided(text: &str, fused: Option<&[Fused]>) -> super::super::Imported {
    let module = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .f32 %f<9>;\n\
         .reg .b64 %rd<3>;\nld.param.u64 %rd1, [p];\nld.global.f32 %f1, [%rd1];\nld.global.f32 %f2, [%rd1+4];\n\
         ld.global.f32 %f3, [%rd1+8];\n{text}\nst.global.f32 [%rd1+12], %f6;\nret;\n}}\n"
    );
    let facts = super::super::Facts {
        fused: fused.map(<[Fused]>::to_vec),
        ..Default::default()
    };
    let imported = super::super::import(&module, "test.ptx", None, &facts);
    imported.expect("it is read")
}

#[test]
fn what_ptxas_fuses_is_fused() {
    let kernel = contracted("mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;");
    assert!(kernel.contains("= fma") && !kernel.contains("fmul"), "{kernel}");
    assert!(!kernel.contains("contract"), "{kernel}");
}

#[test]
fn a_change_of_sign_goes_with_the_product() {
    let kernel = contracted("mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;");
    assert!(kernel.contains("= fma") && !kernel.contains("fmul"), "{kernel}");
    assert!(!kernel.contains("contract"), "{kernel}");
}

#[test]
fn a_subtraction_changes_a_sign() {
    for text in [
        "mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;",
        "mul.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f4, %f3;",
        "mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;",
    ] {
        let kernel = contracted(text);
        assert!(
            kernel.matches("= fneg").count() == 1 && kernel.contains("= fma"),
            "{kernel}"
        );
    }
}

/// A loop that runs twice, with code before, inside and behind it.
fn looped(before: &str, inside: &str, behind: &str) -> String {
    format!(
        ".reg .b32 %r<3>;\n.reg .pred %p<2>;\nmov.u32 %r1, 0;\nmov.f32 %f6, %f3;\n{before}\nL:\n{inside}\n\
         add.s32 %r1, %r1, 1;\nsetp.lt.s32 %p1, %r1, 2;\n@%p1 bra L;\n{behind}"
    )
}

#[test]
fn a_product_in_front_of_a_loop_is_not_fused_inside() {
    let outside = "mul.f32 %f4, %f1, %f2;";
    let imported = imported(&looped(outside, "add.f32 %f6, %f6, %f4;", ""));
    let kernel = print(&imported.kernel);
    assert!(
        kernel.contains("= fmul ") && kernel.contains("= fadd "),
        "{kernel}"
    );
    assert!(!imported.original.is_open);
    // One of inside is, whatever it is added to.
    let kernel = contracted(&looped(
        outside,
        "mul.f32 %f5, %f6, %f1;\nadd.f32 %f6, %f5, %f4;",
        "",
    ));
    assert!(
        kernel.contains("= fma") && !kernel.contains("contract"),
        "{kernel}"
    );
}

#[test]
fn what_is_left_to_the_assembler_is_not_written_back() {
    let product = "mul.f32 %f4, %f1, %f2;";
    let twice = "add.f32 %f5, %f3, %f4;\nadd.f32 %f6, %f5, %f4;";
    for (text, contracts) in [
        (format!("{product}\n{twice}"), 3),
        (format!("{product}\nabs.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;"), 2),
        (
            format!("{product}\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;\nadd.f32 %f6, %f6, %f4;"),
            3,
        ),
        // A change of sign that is used twice.
        (
            format!("{product}\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;\nadd.f32 %f6, %f6, %f5;"),
            3,
        ),
        // One that flushes, behind a product that does not.
        (
            format!("{product}\nneg.ftz.f32 %f5, %f4;\nadd.f32 %f6, %f3, %f5;"),
            2,
        ),
        // One of several values.
        (
            format!(
                ".reg .pred %p<2>;\n{product}\nsetp.lt.f32 %p1, %f1, %f2;\nselp.f32 %f5, %f4, %f3, %p1;\n\
                 add.f32 %f6, %f3, %f5;"
            ),
            2,
        ),
        // Beside a product that is used elsewhere, too, on either side.
        (
            format!(
                "{product}\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;\nst.global.f32 [%rd1+16], %f5;"
            ),
            3,
        ),
        (
            format!(
                "{product}\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f5, %f4;\nst.global.f32 [%rd1+16], %f5;"
            ),
            3,
        ),
        // Behind a loop that the product stands in front of.
        (looped(product, "add.f32 %f6, %f6, %f1;", twice), 3),
    ] {
        let imported = imported(&text);
        let kernel = print(&imported.kernel);
        assert_eq!(kernel.matches(".contract").count(), contracts, "{text}\n{kernel}");
        assert!(imported.original.is_open);
    }
}

#[test]
fn what_was_found_out_is_carried_out() {
    let product = "mul.f32 %f4, %f1, %f2;";
    let twice = format!("{product}\nsub.f32 %f5, %f3, %f4;\nadd.f32 %f6, %f4, %f5;");
    let two =
        format!("{product}\nmul.f32 %f5, %f2, %f3;\nsub.f32 %f6, %f4, %f5;\nst.global.f32 [%rd1+16], %f5;");
    let magnitude = format!("{product}\nabs.f32 %f5, %f4;\nsub.f32 %f6, %f3, %f5;");
    let other_sign =
        format!("{product}\nneg.f32 %f5, %f4;\nsub.f32 %f6, %f3, %f5;\nst.global.f32 [%rd1+16], %f5;");
    // The possible choices for each sum; the choice; then fused operations, products, sums, changed signs and magnitudes.
    for (text, open, chosen, counts) in [
        (
            &twice,
            vec![vec![Nothing, Right], vec![Nothing, Left]],
            vec![Nothing, Nothing],
            [0, 1, 2, 0, 0],
        ),
        (
            &twice,
            vec![vec![Nothing, Right], vec![Nothing, Left]],
            vec![Right, Nothing],
            [1, 1, 1, 1, 0],
        ),
        (
            &twice,
            vec![vec![Nothing, Right], vec![Nothing, Left]],
            vec![Right, Left],
            [2, 0, 0, 1, 0],
        ),
        (
            &two,
            vec![vec![Nothing, Left, Right]],
            vec![Left],
            [1, 1, 0, 1, 0],
        ),
        (
            &two,
            vec![vec![Nothing, Left, Right]],
            vec![Right],
            [1, 2, 0, 1, 0],
        ),
        (
            &magnitude,
            vec![vec![Nothing, Right]],
            vec![Right],
            [1, 0, 0, 1, 2],
        ),
        (
            &other_sign,
            vec![vec![Nothing, Right]],
            vec![Right],
            [1, 1, 0, 1, 0],
        ),
    ] {
        assert_eq!(imported(text).original.open_sums, open, "{text}");
        let imported = decided(text, Some(&chosen));
        assert!(!imported.original.is_open, "{text}");
        let kernel = print(&imported.kernel);
        assert!(!kernel.contains("contract"), "{kernel}");
        let [fused, products, added, subtracted, negated, magnitudes] =
            ["fma", "fmul", "fadd", "fsub", "fneg", "fabs"]
                .map(|op| kernel.matches(&format!("= {op} ")).count());
        let found = [fused, products, added + subtracted, negated, magnitudes];
        assert_eq!(found, counts, "{chosen:?}\n{kernel}");
    }
    // A sum that cannot be decided stays open.
    assert!(decided(&magnitude, Some(&[Left])).original.is_open);
    assert!(decided(&twice, Some(&[Right])).original.is_open);
}

#[test]
fn a_quotient_is_fused_with_its_sum_by_the_assembler() {
    for (text, products) in [
        ("div.full.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;", 0),
        ("div.approx.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;", 0),
        ("div.full.ftz.f32 %f4, %f1, %f2;\nadd.ftz.f32 %f6, %f4, %f3;", 0),
        ("rcp.approx.f32 %f4, %f1;\nadd.f32 %f6, %f4, %f3;", 0),
        (
            "div.full.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nadd.f32 %f6, %f5, %f3;",
            0,
        ),
        // The one on the left, as with two products.
        (
            "div.full.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;",
            1,
        ),
        (
            "div.full.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f5, %f4;",
            1,
        ),
        (
            "mul.f32 %f4, %f1, %f2;\nneg.f32 %f5, %f4;\nmul.f32 %f7, %f2, %f3;\nadd.f32 %f6, %f5, %f7;",
            2,
        ),
    ] {
        let imported = imported(text);
        let kernel = print(&imported.kernel);
        assert!(!imported.original.is_open, "{text}");
        assert!(!kernel.contains("= fma"), "{kernel}");
        assert_eq!(
            kernel.matches(".contract").count(),
            products + 1,
            "{text}\n{kernel}"
        );
    }
    // Another rule, no quotient at all, and an instruction that is one already.
    for text in [
        "div.full.f32 %f4, %f1, %f2;\nadd.rn.f32 %f6, %f4, %f3;",
        "rcp.approx.ftz.f32 %f4, %f1;\nadd.ftz.f32 %f6, %f4, %f3;",
        "div.rn.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;",
        // Something else needs the quotient.
        "div.full.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f4, %f3;\nst.global.f32 [%rd1+16], %f4;",
        "div.full.f32 %f4, %f1, %f2;\nsub.f32 %f5, %f3, %f4;\nmul.rn.f32 %f6, %f5, %f4;",
    ] {
        let imported = imported(text);
        assert!(!imported.original.is_open, "{text}");
        assert!(!print(&imported.kernel).contains("contract"), "{text}");
    }
}

#[test]
fn a_quotient_whose_sum_is_open_is_written_out() {
    let behind = "add.f32 %f5, %f3, %f4;\nst.global.f32 [%rd1+16], %f5;\nadd.f32 %f6, %f3, %f4;";
    for (division, flushes, scaled, divisions) in [
        ("div.full.f32 %f4, %f1, %f2;", "", 4, 1),
        ("div.full.ftz.f32 %f4, %f1, %f2;", ".ftz", 2, 1),
        ("div.approx.f32 %f4, %f1, %f2;", "", 2, 1),
        // 1, scaled for a large divisor, is a constant.
        ("rcp.approx.f32 %f4, %f1;", "", 3, 0),
    ] {
        let text = format!("{division}\n{}", behind.replace("add", &format!("add{flushes}")));
        let open = imported(&text).original.open_sums;
        assert_eq!(open, [vec![Nothing, Right], vec![Nothing, Right]], "{text}");
        assert!(imported(&text).original.is_open);
        let rounded = decided(&text, Some(&[Nothing, Nothing]));
        assert!(!rounded.original.is_open);
        assert!(!print(&rounded.kernel).contains("fma"), "{text}");
        let fused = decided(&text, Some(&[Right, Nothing]));
        assert!(!fused.original.is_open);
        let kernel = print(&fused.kernel);
        assert_eq!(kernel.matches("= fma").count(), 1, "{kernel}");
        assert_eq!(kernel.matches("= fmul").count(), scaled, "{kernel}");
        assert_eq!(kernel.matches("= approximate.rcp.ftz").count(), 1, "{kernel}");
        assert_eq!(kernel.matches("= approximate.div").count(), divisions, "{kernel}");
    }
}

#[test]
fn halves_are_written_back_if_they_are_rounded() {
    let halves = |mul: &str, add: &str| {
        let text = format!(
            ".reg .b16 %h<4>;\nld.global.u16 %h1, [%rd1];\n{mul}.f16 %h2, %h1, %h1;\n{add}.f16 %h3, %h2, %h1;\n\
             st.global.u16 [%rd1+2], %h3;\nmov.f32 %f6, %f1;"
        );
        imported(&text).original.is_open
    };
    assert!(halves("mul", "add"));
    assert!(!halves("mul.rn", "add"));
    assert!(!halves("mul", "add.rn"));
}

#[test]
fn what_is_rounded_stays() {
    for text in [
        "mul.rn.f32 %f4, %f1, %f2;\nsub.f32 %f6, %f3, %f4;",
        "mul.f32 %f4, %f1, %f2;\nsub.rn.f32 %f6, %f3, %f4;",
    ] {
        let kernel = contracted(text);
        assert!(!kernel.contains("fma") && kernel.contains("fmul"), "{kernel}");
        assert!(!kernel.contains("contract"), "{kernel}");
    }
}

#[test]
fn a_choice_is_left_open() {
    let kernel = contracted("mul.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;");
    assert!(!kernel.contains("fma"), "{kernel}");
    assert_eq!(kernel.matches("fmul.contract").count(), 2, "{kernel}");
    assert_eq!(kernel.matches("fadd.contract").count(), 1, "{kernel}");
}

#[test]
fn what_flushes_is_fused_with_what_flushes() {
    let kernel = contracted("mul.ftz.f32 %f4, %f1, %f2;\nadd.ftz.f32 %f6, %f3, %f4;");
    assert!(
        kernel.contains("= fma.ftz ") && !kernel.contains("fmul"),
        "{kernel}"
    );
    let kernel = contracted("mul.ftz.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f3, %f4;");
    assert!(kernel.contains("fmul.ftz.contract"), "{kernel}");
    assert!(kernel.contains("fadd.contract"), "{kernel}");
}

#[test]
fn only_what_may_be_fused_is_open() {
    let kernel = contracted(
        "mul.f32 %f4, %f1, %f2;\nmul.f32 %f5, %f2, %f3;\nadd.f32 %f6, %f4, %f5;\n\
         mul.rn.f32 %f7, %f6, %f6;\nadd.rn.f32 %f6, %f7, %f1;",
    );
    assert_eq!(kernel.matches(".contract").count(), 3, "{kernel}");
    assert!(
        kernel.contains("= fmul ") && kernel.contains("= fadd "),
        "{kernel}"
    );
}

/// Only what stands in a loop, or crosses its edge outwards, keeps it from being edited.
#[test]
fn a_loop_is_undecided_for_what_it_computes_itself() {
    const OPEN: &str = "mul.f32 %f4, %f1, %f2;\nadd.f32 %f5, %f4, %f1;\nadd.f32 %f6, %f5, %f4;";
    let undecided = |text: &str| {
        let original = imported(text).original;
        original.cut("L").expect("a loop").own.undecided.clone()
    };
    assert!(undecided(&looped("", OPEN, "")).is_some());
    // A copy says no more than its text, whatever the program's machine code does.
    let known = decided(&looped("", OPEN, ""), Some(&[Left, Right])).original;
    assert!(known.cut("L").expect("a loop").own.undecided.is_some());
    assert!(undecided(&looped(OPEN, "", "")).is_none());
    assert!(undecided(&looped("", "", OPEN)).is_none());
    let product = |product: &str| looped("", &format!("{product} %f5, %f1, %f2;"), "add.f32 %f6, %f5, %f3;");
    assert!(undecided(&product("mul.f32")).is_some());
    assert!(undecided(&product("mul.rn.f32")).is_none());
    // The product of the iteration before: of a copy before, in straight code, if the sum is in the loop.
    let before = |inside: &str, behind: &str| {
        let inside = format!("mov.f32 %f4, %f5;\n{inside}mul.f32 %f5, %f1, %f2;");
        looped("mov.f32 %f5, %f1;", &inside, behind)
    };
    assert!(undecided(&before("", "add.f32 %f6, %f4, %f3;")).is_none());
    assert!(undecided(&before("add.f32 %f6, %f4, %f3;\n", "")).is_some());
    assert!(undecided(&before("add.rn.f32 %f6, %f4, %f3;\n", "")).is_none());
    // The same beside a product of its own: it may fuse either.
    let both = |handed_on: &str| {
        let inside = format!("mul.f32 %f4, %f1, %f2;\nadd.f32 %f6, %f6, %f4;\n{handed_on} %f6, %f6, %f3;");
        looped("mov.f32 %f6, %f1;", &inside, "")
    };
    assert!(undecided(&both("mul.f32")).is_some());
    assert!(undecided(&both("mul.rn.f32")).is_none());
    // With 1 for `%f6` in a copy the first product is none.
    let two = |second: &str| {
        let inside = format!("mul.f32 %f4, %f1, %f6;\n{second} %f5, %f1, %f2;\nadd.f32 %f6, %f4, %f5;");
        looped("", &inside, "")
    };
    assert!(undecided(&two("mul.f32")).is_some());
    assert!(undecided(&two("mul.rn.f32")).is_none());
    let chain = |first: &str| {
        let inside = format!("{first} %f4, %f1, %f2;\nmul.f32 %f5, %f4, %f6;\nadd.f32 %f6, %f5, %f3;");
        looped("", &inside, "")
    };
    assert!(undecided(&chain("mul.f32")).is_some());
    assert!(undecided(&chain("mul.rn.f32")).is_none());
}
