//! Shared memory: its banks, its use as a program-managed cache, and the cost of its barriers.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Family, H200, items, over_elements, shown, technique};
use crate::data::{output, scalar};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, launch};

/// Words that are read with strides.
const WORDS: usize = 8192;
/// Entries of the small table.
const TABLE: usize = 1024;
const GROUP: usize = 1024;

/// Reads shared memory with a stride: words that are a multiple of 32 apart are in one bank and wait for each other.
#[kernel(work_group = group)]
pub fn banks(result: &mut [u32], rounds: u32, #[constant] group: u32, #[constant] stride: u32) {
    let mut words = shared::<u32, WORDS>();
    for i in (local_id()..WORDS).step_by(group as usize) {
        words[i] = i as u32;
    }
    barrier();
    let mut sum = 0u32;
    let mut at = local_id() * stride as usize;
    for _ in 0..rounds {
        at = (at + 1) % WORDS;
        sum = sum.wrapping_add(words[at]);
    }
    result[global_id()] = sum;
}

/// A table of 4 KiB is read wherever the elements say, from global memory.
#[kernel(work_group = group)]
pub fn from_cache(values: &[u32], table: &[u32], result: &mut [u32], #[constant] group: u32) {
    let mut sum = 0u32;
    for i in (global_id()..values.len()).step_by(global_size()) {
        let value = values[i] as usize;
        #[unroll]
        for k in 0..8 {
            sum = sum.wrapping_add(table[(value * (2 * k + 1)) % TABLE]);
        }
    }
    result[global_id()] = sum;
}

/// The same table, brought to shared memory first.
#[kernel(work_group = group)]
pub fn from_shared(values: &[u32], table: &[u32], result: &mut [u32], #[constant] group: u32) {
    let mut own = shared::<u32, TABLE>();
    for i in (local_id()..TABLE).step_by(group as usize) {
        own[i] = table[i];
    }
    barrier();
    let mut sum = 0u32;
    for i in (global_id()..values.len()).step_by(global_size()) {
        let value = values[i] as usize;
        #[unroll]
        for k in 0..8 {
            sum = sum.wrapping_add(own[(value * (2 * k + 1)) % TABLE]);
        }
    }
    result[global_id()] = sum;
}

/// A work-group hands a value around and waits for all at every step.
#[kernel(work_group = group)]
pub fn barriers(result: &mut [u32], rounds: u32, #[constant] group: u32) {
    let mut values = shared::<u32, GROUP>();
    values[local_id()] = local_id() as u32;
    barrier();
    let next = (local_id() + 1) % group as usize;
    for _ in 0..rounds {
        let value = values[next];
        barrier();
        values[local_id()] = value;
        barrier();
    }
    result[global_id()] = values[local_id()];
}

static BANK_PARAMETERS: [Parameter; 4] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        256,
        32..=1024,
    ),
    Parameter::number("rounds", "steps", 256, 0..=1 << 16),
    Parameter::number("stride", "words between neighbours", 1, 0..=1024),
];
static BARRIER_PARAMETERS: [Parameter; 3] = [
    Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
    Parameter::number(
        "group",
        "work-items of a work-group, a multiple of 32",
        256,
        32..=1024,
    ),
    Parameter::number("rounds", "steps", 256, 0..=1 << 16),
];

/// `shared-banks`.
pub(crate) static BANKS: GalleryKernel = GalleryKernel {
    name: "shared-banks",
    summary: "reads of shared memory with a stride",
    parameters: &BANK_PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("groups", 2).with("rounds", iterations),
        shapes: |_| Vec::new(),
    },
    workload: |settings, _| {
        let kernel = banks::kernel(settings.small("group"), settings.small("stride"))?;
        launch(settings, kernel)
            .with("result", output(Type::I32, items(settings)))?
            .with("rounds", scalar(settings.small("rounds")))
    },
};

