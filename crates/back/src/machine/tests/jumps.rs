//! The effect of jumps on loads, moves and registers.

use super::*;

/// Forty values that are loaded and then added up; with `between` in between.
fn forty_values(between: &str) -> Kernel {
    let mut body = String::from(ID);
    for index in 0..40 {
        body += &format!(
            "\n%p{index} = address %at + 0:i64 * 0 + {}\n%v{index} = load f64 %p{index}, @in",
            8 * index
        );
    }
    body += &format!("\n{between}\n%s0 = fadd %x, %x");
    for index in 0..40 {
        body += &format!("\n%s{} = fadd %s{index}, %v{index}", index + 1);
    }
    body += "\n%g = float_to_float %s40 to f32\nstore %to, %g";
    kernel(&body)
}

/// The registers of forty values on a core that holds `groups` work-groups of 128.
fn registers(between: &str, groups: u32) -> RegisterEstimate {
    let model = crate::model::built_in("h200", &[]).expect("a model");
    let target = Target::of(&model, 32);
    lower_for_groups(&forty_values(between), &target, &model, groups, 128).register_estimate
}

#[test]
fn what_is_wanted_across_a_jump_takes_registers_from_other_work_groups() {
    // Eight work-groups of 128 leave 64 registers to each work-item, six 80, and five 96.
    assert_eq!(registers("", 8).registers, 64);
    let across = registers("barrier", 8);
    assert!((86..=96).contains(&across.registers), "{across:?}");
    assert_eq!(across, registers("barrier", 5));
}

#[test]
fn a_module_that_serves_any_launch_leaves_room_for_a_full_core() {
    let model = crate::model::built_in("h200", &[]).expect("a model");
    let estimate = |between: &str| {
        let target = Target::of(&model, 32);
        lower_for_any_launch(&forty_values(between), &target, &model, 128).register_estimate
    };
    // A few are loaded at a time: with one eighth of 32 that is not counted, and what is counted for the compiler.
    let few = estimate("").registers;
    assert!((32..=32 + 4 + 8).contains(&few), "{few}");
    assert!(registers("", 1).registers > 80);
    // All must live across a barrier.
    assert_eq!(estimate("barrier"), registers("barrier", 1));
}

#[test]
fn a_vector_from_behind_a_jump_is_moved_on_word_by_word() {
    // A loop that adds up the values loaded an iteration before.
    let integers = |loads: &str| {
        let program = program(&loop_over(
            ", %s = 0.0:f32, %a = 0.0:f32, %b = 0.0:f32, %c = 0.0:f32, %d = 0.0:f32",
            &format!(
                "%s0 = fadd %s, %a\n%s1 = fadd %s0, %b\n%s2 = fadd %s1, %c\n%s3 = fadd %s2, %d\nstore %out, %s3\n\
                 %at = address %in + %i * 16\n%soon = lt.u %i, 1000:i64\n\
                 %w, %x, %y, %z = if %soon -> f32, f32, f32, f32 {{\n{loads}yield %e, %f, %g, %h\n}} else {{\n\
                 barrier\n%j = load f32 %at, @in\nyield %j, %j, %j, %j\n}}"
            ),
            ", %s3, %w, %x, %y, %z",
        ));
        let looped = in_loop(&program);
        let last = looped
            .iter()
            .rposition(|one| matches!(one.class, Class::Load { .. }));
        let behind = looped[last.expect("loads")..].iter();
        behind.filter(|one| one.class == Class::Int32).count()
    };
    let as_one = integers("%e, %f, %g, %h = load f32 %at, @in\n");
    let alone: String = ["e", "f", "g", "h"]
        .map(|name| format!("%{name} = load f32 %at, @in\n"))
        .concat();
    assert_eq!(as_one, integers(&alone) + 4);
}
