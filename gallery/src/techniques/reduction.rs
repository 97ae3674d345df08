//! Ten ways to add up an array, as the notes on oneAPI list them.
//!
//! The host, or another launch, still has to add the values of `partial`.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Family, H200, elements, items, over_elements, shown, technique};
use crate::data::{output, zeroed};
use crate::kernels::GalleryKernel;

/// The largest work-group of the kernels that share an array.
const GROUP: usize = 1024;

/// Every work-item adds its element to one number in global memory.
#[kernel(work_group = group)]
pub fn atomic(values: &[u32], total: &[Atomic<u32>], #[constant] group: u32) {
    for i in (global_id()..values.len()).step_by(global_size()) {
        total[0].fetch_add(values[i], Ordering::Relaxed);
    }
}

/// Every work-item adds up a piece of its own. Neighbours read far apart.
#[kernel(work_group = group)]
pub fn chunks(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let chunk = values.len().div_ceil(global_size());
    let first = global_id() * chunk;
    let mut sum = 0;
    for i in first.min(values.len())..(first + chunk).min(values.len()) {
        sum += values[i];
    }
    partial[global_id()] = sum;
}

/// The same, four at a time.
#[kernel(work_group = group)]
pub fn vectors(values: &[[u32; 4]], partial: &mut [u32], #[constant] group: u32) {
    let chunk = values.len().div_ceil(global_size());
    let first = global_id() * chunk;
    let mut sum = 0;
    for i in first.min(values.len())..(first + chunk).min(values.len()) {
        let [a, b, c, d] = values[i];
        sum += (a + b) + (c + d);
    }
    partial[global_id()] = sum;
}

/// As many work-items as the device holds, side by side; each adds up every so manyth element.
#[kernel(work_group = group)]
pub fn occupancy(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let mut sum = 0;
    for i in (global_id()..values.len()).step_by(global_size()) {
        sum += values[i];
    }
    partial[global_id()] = sum;
}

/// Then a tree in each work-group: half of the work-items add the other half's values, and so on.
#[kernel(work_group = group)]
pub fn tree(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let mut sums = shared::<u32, GROUP>();
    let mut sum = 0;
    for i in (global_id()..values.len()).step_by(global_size()) {
        sum += values[i];
    }
    sums[local_id()] = sum;
    barrier();
    let mut half = group as usize / 2;
    while half > 0 {
        if local_id() < half {
            sums[local_id()] += sums[local_id() + half];
        }
        barrier();
        half /= 2;
    }
    if local_id() == 0 {
        partial[group_id()] = sums[0];
    }
}

/// One stage of several: a work-group makes one value of twice as many as it has work-items; the next launch goes on.
#[kernel(work_group = group)]
pub fn stage(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let mut sums = shared::<u32, GROUP>();
    let blocks = values.len().div_ceil(2 * group as usize);
    for block in (group_id()..blocks).step_by(group_count()) {
        let first = block * 2 * group as usize + local_id();
        let second = first + group as usize;
        let mut sum = 0;
        if first < values.len() {
            sum += values[first];
        }
        if second < values.len() {
            sum += values[second];
        }
        sums[local_id()] = sum;
        barrier();
        let mut half = group as usize / 2;
        while half > 0 {
            if local_id() < half {
                sums[local_id()] += sums[local_id() + half];
            }
            barrier();
            half /= 2;
        }
        if local_id() == 0 {
            partial[block] = sums[0];
        }
        barrier();
    }
}

/// The language's own reduction of a work-group.
#[kernel(work_group = group)]
pub fn built_in(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let mut sum = 0;
    for i in (global_id()..values.len()).step_by(global_size()) {
        sum += values[i];
    }
    let all = group_reduce_add(sum);
    if local_id() == 0 {
        partial[group_id()] = all;
    }
}

/// The partial sums are in shared memory all the time, and one work-item adds them up in the end.
#[kernel(work_group = group)]
pub fn in_shared(values: &[u32], partial: &mut [u32], #[constant] group: u32) {
    let mut sums = shared::<u32, GROUP>();
    sums[local_id()] = 0;
    for i in (global_id()..values.len()).step_by(global_size()) {
        sums[local_id()] += values[i];
    }
    barrier();
    if local_id() == 0 {
        let mut sum = 0;
        for item in 0..group as usize {
            sum += sums[item];
        }
        partial[group_id()] = sum;
    }
}

