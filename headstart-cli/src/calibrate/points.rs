//! Which microbenchmarks are run, with which settings, and which number of a model each says something about.

use super::fit::{Aim, How};

/// A microbenchmark with settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The microbenchmark: `micro/latency`.
    pub kernel: &'static str,
    /// Its settings, set apart by spaces.
    pub settings: String,
    /// The number that follows from it; none where it only shows whether the model is right.
    pub aim: Option<Aim>,
}

impl Point {
    /// As rows and `--case` name it: the microbenchmark with its settings.
    pub fn name(&self) -> String {
        name(self.kernel, &self.settings)
    }
}

/// A microbenchmark with its settings.
pub fn name(kernel: &str, settings: &str) -> String {
    format!("{kernel} {settings}")
}

fn point(kernel: &'static str, settings: impl Into<String>) -> Point {
    Point {
        kernel,
        settings: settings.into(),
        aim: None,
    }
}

impl Point {
    /// A number of the model follows from it.
    fn gives(mut self, key: &'static str, how: How) -> Point {
        self.aim = Some(Aim { key, how });
        self
    }
}

/// Every point, in the order that they are measured. `cores` are those of the device.
pub fn all(cores: u32) -> Vec<Point> {
    let mut points = vec![point("micro/launch", "groups=1").gives("core.launch", How::Adds(1.0))];
    points.extend(arithmetic());
    points.extend(shared());
    points.extend(strided(cores));
    points.extend(latencies(cores));
    points.extend(bandwidths(cores));
    points.extend(code());
    points.extend(prefetches(cores));
    points.extend(stores(cores));
    points.extend(others(cores));
    points.extend(products());
    points
}

fn arithmetic() -> Vec<Point> {
    let mut points = Vec::new();
    // Compilers also put integer additions on the multipliers, and 16-bit arithmetic has its own rules for NaN: its
    // instructions are not of one class.
    let classes = [
        ("int32", None),
        ("fp16", None),
        (
            "multiply",
            Some((
                "instructions.int-multiply.latency",
                "instructions.int-multiply.rate",
            )),
        ),
        (
            "fp32",
            Some(("instructions.fp32.latency", "instructions.fp32.rate")),
        ),
        (
            "fp64",
            Some(("instructions.fp64.latency", "instructions.fp64.rate")),
        ),
        (
            "convert",
            Some(("instructions.convert.latency", "instructions.convert.rate")),
        ),
        ("count-ones", None),
        ("square-root", None),
    ];
    for (operation, keys) in classes {
        let latency = point("micro/arithmetic", format!("operation={operation}"));
        let rate = point("micro/arithmetic", format!("operation={operation} group=1024"));
        match keys {
            Some((for_latency, for_rate)) => {
                points.push(latency.gives(for_latency, How::Adds(1.0)));
                points.push(rate.gives(for_rate, How::Divides));
            }
            None => points.extend([latency, rate]),
        }
    }
    // Jumps, with more and more sub-groups to a scheduler: in one work-group, and in four.
    for groups in ["group=256", "group=512", "group=256 groups=528"] {
        points.push(point(
            "micro/arithmetic",
            format!("operation=square-root {groups}"),
        ));
    }
    for registers in [2, 3] {
        for ty in ["fp32", "fp64"] {
            let settings = format!("type={ty} registers={registers}");
            let point = point("micro/operands", settings);
            points.push(match (ty, registers) {
                ("fp64", 3) => point.gives("core.operand-words", How::Divides),
                _ => point,
            });
        }
    }
    points.push(point("micro/barrier", "group=128").gives("instructions.barrier.latency", How::Adds(1.0)));
    points.push(point("micro/barrier", "group=1024").gives("instructions.barrier.rate", How::Divides));
    points
}

fn shared() -> Vec<Point> {
    vec![
        point("micro/shared", "stride=1").gives("shared.latency", How::Adds(1.0)),
        point("micro/shared", "stride=2"),
        point("micro/shared", "stride=4"),
        point("micro/shared", "stride=8"),
        point("micro/shared", "stride=32").gives("shared.conflict-latency", How::Adds(1.0 / 31.0)),
        point("micro/shared", "stride=1 group=1024").gives("instructions.shared-load.rate", How::Divides),
        point("micro/shared", "stride=2 group=1024"),
        point("micro/shared", "stride=32 group=1024"),
    ]
}

