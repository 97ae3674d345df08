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
fn a_compiler_keeps_to_the_registers_that_it_is_told() {
    let model = crate::model::built_in("h200", &[]).expect("a model");
    let mut kernel = forty_values("");
    let any = |kernel: &Kernel, target: Target| {
        lower_for_any_launch(kernel, &target, &model, 128)
            .register_estimate
            .registers
    };
    let (nvidia, intel) = (Target::of(&model, 32), Target::intel(16, 8192));
    let (few, of_intel) = (any(&kernel, nvidia), any(&kernel, intel));
    kernel.max_registers = Some(255);
    assert!(few < 45 && any(&kernel, nvidia) > 80);
    kernel.max_registers = Some(64);
    assert!((50..=64).contains(&any(&kernel, nvidia)));
    // What has to live across a jump does not fit, and is spilled: ptxas never exceeds the limit.
    let mut across = forty_values("barrier");
    across.max_registers = Some(64);
    let held = lower_for_any_launch(&across, &nvidia, &model, 128);
    let estimate = held.register_estimate;
    assert_eq!(estimate.registers, 64, "{estimate:?}");
    // Forty values of 8 bytes and what addresses them: of 86 to 96 registers 64 are there.
    assert!(
        (4 * 22..=4 * 32).contains(&estimate.spilled_bytes),
        "{estimate:?}"
    );
    assert!(held.frame_bytes > 0);
    across.max_registers = Some(128);
    let fits = lower_for_any_launch(&across, &nvidia, &model, 128).register_estimate;
    assert_eq!(fits.spilled_bytes, 0, "{fits:?}");
    // IGC has no such number.
    assert_eq!(any(&kernel, intel), of_intel);
}