/// Blocks of sixteen elements, 64 bytes, for each work-item in turn.
#[kernel(work_group = group)]
pub fn blocked(values: &[[u32; 4]], partial: &mut [u32], #[constant] group: u32) {
    let mut sum = 0;
    for block in (global_id()..values.len() / 4).step_by(global_size()) {
        #[unroll]
        for part in 0..4 {
            let [a, b, c, d] = values[block * 4 + part];
            sum += (a + b) + (c + d);
        }
    }
    partial[global_id()] = sum;
}

/// A sub-group reads 512 bytes side by side, and keeps a vector of four sums until the end.
#[kernel(work_group = group, sub_group = 32)]
pub fn sub_group_loads(values: &[[u32; 4]], partial: &mut [u32], #[constant] group: u32) {
    let (mut w, mut x, mut y, mut z) = (0, 0, 0, 0);
    for i in (global_id()..values.len()).step_by(global_size()) {
        let [a, b, c, d] = values[i];
        w += a;
        x += b;
        y += c;
        z += d;
    }
    let all = sub_group_reduce_add((w + x) + (y + z));
    if sub_group_local_id() == 0 {
        partial[global_id() / 32] = all;
    }
}

macro_rules! reductions {
    ($($entry:ident $kernel:ident $name:literal $summary:literal $partials:expr;)*) => {$(
        pub(crate) static $entry: GalleryKernel = technique($name, $summary, |settings, _| {
            let kernel = $kernel::kernel(settings.small("group"))?;
            let partials: fn(&crate::settings::Settings) -> u64 = $partials;
            over_elements(settings, kernel, "values")?.with("partial", output(Type::I32, partials(settings)))
        });
    )*};
}

pub(crate) static ATOMIC: GalleryKernel = technique(
    "reduce-atomic",
    "a sum by one number in global memory",
    |settings, _| {
        let kernel = atomic::kernel(settings.small("group"))?;
        over_elements(settings, kernel, "values")?.with("total", zeroed(Type::I32, 1))
    },
);

reductions! {
    CHUNKS chunks "reduce-chunks" "a sum by a piece for each work-item" items;
    VECTORS vectors "reduce-vectors" "the same, four elements at a time" items;
    OCCUPANCY occupancy "reduce-occupancy" "a sum by work-items side by side" items;
    TREE tree "reduce-tree" "a sum by a tree in each work-group" |settings| settings.get("groups");
    STAGE stage "reduce-stage" "one stage of several of a sum"
        |settings| elements(settings).div_ceil(2 * settings.get("group"));
    BUILT_IN built_in "reduce-built-in" "a sum by the language's own reduction" |settings| settings.get("groups");
    IN_SHARED in_shared "reduce-shared" "a sum whose parts stay in shared memory" |settings| settings.get("groups");
    BLOCKED blocked "reduce-blocked" "a sum by blocks of 64 bytes" items;
    SUB_GROUP_LOADS sub_group_loads "reduce-sub-group" "a sum by loads of a whole sub-group"
        |settings| items(settings) / 32;
}

const FULL: &[&str] = &["groups=1056", "group=256"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "reductions",
    title: "Ten ways to add up an array",
    text: [
        "A reduction moves four bytes per addition: its time depends on how the bytes are requested, and on how many \
         work-items wait for each other. In the first variant every work-item adds to one number, and they queue \
         there. In the next ones each work-item has a part of its own, which needs no combining but leaves a value \
         per work-item; adjacent work-items that read adjacent elements share cache lines, and those that read \
         separate pieces do not. The others reduce within a work-group or sub-group first, so that few values are \
         left.",
        "The remaining values are copied to the host or added up by another launch, which often takes as long as the \
         whole sum: a launch and a transfer are microseconds each, regardless of size. A good reduction leaves few \
         values and has wide, adjacent loads. A tree costs barriers; the language's own reduction and the sub-group \
         do without.",
    ],
    kernels: &[
        shown("reduce-atomic", FULL),
        shown("reduce-chunks", &["groups=132", "group=256"]),
        shown("reduce-vectors", &["groups=132", "group=256"]),
        shown("reduce-occupancy", FULL),
        shown("reduce-tree", FULL),
        shown("reduce-stage", FULL),
        shown("reduce-built-in", FULL),
        shown("reduce-shared", FULL),
        shown("reduce-blocked", &["groups=528", "group=256"]),
        shown("reduce-sub-group", FULL),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn every_way_adds_up_everything() {
        for kernel in super::FAMILY.names() {
            let ran = run(kernel, &["groups=3", "group=64", "elements=5000"]);
            let sum: u32 = ran.u32s("values").iter().sum();
            let left = if kernel == "reduce-atomic" {
                "total"
            } else {
                "partial"
            };
            assert_eq!(ran.u32s(left).iter().sum::<u32>(), sum, "{kernel}");
        }
    }
}
