//! Random flow graphs: what an interpreter of the text computes, the structured kernel computes, too.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::ptx::tree::{Body, Instruction, Operand, Statement};
use crate::ptx::{Facts, body, parse, read};
use headstart_sim::functional::Options;
use headstart_testing::{Random, run};
use headstart_tune::tune::LaunchFile;

const ITEMS: u32 = 32;

/// An entry with random jumps; a counter ends those that would run for ever.
fn random_entry(numbers: &mut Random) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_out)\n{\n.reg .pred %p<3>;\n\
         .reg .b32 %r<12>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [k_out];\ncvta.to.global.u64 %rd2, %rd1;\n\
         mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd3, %r0, 16;\nadd.s64 %rd2, %rd2, %rd3;\nmov.u32 %r1, 17;\n\
         mul.lo.u32 %r2, %r0, 77;\nmov.u32 %r3, %r0;\nmov.u32 %r9, 40;\n",
    );
    let blocks = 2 + numbers.below(9);
    for block in 0..blocks {
        let _ = writeln!(
            text,
            "L{block}:\nsub.u32 %r9, %r9, 1;\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra DONE;"
        );
        for _ in 0..numbers.below(3) {
            let [to, a, other] = [(); 3].map(|()| numbers.below(4));
            let guard = ["", "@%p2 ", "@!%p2 "][numbers.below(3) as usize];
            let op = ["add.u32", "xor.b32", "mul.lo.u32"][numbers.below(3) as usize];
            let _ = writeln!(text, "{guard}{op} %r{to}, %r{a}, %r{other};");
        }
        let _ = writeln!(
            text,
            "and.b32 %r8, %r{}, {};",
            numbers.below(4),
            1 << numbers.below(3)
        );
        let _ = writeln!(text, "setp.ne.u32 %p2, %r8, 0;");
        // Mostly forward, sometimes back: enough of the graphs are reducible.
        let mut target = || match numbers.below(4) {
            0 => numbers.below(block + 1),
            _ => (block + 1 + numbers.below(3)).min(blocks),
        };
        let (first, second) = (target(), target());
        let name = |target: u64| {
            if target == blocks {
                "DONE".to_owned()
            } else {
                format!("L{target}")
            }
        };
        match numbers.below(6) {
            0 => {
                let _ = writeln!(text, "bra.uni {};", name(first));
            }
            1 => text.push_str("@%p2 ret;\n"),
            2 | 3 => {
                let _ = writeln!(text, "@%p2 bra {};\nbra {};", name(first), name(second));
            }
            _ => {
                let _ = writeln!(text, "@!%p2 bra {};", name(first));
            }
        }
    }
    text.push_str(
        "DONE:\nst.global.u32 [%rd2], %r0;\nst.global.v2.u32 [%rd2+8], {%r1, %r2};\nst.global.u32 [%rd2+4], %r3;\nret;\n}\n",
    );
    text
}

/// What a work-item of the entry stores: the four words, if it comes so far.
fn interpret(body: &Body<'_>, item: u32) -> Option<[u32; 4]> {
    let mut registers = vec![0u64; body.registers.len()];
    let mut at = 0;
    let mut stored = [0; 4];
    let mut finished = false;
    let label = |wanted: u32| {
        let is_it =
            |statement: &Statement<'_>| matches!(statement, Statement::Label(label) if *label == wanted);
        body.statements
            .iter()
            .position(is_it)
            .expect("the label is there")
    };
    while let Some(statement) = body.statements.get(at) {
        at += 1;
        let Statement::Instruction(instruction) = statement else {
            continue;
        };
        if let Some((predicate, negated)) = instruction.guard
            && (registers[predicate as usize] == 1) == negated
        {
            continue;
        }
        match (instruction.opcode, &instruction.operands[..]) {
            ("ret", _) => return finished.then_some(stored),
            ("bra", [Operand::Label(to)]) => at = label(*to),
            ("st", [Operand::Address(_, offset), values]) => {
                let one = std::slice::from_ref(values);
                let values = if let Operand::Vector(parts) = values {
                    parts
                } else {
                    one
                };
                for (position, value) in values.iter().enumerate() {
                    stored[*offset as usize / 4 + position] = read_operand(&registers, value, item) as u32;
                }
                finished = true;
            }
            (_, [Operand::Register(to), rest @ ..]) => {
                let rest: Vec<u64> = rest
                    .iter()
                    .map(|operand| read_operand(&registers, operand, item))
                    .collect();
                registers[*to as usize] = result(instruction, &rest);
            }
            other => panic!("{other:?}"),
        }
    }
    finished.then_some(stored)
}

