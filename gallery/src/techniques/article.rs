//! NVIDIA's article's changes to its loop: unrolling, in full and in part; each way of fetching early; padding; and a
//! synchronisation in the loop. The loop itself is [`article`](crate::article).

use headstart::Result;
use headstart::device::{Fill, Pattern};
use headstart::ir::{Kernel, Type};
use headstart::prelude::*;
use headstart::tune::{ArgumentSpec, Compare, Workload};

use super::{Family, H200, Shown, items};
use crate::kernels::{GalleryKernel, Iterations};
use crate::settings::{Parameter, Settings, launch};

const GROUP: usize = 1024;

/// The article's loop where it is short: its number of iterations is known when it is compiled.
#[kernel(work_group = group)]
pub fn short(arr: &[f64], result: &mut [f64], #[constant] group: u32, #[constant] count: u32) {
    let mut acc = 0.0;
    #[unroll(0)]
    for j in 0..count as usize {
        let x = arr[j * global_size() + global_id()];
        acc += (-x * x).exp() * x;
    }
    result[global_id()] = acc;
}

/// The article's loop where neighbours work together: each element is handed on through shared memory, and all wait for
/// each other twice in every iteration.
#[kernel(work_group = group)]
pub fn together(arr: &[f64], result: &mut [f64], count: u32, #[constant] group: u32) {
    let mut near = shared::<f64, GROUP>();
    let neighbour = (local_id() + 1) % group as usize;
    let mut acc = 0.0;
    #[unroll(0)]
    for j in 0..count as usize {
        let x = arr[j * global_size() + global_id()];
        near[local_id()] = x;
        barrier();
        acc += (-x * x).exp() * near[neighbour];
        barrier();
    }
    result[global_id()] = acc;
}

const fn parameters(count: u64) -> [Parameter; 3] {
    [
        Parameter::number("groups", "work-groups", 132, 1..=1 << 20),
        Parameter::number("group", "work-items of a work-group", 128, 1..=1024),
        Parameter::number("count", "elements of each work-item", count, 0..=4096),
    ]
}

static SHORT_PARAMETERS: [Parameter; 3] = parameters(16);
static TOGETHER_PARAMETERS: [Parameter; 3] = parameters(400);

/// `article-short`.
pub(crate) static SHORT: GalleryKernel = GalleryKernel {
    name: "article-short",
    summary: "the article's loop with a known trip count",
    parameters: &SHORT_PARAMETERS,
    takes_trace: None,
    // The kernel itself has the number.
    iterations: Iterations::Given {
        small: |settings, _| settings.with("groups", 2),
        shapes: |_| Vec::new(),
    },
    workload: |settings, _| {
        with_data(
            settings,
            short::kernel(settings.small("group"), settings.small("count"))?,
        )
    },
};

/// `article-together`.
pub(crate) static TOGETHER: GalleryKernel = GalleryKernel {
    name: "article-together",
    summary: "the article's loop with a barrier in it",
    parameters: &TOGETHER_PARAMETERS,
    takes_trace: None,
    iterations: Iterations::Are("count"),
    workload: |settings, _| {
        let count = ArgumentSpec::Scalar(Type::I32, settings.get("count"));
        with_data(settings, together::kernel(settings.small("group"))?)?.with("count", count)
    },
};

fn with_data(settings: &Settings, kernel: Kernel) -> Result<Workload> {
    let arr = ArgumentSpec::Input {
        element: Type::F64,
        length: (items(settings) * settings.get("count")).max(1),
        fill: Fill::Pattern(Pattern::Fractions { low: 0.0 }),
    };
    let workload = launch(settings, kernel);
    let result = ArgumentSpec::output(Type::F64, items(settings), Fill::Uninitialized, Compare::Bits);
    workload.with("arr", arr)?.with("result", result)
}

/// 400 iterations of each work-item.
const LOOP: &[&str] = &["elements=51200"];

const fn planned(plan: &'static str) -> Shown {
    Shown {
        kernel: "article",
        settings: LOOP,
        plan,
    }
}

const fn short_planned(plan: &'static str) -> Shown {
    Shown {
        kernel: "article-short",
        settings: &["groups=132"],
        plan,
    }
}

const fn together_planned(plan: &'static str) -> Shown {
    Shown {
        kernel: "article-together",
        settings: &["groups=132"],
        plan,
    }
}

