//! Kernels that wait, and kernels that look as if they did.

use super::*;

/// The waits of a kernel with this body, by the line of the body and by writer. `%flag`, `%bar` and `%out` are distinct memory,
/// `%any` and `%other` may be the same.
fn waits_of(body: &str) -> Vec<(u32, Writer)> {
    let header = "hsir 1 kernel @k(%flag: ptr.global i32[] align 4 unaliased, %bar: ptr.global i32[] align 4 unaliased, \
        %out: ptr.global i32[] align 4 unaliased, %any: ptr.global i32[] align 4, %other: ptr.global i32[] align 4, \
        %data: ptr.generic i32[] align 4, %n: i32) { shared @ring: i32[32] align 4 load @flag load @bar load @data ";
    let text = format!("{header}{body}\nreturn }}");
    let kernel = crate::ir::read(&text, "k.hsir").unwrap_or_else(|error| panic!("{error}\n{text}"));
    let found = waits(&kernel);
    found
        .iter()
        .map(|wait| (kernel.places[wait.place].line, wait.writer))
        .collect()
}

/// A loop around `read`, which defines `%seen`, until that is not 0.
fn until_seen(read: &str) -> String {
    format!(
        "loop 'spin () {{\n{read}\n%waits = eq %seen, 0:i32 if %waits {{ yield }} else {{ break 'spin }} continue 'spin }}"
    )
}

const FLAG: &str = "%seen = load i32 %flag, @flag volatile";

#[test]
fn a_loop_that_a_strong_read_ends_is_a_wait() {
    for read in [
        FLAG,
        "%seen = atomic load i32 relaxed device %flag",
        "%seen = atomic load i32 acquire device %flag",
        "%seen = atomic exchange relaxed device %flag, 0:i32",
        "%seen = atomic add relaxed device %flag, 0:i32",
        "%seen = atomic compare_exchange acquire device %flag, 1:i32, 0:i32",
        "%seen = opaque \"ld.mmio.relaxed.sys.u32 =0, [@0]\" anything (i32) (%flag)",
    ] {
        let writer = match read.contains("opaque") || read.contains("load") {
            true if read.contains("opaque") => Writer::Anyone,
            true => Writer::Outside,
            // Its own exchanges write it.
            false => Writer::WorkGroup,
        };
        assert_eq!(waits_of(&until_seen(read)), [(2, writer)], "{read}");
    }
}

#[test]
fn other_loops_and_other_reads_are_none() {
    // A plain load, a read outside, a read whose value decides nothing, an operation without a result.
    for body in [
        until_seen("%seen = load i32 %flag, @flag"),
        format!("{}\n{}", FLAG.replace("seen", "before"), until_seen("%also = add %n, 1:i32 %seen = add %also, %n")),
        until_seen(&format!("{} %seen = add %n, 1:i32", FLAG.replace("seen", "unused"))),
        until_seen("atomic store relaxed device %flag, 1:i32 %seen = add %n, 1:i32"),
        "%seen = atomic add acquire device %flag, 1:i32 %first = eq %seen, 0:i32 if %first { store %out, 1:i32 yield }".to_owned(),
    ] {
        assert_eq!(waits_of(&body), [], "{body}");
    }
}

#[test]
fn waiting_within_a_work_group_does_not_count() {
    let shared = "%ring = array @ring";
    for body in [
        format!(
            "{shared}\n{}",
            until_seen("%seen = load i32 %ring, @flag volatile")
        ),
        format!(
            "{shared}\n{}",
            until_seen("%seen = atomic exchange acquire device %ring, 0:i32")
        ),
        format!(
            "{shared} %generic = to_generic %ring to ptr.generic\n{}",
            until_seen("%seen = load i32 %generic, @flag volatile")
        ),
        until_seen(
            "%seen = opaque \"mbarrier.try_wait.parity.shared::cta.b64 =0, [@0], 0\" shared (i32) (%n)",
        ),
    ] {
        assert_eq!(waits_of(&body), [], "{body}");
    }
    // A generic pointer may lead to global memory.
    let anywhere = until_seen("%seen = load i32 %data, @data volatile");
    assert_eq!(waits_of(&anywhere), [(2, Writer::Outside)]);
}

