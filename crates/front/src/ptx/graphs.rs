//! Flow graphs of many blocks are read in time.

use std::time::{Duration, Instant};

use crate::ptx::{Facts, read};

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
