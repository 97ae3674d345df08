//! Faults of the plain kernel: which drop a launch, and which show that the kernel was read as another one.

use super::{Engine, Perturbed, Settings, plan, workload};
use crate::error::{Error, Fault, Result};
use crate::violation::Violation;

/// Counts in shared memory, or where `global` is not 0 in global memory. `h` is always read as a pointer to shared memory.
const HISTOGRAM: &str = "hsir 1
kernel @counts(
  %values: ptr.global i32[] align 4 readonly unaliased,
  %counts: ptr.global i32[] align 4 unaliased,
  %global: i32,
  %items: i32,
) {
  shared @own: i32[64] align 4
  load @values
  %is_global = ne %global, 0:i32
  %own = array @own
  %local_generic = to_generic %own to ptr.generic
  %global_generic = to_generic %counts to ptr.generic
  %h = select %is_global, %global_generic, %local_generic
  loop 'each (%i = 0:i32) {
    %more = lt.s %i, %items
    if %more { yield } else { break 'each }
    %i64 = extend.u %i to i64
    %vp = address %values + %i64 * 4
    %value = load i32 %vp, @values
    %bin = and %value, 63:i32
    %bin64 = extend.u %bin to i64
    %read = from_generic %h to ptr.shared
    %at = address %read + %bin64 * 4
    store %at, %i
    %next = add %i, 1:i32
    continue 'each %next
  }
  return
}
";

/// One work-item, all counts in shared memory.
const LAUNCH: &str = "groups = 1\ngroup = 1\n\
    [parameters.values]\nlength = 64\nfill = \"sequence\"\n\
    [parameters.counts]\nlength = 64\nfill = \"zero\"\noutput = \"bits\"\n\
    [parameters.global]\nvalue = 0\n[parameters.items]\nvalue = 8\n";

fn search(text: &str, launch: &str) -> Result<Perturbed> {
    let workload = workload(text, launch);
    let engine = Engine::of_no_device(workload.group);
    Perturbed::new(
        &workload,
        &workload.kernel,
        engine,
        [&plan("unroll:2")],
        Settings::default(),
    )
}

/// The error of a kernel that is refused.
fn refused(text: &str) -> Error {
    match search(text, LAUNCH) {
        Err(error) => error,
        Ok(_) => panic!("it is misread"),
    }
}

/// The kernel with one piece exchanged.
fn with(right: &str, instead: &str) -> String {
    assert_eq!(HISTOGRAM.matches(right).count(), 1, "{right}");
    HISTOGRAM.replace(right, instead)
}

#[test]
fn an_address_that_no_drawn_byte_leads_to_refuses_the_kernel() {
    let error = refused(HISTOGRAM);
    assert_eq!(error.fault(), Fault::Input);
    assert!(
        matches!(error.cause(), Some(Violation::Nowhere { of_array: true, .. })),
        "{error}"
    );
    let message = error.to_string();
    assert!(
        message.starts_with(
            "Headstart cannot rewrite `counts`: its reading of the kernel goes wrong on a launch with"
        ),
        "{message}"
    );
    assert!(message.contains("`global` = "), "{message}");
    // The same through a table in private memory.
    let table = with(
        "  shared @own: i32[64] align 4\n",
        "  shared @own: i32[64] align 4\n  private @table: i64[2] align 8\n",
    );
    let table = table.replace(
        "  %h = select %is_global, %global_generic, %local_generic\n",
        "  %t = array @table
  %b0 = bits %local_generic to i64
  %b1 = bits %global_generic to i64
  store %t, %b0
  %t1 = address %t + 1:i64 * 8
  store %t1, %b1
  %which = extend.u %is_global to i64
  %tp = address %t + %which * 8
  %bits = load i64 %tp, @table
  %h = bits %bits to ptr.generic
",
    );
    let table = table.replace("  load @values\n", "  load @values\n  load @table\n");
    let error = refused(&table);
    assert!(
        matches!(error.cause(), Some(Violation::Nowhere { .. })),
        "{error}"
    );
}

#[test]
fn an_address_with_drawn_bytes_drops_the_launch() {
    for (right, instead) in [
        // An index of any size may leave the place of the array.
        ("%bin = and %value, 63:i32", "%bin = or %value, 0:i32"),
        // A pointer that is loaded, a scalar that is one.
        (
            "%read = from_generic %h to ptr.shared",
            "%wide = extend.u %value to i64
    %far = or %wide, 1073741824:i64
    %wrong = bits %far to ptr.shared
    %read = select %is_global, %wrong, %own",
        ),
        (
            "%read = from_generic %h to ptr.shared",
            "%wide = extend.u %global to i64
    %far = or %wide, 1073741824:i64
    %wrong = bits %far to ptr.shared
    %read = select %is_global, %wrong, %own",
        ),
        // A null pointer that the kernel was not meant to follow.
        (
            "%h = select %is_global, %global_generic, %local_generic",
            "%null = bits 0:i64 to ptr.generic\n  %h = select %is_global, %null, %local_generic",
        ),
    ] {
        let text = with(right, instead);
        let perturbed = search(&text, LAUNCH).unwrap_or_else(|error| panic!("{instead}: {error}"));
        let dropped = &perturbed.launches.dropped;
        assert!(dropped.contains_key("nowhere"), "{instead}: {dropped:?}");
    }
}
