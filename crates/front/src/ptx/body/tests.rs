use crate::ptx::parse;
use crate::ptx::tree::{Operand, Statement};

/// For each jump of a body, the number of the statement that it leads to.
fn jumps(body: &str) -> Result<Vec<usize>, String> {
    let text =
        format!(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{body}\n}}\n");
    let module = parse::module(&text).map_err(|error| error.to_string())?;
    let body = super::body(&text, &module.functions[0]).map_err(|error| error.to_string())?;
    let place = |wanted: u32| {
        let mut statements = body.statements.iter();
        statements.position(|own| matches!(own, Statement::Label(label) if *label == wanted))
    };
    let mut found = Vec::new();
    for statement in &body.statements {
        if let Statement::Instruction(instruction) = statement
            && let [Operand::Label(label)] = instruction.operands[..]
        {
            found.push(place(label).ok_or("a jump leads nowhere")?);
        }
    }
    Ok(found)
}

#[test]
fn a_label_of_a_block_hides_those_around() {
    // For each jump, the number of the statement that it leads to.
    for (body, expected) in [
        // Two blocks have a label of one name.
        ("{ bra L; L: } { bra L; L: }", &[1, 3][..]),
        // The block's own, whether it comes before the jump or behind it.
        ("L: { L: bra L; }", &[1]),
        ("L: { bra L; L: }", &[2]),
        // One that is mentioned before the block, and comes behind it.
        ("bra L; { bra L; L: } L: bra L;", &[3, 2, 3]),
        // A block without such a label has that around it, before or behind it, however far.
        ("L: { { bra L; } } bra L;", &[0, 0]),
        ("{ { bra L; } bra L; } L:", &[2, 2]),
        ("L: { { bra L; } L: }", &[2]),
        ("{ { bra L; } { L: bra L; } } L:", &[3, 1]),
        // Behind a place, which has no end.
        (
            ".loc 1 2 3, function_name $S+4, inlined_at 1 7 8\n$L: bra $L;",
            &[0],
        ),
        (
            ".loc 1 2 3, inlined_at 1 7 8, function_name $S\n$L: bra $L;",
            &[0],
        ),
    ] {
        assert_eq!(jumps(body).as_deref(), Ok(expected), "{body}");
    }
    for (body, expected) in [
        ("{ L: } bra L;", "there is no label `L`"),
        ("L: { } L:", "label `L` is defined twice"),
        ("{ bra L; L: L: }", "label `L` is defined twice"),
        ("bra M; bra L; { bra K; }", "there is no label `M`"),
        (
            "{ .shared .b8 a[4]; } { .local .b32 a; }",
            "two variables of the function are called `a`",
        ),
        (
            ".shared .b8 a[4], b; { .shared .b32 b; }",
            "two variables of the function are called `b`",
        ),
    ] {
        let said = jumps(body).expect_err(body);
        assert!(said.contains(expected), "{body}: {said}");
    }
}

#[test]
fn many_labels_take_no_long_time() {
    let count = 200_000;
    let forward: Vec<String> = (0..count).map(|number| format!("bra L{number};\n")).collect();
    let labels: Vec<String> = (0..count).map(|number| format!("L{number}:\n")).collect();
    let text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{}{}}}\n",
        forward.concat(),
        labels.concat()
    );
    let module = parse::module(&text).expect("a module");
    let begun = std::time::Instant::now();
    super::body(&text, &module.functions[0]).expect("a body");
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
}
