//! Atomic operations of several values, and those of 16 bytes.

use super::*;

/// A launch of one sub-group that changes memory at `%at`, 16 bytes per work-item, as `change` says.
fn changes(change: &str) -> LaunchTime {
    let bench = Bench::new("h200", &[]).with_cores(Cores::Exactly(1));
    let text = format!(
        "hsir 1
        kernel @changes(%out: ptr.global f32[%length] align 16 unaliased, %length: i64) {{
          %local = id.local.x
          %lane = extend.u %local to i64
          %at = address %out + %lane * 16
          %next = address %at + 1:i64 * 16
          %one = signed_to_float %local to f32
          %wide = add %lane, 1:i64
          {change}
          return
        }}"
    );
    let out = bench.buffer(Type::F32, 4096, Pattern::Constant(0));
    bench.time(&text, 1, 32, vec![out, index(4096)])
}

#[test]
fn an_atomic_operation_takes_all_of_its_values() {
    let values = |count: usize| vec!["%one"; count].join(", ");
    let one = changes(&format!(
        "%o = atomic fadd relaxed device %at, {}\nstore %at, %o",
        values(1)
    ));
    let four = changes(&format!(
        "%o, %p, %q, %r = atomic fadd relaxed device %at, {}\nstore %at, %o",
        values(4)
    ));
    // Eight work-items share a line. 32 of its words change instead of 8, two in 1.5 cycles.
    assert!(
        four.cycles > one.cycles + 12.0,
        "{} and {} cycles",
        four.cycles,
        one.cycles
    );
    // An exchange of 16 bytes counts as a store, beside the store of its answer. Its fence takes time.
    let exchange = |order: &str| {
        changes(&format!(
            "%a, %b = opaque \"atom.{order}.gpu.global.exch.b128 {{=0, =1}}, [@0+-16], {{@1, @2}}\" anything alone settled \
             (i64, i64) (%next, %wide, %wide)\n%low = truncate %a to i32\n%number = signed_to_float %low to f32\nstore %at, %number"
        ))
    };
    let (relaxed, ordered) = (exchange("relaxed"), exchange("acq_rel"));
    assert_eq!(
        (relaxed.memory.stores, relaxed.memory.l2_written_sectors),
        (2, 32),
        "{:?}",
        relaxed.memory
    );
    assert!(
        ordered.cycles > relaxed.cycles,
        "{} and {} cycles",
        ordered.cycles,
        relaxed.cycles
    );
    let store = changes(
        "opaque \"st.relaxed.gpu.global.b128 [@0], {@1, @2}\" anything unordered alone settled () (%at, %wide, %wide)",
    );
    assert_eq!(store.memory.stores, 1, "{:?}", store.memory);
    let load = changes(
        "%a, %b = opaque \"ld.relaxed.gpu.global.b128 {=0, =1}, [@0]\" anything unordered alone settled (i64, i64) (%at)",
    );
    assert_eq!(
        (load.memory.loads, load.memory.l2_sectors),
        (1, 16),
        "{:?}",
        load.memory
    );
}
