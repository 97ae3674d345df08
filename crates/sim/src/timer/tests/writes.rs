//! Write traffic: what a launch leaves in L2 another one has to make go.

use super::*;

/// Each work-item stores a word.
const FILL: &str = "hsir 1
    kernel @fill(%out: ptr.global f32[%length] align 4 unaliased, %length: i64) {
      %group = id.group.x
      %size = id.group_size.x
      %before = mul.nuw %group, %size
      %local = id.local.x
      %item32 = add.nuw %before, %local
      %item = extend.u %item32 to i64
      %to = address %out + %item * 4
      store %to, 1.5:f32
      return
    }";

/// Nanoseconds of a fill of 2^28 words in work-groups of 256, and what device memory writes.
fn fill(name: &str) -> (f64, f64) {
    let bench = Bench::new(name, &[]);
    let items = 1u64 << 28;
    let out = bench.buffer(Type::F32, items, Pattern::Constant(0));
    let time = bench.time(FILL, (items / 256) as u32, 256, vec![out, index(items)]);
    (time.nanoseconds, time.dram_bytes())
}

#[test]
fn a_fill_is_as_fast_as_memory_takes_what_it_writes() {
    for name in ["h200", "a100"] {
        let model = built_in(name, &[]).expect("a model");
        let bytes = 4.0 * f64::from(1 << 28);
        let floor = bytes / *model.dram.write_bandwidth;
        let (nanoseconds, moved) = fill(name);
        assert!(
            (0.95 * floor..1.35 * floor).contains(&nanoseconds),
            "{name}: {nanoseconds} ns, and {floor} at the bandwidth of writes"
        );
        assert!(
            (0.9 * bytes..1.2 * bytes).contains(&moved),
            "{name}: {moved} bytes"
        );
    }
}

/// What fits into L2 stays there.
#[test]
fn a_small_fill_writes_nothing_back() {
    let bench = Bench::new("h200", &[]);
    let items = 1u64 << 20;
    let out = bench.buffer(Type::F32, items, Pattern::Constant(0));
    let time = bench.time(FILL, (items / 256) as u32, 256, vec![out, index(items)]);
    assert!(
        time.dram_bytes() < 0.1 * 4.0 * items as f64,
        "{}",
        time.dram_bytes()
    );
}