/// The page.
pub static FAMILY: Family = Family {
    device: H200,
    page: "article",
    title: "NVIDIA's article: unrolling, early fetches, padding, a synchronisation in the loop",
    text: [
        "The article's loop waits for a load in each iteration. Partially unrolled (`unroll:N`), the loads of N \
         iterations are issued together and waited on once. Full unrolling removes the loop, but needs a known and \
         small trip count, as in `article-short`. The article's five strategies fetch values before their iteration: \
         in batches or one at a time (rolling), to registers or to shared memory. A batch still waits once. Rolling \
         does not, if it is far enough ahead, except through shared memory by ordinary loads: there a value has to \
         be in a register before it can be stored, so the store waits in the same iteration. Adjacent values of a \
         work-item in shared memory (`/plain`) put neighbours' words into the same banks. Padding (`/padded`, to one \
         more than a power of two) spreads them, and so does the article's exercise for the reader, slot after slot \
         with the work-items adjacent (`/interleaved`). Unrolling combined with a ring keeps the most loads in \
         flight. `article-picked` is the article's own ring of registers, which a `switch` over the counter picks: two \
         comparisons for each of them in every iteration, and a move of the value just loaded, which waits for it. The \
         article's figure shows such a kernel 60 % below the plain one. The sign and the trend are here, the 60 % are not: \
         that kernel belongs to a financial application that is not shown, with eight registers to spare.",
        "`article-together` has barriers in its loop. The article says that a synchronisation is a fence, which \
         forces the loads to complete in their iteration, and that asynchronous copies avoid that: only their own \
         wait waits for them. On an H200 that is half true. A ring of registers survives the barriers there: a \
         barrier orders accesses that others can see, and does not wait for a register that is not read yet. A ring \
         through shared memory by ordinary loads does not survive, because its stores wait anyway. The copies are \
         still the fastest. All of this is legal only because `arr` is a `&[f64]`, which is not written: values of a \
         `&mut [f64]` are not fetched across a barrier at all, because they may change there.",
    ],
    kernels: &[
        planned("none"),
        planned("unroll:4"),
        planned("unroll:16"),
        planned("arr=batched-registers:8"),
        planned("arr=rolling-registers:8"),
        planned("arr=batched-shared:8/plain"),
        planned("arr=batched-shared:8/padded"),
        planned("arr=batched-shared:8/interleaved"),
        planned("arr=rolling-shared:8/plain"),
        planned("arr=rolling-shared:8/padded"),
        planned("arr=rolling-async:8/plain"),
        planned("arr=rolling-async:8/padded"),
        planned("arr=rolling-async:8/interleaved"),
        planned("arr=cache:L1:8"),
        planned("arr=cache:L2:8"),
        planned("unroll:16,arr=rolling-async:32/interleaved"),
        short_planned("none"),
        short_planned("unroll:4"),
        short_planned("unroll:full"),
        together_planned("none"),
        together_planned("arr=rolling-registers:8"),
        together_planned("arr=batched-shared:8/padded"),
        together_planned("arr=rolling-shared:8/padded"),
        together_planned("arr=rolling-async:8/padded"),
    ],
};

#[cfg(test)]
mod tests {
    use crate::workloads::testing::run;

    #[test]
    fn both_loops_add_up_their_elements() {
        let settings = ["groups=2", "group=32", "count=5"];
        let exp = |x: f64| headstart::math::Function::Exp.f64(&[x]);
        let short = run("article-short", &settings);
        let together = run("article-together", &settings);
        let arr = short.f64s("arr");
        assert_eq!(together.f64s("arr"), arr);
        let sum = |item: usize, factor: &dyn Fn(usize) -> usize| {
            (0..5).fold(0.0, |sum, j| {
                let x = arr[j * 64 + item];
                sum + exp(-x * x) * arr[j * 64 + factor(item)]
            })
        };
        let own: Vec<f64> = (0..64).map(|item| sum(item, &|item| item)).collect();
        assert_eq!(short.f64s("result"), own);
        let next = |item: usize| item / 32 * 32 + (item + 1) % 32;
        let handed: Vec<f64> = (0..64).map(|item| sum(item, &next)).collect();
        assert_eq!(together.f64s("result"), handed);
    }
}