fn read_operand(registers: &[u64], operand: &Operand<'_>, item: u32) -> u64 {
    match operand {
        Operand::Register(register) => registers[*register as usize],
        Operand::Integer(number) => *number,
        Operand::Special("tid", "x") => u64::from(item),
        _ => 0,
    }
}

fn result(instruction: &Instruction<'_>, operands: &[u64]) -> u64 {
    let word = |value: u64| u64::from(value as u32);
    match (instruction.opcode, operands) {
        ("mov", [a]) => *a,
        ("add", [a, b]) => word(a.wrapping_add(*b)),
        ("sub", [a, b]) => word(a.wrapping_sub(*b)),
        ("xor", [a, b]) => a ^ b,
        ("and", [a, b]) => a & b,
        ("mul", [a, b]) => word(a.wrapping_mul(*b)),
        ("setp", [a, b]) if instruction.has("eq") => u64::from(a == b),
        ("setp", [a, b]) => u64::from(a != b),
        _ => 0,
    }
}

#[test]
fn random_flow_graphs_compute_the_same() {
    let launch =
        "groups = 1\ngroup = 32\n[parameters.out]\nlength = 128\nfill = \"zero\"\noutput = \"bits\"\n";
    let launch = LaunchFile::parse(launch, "launch.toml").expect("a launch file");
    let mut numbers = Random::new(1);
    let (mut structured, mut loops) = (0, 0);
    for seed in 0..400 {
        let text = random_entry(&mut numbers);
        let kernel = match read(&text, "k.ptx", None, &Facts::default()) {
            Ok(kernel) => Arc::new(kernel),
            Err(error) if error.to_string().contains("irreducible") => continue,
            Err(error) => panic!("{seed}: {error}\n{text}"),
        };
        let module = parse::module(&text).expect("a module");
        let body = body::body(&text, &module.functions[0]).expect("a body");
        let expected: Vec<u8> = (0..ITEMS)
            .flat_map(|item| interpret(&body, item).unwrap_or_default())
            .flat_map(u32::to_le_bytes)
            .collect();
        let workload = launch.workload(&kernel).expect("a workload");
        let printed = || format!("{seed}\n{text}\n{}", crate::ir::print(&kernel));
        let found = run(&workload, &kernel, Options::CHECKING)
            .unwrap_or_else(|error| panic!("{error}: {}", printed()));
        assert!(found[0].1 == expected, "{}", printed());
        structured += 1;
        let mut has_loop = false;
        kernel
            .body
            .walk(&mut |op| has_loop |= matches!(op.kind, crate::ir::OpKind::Loop { .. }));
        loops += u32::from(has_loop);
    }
    assert!(
        structured > 150 && loops > 50,
        "{structured} were structured, {loops} have loops"
    );
}

/// Shapes whose dominance frontiers, chains of dominators or regions have a size that is the square of theirs.
#[test]
fn twenty_thousand_forward_branches_take_no_long_time() {
    const COUNT: usize = 20_000;
    let branches = |target: &dyn Fn(usize) -> String, then: &str| -> String {
        let branch = |number: usize| {
            let target = target(number);
            format!("setp.eq.u32 %p1, %r0, {number};\n@%p1 bra {target};\n{then}")
        };
        (0..COUNT).map(branch).collect()
    };
    let labels = |then: &str| -> String {
        let label = |number: usize| format!("L{number}:\nadd.u32 %r1, %r1, {number};\n{then}");
        (0..COUNT).map(label).collect()
    };
    let own = |number: usize| format!("L{number}");
    let to_end = |_| "END".to_owned();
    for (body, is_too_deep) in [
        (branches(&own, "") + &labels(""), true),
        (branches(&own, "") + "bra END;\n" + &labels("bra END;\n"), false),
        (branches(&to_end, "add.u32 %r1, %r1, 1;\n"), false),
    ] {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_out)\n{{\n.reg .pred %p<3>;\n\
             .reg .b32 %r<12>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [k_out];\nmov.u32 %r0, %tid.x;\nmov.u32 %r1, 17;\n\
             {body}END:\nst.global.u32 [%rd1], %r1;\nret;\n}}\n"
        );
        let begun = Instant::now();
        let found = read(&text, "k.ptx", None, &Facts::default());
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        match found {
            Ok(_) => assert!(!is_too_deep),
            Err(error) => assert!(
                is_too_deep && error.to_string().contains("nested too deeply"),
                "{error}"
            ),
        }
    }
}
