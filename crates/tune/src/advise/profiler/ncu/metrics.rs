//! Nsight Compute's names: metrics, units, reasons of stalls, and the command that collects them.

use crate::device::sim::timer::StallReason;

/// Work-items of a warp, on every NVIDIA GPU.
pub(super) const WARP: u32 = 32;

/// Bytes of a sector, of which a load that is coalesced uses all.
pub(super) const SECTOR: f64 = 32.0;

/// The metrics that the procedure needs, as the raw page calls them.
pub(super) const DURATION: &str = "gpu__time_duration.sum";
pub(super) const BYTES_READ: &str = "dram__bytes_read.sum";
pub(super) const BYTES_WRITTEN: &str = "dram__bytes_write.sum";
/// What Blackwell calls the same.
pub(super) const BYTES_OP_READ: &str = "dram__bytes_op_read.sum";
pub(super) const BYTES_OP_WRITTEN: &str = "dram__bytes_op_write.sum";
pub(super) const BYTES_RATE: &str = "dram__bytes.sum.per_second";
pub(super) const BANDWIDTH_USED: &str = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
pub(super) const THROUGHPUT: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
pub(super) const REGISTERS: &str = "launch__registers_per_thread";
pub(super) const SHARED_STATIC: &str = "launch__shared_mem_per_block_static";
pub(super) const SHARED_DYNAMIC: &str = "launch__shared_mem_per_block_dynamic";
pub(super) const CACHE_HITS: &str = "lts__t_sector_hit_rate.pct";
pub(super) const BYTES_OF_SECTOR: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
pub(super) const ISSUED: &str = "smsp__issue_active.avg.pct_of_peak_sustained_active";

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Bytes,
    BytesPerSecond,
    Percent,
    Other,
}

/// Nsight Compute's names of the reasons, and ours; `selected` and some others only count in the sum. If one name is a prefix
/// of another, the longer one comes first.
pub(super) const REASONS: [(&str, Option<StallReason>); 20] = [
    ("long_scoreboard", Some(StallReason::LongScoreboard)),
    ("short_scoreboard", Some(StallReason::ShortScoreboard)),
    ("wait", Some(StallReason::Wait)),
    ("barrier", Some(StallReason::Barrier)),
    ("no_instruction", Some(StallReason::NoInstruction)),
    ("branch_resolving", Some(StallReason::BranchResolving)),
    ("math_pipe_throttle", Some(StallReason::MathPipeThrottle)),
    ("lg_throttle", Some(StallReason::MemoryThrottle)),
    ("mio_throttle", Some(StallReason::MemoryThrottle)),
    ("tex_throttle", Some(StallReason::MemoryThrottle)),
    ("not_selected", Some(StallReason::NotSelected)),
    ("selected", None),
    ("dispatch_stall", None),
    ("drain", None),
    ("gmma", None),
    ("imc_miss", None),
    ("membar", None),
    ("misc", None),
    ("sleeping", None),
    ("warpgroup_arrive", None),
];

/// The base unit and the factor to it. Nsight Compute has written its units in two ways: `usecond`, `Gbyte/second`, and
/// `us`, `GB/s`.
pub(super) fn base(unit: &str) -> (Unit, f64) {
    let unit = unit.trim();
    if unit == "%" {
        return (Unit::Percent, 1.0);
    }
    let seconds = |text: &str| match text {
        "second" | "s" | "sec" => Some(1.0),
        "msecond" | "ms" => Some(1e-3),
        "usecond" | "us" | "µs" => Some(1e-6),
        "nsecond" | "ns" => Some(1e-9),
        _ => None,
    };
    let bytes = |text: &str| match text.to_ascii_lowercase().as_str() {
        "byte" | "b" | "bytes" => Some(1.0),
        "kbyte" | "kb" => Some(1e3),
        "mbyte" | "mb" => Some(1e6),
        "gbyte" | "gb" => Some(1e9),
        "tbyte" | "tb" => Some(1e12),
        _ => None,
    };
    match unit.split_once('/') {
        Some((amount, per)) => match (bytes(amount), seconds(per)) {
            (Some(amount), Some(per)) => (Unit::BytesPerSecond, amount / per),
            // A work-group's: `Kbyte/block`.
            (Some(amount), None) => (Unit::Bytes, amount),
            _ => (Unit::Other, 1.0),
        },
        None => match (seconds(unit), bytes(unit)) {
            (Some(factor), _) => (Unit::Seconds, factor),
            (None, Some(factor)) => (Unit::Bytes, factor),
            (None, None) => (Unit::Other, 1.0),
        },
    }
}

/// The command that collects a metric.
pub(super) fn command(metric: &str) -> String {
    format!("`ncu --csv --page raw --metrics {metric} PROGRAM > FILE.csv`")
}
