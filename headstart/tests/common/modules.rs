//! Any text as a PTX module: it is read or refused, with the party at fault, and entries of accepted modules can be edited.

use headstart::Fault;
use headstart::back::machine;
use headstart::back::ptx::{Options, PtxTarget, emit};
use headstart::front::ptx::{Facts, entries, import};
use headstart::prefetch::{PlanTarget, apply};
use headstart::tune::drop_in::placed;

/// Most entries of a module that are read.
const MOST_ENTRIES: usize = 8;

/// Checks a text; gives how many entries were read and refused.
///
/// # Panics
/// What went wrong is a bug.
pub fn check(text: &str) -> (u32, u32) {
    let names = match entries(text) {
        Ok(names) => names,
        Err(error) => {
            assert_ne!(error.fault(), Fault::Bug, "{error}");
            return (0, 1);
        }
    };
    // Half of the texts with what a launch file may say besides.
    let more = text.len() % 2 == 1;
    let facts = Facts {
        dynamic_shared_bytes: Some(1024),
        no_overflow: true,
        warp_synchronous: more,
        ..Facts::default()
    };
    let (mut read, mut refused) = (0, 0);
    for name in names.iter().take(MOST_ENTRIES) {
        match import(text, "fuzzed.ptx", Some(name), &facts) {
            Ok(imported) => {
                machine::lower(&imported.kernel, &machine::Target::nvidia());
                let edited = |plan: &str| {
                    let plan = plan.parse()?;
                    let applied = apply(&imported.kernel, &plan, &PlanTarget::default())?;
                    placed(&imported.original, &imported.kernel, &applied.kernel)
                };
                for error in [
                    emit(&imported.kernel, &Options::new(PtxTarget::Sm90)).err(),
                    edited("none").err(),
                    edited("unroll:2").err(),
                ]
                .into_iter()
                .flatten()
                {
                    assert_ne!(error.fault(), Fault::Bug, "{error}");
                }
                read += 1;
            }
            Err(error) => {
                assert_ne!(error.fault(), Fault::Bug, "{error}");
                refused += 1;
            }
        }
    }
    (read, refused)
}
