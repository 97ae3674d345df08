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

/// Nanoseconds of a fill of 2^28 words, and what device memory writes. Smaller work-groups would not start as fast as memory
/// takes what they write.
fn fill(name: &str) -> (f64, f64) {
    let bench = Bench::new(name, &[]);
    let items = 1u64 << 28;
    let out = bench.buffer(Type::F32, items, Pattern::Constant(0));
    let time = bench.time(FILL, (items / 1024) as u32, 1024, vec![out, index(items)]);
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

/// Each work-item reads words in order, and stores each to a place of 4 MiB that its number is mixed into.
const SPREAD: &str = "hsir 1
    kernel @spread(%from: ptr.global f32[%length] align 4 readonly unaliased, %length: i64,
                   %to: ptr.global f32[1048576:i64] align 4 unaliased, %count: i32) {
      load @from
      %group = id.group.x
      %size = id.group_size.x
      %groups = id.group_count.x
      %all = mul %groups, %size
      %before = mul %group, %size
      %local = id.local.x
      %item = add %before, %local
      loop 'each (%k = 0:i32) {
        %more = lt.u %k, %count
        if %more { yield } else { break }
        %row = mul %k, %all
        %index32 = add %row, %item
        %index = extend.u %index32 to i64
        %at = address %from + %index * 4
        %value = load f32 %at, @from
        %mixed = mul %index32, 40503:i32
        %folded = shr.u %mixed, 7:i32
        %other = xor %mixed, %folded
        %place32 = and %other, 1048575:i32
        %place = extend.u %place32 to i64
        %target = address %to + %place * 4
        store %target, %value
        %next = add %k, 1:i32
        continue %next
      }
      return
    }";

/// The stores of a sample meet those of the other cores: a sector that eight cores write goes to memory once.
#[test]
fn a_sample_writes_back_its_part_of_what_all_cores_store() {
    let time = |cores: Cores| {
        let bench = Bench::new("h200", &["core.count=16", "l2.effective-size=5"]).with_cores(cores);
        let items = 16 * 4 * 256 * 64;
        let from = bench.buffer(Type::F32, items, Pattern::Constant(0));
        let to = bench.buffer(Type::F32, 1 << 20, Pattern::Constant(0));
        let count = Argument::Scalar(Type::I32, 64);
        bench.time_again(SPREAD, 16 * 4, 256, vec![from, index(items), to, count])
    };
    let (all, sample) = (time(Cores::All), time(Cores::Exactly(2)));
    let (cycles, bytes) = (sample.cycles / all.cycles, sample.dram_bytes() / all.dram_bytes());
    assert!(
        (0.9..1.1).contains(&cycles),
        "{} and {}",
        sample.cycles,
        all.cycles
    );
    assert!(
        (0.85..1.15).contains(&bytes),
        "{} and {} bytes",
        sample.dram_bytes(),
        all.dram_bytes()
    );
}
