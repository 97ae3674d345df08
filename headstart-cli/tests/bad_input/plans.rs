//! The plan is wrong: misspelt, illegal for the kernel, or too large for the device.

use crate::{PREFIX_SUM, folder, table, write};

/// Every message of the parser is in the tests of `prefetch`.
#[test]
fn an_unknown_plan() {
    table(
        "
        2 tune gather --plans unroll:4;values=rolling_async:4 => column 8 & did you mean `rolling-async`?
        2 run gather --plan values=rolling-async:0 => column 22 & distance 0 & 1 to 4096
        2 tune gather --plans ; => names no plan
        2 tune gather --plan ; => names no plan
        2 emit gather --plan valeus=cache:L2:1 => valeus & values
    ",
    );
}

#[test]
fn an_illegal_plan() {
    let folder = folder();
    // Each iteration writes what the next one reads.
    let shifted = PREFIX_SUM.replace(
        "  store %ptr, %sum1\n",
        "  %beside = address %data + %i * 4 + 4\n    store %beside, %sum1\n",
    );
    let kernel = write(folder.path(), "prefix_sum.hsir", &shifted);
    // The line of the load, and the rule: it may not be moved across the store.
    table(&format!(
        "
        2 emit {kernel} --plan data=rolling-registers:4 => prefix_sum.hsir:8 & data
        2 emit gather --plan unroll:full => gather.rs
    "
    ));
}

#[test]
fn more_shared_memory_than_the_device_has() {
    table("3 run gather --plan values=rolling-async:1024 => shared memory & 232448");
}