/// Banks of L1, and translations near the cores.
fn strided(cores: u32) -> Vec<Point> {
    let strided = |settings: String| point("micro/strided", settings);
    vec![
        strided("stride=32 steps=64".into()),
        strided("stride=33 steps=64".into()),
        strided("stride=16 width=4 places=256 together=1 steps=64".into()),
        strided(format!(
            "groups={cores} together=1 places=4096 stride=65536 warm=8 steps=16"
        )),
    ]
}

fn latencies(cores: u32) -> Vec<Point> {
    let chain = |settings: String| point("micro/latency", settings);
    let mut points = vec![
        chain("footprint=16384".into()).gives("l1.latency", How::Adds(1.0)),
        chain("footprint=131072".into()),
        chain("footprint=196608".into()),
        chain("footprint=262144".into()),
        chain("footprint=2^20".into()).gives("l2.near-latency", How::Adds(1.0)),
    ];
    for mib in [4, 8, 16, 24, 32, 40, 48, 64] {
        points.push(chain(format!("footprint={}", mib << 20)));
    }
    points.extend([
        chain("footprint=2^28 order=random".into()),
        chain("footprint=2^30 order=random".into()).gives("dram.latency", How::Adds(1.0)),
        chain("footprint=2^33 order=random".into()),
        // A page each.
        chain("footprint=2^33 order=random stride=2^21 steps=2048".into()),
        chain("footprint=2^20 stride=32".into()),
        chain("footprint=2^30 order=random chains=work-item group=32 steps=1024".into()),
    ]);
    // Under load: as many chains as work-items.
    for group in [32, 128, 256, 512, 1024] {
        points.push(chain(format!(
            "footprint=2^30 order=random chains=work-item groups={cores} group={group} steps=256"
        )));
    }
    points
}

fn bandwidths(cores: u32) -> Vec<Point> {
    let stream = |settings: String| point("micro/bandwidth", settings);
    let full = 2 * cores;
    let mut points = vec![
        stream("groups=1 footprint=65536 width=4 steps=256".into()).gives("l1.bandwidth", How::Multiplies),
        stream("groups=1 footprint=65536 steps=256".into()),
        stream("groups=1 footprint=65536 segment=1 steps=64".into())
            .gives("l1.lines-per-cycle", How::Multiplies),
        stream("groups=1 footprint=65536 segment=8 steps=64".into()),
        stream("groups=1 footprint=2^23 width=4 steps=128".into())
            .gives("l2.bandwidth-per-core", How::Multiplies),
        stream("groups=1 footprint=2^23 steps=128".into()),
        stream("groups=1 footprint=2^23 segment=1 steps=64".into()),
        stream("groups=1 footprint=2^23 segment=8 steps=64".into()),
        // The width of wide loads beside the scattered ones' rate: two of them share a request.
        stream(format!("groups={full} footprint=2^24 width=4 steps=32")),
    ];
    for (segment, steps) in [(1, 16), (2, 16), (4, 16), (8, 48), (16, 48), (32, 48)] {
        let point = stream(format!(
            "groups={full} footprint=2^24 segment={segment} steps={steps}"
        ));
        points.push(match segment {
            1 => point.gives("l2.requests-per-cycle", How::Multiplies),
            _ => point,
        });
    }
    points.push(
        stream(format!("groups={full} footprint=2^31 width=4 steps=64"))
            .gives("dram.bandwidth", How::Multiplies),
    );
    points.push(stream(format!("groups={full} footprint=2^31 steps=64")));
    for (segment, steps) in [(1, 16), (2, 16), (4, 16), (8, 64), (16, 64), (32, 64)] {
        let point = stream(format!(
            "groups={full} footprint=2^31 segment={segment} steps={steps}"
        ));
        points.push(match segment {
            1 => point.gives("dram.banks", How::Multiplies),
            _ => point,
        });
    }
    // Bytes in flight: occupancy, and loads of each work-item.
    for (group, batch) in [
        (128, 1),
        (128, 4),
        (128, 8),
        (256, 1),
        (256, 4),
        (512, 1),
        (512, 4),
        (1024, 1),
        (1024, 4),
    ] {
        points.push(stream(format!(
            "groups={cores} group={group} footprint=2^31 batch={batch} steps=64"
        )));
    }
    points
}

