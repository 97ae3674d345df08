//! Latencies of instructions, and the intervals at which units and register ports take them.

use super::*;

/// Cycles per further link of a chain, with one sub-group.
fn per_link(ty: &str, start: &str, link: impl Fn(&str, &str) -> String) -> f64 {
    let bench = Bench::new("h200", &[]);
    let element = Type::parse(ty).expect("a type");
    let cycles = |count: usize| {
        let out = bench.buffer(element, 32, Pattern::Constant(0));
        bench
            .time(
                &chain(ty, start, &links(count, &link)),
                1,
                32,
                vec![out, index(32), index(100)],
            )
            .cycles
    };
    (cycles(28) - cycles(12)) / 1600.0
}

#[test]
fn dependent_instructions_take_their_latency() {
    // Measured on an H200, 2026-11-21: 4.0 (4.5 with the loop), 8.0.
    let fma32 = per_link("f32", "1.5", |from, to| {
        format!("{to} = fma {from}, {from}, {from}")
    });
    assert!((3.5..5.0).contains(&fma32), "{fma32}");
    let fma64 = per_link("f64", "1.5", |from, to| {
        format!("{to} = fma {from}, {from}, {from}")
    });
    assert!((7.5..9.0).contains(&fma64), "{fma64}");
    for (ty, operation, measured) in [
        ("f32", "sqrt", 55.9),
        ("f64", "sqrt", 92.0),
        ("f64", "fdiv", 124.0),
    ] {
        let each = per_link(ty, "1.5", |from, to| match operation {
            "fdiv" => format!("{to} = fdiv {from}, {from}"),
            _ => format!("{to} = {operation} {from}"),
        });
        let error = each / measured - 1.0;
        println!("{operation} {ty}: {each}, measured {measured}");
        assert!(error.abs() < 0.2, "{operation} {ty}: {each}, measured {measured}");
    }
}

#[test]
fn units_limit_many_sub_groups() {
    // A core takes 64 lanes a cycle: one double-precision instruction of each of 32 sub-groups takes 16 cycles.
    let bench = Bench::new("h200", &[]);
    let cycles = |count: usize| {
        let links = links(count, |from, to| format!("{to} = fma {from}, {from}, {from}"));
        let out = bench.buffer(Type::F64, 1024, Pattern::Constant(0));
        let text = chain("f64", "1.5", &links);
        bench
            .time(&text, 1, 1024, vec![out, index(1024), index(50)])
            .cycles
    };
    let each = (cycles(28) - cycles(12)) / 800.0;
    assert!((15.0..17.0).contains(&each), "{each}");
}

/// Cycles of a core per multiply-add of each of 32 sub-groups. Four chains alternate. All start from `%x`; their factors and
/// summands are computed from the work-item's id.
fn multiply_adds(bench: &Bench, ty: &str, link: impl Fn(&str, usize) -> String) -> f64 {
    let cycles = |rounds: usize| {
        let mut body: Vec<String> = (0..4)
            .map(|chain| format!("%c{chain}x0 = fadd %x, {chain}.0:{ty}"))
            .collect();
        for round in 0..rounds {
            for chain in 0..4 {
                let link = link(&format!("%c{chain}x{round}"), chain);
                body.push(format!("%c{chain}x{} = {link}", round + 1));
            }
        }
        let ends: Vec<String> = (0..4).map(|chain| format!("%c{chain}x{rounds}")).collect();
        body.push(format!("%s0 = fadd {}, {}", ends[0], ends[1]));
        body.push(format!("%s1 = fadd {}, {}", ends[2], ends[3]));
        body.push("%next = fadd %s0, %s1".to_owned());
        let before: String = (0..4)
            .map(|chain| {
                format!("%by{chain} = fmul %own, 0.{chain}5:{ty}\n%to{chain} = fadd %own, 0.{chain}5:{ty}\n")
            })
            .collect();
        let text = chain(ty, "1.5", &body.join("\n")).replace(
            "%last = loop",
            &format!("%own = unsigned_to_float %item to {ty}\n{before}%last = loop"),
        );
        let out = bench.buffer(Type::parse(ty).expect("a type"), 1024, Pattern::Constant(0));
        bench
            .time(&text, 1, 1024, vec![out, index(1024), index(50)])
            .cycles
    };
    (cycles(12) - cycles(4)) / (50.0 * 8.0 * 4.0)
}

#[test]
fn operands_are_read_from_registers() {
    // `micro/operands` on an H200, 2026-11-23: 24.3 and 16.2 cycles in 64 bits, 13.1 and 8.5 in 32.
    let bench = Bench::new("h200", &[]);
    let three = |from: &str, chain: usize| format!("fma {from}, %by{chain}, %to{chain}");
    let two = |from: &str, chain: usize| format!("fma {from}, 0.5:f64, %to{chain}");
    let apart = multiply_adds(&bench, "f64", three);
    assert!((23.0..25.5).contains(&apart), "{apart}");
    let fewer = multiply_adds(&bench, "f64", two);
    assert!((15.5..17.0).contains(&fewer), "{fewer}");
    let floats = multiply_adds(&bench, "f32", three);
    assert!((11.8..13.2).contains(&floats), "{floats}");
    // The previous instruction's operand is in the reuse cache: only the chain's own register is read.
    let together = multiply_adds(&bench, "f64", |from, _| format!("fma {from}, %by0, %to0"));
    assert!((15.5..17.0).contains(&together), "{together}");
    // Operands cost nothing in a model without this limit.
    let free = Bench::new("h200", &["core.operand-words=1000"]);
    let apart = multiply_adds(&free, "f64", three);
    assert!((15.5..17.0).contains(&apart), "{apart}");
}
