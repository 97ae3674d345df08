//! The instructions of kernels: the counts on which times depend.

mod jumps;

use super::*;
use crate::ir::{OpKind, Space, parse, verify};

/// A kernel with a pointer to read-only `f64`s, one to `f32`s that it writes, a count and a condition.
fn kernel(body: &str) -> Kernel {
    let text = format!(
        "hsir 1\nkernel @t(%in: ptr.global f64[%n] align 8 readonly unaliased, \
         %out: ptr.global f32[%m] align 16 unaliased, %n: i64, %m: i64, %k: i32) {{\n\
         shared @slots: f64[256] align 16\nload @in\nload @out\n{body}\nreturn\n}}"
    );
    let kernel = parse(&text, "test.hsir").unwrap();
    verify(&kernel).unwrap();
    kernel
}

fn program(body: &str) -> MachineProgram {
    lower(&kernel(body), &Target::nvidia())
}

fn count(program: &MachineProgram, class: Class) -> usize {
    program
        .instructions
        .iter()
        .filter(|instruction| instruction.class == class)
        .count()
}

/// The instructions of the innermost loop, from its start to its end.
fn in_loop(program: &MachineProgram) -> Vec<&Instruction> {
    let start = program
        .instructions
        .iter()
        .rposition(|one| matches!(one.control, Control::Loop { .. }));
    let inside = program.instructions[start.unwrap()..].iter();
    inside
        .take_while(|one| !matches!(one.control, Control::EndLoop { .. }))
        .collect()
}

fn classes(instructions: &[&Instruction]) -> Vec<Class> {
    instructions
        .iter()
        .map(|one| one.class)
        .filter(|&class| class != Class::None)
        .collect()
}

/// A loop over `%in`, with one or more loads an iteration.
fn loop_over(params: &str, body: &str, next: &str) -> String {
    format!(
        "%t = id.local.x\n%i0 = extend.u %t to i64\nloop 'l (%i = %i0{params}) {{\n\
         %more = lt.u %i, %n\nif %more {{ yield }} else {{ break }}\n{body}\n\
         %i1 = add.nw %i, 128:i64\ncontinue %i1{next}\n}}"
    )
}

const ID: &str = "%t = id.local.x\n%i = extend.u %t to i64\n%at = address %in + %i * 8\n\
                  %x = load f64 %at, @in\n%to = address %out + %i * 4\n%f = float_to_float %x to f32";

#[test]
fn an_indexed_address_is_one_instruction_and_a_constant_offset_none() {
    let program = program(&format!(
        "{ID}\n%at2 = address %at + 0:i64 * 0 + 64\n%y = load f64 %at2, @in\n%s = fadd %x, %y\n\
         %g = float_to_float %s to f32\nstore %to, %g"
    ));
    // The pointers are one `IMAD.WIDE` each; the second load takes 64 as its offset.
    assert_eq!(count(&program, Class::IntMultiply), 2, "{program}");
    assert_eq!(count(&program, Class::Int32), 0, "{program}");
}

#[test]
fn a_pointer_in_a_loop_is_two_additions() {
    let program = program(&loop_over(
        "",
        "%at = address %in + %i * 8\n%x = load f64 %at, @in\n%f = float_to_float %x to f32\nstore %out, %f",
        "",
    ));
    // Pointer, counter and test of 64 bits: two each. One load, one conversion, one store, one jump.
    let inside = in_loop(&program);
    let integers = inside.iter().filter(|one| one.class == Class::Int32).count();
    assert_eq!((integers, classes(&inside).len()), (6, 10), "{program}");
}

#[test]
fn a_square_root_is_fourteen_instructions_and_keeps_others_out() {
    let two = program(&format!(
        "{ID}\n%a = sqrt %f\n%g = fadd %f, 1.0:f32\n%b = sqrt %g\n%s = fadd %a, %b\nstore %to, %s"
    ));
    let special: Vec<usize> = positions(&two, Class::Special);
    let meeting: Vec<usize> = positions(&two, Class::Reconverge);
    assert_eq!(special.len(), 2, "{two}");
    // The second one starts after the lanes of the first one have met again.
    assert!(
        meeting.iter().any(|&at| special[0] < at && at < special[1]),
        "{two}"
    );
    let one = program(&format!("{ID}\n%a = sqrt %f\nstore %to, %a"));
    let none = program(&format!("{ID}\nstore %to, %f"));
    assert_eq!((one.code_bytes - none.code_bytes) / 16, 14);
    assert_eq!(one.instruction_count() - none.instruction_count(), 10);
}

