//! The lines of the notes on optimizing for Intel's GPUs with oneAPI.

use headstart::device::CacheState;
use headstart::device::model::occupancy::Footprint;

use super::latencies::ACCESSES;
use super::page::{Row, found, words};
use super::{model, net, spills, time};

/// Microseconds of a technique on Xe-LP.
fn on_xe_lp(name: &str, settings: &str) -> f64 {
    time(&model("xe-lp", &[]), name, settings, "none", CacheState::Kept) / 1000.0
}

/// The device: its engines, registers, caches, and how work is laid out on them.
pub const DEVICE: [Row; 46] = [
    words(
        "An EU has 7 threads, and two ALUs of four 32-bit lanes",
        "7 sub-groups for each of the engines (`core.sub-groups`), 8 lanes each",
        "headstart devices --model gen11",
    ),
    words(
        "128 registers of 32 bytes for each thread",
        "4 KiB of each sub-group (`registers.fixed.per-sub-group`)",
        "headstart devices --model xe-lp",
    ),
    words(
        "A SubSlice has 8 EUs (Gen11) or 16 (Gen12), an instruction cache, a dispatcher, a data port, 64 KB of SLM",
        "8 and 16 engines, two instruction caches, 64 KiB; dispatch takes no time",
        "headstart devices --model xe-lp",
    ),
    words(
        "The sampler gives read-only data another 64 B a cycle",
        "*not modelled*: kernels here have no images, and buffers do not go through it",
        "[the simulator](simulator.md)",
    ),
    words(
        "A single vector engine can be looked at",
        "*not modelled*: the smallest part that is timed is a core; a launch of one sub-group uses one of its engines",
        "headstart run gather --device sim:pvc-1550 --set groups=1 --set group=32",
    ),
    words(
        "SLM shares atomic data among the work-items of a SubSlice",
        "atomics on shared memory are served by its banks",
        "[atomics](../results/techniques.md#atomics)",
    ),
    words(
        "A work-group with a barrier stays in one SubSlice",
        "every work-group does, as in Intel's occupancy calculator",
        "headstart occupancy --device sim:gen11 --group 256 --sub-group 8 --barrier",
    ),
    words(
        "Without SLM work-items can be dispatched across SubSlices",
        "*not modelled*: the calculator keeps them together; a GPU's counters of threads by SubSlice would settle it",
        "headstart occupancy --device sim:xe-lp --group 512 --sub-group 8",
    ),
    words(
        "At most 16 work-groups in a SubSlice",
        "the calculator's table has 56 to 112, and 64 with a barrier: it is followed; the note itself doubts its number",
        "headstart occupancy --device sim:gen11 --group 8 --sub-group 8 --barrier",
    ),
    found(
        "Sub-groups of 8 and work-groups of 448 fill 8 EUs of 7 threads",
        || {
            let gen11 = model("gen11", &["core.work-group-size=448"]);
            let footprint = Footprint {
                barrier: true,
                ..Footprint::new(448, 8)
            };
            let full = gen11.occupancy(&footprint).occupancy;
            format!(
                "{:.0} % occupancy where a device launches this many; `sim:gen11` launches 256",
                100.0 * full
            )
        },
        "headstart occupancy --device sim:gen11 --group 448 --sub-group 8 --barrier --model core.work-group-size=448",
    ),
    words(
        "56 threads are the upper bound of a work-group, 4 the lower one; drivers may have further limits",
        "recommended sizes are between 4 threads and all of a core, and never above what the device launches",
        "headstart occupancy --device sim:xe-lp --group 512 --sub-group 32",
    ),
    words(
        "`reqd_sub_group_size` overrides the compiler's choice",
        "`sub_group = 16`, or `--sub-group` in the answer of `tune`",
        "[the language](language.md)",
    ),
    found(
        "A wider sub-group is like unrolling, while there are registers enough",
        || {
            let [narrow, wide] =
                ["size=16 groups=96", "size=32 groups=96"].map(|settings| on_xe_lp("centre-32", settings));
            format!(
                "32 values of each work-item take {narrow:.0} µs in sub-groups of 16, {wide:.0} in sub-groups of 32, which spill"
            )
        },
        "headstart run centre-32 --device sim:xe-lp --set size=32",
    ),
    words(
        "R = 7 fills a SubSlice, R = 4 leaves 43 % unused, R > 7 cannot launch",
        "the same numbers, with work-groups as large as the example's",
        "headstart occupancy --device sim:gen11 --group 256 --sub-group 8 --barrier",
    ),
    words(
        "Local variables have to fit 64 KB of SLM",
        "refused with the size that there is",
        "headstart occupancy --device sim:xe-lp --group 256 --sub-group 16 --shared 65536",
    ),
    words(
        "Reductions: one atomic for each element is the naive way",
        "in ten variants, simulated and measured",
        "[reductions](../results/techniques.md#reductions)",
    ),
    words(
        "Chunks with local sums, then a tree or a sequential sum",
        "in the same table",
        "[reductions](../results/techniques.md#reductions)",
    ),
    words(
        "Vectors, enough work-groups, trees in work-groups, several stages, built-in reductions, SLM, blocking, sub-group loads",
        "a kernel each",
        "[reductions](../results/techniques.md#reductions)",
    ),
    words(
        "The transfer of the result takes about as long as the reduction",
        "both times are on the page",
        "[sums](../results/host.md#host-sums)",
    ),
    words(
        "Work-groups may be preempted, or not",
        "*not modelled*: a launch runs to its end, as the notes say of current devices",
        "[the simulator](simulator.md)",
    ),
    words(
        "Work-items of a work-group run concurrently",
        "resident together, and a barrier waits for all",
        "[the simulator](simulator.md)",
    ),
    words(
        "A sub-group's work-items are packed into one thread",
        "lanes of one instruction stream",
        "headstart emit gather --device sim:xe-lp --target machine",
    ),
    words(
        "Valid sub-group sizes depend on the device",
        "listed with each device",
        "headstart devices",
    ),
    words(
        "Diverging lanes run both paths",
        "both are timed, and reported",
        "[divergence](../results/techniques.md#divergence)",
    ),
    found(
        "Sixteen contiguous integers in one SIMD instruction are better than sixteen in a work-item",
        || {
            let [own, side_by_side] =
                ["store-own", "store-side-by-side"].map(|name| on_xe_lp(name, "groups=96 group=256"));
            format!("{:.1} times as fast", own / side_by_side)
        },
        "headstart run store-side-by-side --device sim:xe-lp --set groups=96 --set group=256",
    ),
    words(
        "Sub-group block accesses use block messages",
        "`sub_group_load_block`, emitted as such",
        "[blocks](../results/techniques.md#blocks)",
    ),
    words(
        "Block loads do not work with sub-groups of 32 on current hardware",
        "refused on `sim:gen11` and `sim:xe-lp`, with the line; a kernel that requires no size gets 16",
        "[blocks](../results/techniques.md#blocks)",
    ),
    words(
        "Shuffles share data inside a sub-group",
        "a kernel with them, beside one through SLM",
        "[sub-groups](../results/techniques.md#sub-groups)",
    ),
    found(
        "Private variables that do not fit the registers spill to memory",
        || {
            let [narrow, wide] = [16, 32].map(|size| spills::lowered("centre-32", size).frame_bytes);
            format!(
                "stored and loaded again through the caches: {narrow} bytes of a work-item in sub-groups of 16, {wide} in sub-groups of 32, where Intel's compiler stores {:.0}",
                spills::BY_OCLOC
            )
        },
        "headstart emit centre-32 --device sim:xe-lp --target machine --set size=32",
    ),
    words(
        "The compiler chooses the SIMD width by register pressure",
        "`tune` tries each width that the device has",
        "[SPIR-V](spirv.md)",
    ),
    words(
        "The last sub-group may be smaller than the largest",
        "partial sub-groups run with their lanes off",
        "[the language](language.md)",
    ),
    found(
        "SLM is closer and faster than global memory",
        || {
            let pvc = model("pvc-1550", &[]);
            let [shared, global] =
                [0, 2].map(|at| net(ACCESSES[at].shown_by.0, ACCESSES[at].shown_by.1, &pvc));
            format!("{shared:.0} cycles instead of {global:.0} in L3")
        },
        "headstart run micro/shared --device sim:pvc-1550",
    ),
    words(
        "SLM lives as long as the work-group",
        "reads before a first write are reported",
        "[checks](checks.md)",
    ),
    words(
        "SLM's size can limit the work-groups",
        "one of the limits that `occupancy` names",
        "headstart occupancy --device sim:xe-lp --group 64 --sub-group 16 --shared 32768",
    ),
    words(
        "16 banks of 4 bytes; conflicts are served one after the other, but for the same address",
        "`shared.banks`, a cycle more for each conflict (assumed)",
        "headstart run micro/shared --device sim:xe-lp --set stride=16",
    ),
    words(
        "A barrier costs, and more in large work-groups",
        "it waits for the last sub-group",
        "[shared memory](../results/techniques.md#shared-memory)",
    ),
    words(
        "Managing hot data in SLM can beat the cache",
        "both ways in one table",
        "[shared memory](../results/techniques.md#shared-memory)",
    ),
    words(
        "Padding removes conditional checks; `select`, `min` and `max` replace branches",
        "the same work with and without",
        "[divergence](../results/techniques.md#divergence)",
    ),
    words(
        "Fences order loads and stores: acquire, release, both",
        "operations of the language with these orders; what is not ordered is reported",
        "[checks](checks.md)",
    ),
    words(
        "Barriers of sub-groups and work-groups",
        "both",
        "[the language](language.md)",
    ),
    words(
        "Hierarchical dispatch",
        "a loop over a work-group's items with `barrier()` between: the same, written flat",
        "[the language](language.md)",
    ),
    words(
        "Pointers that may alias keep loads in order",
        "`&[T]` and `&mut [T]` do not alias; a module says `restrict`, or a launch file `unaliased`",
        "[order of loads](../results/techniques.md#order)",
    ),
    words(
        "Issue the loads before the operations on them",
        "three kernels that do the same in another order",
        "[order of loads](../results/techniques.md#order)",
    ),
    words(
        "Without barriers and atomics the work-group's size does not matter",
        "`tune` does not try other sizes there, and says so",
        "[SPIR-V](spirv.md)",
    ),
    words(
        "Use all data of a line before the next chunk; avoid strides with bank conflicts",
        "scattered accesses and conflicts are findings of `advise`, with a remedy",
        "headstart advise gather --device sim:xe-lp",
    ),
    words(
        "Compare with the roofline",
        "`tune --html` draws it, and `advise` names the limit",
        "[reading a report](reading.md)",
    ),
];