fn code() -> Vec<Point> {
    let size = |kib: u32| point("micro/code", format!("kib={kib}"));
    vec![
        size(16),
        size(24),
        size(64),
        size(96).gives("instruction-cache.near-miss", How::Adds(8.0)),
        size(120),
        size(160),
        size(256).gives("instruction-cache.miss", How::Adds(8.0)),
        // Many sub-groups share the lines of a loop that is a little too large for the near cache, or do not.
        size(40),
        point("micro/code", "kib=40 group=1024"),
        point("micro/code", "kib=96 group=512"),
        point("micro/code", "kib=96 group=1024"),
        point("micro/code", "kib=256 group=512"),
    ]
}

fn prefetches(cores: u32) -> Vec<Point> {
    let full = 2 * cores;
    // The rates of L2 and device memory for hints alone, and for loads of prefetched data.
    let hints = |settings: &str| point("micro/hints", format!("groups={full} {settings}"));
    let asked = |settings: &str| point("micro/bandwidth", format!("groups={full} {settings}"));
    vec![
        hints("apart=1 footprint=2^24"),
        hints("apart=8 footprint=2^24"),
        hints("apart=1 footprint=2^31"),
        hints("apart=32 footprint=2^31 steps=16"),
        asked("footprint=2^24 steps=32 ahead=2"),
        asked("footprint=2^31 steps=64 ahead=2"),
        asked("footprint=2^31 segment=1 steps=16 ahead=2"),
        asked("footprint=2^31 segment=16 steps=64 ahead=2"),
        point("micro/hints", "apart=1").gives("instructions.prefetch.rate", How::Divides),
        point("micro/hints", "apart=8 footprint=2^20"),
        point("micro/hints", "apart=32 footprint=2^20"),
        point("micro/hints", "apart=1 level=L1"),
        point("micro/reach", "level=nothing"),
        point("micro/reach", "level=none"),
        point("micro/reach", "level=L1"),
        point("micro/reach", "level=L2").gives("l2.far-latency", How::Adds(2.0)),
        point("micro/copies", "by=loads"),
        point("micro/copies", "by=copies").gives("instructions.async-copy.rate", How::Divides),
        point("micro/copies", "by=copies group=32"),
        point("micro/copies", "by=loads group=32"),
        point("micro/copies", "by=loads width=4"),
        point("micro/copies", "by=copies width=4"),
        point("micro/copies", "by=copies width=4 group=32"),
        // Everybody copies the same: by the work-items of a sub-group, of a core, of all cores.
        point("micro/copies", "by=copies width=4 apart=0 group=32"),
        point("micro/copies", "by=copies width=4 apart=0"),
        point("micro/copies", "by=loads width=4 apart=0"),
    ]
}

fn stores(cores: u32) -> Vec<Point> {
    let full = 2 * cores;
    let mut points = vec![
        point("micro/stores", "groups=1 footprint=2^20 steps=256"),
        point("micro/stores", "groups=1 footprint=2^20 segment=1 steps=64"),
        point("micro/stores", format!("groups={full} footprint=2^24 steps=48")),
        point(
            "micro/stores",
            format!("groups={full} footprint=2^24 segment=1 steps=16"),
        ),
        point("micro/stores", format!("groups={full} footprint=2^29 steps=64")),
    ];
    for (segment, steps) in [(1, 16), (4, 16), (8, 32), (16, 32)] {
        points.push(point(
            "micro/stores",
            format!("groups={full} footprint=2^29 segment={segment} steps={steps}"),
        ));
    }
    points
}

