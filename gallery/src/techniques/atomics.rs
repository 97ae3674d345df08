//! Atomic operations: on global memory, or on shared memory first.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Family, H200, over_elements, shown, technique};
use crate::data::zeroed;
use crate::kernels::GalleryKernel;

/// Places that are counted.
const BINS: usize = 64;

/// Each element is counted in global memory.
#[kernel(work_group = group)]
pub fn in_global(values: &[u32], bins: &[Atomic<u32>], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        bins[values[i] as usize % BINS].fetch_add(1, Ordering::Relaxed);
    }
}

/// Each work-group counts in shared memory, and adds its counts in the end.
#[kernel(work_group = group)]
pub fn in_shared(values: &[u32], bins: &[Atomic<u32>], #[constant] group: u32) {
    let own = shared::<Atomic<u32>, BINS>();
    for bin in (local_id()..BINS).step_by(group as usize) {
        own[bin].store(0, Ordering::Relaxed);
    }
    barrier();
    for i in (global_id()..values.len()).step_by(global_size()) {
        own[values[i] as usize % BINS].fetch_add(1, Ordering::Relaxed);
    }
    barrier();
    for bin in (local_id()..BINS).step_by(group as usize) {
        bins[bin].fetch_add(own[bin].load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// The same with a device fence behind each count: the cost of an order that is not needed here.
#[kernel(work_group = group)]
pub fn fenced(values: &[u32], bins: &[Atomic<u32>], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        bins[values[i] as usize % BINS].fetch_add(1, Ordering::Relaxed);
        fence(Ordering::AcqRel);
    }
}

macro_rules! entries {
    ($($entry:ident $kernel:ident $name:literal $summary:literal;)*) => {$(
        pub(crate) static $entry: GalleryKernel = technique($name, $summary, |settings, _| {
            let kernel = $kernel::kernel(settings.small("group"))?;
            over_elements(settings, kernel, "values")?.with("bins", zeroed(Type::I32, BINS as u64))
        });
    )*};
}

entries! {
    GLOBAL in_global "histogram-global" "counts in global memory";
    SHARED in_shared "histogram-shared" "counts in shared memory first";
    FENCED fenced "histogram-fenced" "counts in global memory, with a fence behind each";
}

const FULL: &[&str] = &["groups=528", "group=256"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "atomics",
    title: "Atomics: in global memory, in shared memory, with fences",
    text: [
        "Atomic operations of many work-items on one address are serialised, in the L2 cache if they are on global \
         memory. Counting in shared memory first keeps most of them within the core, where only those of the same \
         work-group collide. Only one operation per counter and work-group remains for global memory.",
        "A relaxed atomic operation orders no other accesses; a fence orders everything before and after it. A \
         histogram needs no fence, because it is not read before the kernel ends. On an H200 a fence costs nothing \
         measurable behind counts that wait for each other anyway, nor does it in the simulator.",
    ],
    kernels: &[
        shown("histogram-global", FULL),
        shown("histogram-shared", FULL),
        shown("histogram-fenced", FULL),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn all_are_counted() {
        for kernel in super::FAMILY.names() {
            let ran = run(kernel, &["groups=2", "group=64", "elements=2048"]);
            let mut expected = vec![0; 64];
            ran.indices("values")
                .iter()
                .for_each(|value| expected[value % 64] += 1);
            assert_eq!(ran.u32s("bins"), expected, "{kernel}");
        }
    }
}