#[test]
fn a_value_is_followed_to_the_decision() {
    for between in [
        "%same = shuffle index %mine, 0:i32 %seen = and %same, 255:i32",
        "%set = ne %mine, 0:i32 %seen = vote ballot %set",
        "%low = lt.u %mine, 9:i32 %seen = if %low -> i32 { yield 1:i32 } else { yield 0:i32 }",
        "%ring = array @ring store %ring, %mine barrier %seen = load i32 %ring, @bar",
        "%low = lt.u %mine, 9:i32 %ring = array @ring if %low { store %ring, 1:i32 yield } barrier %seen = load i32 %ring, @bar",
        "%wide = extend.u %mine to i64 %at = address %bar + %wide * 4 %seen = load i32 %at, @bar",
        "%low = lt.u %mine, 9:i32 %seen = block 'b -> i32 { if %low { break 'b 1:i32 } break 'b 0:i32 }",
    ] {
        let read = format!("{} {between}", FLAG.replace("seen", "mine"));
        assert_eq!(waits_of(&until_seen(&read)), [(2, Writer::Outside)], "{between}");
    }
    // To the next iteration.
    let later =
        "loop 'spin (%before = 0:i32) {\n%waits = eq %before, 0:i32 if %waits { yield } else { break 'spin }
        %seen = load i32 %flag, @flag volatile continue 'spin %seen }";
    assert_eq!(waits_of(later), [(3, Writer::Outside)]);
}

#[test]
fn every_way_out_of_a_loop_counts() {
    let looped = |body: &str| format!("loop 'around () {{\n{FLAG} %waits = eq %seen, 0:i32 {body} }}");
    for body in [
        "if %waits { yield } else { return } continue 'around",
        "block 'b { if %waits { break 'b } break 'around } continue 'around",
        "block 'b { if %waits { break 'b } continue 'around } break 'around",
        "%go = block 'b -> i32 { if %waits { break 'b 1:i32 } break 'b 0:i32 } %more = ne %go, 0:i32 \
         if %more { yield } else { break 'around } continue 'around",
    ] {
        assert_eq!(waits_of(&looped(body)), [(2, Writer::Outside)], "{body}");
    }
    // Only what is inside is skipped.
    let skips = "block 'b { if %waits { break 'b } store %out, 1:i32 break 'b } %some = eq %n, 0:i32 \
        if %some { yield } else { break 'around } continue 'around";
    assert_eq!(waits_of(&looped(skips)), []);
}

#[test]
fn an_outer_loop_waits_only_where_it_is_left() {
    let inner = until_seen(FLAG);
    let around = format!(
        "loop 'rounds (%i = 0:i32) {{ %more = lt.s %i, %n if %more {{ yield }} else {{ break 'rounds }}\n{inner}
         %next = add.nsw %i, 1:i32 continue 'rounds %next }}"
    );
    assert_eq!(waits_of(&around), [(3, Writer::Outside)]);
}

#[test]
fn the_writer_is_known_by_what_the_kernel_writes() {
    let spin = until_seen(FLAG);
    let also = |more: &str| waits_of(&format!("{spin} {more}"))[0].1;
    assert_eq!(also("store %out, 1:i32"), Writer::Outside);
    assert_eq!(also("store %flag, 1:i32"), Writer::WorkGroup);
    assert_eq!(
        also("%old = atomic add release device %flag, 1:i32"),
        Writer::WorkGroup
    );
    assert_eq!(
        also("opaque \"red.async.u32 [@0], 1\" anything () (%out)"),
        Writer::Anyone
    );
    let any = until_seen("%seen = load i32 %any, @flag volatile");
    assert_eq!(
        waits_of(&format!("{any} store %other, 1:i32"))[0].1,
        Writer::Anyone
    );
    assert_eq!(
        waits_of(&format!("{any} store %any, 1:i32 store %other, 1:i32"))[0].1,
        Writer::WorkGroup
    );
    assert_eq!(
        waits_of(&format!("{any} store %out, 1:i32"))[0].1,
        Writer::Outside
    );
}

