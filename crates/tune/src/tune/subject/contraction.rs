//! How a program's machine code contracts the sums that its PTX leaves to the assembler.
//!
//! ```text
//! mul.f32 %f1, %f2, %f3;     rounded alone, or together with either sum: the text allows both, and ptxas decides by the code
//! add.f32 %f4, %f1, %f5;     around. A kernel that is written again has other code around.
//! sub.f32 %f6, %f7, %f1;
//! ```
//!
//! On a GPU the choices need not be known: its driver's assembler makes the machine code of the module as it was and of each plan,
//! and what both leave is compared. It has to be the program's assembler, or one that chooses like it: the module as it was has to
//! leave what the program's own machine code left. The better kernel is then for that driver.
//!
//! Elsewhere a captured launch decides it: it is run again on the simulator with one choice for every open sum, and its memory is
//! compared byte by byte with the memory left by the program's own machine code. (The simulator's `ex2.approx` and similar
//! instructions have other bits than a GPU's.) A choice is accepted if it gives all bytes, and every other choice for any single
//! sum gives others. Copies of a loop then say `.rn` where nothing is fused; a loop with a fused one is not copied.

use std::time::{Duration, Instant};

use super::captured::{captured_import, replay, replay_on};
use crate::capture::{Captured, Contraction};
use crate::device::sim::Simulator;
use crate::error::Result;
use crate::ir::Fused;
use crate::tune::bench::Bench;

/// Work-items of a captured launch up to which it is run again on the simulator.
pub const MOST_ITEMS: u64 = 1 << 22;
/// How many times a launch is run again, at most.
const MOST_RUNS: usize = 64;
/// How long that may take.
const MOST_TIME: Duration = Duration::from_secs(40);

/// The choices of a captured launch's machine code for its open sums, for plans that are tried on `bench`. `limit` is the most that
/// this may take, if it is less than it takes by itself.
///
/// # Errors
/// The launch cannot be read or run again.
pub fn contraction(
    captured: &Captured,
    bench: Option<&dyn Bench>,
    limit: Option<Duration>,
) -> Result<Contraction> {
    let imported = captured_import(captured)?;
    let open = &imported.original.open_sums;
    let on_device = bench
        .and_then(|bench| bench.judge())
        .and_then(|device| Some((device, device.assembler()?)));
    let nothing_open = match on_device {
        Some(_) => !imported.original.is_open,
        None => open.is_empty(),
    };
    if nothing_open {
        return Ok(Contraction::NothingOpen);
    }
    if !captured.has_run {
        return Ok(Contraction::TooLong);
    }
    if let Some((device, assembler)) = on_device {
        let replayed = replay_on(captured, device)?;
        let is_same = replayed.is_some_and(|replayed| replayed.differences.is_empty());
        return Ok(match is_same {
            true => Contraction::Compared(assembler),
            false => Contraction::OtherAssembler,
        });
    }
    let simulator = Simulator::untimed();
    let until = Instant::now() + limit.map_or(MOST_TIME, |limit| limit.min(MOST_TIME));
    let mut wrong = |choice: &[Fused]| -> Result<Option<u64>> {
        if Instant::now() > until {
            return Ok(None);
        }
        // A device that judges plans itself is the only one to run a launch.
        if captured.work_items() > MOST_ITEMS || bench.is_some_and(|bench| bench.judge().is_some()) {
            return Ok(None);
        }
        let chosen = Captured {
            contraction: Contraction::Decided(choice.to_vec()),
            ..captured.clone()
        };
        let replayed = replay(chosen, &simulator)?;
        Ok(Some(replayed.differences.iter().map(|own| own.bytes).sum()))
    };
    choose(open, &mut wrong)
}