/// The host: launches, queues, transfers, compilation.
pub const HOST: [Row; 31] = [
    words(
        "Find what to offload first",
        "`offload` takes a profile of loops, and bounds each loop's time on a device",
        "headstart offload LOOPS.csv --device sim:pvc-1550",
    ),
    words(
        "Amdahl's law",
        "the program's gain, with and without transfers",
        "headstart advise gather --share 0.5",
    ),
    words(
        "Many more tasks than resources keep a device busy",
        "the first of the verdicts: more work-groups",
        "[reading a report](reading.md)",
    ),
    found(
        "Launch as few kernels as possible",
        || {
            let pvc = model("pvc-1550", &[]);
            assert_eq!(*pvc.core.launch, 0);
            let most = pvc.nanoseconds(f64::from(*pvc.core.slowest_launch)) / 1000.0;
            format!(
                "*not modelled on Intel's GPUs*, as each report says: no public number of the Max series is known to us; `offload` leaves open what up to {most:.0} µs a launch would change, and `--model core.launch=CYCLES` decides"
            )
        },
        "headstart run micro/launch --device sim:pvc-1550 --model core.launch=12800",
    ),
    words(
        "Submission, launch and completion take times of their own",
        "*not modelled on Intel's GPUs*, as the line above; on an H200 the time between events is measured",
        "headstart run micro/launch --device sim:h200",
    ),
    words(
        "Current devices do not preempt kernels",
        "a launch runs to its end",
        "[the simulator](simulator.md)",
    ),
    words(
        "Profiling by events: start and end of a command",
        "every launch's outcome has both",
        "[queues](../results/host.md#host-queues)",
    ),
    words(
        "In-order and out-of-order queues",
        "queues are in order, and events order them among each other; commands of one queue never overtake",
        "[queues](../results/host.md#host-queues)",
    ),
    words(
        "The driver submits at once to an idle device, and buffers otherwise",
        "*not modelled*: submission takes no time in the simulator",
        "[queues](../results/host.md#host-queues)",
    ),
    words(
        "Only OpenCL runs kernels out of order",
        "commands of different queues run side by side in the simulator where nothing orders them",
        "[queues](../results/host.md#host-queues)",
    ),
    words(
        "`create_sub_devices` partitions a device",
        "`sub_devices`: stacks, each with cores and memory of its own",
        "[devices](../results/host.md#host-devices)",
    ),
    words(
        "Queues of one context behave like one queue; another context compiles again",
        "buffers and kernels belong to a device; compilations are counted",
        "[contexts](../results/host.md#host-contexts)",
    ),
    words(
        "A new context is heavy: it compiles",
        "compilations are counted, their time is the host's and not simulated",
        "[contexts](../results/host.md#host-contexts)",
    ),
    words(
        "Keep intermediate results on the device",
        "moved between and staying, in one table",
        "[access](../results/host.md#host-access)",
    ),
    words(
        "Avoid buffers declared in a loop",
        "the same work with ten buffers and with one",
        "[buffers](../results/host.md#host-buffers)",
    ),
    words(
        "Use the right access mode",
        "what is not read is not copied in",
        "[access](../results/host.md#host-access)",
    ),
    words(
        "Overlap transfers and computation",
        "copies and launches in queues of their own",
        "[overlap](../results/host.md#host-overlap)",
    ),
    found(
        "Local bandwidth is an order of magnitude above PCIe",
        || {
            let pvc = model("pvc-1550", &[]);
            let link = pvc.card.as_ref().map_or(0.0, |card| *card.link_bandwidth);
            format!(
                "{link:.0} GB/s over the link, {:.0} of memory",
                *pvc.dram.bandwidth
            )
        },
        "headstart devices --model pvc-1550",
    ),
    words(
        "Copy engines move data beside kernels",
        "a copy in each direction and kernels run at once",
        "[overlap](../results/host.md#host-overlap)",
    ),
    words(
        "Copies by EUs run beside copies by the engine",
        "*not modelled*: copies within a device take its memory's bandwidth, not its cores",
        "[overlap](../results/host.md#host-overlap)",
    ),
    words(
        "Shared allocations move pages that are referenced",
        "4 KiB at a time, a fault each (20 µs, assumed)",
        "[allocations](../results/host.md#host-allocations)",
    ),
    words(
        "Device allocations are fastest, and explicit",
        "in the same table",
        "[allocations](../results/host.md#host-allocations)",
    ),
    words(
        "Work can be split over CPU and accelerators",
        "`split` shares a range among devices",
        "[devices](../results/host.md#host-devices)",
    ),
    words(
        "The host CPU can be a device",
        "OpenCL's runtime for CPUs, `opencl:N`",
        "headstart devices",
    ),
    words(
        "SPIR-V is compiled when it is needed (JIT), or ahead of time",
        "`emit --target spirv`; kernels are compiled when they are first launched, or all at once",
        "[compilation](../results/host.md#host-compilation)",
    ),
    words(
        "Eager or lazy compilation: `-fsycl-device-code-split`",
        "both, and the compilations that each makes",
        "[compilation](../results/host.md#host-compilation)",
    ),
    words(
        "Specialization constants compile for a value",
        "`#[constant]` parameters do",
        "[constants](../results/host.md#host-constants)",
    ),
    words(
        "Printing is hard and expensive",
        "lines go to a buffer: an atomic operation and a store for each value are timed, writing them out is not",
        "[printing](../results/host.md#host-printing)",
    ),
    words(
        "No file access in kernels; streams have a buffer and a largest statement",
        "a buffer whose size is a launch's option; what does not fit is counted",
        "[printing](../results/host.md#host-printing)",
    ),
    words(
        "Printed text appears after the kernel",
        "the same",
        "[printing](../results/host.md#host-printing)",
    ),
    words(
        "Profiling times have no transfers in them",
        "kernels alone and the whole are columns of their own",
        "[overlap](../results/host.md#host-overlap)",
    ),
];