/// `do { expected = found; found = cas(p, expected, …) } while (found != expected)`, and with a load instead.
#[test]
fn a_change_that_is_tried_again_is_no_wait() {
    let carried = "%first = load i32 %out, @flag loop 'again (%expected = %first) {
        %new = add %expected, %n %found = atomic compare_exchange relaxed device %out, %expected, %new
        %differs = ne %found, %expected if %differs { yield } else { break 'again } continue 'again %found }";
    assert_eq!(waits_of(carried), []);
    let loaded = "loop 'again () {\n%expected = load i32 %out, @flag volatile %new = add %expected, %n
        %found = atomic compare_exchange relaxed device %out, %expected, %new
        %same = eq %found, %expected if %same { break 'again } continue 'again }";
    assert_eq!(waits_of(loaded), []);
    // A lock is waited for.
    let lock = "loop 'again () {\n%found = atomic compare_exchange acquire device %out, 0:i32, 1:i32
        %same = eq %found, 0:i32 if %same { break 'again } continue 'again }";
    assert_eq!(waits_of(lock), [(2, Writer::WorkGroup)]);
    // As is a value that must be found besides.
    let both = carried.replace(
        "if %differs",
        "%zero = eq %expected, 0:i32 %on = or %differs, %zero if %on",
    );
    assert_eq!(waits_of(&both), [(2, Writer::WorkGroup)]);
    // Another word than the one that was read, or a stale value.
    let other = loaded.replace("device %out", "device %bar");
    assert_eq!(waits_of(&other).len(), 2, "{other}");
    let stale = "%expected = load i32 %out, @flag loop 'again () {\n%found = atomic compare_exchange relaxed device %out, %expected, 1:i32
        %same = eq %found, %expected if %same { break 'again } continue 'again }";
    assert_eq!(waits_of(stale), [(2, Writer::WorkGroup)]);
}

/// Work-items take numbers until there are none left.
#[test]
fn a_queue_is_no_wait() {
    let queue = |step: &str, test: &str| {
        format!(
            "loop 'take () {{\n%old = atomic add relaxed device %out, {step} %mine = shuffle index %old, 0:i32
             %at = add %mine, 1:i32 {test} }}"
        )
    };
    let stays = "%more = lt.u %at, %n if %more { yield } else { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("1:i32", stays)), []);
    let leaves = "%done = le.u %n, %at if %done { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("1:i32", leaves)), []);
    let rotated = "%more = lt.s %at, %n %done = not %more if %done { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("4:i32", rotated)), []);
    let wait = [(2, Writer::WorkGroup)];
    // It does not move the counter on, or not surely; it waits until the counter is reset; it looks at something else.
    assert_eq!(waits_of(&queue("0:i32", stays)), wait);
    assert_eq!(waits_of(&queue("%n", stays)), wait);
    let reset = "%more = lt.u %at, %n if %more { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("1:i32", reset)), wait);
    let odd =
        "%odd = and %at, 1:i32 %more = lt.u %odd, %n if %more { yield } else { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("1:i32", odd)), wait);
    let equal = "%more = ne %at, %n if %more { yield } else { break 'take } continue 'take";
    assert_eq!(waits_of(&queue("1:i32", equal)), wait);
}

/// The number goes to the work-group through shared memory.
#[test]
fn a_queue_of_work_groups_is_no_wait() {
    let body = "%ring = array @ring %item = id.local.x %first = eq %item, 0:i32 loop 'take () {
        if %first { %old = atomic add relaxed device %out, 1:i32 store %ring, %old yield } barrier
        %mine = load i32 %ring, @bar barrier %more = lt.u %mine, %n if %more { yield } else { break 'take } continue 'take }";
    assert_eq!(waits_of(body), []);
}