/// The choice for each open sum that leaves no wrong byte, if it is the only one.
///
/// `wrong` counts the bytes that a choice leaves wrong; nothing once the time is over.
///
/// # Errors
/// Those of `wrong`.
fn choose(
    open: &[Vec<Fused>],
    wrong: &mut dyn FnMut(&[Fused]) -> Result<Option<u64>>,
) -> Result<Contraction> {
    let mut runs = 0;
    let mut count = |choice: &[Fused]| {
        runs += 1;
        match runs > MOST_RUNS {
            true => Ok(None),
            false => wrong(choice),
        }
    };
    let mut best = vec![Fused::Nothing; open.len()];
    let Some(mut least) = count(&best)? else {
        return Ok(Contraction::TooLong);
    };
    // One sum after the other, as long as that helps.
    let mut helped = least > 0;
    while helped {
        helped = false;
        for (number, choices) in open.iter().enumerate() {
            for &choice in choices {
                if least == 0 || choice == best[number] {
                    continue;
                }
                let mut tried = best.clone();
                tried[number] = choice;
                let Some(now) = count(&tried)? else {
                    return Ok(Contraction::TooLong);
                };
                if now < least {
                    (best, least, helped) = (tried, now, true);
                }
            }
        }
        helped &= least > 0;
    }
    if least > 0 {
        return Ok(Contraction::NoneFits);
    }
    for (number, choices) in open.iter().enumerate() {
        for &choice in choices.iter().filter(|choice| **choice != best[number]) {
            let mut other = best.clone();
            other[number] = choice;
            match count(&other)? {
                None => return Ok(Contraction::TooLong),
                Some(0) => return Ok(Contraction::Untold(number)),
                Some(_) => {}
            }
        }
    }
    Ok(Contraction::Decided(best))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::Allocation;
    use crate::tune::subject::captured::tests::captured;

    /// `p = a[i] * b[i]; d[i] = c[i] - p; e[i] = p;` for five arrays of 32 floats, one after the other.
    const DIFFERENCE: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 all)\n{\n\
        .reg .b32 %r<4>;\n.reg .f32 %f<6>;\n.reg .b64 %rd<4>;\nld.param.u64 %rd1, [all];\nmov.u32 %r1, %tid.x;\n\
        mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\nld.global.f32 %f1, [%rd3];\nld.global.f32 %f2, [%rd3+128];\n\
        ld.global.f32 %f3, [%rd3+256];\nmul.f32 %f4, %f1, %f2;\nsub.f32 %f5, %f3, %f4;\nst.global.f32 [%rd3+384], %f5;\n\
        st.global.f32 [%rd3+512], %f4;\nret;\n}\n";

    /// A launch of it, with the memory left by a machine that computes `difference` of a factor, another one and a minuend.
    fn left(factor: f32, difference: fn(f32, f32, f32) -> f32) -> Captured {
        let numbers = |scale: f32| (0..32).map(move |i| (i as f32 + 1.0) * scale);
        let [a, b, c] = [numbers(factor), numbers(1.0), numbers(3.0)];
        let given: Vec<f32> = a.chain(b).chain(c).collect();
        let of = |i: usize| (given[i], given[32 + i], given[64 + i]);
        let differences = (0..32).map(of).map(|(a, b, c)| difference(a, b, c));
        let products = (0..32).map(of).map(|(a, b, _)| a * b);
        let bytes = |floats: Vec<f32>| floats.into_iter().flat_map(f32::to_le_bytes).collect::<Vec<u8>>();
        let before = bytes(given.iter().copied().chain([0.0; 64]).collect());
        let after = bytes(given.iter().copied().chain(differences).chain(products).collect());
        let memory = Allocation {
            address: 0x7f00_0000_0000,
            before: before.into(),
            after: after.into(),
            is_foreign: false,
        };
        captured("k", DIFFERENCE, &[memory.address], vec![memory])
    }

    #[test]
    fn a_launch_tells_what_its_machine_code_fuses() {
        let found = |launch: &Captured| contraction(launch, None, None).expect("it runs");
        let rounded = left(0.1, |a, b, c| c - a * b);
        assert_eq!(found(&rounded), Contraction::Decided(vec![Fused::Nothing]));
        let fused = left(0.1, |a, b, c| (-a).mul_add(b, c));
        assert_eq!(found(&fused), Contraction::Decided(vec![Fused::Right]));
        // Products of small numbers are exact, so that both give the same.
        let exact = left(2.0, |a, b, c| c - a * b);
        assert_eq!(found(&exact), Contraction::Untold(0));
        let other = left(0.1, |a, b, c| a * b - c);
        assert_eq!(found(&other), Contraction::NoneFits);
        let unknown = Captured {
            has_run: false,
            ..fused
        };
        assert_eq!(found(&unknown), Contraction::TooLong);
    }

    const BOTH: [Fused; 3] = [Fused::Nothing, Fused::Left, Fused::Right];

    fn chosen(open: &[Vec<Fused>], right: &[Fused], unseen: Option<usize>) -> Contraction {
        let mut wrong = |choice: &[Fused]| {
            let pairs = choice.iter().zip(right).enumerate();
            let differ = pairs.filter(|(number, (a, b))| a != b && Some(*number) != unseen);
            Ok(Some(differ.count() as u64))
        };
        choose(open, &mut wrong).expect("it counts")
    }

    #[test]
    fn the_only_choice_that_fits_is_found() {
        let open = vec![BOTH.to_vec(), BOTH[..2].to_vec(), BOTH.to_vec()];
        for right in [
            [Fused::Nothing, Fused::Nothing, Fused::Nothing],
            [Fused::Right, Fused::Left, Fused::Nothing],
            [Fused::Left, Fused::Nothing, Fused::Right],
        ] {
            assert_eq!(chosen(&open, &right, None), Contraction::Decided(right.to_vec()));
        }
    }

    #[test]
    fn a_sum_of_which_the_launch_tells_nothing_is_named() {
        let open = vec![BOTH.to_vec(), BOTH.to_vec()];
        let right = [Fused::Left, Fused::Nothing];
        assert_eq!(chosen(&open, &right, Some(1)), Contraction::Untold(1));
    }

    #[test]
    fn what_cannot_be_right_is_not_taken() {
        let open = vec![vec![Fused::Nothing, Fused::Left]];
        assert_eq!(chosen(&open, &[Fused::Right], None), Contraction::NoneFits);
        let mut late = |_: &[Fused]| Ok(None);
        assert_eq!(choose(&open, &mut late).expect("it counts"), Contraction::TooLong);
        // This many sums that there is no time to try each.
        let many = vec![BOTH.to_vec(); MOST_RUNS];
        assert_eq!(
            chosen(&many, &[Fused::Nothing; MOST_RUNS], None),
            Contraction::TooLong
        );
    }
}