fn others(cores: u32) -> Vec<Point> {
    let mut points = vec![
        // All cores copy the same four words: what one place in L2 gives.
        point(
            "micro/copies",
            format!("by=copies width=4 apart=0 group=128 groups={cores}"),
        ),
        point(
            "micro/copies",
            format!("by=loads width=4 apart=0 group=128 groups={cores}"),
        ),
        point("micro/written", "writes=no"),
        point("micro/written", "writes=yes"),
        point("micro/sub-groups", format!("groups={}", 8 * cores)),
    ];
    for address in ["own", "same"] {
        for order in ["relaxed", "acq-rel"] {
            for cache in ["kept", "flushed"] {
                points.push(point(
                    "micro/atomics",
                    format!("address={address} order={order} cache={cache}"),
                ));
            }
        }
    }
    // One sub-group alone, a core full of them, and all cores.
    for (groups, group) in [(1, 32), (1, 1024), (2 * cores, 1024)] {
        points.push(point(
            "micro/atomics",
            format!("address=own order=relaxed groups={groups} group={group} steps=256"),
        ));
    }
    points.push(point(
        "micro/atomics",
        "address=own order=acq-rel groups=1 group=32 steps=256",
    ));
    points
}

/// Tensor cores: products that wait for each other, and as many as a core takes. Sizes of products are in bytes, see
/// [`Matrix`](headstart::device::model::Matrix): a small one says what is fixed, a large one what depends on the size.
fn products() -> Vec<Point> {
    let product = |settings: &str| point("micro/products", settings);
    vec![
        product("of=m8n8k16.s8 group=32").gives("matrix.start", How::Adds(1.0)),
        product("of=m16n8k8.f16 group=32"),
        product("of=m16n8k16.f16 group=32").gives("matrix.through", How::Divides),
        product("of=m16n8k32.s8 group=32"),
        product("of=m8n8k16.s8 group=512 sums=2").gives("matrix.least", How::Multiplies),
        product("of=m16n8k8.f16 group=512 sums=2"),
        product("of=m16n8k16.f16 group=512 sums=2").gives("matrix.rate", How::Divides),
        product("of=m16n8k32.s8 group=512 sums=2"),
        product("of=m8n8k4.f64 group=32").gives("matrix.double-start", How::Adds(1.0)),
        product("of=m16n8k8.f64 group=32"),
        product("of=m8n8k4.f64 group=512 sums=2").gives("matrix.double-least", How::Multiplies),
        product("of=m16n8k8.f64 group=512 sums=2").gives("matrix.double-rate", How::Divides),
        product("of=m64n8k16.f16").gives("matrix.group-least", How::Multiplies),
        product("of=m64n64k16.f16"),
        product("of=m64n128k16.f16"),
        product("of=m64n256k16.f16").gives("matrix.group-rate", How::Divides),
        product("of=m64n128k16.f16 group=256"),
        product("of=m64n8k16.f16 wait=each").gives("matrix.group-start", How::Adds(1.0)),
        product("of=m64n64k16.f16 wait=each"),
        product("of=m64n128k16.f16 wait=each"),
        product("of=m64n256k16.f16 wait=each").gives("matrix.group-through", How::Divides),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use headstart::device::model::{built_in, built_in_names};
    use headstart_gallery::micro;

    use super::*;

    #[test]
    fn every_point_can_be_run_and_none_stands_twice() {
        let mut seen = HashSet::new();
        for point in all(132) {
            let settings: Vec<String> = point.settings.split(' ').map(str::to_owned).collect();
            let (found, settings) = micro::with(point.kernel, &settings).expect("right settings");
            found.workload(&settings).expect("a workload");
            assert!(seen.insert((point.kernel, point.settings.clone())), "{point:?}");
        }
    }

    #[test]
    fn every_number_follows_from_one_point_and_is_in_every_model() {
        let mut seen = HashSet::new();
        for aim in all(132).into_iter().filter_map(|point| point.aim) {
            assert!(seen.insert(aim.key), "{aim:?}");
            for name in built_in_names().filter(|name| name.contains("00")) {
                built_in(name, &[format!("{}=20", aim.key)]).expect("the model has it");
            }
        }
    }
}