fn positions(program: &MachineProgram, class: Class) -> Vec<usize> {
    let all = program.instructions.iter().enumerate();
    all.filter(|(_, one)| one.class == class)
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn independent_chains_are_interleaved() {
    let program = program(&format!(
        "{ID}\n%a1 = fmul %x, %x\n%a2 = fmul %a1, %a1\n%a3 = fmul %a2, %a2\n\
         %b1 = fadd %x, %x\n%b2 = fadd %b1, %b1\n%b3 = fadd %b2, %b2\n%s = fadd %a3, %b3\n\
         %g = float_to_float %s to f32\nstore %to, %g"
    ));
    let names: Vec<String> = program
        .steps
        .iter()
        .filter_map(|step| match step {
            InstructionStep::Op(op) if matches!(op.kind, OpKind::Binary(..)) => {
                program.kernel.values[op.results[0]].name.clone()
            }
            _ => None,
        })
        .collect();
    assert_eq!(names, ["a1", "b1", "a2", "b2", "a3", "b3", "s"], "{program}");
}

#[test]
fn loads_come_before_arithmetic() {
    let program = program(&format!(
        "{ID}\n%a1 = fmul %x, %x\n%at2 = address %at + 0:i64 * 0 + 64\n%y = load f64 %at2, @in\n\
         %s = fadd %a1, %y\n%g = float_to_float %s to f32\nstore %to, %g"
    ));
    let loads = positions(
        &program,
        Class::Load {
            space: crate::ir::Space::Global,
            bytes: 8,
        },
    );
    let arithmetic = positions(&program, Class::Fp64);
    assert!(loads.len() == 2 && loads[1] < arithmetic[0], "{program}");
}

/// The load does not depend on the exchanged values.
#[test]
fn a_load_behind_a_shuffle_stays_there() {
    let with = |exchange: &str| {
        let program = program(&format!(
            "{ID}\n%a1 = fmul %x, %x\n{exchange}\n%at2 = address %at + 0:i64 * 0 + 64\n%y = load f64 %at2, @in\n\
             %s = fadd %a2, %y\n%g = float_to_float %s to f32\nstore %to, %g"
        ));
        let global = Class::Load {
            space: Space::Global,
            bytes: 8,
        };
        let loads = positions(&program, global);
        let exchanges = positions(&program, Class::Shuffle);
        let arithmetic = positions(&program, Class::Fp64);
        (loads[1], exchanges.last().copied(), arithmetic[0])
    };
    let (load, exchange, _) = with("%a2 = shuffle xor %a1, 1:i32");
    assert!(
        exchange.is_some_and(|exchange| exchange < load),
        "{exchange:?} and {load}"
    );
    let (load, exchange, product) = with("%a2 = fmul %a1, %a1");
    assert!(exchange.is_none() && load < product, "{load} and {product}");
}

#[test]
fn a_device_may_have_fewer_registers_than_are_ever_saved() {
    let few = ["registers.pooled.per-work-item=24".to_owned()];
    let model = crate::model::built_in("h200", &few).expect("a model");
    let target = Target::of(&model, 32).for_groups(&model, 1, 128);
    assert_eq!((target.kept_registers, target.comfortable_registers), (24, 16));
}

/// A ring of three values that moves on by one each iteration takes two moves of two halves; the new
/// value is loaded into its place.
#[test]
fn a_shifted_ring_is_charged_its_moves() {
    let shifted = program(&loop_over(
        ", %v0 = 0.0:f64, %v1 = 0.0:f64, %v2 = 0.0:f64, %sum = 0.0:f64",
        "%at = address %in + %i * 8\n%v3 = load f64 %at, @in\n%s = fadd %sum, %v0\n\
         %f = float_to_float %s to f32\nstore %out, %f",
        ", %v1, %v2, %v3, %s",
    ));
    let plain = program(&loop_over(
        ", %sum = 0.0:f64",
        "%at = address %in + %i * 8\n%v3 = load f64 %at, @in\n%s = fadd %sum, %v3\n\
         %f = float_to_float %s to f32\nstore %out, %f",
        ", %s",
    ));
    assert_eq!(
        classes(&in_loop(&shifted)).len(),
        classes(&in_loop(&plain)).len() + 4,
        "{shifted}"
    );
}

#[test]
fn an_accumulator_needs_no_move() {
    let program = program(&loop_over(
        ", %sum = 0.0:f64",
        "%at = address %in + %i * 8\n%x = load f64 %at, @in\n%s = fadd %sum, %x\n\
         %f = float_to_float %s to f32\nstore %out, %f",
        ", %s",
    ));
    let add = in_loop(&program)
        .into_iter()
        .find(|one| one.class == Class::Fp64)
        .unwrap();
    let target = add.defines.iter().next().unwrap();
    assert!(add.uses.iter().any(|register| register == target), "{program}");
}

#[test]
fn a_guarded_load_is_predicated_into_its_other_value() {
    let program = program(&format!(
        "{ID}\n%c = lt.s %k, 5:i32\n%at2 = address %at + 0:i64 * 0 + 64\n\
         %y = if %c -> f64 {{ %v = load f64 %at2, @in\nyield %v }} else {{ yield 0.0:f64 }}\n\
         %s = fadd %x, %y\n%g = float_to_float %s to f32\nstore %to, %g"
    ));
    assert_eq!(count(&program, Class::Branch), 0, "{program}");
    let guarded: Vec<_> = program
        .instructions
        .iter()
        .filter(|one| one.guard.is_some())
        .collect();
    assert_eq!(guarded.len(), 1, "{program}");
    assert!(guarded[0].guard.unwrap().holds);
    // The comparison, and the zero in front of the load.
    assert_eq!(count(&program, Class::Int32), 2, "{program}");
}

#[test]
fn a_long_if_is_a_jump() {
    let mut body = format!("{ID}\n%c = lt.s %t, 5:i32\nif %c {{\n%a0 = fadd %f, 1.0:f32\n");
    for index in 1..16 {
        body += &format!("%a{index} = fmul %a{}, %f\n", index - 1);
    }
    body += "store %to, %a15\nyield\n} else { yield }";
    let program = program(&body);
    assert_eq!(
        (count(&program, Class::Branch), count(&program, Class::Reconverge)),
        (1, 2),
        "{program}"
    );
    // Where all work-items agree none has to wait for the others.
    let uniform = lower(
        &kernel(&body.replace("lt.s %t, 5", "lt.s %k, 5")),
        &Target::nvidia(),
    );
    assert_eq!(count(&uniform, Class::Reconverge), 0, "{uniform}");
}

#[test]
fn copies_that_are_joined_make_one_group() {
    let copies = "%s0 = array @slots\n%s1 = address %s0 + 0:i64 * 0 + 8\n%at2 = address %at + 0:i64 * 0 + 8\n\
                  %a = copy 8 to %s0 from %at, @in\n%b = copy 8 to %s1 from %at2, @in\n";
    let joined = program(&format!("{ID}\n{copies}%j = join %a, %b\nwait %j\nstore %to, %f"));
    assert_eq!(
        (count(&joined, Class::Commit), count(&joined, Class::Wait)),
        (1, 1),
        "{joined}"
    );
    let apart = program(&format!("{ID}\n{copies}wait %a\nwait %b\nstore %to, %f"));
    assert_eq!(
        (count(&apart, Class::Commit), count(&apart, Class::Wait)),
        (2, 2),
        "{apart}"
    );
    // A wait keeps its token, and reads from shared memory behind it stay there.
    let read = program(&format!(
        "{ID}\n{copies}%j = join %a, %b\nwait %j\n%v = load f64 %s0, @in\n%g = float_to_float %v to f32\n\
         store %to, %g"
    ));
    let wait = positions(&read, Class::Wait)[0];
    let load = positions(
        &read,
        Class::Load {
            space: crate::ir::Space::Shared,
            bytes: 8,
        },
    )[0];
    assert!(wait < load, "{read}");
    let waits = |step: &InstructionStep| matches!(step, InstructionStep::Op(op) if matches!(op.kind, OpKind::Wait(_)));
    assert!(read.steps_of(&read.instructions[wait]).iter().any(waits));
}

#[test]
fn intel_has_64_bit_integers_and_no_offsets() {
    let kernel = kernel(&format!(
        "{ID}\n%at2 = address %at + 0:i64 * 0 + 64\n%y = load f64 %at2, @in\n%s = fadd %x, %y\n\
         %g = float_to_float %s to f32\nstore %to, %g"
    ));
    let program = lower(&kernel, &Target::intel(16, 8 * 1024));
    // The index is widened; a shift and an addition for each of two pointers, an addition for the offset.
    assert_eq!(count(&program, Class::Int64), 6, "{program}");
}

/// The estimate is near ptxas's number for our PTX of the same kernel.
#[test]
fn registers_are_as_many_as_ptxas_takes() {
    let reported = include_str!("../../../../headstart/tests/out/ptxas.txt");
    let mut compared = 0;
    for line in reported.lines().filter(|line| line.contains(" sm_90: ")) {
        let (name, rest) = line.split_once(" sm_90: ").unwrap();
        // Its prefetches in bulk, with priorities and checked copies are not in the machine program.
        if name == "hints" {
            continue;
        }
        let right: u32 = rest.split(' ').next().unwrap().parse().unwrap();
        let path = format!(
            "{}/../../headstart/tests/in/{name}.hsir",
            env!("CARGO_MANIFEST_DIR")
        );
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let program = lower(&parse(&text, name).unwrap(), &Target::nvidia());
        let found = program.register_estimate.registers;
        assert!(
            found.abs_diff(right) <= 8,
            "{name}: {found} registers, ptxas takes {right}"
        );
        compared += 1;
    }
    assert!(compared >= 10, "{compared} kernels");
}

#[test]
fn values_beyond_the_register_file_are_spilled() {
    let mut body = String::from(ID);
    for index in 0..150 {
        body += &format!(
            "\n%p{index} = address %at + 0:i64 * 0 + {}\n%v{index} = load f64 %p{index}, @in",
            8 * index
        );
    }
    // Every value is wanted at the end again, so all are kept from the first use on.
    body += "\n%s0 = fadd %x, %x";
    for index in 0..150 {
        body += &format!("\n%s{} = fadd %s{index}, %v{index}", index + 1);
    }
    body += "\nbarrier\n%u0 = fmul %s150, %s150";
    for index in 0..150 {
        body += &format!("\n%u{} = fmul %u{index}, %v{index}", index + 1);
    }
    body += "\n%g = float_to_float %u150 to f32\nstore %to, %g";
    let program = program(&body);
    assert_eq!(program.register_estimate.registers, 255);
    assert!(
        program.register_estimate.spilled_bytes >= 45 * 4,
        "{:?}",
        program.register_estimate
    );
}

/// The loads from the constant bank, and the start of the loop.
fn constants_and_loop(products: usize) -> (Vec<usize>, usize, MachineProgram) {
    let mut body = String::new();
    for at in 0..products {
        body += &format!(
            "%p{at} = address %in + %i * 8 + {}\n%x{at} = load f64 %p{at}, @in\n%c{at} = float_to_signed %x{at} to i32\n\
             %w{at} = extend.s %c{at} to i64\n%o{at} = address %out + %w{at} * 4\nstore %o{at}, 1.0:f32\n",
            8 * at
        );
    }
    let program = program(&loop_over("", &body, ""));
    let start = program
        .instructions
        .iter()
        .position(|one| matches!(one.control, Control::Loop { .. }));
    (positions(&program, Class::LoadConstant), start.unwrap(), program)
}

#[test]
fn a_pointer_is_loaded_before_the_loop_that_multiplies_with_it_or_in_it() {
    let (loads, start, program) = constants_and_loop(2);
    assert!(loads.iter().all(|&at| at < start), "{program}");
    let (loads, start, program) = constants_and_loop(4);
    assert_eq!(loads.iter().filter(|&&at| at > start).count(), 1, "{program}");
}

#[test]
fn a_pointer_that_is_only_added_to_takes_no_registers() {
    let added = |pointers: usize| {
        let mut body =
            String::from("%t = id.local.x\n%i0 = extend.u %t to i64\n%i = add.nw %i0, %n\nbarrier\n");
        for at in 0..pointers {
            body += &format!(
                "%p{at} = address %out + %i * 4 + {}\nstore %p{at}, 1.0:f32\nbarrier\n",
                4 * at
            );
        }
        program(&body).register_estimate.registers
    };
    // With one store as with two: nothing is kept for the second but its address.
    assert!(added(1) <= 10, "{}", added(1));
    assert!(added(2) <= 10, "{}", added(2));
}

#[test]
fn the_halves_of_a_double_are_its_registers() {
    let halves = |middle: &str| {
        let body = format!(
            "{ID}\n%b = bits %x to i64\n%h = shr.u %b, 32:i64\n%hi = truncate %h to i32\n%lo = truncate %b to i32\n\
             {middle}\n%lo64 = extend.u %lo to i64\n%hi64 = extend.u %s to i64\n%up = shl %hi64, 32:i64\n\
             %whole = or %up, %lo64\n%y = bits %whole to f64\n%g = float_to_float %y to f32\nstore %to, %g"
        );
        count(&program(&body), Class::Int32)
    };
    let one = halves("%s = shl %hi, 20:i32");
    let two = halves("%d = shl %hi, 20:i32\n%s = shr.s %d, 3:i32");
    // The operation on the upper half, and nothing for extracting and inserting it.
    assert_eq!((one, two), (1, 2));
}

#[test]
fn an_instruction_holds_one_constant() {
    let constants = |operation: &str| {
        let body = format!("{ID}\n%y = {operation}\n%g = float_to_float %y to f32\nstore %to, %g");
        count(&program(&body), Class::Int32)
    };
    assert_eq!(constants("fma %x, %x, 0.5:f64"), 0);
    assert_eq!(
        constants("fma %x, 0.125:f64, 0.5:f64"),
        2,
        "a factor in two registers"
    );
    assert_eq!(constants("fma %x, 0.125:f64, 0.0:f64"), 0, "zero is a register");
}

#[test]
fn what_a_loop_is_left_with_is_computed_behind_its_jump() {
    // The exit value is computed from the old counter: ptxas copies that, and the loop has one jump.
    let body = "%t = id.local.x\n%i0 = extend.u %t to i64\n\
                %end, %sum = loop 'l (%i = %i0, %acc = 0.0:f64) -> i64, f64 {\n\
                %at = address %in + %i * 8\n%x = load f64 %at, @in\n%next = fadd %acc, %x\n\
                %i1 = add.nw %i, 128:i64\n%more = lt.u %i, %n\n\
                if %more { yield } else { %far = add %i, 4096:i64\n break %far, %next }\n\
                continue %i1, %next\n}\n\
                %f = float_to_float %sum to f32\n%to = address %out + %end * 4\nstore %to, %f";
    let program = program(body);
    let looped = in_loop(&program);
    let test = looped
        .iter()
        .position(|one| one.class == Class::Branch)
        .expect("a test");
    // The jump behind the exit's computation; none back to the loop's top.
    let jumps = looped[test + 1..].iter().filter(|one| one.class == Class::Branch);
    assert_eq!(jumps.count(), 1, "{program}");
    assert!(
        !looped.iter().any(|one| one.class == Class::Reconverge),
        "{program}"
    );
    // The counter's and the pointer's additions and the test, of two each, and the copy. `%next` goes on and leaves, but is made
    // of what it was: no move.
    let integers = looped[..test].iter().filter(|one| one.class == Class::Int32);
    assert_eq!(integers.count(), 8, "{program}");
}

#[test]
fn a_ring_is_moved_on_behind_the_last_load() {
    // Three slots, each loaded behind a jump of its own, where a condition holds.
    let slot = |at: u32, condition: &str| {
        format!(
            "%q{at} = address %in + %i * 8 + {}\n{condition}\
             %y{at} = if %g{at} -> f64 {{\n%v{at} = load f64 %q{at}, @in\nyield %v{at}\n}} else {{ yield 0.0:f64 }}\n",
            at * 1024,
        )
    };
    // What the last one asks takes its time, in which all else could go first.
    let last = "%j2 = mul %i, %i\n%k2 = mul %j2, %i\n%g2 = lt.u %k2, 1002:i64\n";
    let body = format!(
        "%t = id.local.x\n%i0 = extend.u %t to i64\n\
         %sum = loop 'l (%i = %i0, %acc0 = 0.0:f64, %x0 = 1.0:f64, %x1 = 2.0:f64, %x2 = 3.0:f64) -> f64 {{\n\
         {}%acc1 = fadd %acc0, %x0\n\
         %left0 = lt.u %i, %n\nif %left0 {{ yield }} else {{ break %acc1 }}\n\
         {}%acc2 = fadd %acc1, %x1\n\
         %left1 = flt %acc2, 100.0:f64\nif %left1 {{ yield }} else {{ break %acc2 }}\n\
         {}%s2 = fmul %x2, %x2\n%acc3 = fadd %acc2, %s2\n\
         %i1 = add.nw %i, 384:i64\n%more = lt.u %i1, %n\nif %more {{ yield }} else {{ break %acc3 }}\n\
         continue %i1, %acc3, %y0, %y1, %y2\n}}\n\
         %f = float_to_float %sum to f32\nstore %out, %f",
        slot(0, "%g0 = lt.u %i, 1000:i64\n"),
        slot(1, "%g1 = lt.u %i, 1001:i64\n"),
        slot(2, last)
    );
    let program = program(&body);
    let looped = in_loop(&program);
    let last_load = looped
        .iter()
        .rposition(|one| matches!(one.class, Class::Load { .. }))
        .expect("loads");
    // Two for each slot, and half of the pointer's addition.
    let behind = looped[last_load..].iter().filter(|one| one.class == Class::Int32);
    assert!(behind.count() >= 6, "{program}");
}

#[test]
fn copies_of_one_group_are_closed_together_behind_the_if_that_guards_them() {
    let body = "%t = id.local.x\n%i0 = extend.u %t to i64\n%slots = array @slots\n\
                %s0 = address %slots + %i0 * 8\n%s1 = address %slots + %i0 * 8 + 1024\n\
                %last = loop 'l (%i = %i0, %token = 0:token) -> token {\n\
                wait %token\n\
                %p0 = address %in + %i * 8\n%p1 = address %in + %i * 8 + 1024\n%g = lt.u %i, 500:i64\n\
                %a, %b = if %g -> token, token {\n%c0 = copy 8 to %s0 from %p0, @in\n%c1 = copy 8 to %s1 from %p1, @in\n\
                yield %c0, %c1\n} else { yield 0:token, 0:token }\n\
                %both = join %a, %b\n\
                %i1 = add.nw %i, 256:i64\n%more = lt.u %i1, %n\nif %more { yield } else { break %both }\n\
                continue %i1, %both\n}\nwait %last";
    let program = program(body);
    let looped = in_loop(&program);
    let commits = looped.iter().filter(|one| one.class == Class::Commit);
    assert_eq!(commits.count(), 1, "{program}");
}

/// `p + (q - p)` is `q`: no load of `q` moves in front of a store there.
#[test]
fn a_pointer_made_of_others_may_lead_anywhere() {
    let program = program(
        "%a = bits %in to i64\n%b = bits %out to i64\n%d = sub %b, %a\n%there = address %in + %d * 1\n\
         store %there, 1.0:f32\n%y = load f32 %out, @out\n%next = address %out + 1:i64 * 4\nstore %next, %y",
    );
    let at = |is_it: fn(&Class) -> bool| program.instructions.iter().position(|one| is_it(&one.class));
    let (store, load) = (
        at(|class| matches!(class, Class::Store { .. })),
        at(|class| matches!(class, Class::Load { .. })),
    );
    assert!(store.is_some() && store < load, "{program}");
}
