//! Loads before their uses, and the facts that the compiler needs to move them there.

use headstart::ir::Type;
use headstart::prelude::*;

use super::{Family, H200, elements, shown, technique};
use crate::data::{input, output};
use crate::kernels::GalleryKernel;

/// Four elements one after the other: each is loaded, used, and stored before the next is loaded. A store may alias the next
/// load as far as the compiler knows: both are in one buffer.
#[kernel(work_group = group)]
pub fn one_by_one(values: &mut [u32], count: u32, #[constant] group: u32) {
    let quarter = count as usize / 4;
    for i in (global_id()..quarter).step_by(global_size()) {
        #[unroll]
        for part in 0..4 {
            let value = values[i + part * quarter];
            values[count as usize + i + part * quarter] = value.wrapping_mul(2_654_435_761);
        }
    }
}

/// The loads of all four first, then the uses.
#[kernel(work_group = group)]
pub fn loads_first(values: &mut [u32], count: u32, #[constant] group: u32) {
    let quarter = count as usize / 4;
    for i in (global_id()..quarter).step_by(global_size()) {
        let a = values[i];
        let b = values[i + quarter];
        let c = values[i + 2 * quarter];
        let d = values[i + 3 * quarter];
        values[count as usize + i] = a.wrapping_mul(2_654_435_761);
        values[count as usize + i + quarter] = b.wrapping_mul(2_654_435_761);
        values[count as usize + i + 2 * quarter] = c.wrapping_mul(2_654_435_761);
        values[count as usize + i + 3 * quarter] = d.wrapping_mul(2_654_435_761);
    }
}

/// One after the other again, from one buffer to another: `&[u32]` and `&mut [u32]` are never the same memory, so
/// that the compiler may issue the loads first by itself.
#[kernel(work_group = group)]
pub fn unaliased(values: &[u32], result: &mut [u32], #[constant] group: u32) {
    let quarter = values.len() / 4;
    for i in (global_id()..quarter).step_by(global_size()) {
        #[unroll]
        for part in 0..4 {
            result[i + part * quarter] = values[i + part * quarter].wrapping_mul(2_654_435_761);
        }
    }
}

fn half_filled(
    settings: &crate::settings::Settings,
    kernel: headstart::ir::Kernel,
) -> headstart::Result<headstart::tune::Workload> {
    let count = elements(settings);
    let numbers = headstart::device::Pattern::below(1000, 43);
    let both = headstart::tune::ArgumentSpec::Output {
        element: Type::I32,
        length: 2 * count,
        fill: headstart::device::Fill::Pattern(numbers),
        compare: headstart::tune::Compare::Bits,
    };
    crate::settings::launch(settings, kernel)
        .with("values", both)?
        .with("count", crate::data::scalar(count as u32))
}

/// `loads-one-by-one`.
pub(crate) static ONE_BY_ONE: GalleryKernel = technique(
    "loads-one-by-one",
    "loads that wait for stores that may alias them",
    |settings, _| half_filled(settings, one_by_one::kernel(settings.small("group"))?),
);

/// `loads-first`.
pub(crate) static LOADS_FIRST: GalleryKernel = technique(
    "loads-first",
    "the same, all loads before the stores",
    |settings, _| half_filled(settings, loads_first::kernel(settings.small("group"))?),
);

/// `loads-unaliased`.
pub(crate) static UNALIASED: GalleryKernel = technique(
    "loads-unaliased",
    "the same, with stores that do not alias",
    |settings, _| {
        let count = elements(settings);
        let numbers = headstart::device::Pattern::below(1000, 43);
        let kernel = std::sync::Arc::new(unaliased::kernel(settings.small("group"))?);
        headstart::tune::Workload::new(kernel, settings.small("groups"), settings.small("group"))
            .with("values", input(Type::I32, count, numbers))?
            .with("result", output(Type::I32, count))
    },
);

const FEW: &[&str] = &["groups=132", "group=128"];

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "order",
    title: "Loads before their uses, with and without a guarantee against aliasing",
    text: [
        "A load takes hundreds of cycles, and a sub-group continues until it uses the loaded value. Loads that are \
         all issued before the first use wait once. A load behind a store has to wait for the store, which might \
         change the loaded value.",
        "In Rust the types give the guarantee: a `&[T]` does not alias a `&mut [T]`, so the compiler may issue its \
         loads early. With one buffer for both, the author has to write the loads first. With few sub-groups per \
         core the difference is waiting four times instead of once; with many it disappears.",
    ],
    kernels: &[
        shown("loads-one-by-one", FEW),
        shown("loads-first", FEW),
        shown("loads-unaliased", FEW),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn all_orders_give_the_same() {
        let settings = ["groups=2", "group=64", "elements=2048"];
        let ran = run("loads-unaliased", &settings);
        let expected: Vec<u32> = ran
            .u32s("values")
            .iter()
            .map(|value| value.wrapping_mul(2_654_435_761))
            .collect();
        assert_eq!(ran.u32s("result"), expected);
        for kernel in ["loads-one-by-one", "loads-first"] {
            assert_eq!(
                run(kernel, &settings).u32s("values")[2048..],
                expected,
                "{kernel}"
            );
        }
    }
}