/// `shared-barriers`.
pub(crate) static BARRIERS: GalleryKernel = GalleryKernel {
    name: "shared-barriers",
    summary: "a value that goes around a work-group, with barriers",
    parameters: &BARRIER_PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Given {
        small: |settings, iterations| settings.with("groups", 2).with("rounds", iterations),
        shapes: |_| Vec::new(),
    },
    workload: |settings, _| {
        let kernel = barriers::kernel(settings.small("group"))?;
        launch(settings, kernel)
            .with("result", output(Type::I32, items(settings)))?
            .with("rounds", scalar(settings.small("rounds")))
    },
};

/// `table-cached`.
pub(crate) static CACHED: GalleryKernel = technique(
    "table-cached",
    "a small table read through the cache",
    |settings, _| {
        let workload = over_elements(settings, from_cache::kernel(settings.small("group"))?, "values")?;
        workload
            .with("table", table())?
            .with("result", output(Type::I32, items(settings)))
    },
);

/// `table-shared`.
pub(crate) static SHARED: GalleryKernel = technique(
    "table-shared",
    "a small table brought to shared memory first",
    |settings, _| {
        let workload = over_elements(settings, from_shared::kernel(settings.small("group"))?, "values")?;
        workload
            .with("table", table())?
            .with("result", output(Type::I32, items(settings)))
    },
);

fn table() -> headstart::tune::ArgumentSpec {
    crate::data::input(
        Type::I32,
        TABLE as u64,
        headstart::device::Pattern::Bits { seed: 47 },
    )
}

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "shared-memory",
    title: "Shared memory: banks, a program-managed cache, barriers",
    text: [
        "Shared memory has 32 banks of four bytes. Words in different banks are read at once, words in the same bank \
         one after the other. So neighbours that are 32 words apart take 32 times as long, and neighbours that are \
         33 apart have no conflicts, which is the purpose of padding. A table that all work-items read can be kept \
         there instead of relying on the cache: the work-group decides which data stay.",
        "A barrier waits for the last sub-group of the work-group, so its cost grows with the work-group. If the \
         steps between barriers are short, small work-groups are better, as long as enough of them are resident. The \
         kernel here only passes a value on between barriers.",
    ],
    kernels: &[
        shown("shared-banks", &["stride=1"]),
        shown("shared-banks", &["stride=2"]),
        shown("shared-banks", &["stride=8"]),
        shown("shared-banks", &["stride=32"]),
        shown("shared-banks", &["stride=33"]),
        shown("table-cached", &["groups=264", "group=256"]),
        shown("table-shared", &["groups=264", "group=256"]),
        shown("shared-barriers", &["group=32"]),
        shown("shared-barriers", &["group=128"]),
        shown("shared-barriers", &["group=512"]),
        shown("shared-barriers", &["group=1024"]),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn strided_words_are_added() {
        for stride in [1, 32, 33] {
            let ran = run(
                "shared-banks",
                &["groups=1", "group=64", "rounds=9", &format!("stride={stride}")],
            );
            let expected: Vec<u32> = (0..64)
                .map(|item| (1..=9).map(|step| (item * stride + step) % 8192).sum())
                .collect();
            assert_eq!(ran.u32s("result"), expected);
        }
    }

    #[test]
    fn tables_are_read() {
        for kernel in ["table-cached", "table-shared"] {
            let ran = run(kernel, &["groups=2", "group=64", "elements=2048"]);
            let (values, table) = (ran.indices("values"), ran.u32s("table"));
            let mut expected = vec![0u32; 128];
            for (i, value) in values.iter().enumerate() {
                for k in 0..8 {
                    expected[i % 128] = expected[i % 128].wrapping_add(table[value * (2 * k + 1) % 1024]);
                }
            }
            assert_eq!(ran.u32s("result"), expected, "{kernel}");
        }
    }

    #[test]
    fn values_go_around() {
        let ran = run("shared-barriers", &["groups=2", "group=64", "rounds=5"]);
        let expected: Vec<u32> = (0..128).map(|item| (item + 5) % 64).collect();
        assert_eq!(ran.u32s("result"), expected);
    }
}
