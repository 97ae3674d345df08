//! The plan is wrong: misspelt, illegal for the kernel, or too large for the device.

use crate::{PREFIX_SUM, folder, refused, write};

#[test]
fn an_unknown_plan() {
    let tune = |plans| {
        refused(
            &["tune", "gather", "--plans", plans],
            2,
            &["column 8", "did you mean `rolling-async`?"],
        )
    };
    tune("values=roling-async:4");
    tune("unroll:4;values=rolling_async:4");
    refused(
        &["run", "gather", "--plan", "unrol:4"],
        2,
        &["did you mean `unroll`?"],
    );
    refused(
        &["emit", "gather", "--plan", ""],
        2,
        &["the plan is empty", "`none`"],
    );
    refused(&["tune", "gather", "--plans", ";"], 2, &["names no plan"]);
    // As the other commands spell it.
    refused(&["tune", "gather", "--plan", ";"], 2, &["names no plan"]);
    refused(
        &["emit", "gather", "--plan", "valeus=cache:L2:1"],
        2,
        &["valeus", "values"],
    );
}

#[test]
fn distance_0() {
    refused(
        &["run", "gather", "--plan", "values=rolling-async:0"],
        2,
        &["column 22", "distance 0", "1 to 4096"],
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
    refused(
        &["emit", &kernel, "--plan", "data=rolling-registers:4"],
        2,
        &["prefix_sum.hsir:8", "data"],
    );
    refused(&["emit", "gather", "--plan", "unroll:full"], 2, &["gather.rs"]);
}

#[test]
fn more_shared_memory_than_the_device_has() {
    refused(
        &["run", "gather", "--plan", "values=rolling-async:1024"],
        3,
        &["shared memory", "232448"],
    );
}
