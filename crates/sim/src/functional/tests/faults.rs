//! Each check, with the words of its report; and next to it, the right kernel that it must let pass.

use super::Case;
use crate::functional::Options;
use crate::violation::{Element, Violation};

/// A kernel of one parameter `%out`, with `%i` the work-item's number in its group, as an `i64`.
pub(super) fn kernel(header: &str, body: &str) -> String {
    format!(
        "hsir 1
         kernel @k(%out: ptr.global i32[] align 4) {{
           file #1 \"k.rs\"
           load @out
           {header}
           %i32 = id.local.x
           %i = extend.u %i32 to i64
           {body}
           return
         }}"
    )
}

const GATHER: &str = "hsir 1
    kernel @gather(
      %indices: ptr.global i32[%n] align 4 readonly unaliased,
      %n: i64,
      %values: ptr.global f32[] align 4 readonly unaliased,
      %result: ptr.global f32[] align 4 unaliased,
    ) {
      file #1 \"gather.rs\"
      load @indices #1:9:21
      load @values #1:10:22
      %group = id.group.x
      %size = id.group_size.x
      %local = id.local.x
      %start = mul %group, %size
      %item32 = add %start, %local
      %item = extend.u %item32 to i64
      %index_ptr = address %indices + %item * 4
      %index32 = load i32 %index_ptr, @indices #1:9:21
      %index = extend.s %index32 to i64
      %value_ptr = address %values + %index * 4
      %value = load f32 %value_ptr, @values #1:10:22
      %result_ptr = address %result + %item * 4
      store %result_ptr, %value #1:15:5
      return
    }";

fn gather(bad_index: i32) -> Case {
    let mut indices: Vec<i32> = (0..24).map(|index| index % 10).collect();
    indices[13] = bad_index;
    let values: Vec<f32> = (0..10).map(|value| value as f32).collect();
    Case::new(GATHER, 3, 8)
        .buffer(&indices)
        .scalar(24i64)
        .buffer(&values)
        .output::<f32>(24)
}

#[test]
fn an_index_of_the_data_is_out_of_bounds() {
    let right = gather(9);
    right.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(right.read::<f32>(3)[13], 9.0);
    for options in [Options::CHECKING, Options::FAST] {
        for (index, name) in [
            (10, "values[10]"),
            (-1, "values[-1]"),
            (1 << 30, "values[1073741824]"),
        ] {
            let mut wrong = gather(index);
            wrong.options = options;
            let expected = format!(
                "gather.rs:10:22: work-item 5 of work-group 1 (global 13) reads `{name}`, out of bounds: \
                 `values` has 10 elements"
            );
            assert_eq!(wrong.error(), expected);
        }
    }
}

#[test]
fn a_store_is_out_of_bounds() {
    let text = kernel("", "%p = address %out + %i * 4\nstore %p, %i32 #1:3:5");
    assert!(Case::new(&text, 1, 4).output::<i32>(4).run().is_ok());
    assert_eq!(
        Case::new(&text, 1, 4).output::<i32>(3).error(),
        "k.rs:3:5: work-item 3 of work-group 0 (global 3) writes `out[3]`, out of bounds: `out` has 3 elements"
    );
    let error = Case::new(&text, 1, 4)
        .output::<i32>(3)
        .run()
        .expect_err("too short");
    let left = |error: &crate::Error| match error.cause() {
        Some(Violation::OutOfBounds {
            element, length: 3, ..
        }) => Some(element.clone()),
        _ => None,
    };
    assert_eq!(left(&error), Some(Element::Index("out".to_owned(), 3)));
    let text = kernel(
        "",
        "%p = address %out + %i * 4 + 2\n%q = truncate %i32 to i8\nstore %p, %q #1:3:5",
    );
    let error = Case::new(&text, 1, 4)
        .output::<i32>(3)
        .run()
        .expect_err("too short");
    assert_eq!(left(&error), Some(Element::Byte("out".to_owned(), 14)));
    let text = kernel("", "%p = bits 4096:i64 to ptr.global\nstore %p, %i32 #1:3:5");
    assert_eq!(
        Case::new(&text, 1, 1).output::<i32>(3).error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes 4 bytes at address 0x1000, which is in no buffer"
    );
}

#[test]
fn an_array_is_left_even_where_another_follows() {
    for space in ["shared", "private"] {
        let text = |index: u32| {
            kernel(
                &format!("{space} @first: i32[4] align 16\n{space} @second: i32[4] align 16"),
                &format!(
                    "%a = array @first
                     %p = address %a + {index}:i64 * 4
                     %is_first = eq %i32, 0:i32
                     if %is_first {{ store %p, %i32 #1:3:5 yield }}"
                ),
            )
        };
        assert!(Case::new(&text(3), 1, 2).output::<i32>(1).run().is_ok());
        assert_eq!(
            Case::new(&text(4), 1, 2).output::<i32>(1).error(),
            "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes `first[4]`, out of bounds: `first` has 4 elements"
        );
    }
}

#[test]
fn an_access_is_misaligned() {
    let text = kernel("", "%p = address %out + %i * 2\nstore %p, %i32 #1:3:5");
    assert_eq!(
        Case::new(&text, 1, 2).output::<i32>(4).error(),
        "k.rs:3:5: work-item 1 of work-group 0 (global 1) writes 4 bytes at byte 2 of `out`, which is not a multiple of 4"
    );
    let text = kernel(
        "shared @tile: i32[8] align 16",
        "%a = array @tile\n%p = address %a + %i * 4 + 4\nstore %p, %i32, %i32 #1:3:5",
    );
    assert_eq!(
        Case::new(&text, 1, 1).output::<i32>(4).error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes 8 bytes at byte 4 of `tile`, which is not a multiple of 8"
    );
}

#[test]
fn memory_is_read_before_it_is_written() {
    for (space, name) in [("shared", "tile"), ("private", "tile")] {
        let text = kernel(
            &format!("{space} @tile: i32[4] align 16\nload @tile"),
            "%a = array @tile
             %p = address %a + %i * 4
             %x = load i32 %p, @tile #1:3:5
             %o = address %out + %i * 4
             store %o, %x",
        );
        assert_eq!(
            Case::new(&text, 1, 2).output::<i32>(2).error(),
            format!(
                "k.rs:3:5: work-item 0 of work-group 0 (global 0) reads `{name}[0]`, which was never written"
            )
        );
    }
    let text = kernel(
        "",
        "%p = address %out + %i * 4\n%x = load i32 %p, @out #1:3:5\nstore %p, %x",
    );
    assert_eq!(
        Case::new(&text, 2, 1).output::<i32>(2).error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) reads `out[0]`, which was never written"
    );
    let text = kernel(
        "",
        "%p = address %out + %i * 4\nstore %p, %i32\n%x = load i32 %p, @out #1:3:5\nstore %p, %x",
    );
    assert!(Case::new(&text, 1, 2).output::<i32>(2).run().is_ok());
}

#[test]
fn what_one_launch_writes_the_next_may_read() {
    let write = kernel("", "%p = address %out + %i * 4\nstore %p, %i32");
    let read = kernel("", "%p = address %out + %i * 4\n%x = load i32 %p, @out");
    for options in [Options::CHECKING, Options::FAST] {
        let mut case = Case::new(&write, 1, 5).output::<i32>(6);
        case.options = options;
        assert!(case.run().is_ok());
        let mut reader = Case::new(&read, 1, 5);
        reader.launch.arguments = case.launch.arguments.clone();
        assert!(reader.run().is_ok());
        reader.launch.group[0] = 6;
        assert!(reader.error().contains("reads `out[5]`, which was never written"));
    }
}

/// Each work-item writes its element of a shared array and reads its neighbour's.
fn neighbour(between: &str) -> Case {
    Case::new(&neighbours_text(between), 1, 64).output::<i32>(64)
}

fn neighbours_text(between: &str) -> String {
    kernel(
        "shared @tile: i32[64] align 16\nload @tile",
        &format!(
            "%a = array @tile
             %p = address %a + %i * 4
             store %p, %i32 #1:2:3
             {between}
             %j = xor %i, 1:i64
             %q = address %a + %j * 4
             %x = load i32 %q, @tile #1:4:5
             %o = address %out + %i * 4
             store %o, %x"
        ),
    )
}

#[test]
fn shared_memory_races_without_a_barrier() {
    let right = neighbour("barrier");
    right.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(right.read::<i32>(0)[..4], [1, 0, 3, 2]);
    assert_eq!(
        neighbour("").error(),
        "k.rs:4:5: work-item 0 of work-group 0 (global 0) reads `tile[1]`, which work-item 1 wrote at k.rs:2:3 with \
         no barrier between"
    );
    // What a launch file can say is for kernels that have one.
    let of_ptx = neighbours_text("").replace("k.rs", "k.ptx");
    let said = Case::new(&of_ptx, 1, 64).output::<i32>(64).error();
    assert!(
        said.ends_with("`warp_synchronous = true` in the launch file of PTX"),
        "{said}"
    );
    let mut fast = neighbour("");
    fast.options = Options::FAST;
    assert!(fast.run().is_ok());
}

#[test]
fn a_write_races_with_an_earlier_read() {
    let text = |between: &str| {
        kernel(
            "shared @tile: i32[4] align 16\nload @tile",
            &format!(
                "%a = array @tile
                 %first = eq %i32, 0:i32
                 if %first {{ store %a, 7:i32 yield }}
                 barrier
                 %x = load i32 %a, @tile #1:2:3
                 {between}
                 if %first {{ store %a, 8:i32 #1:4:5 yield }}"
            ),
        )
    };
    assert!(Case::new(&text("barrier"), 1, 4).output::<i32>(1).run().is_ok());
    assert_eq!(
        Case::new(&text(""), 1, 4).output::<i32>(1).error(),
        "k.rs:4:5: work-item 0 of work-group 0 (global 0) writes `tile[0]`, which work-item 1 read at k.rs:2:3 with \
         no barrier between"
    );
}

#[test]
fn global_memory_races_in_a_group_and_between_groups() {
    let text = kernel(
        "",
        "%h = shr.u %i, 1:i64\n%p = address %out + %h * 4\nstore %p, %i32 #1:3:5",
    );
    assert_eq!(
        Case::new(&text, 1, 4).output::<i32>(4).error(),
        "k.rs:3:5: work-item 1 of work-group 0 (global 1) writes `out[0]`, which work-item 0 wrote at k.rs:3:5 with \
         no barrier between; where it is meant, atomic memory: `&[Atomic<T>]`"
    );
    let text = kernel(
        "",
        "%g = id.group.x\n%p = address %out + %i * 4\nstore %p, %g #1:3:5",
    );
    let case = Case::new(&text, 9, 2).output::<i32>(2);
    for _ in 0..5 {
        assert_eq!(
            case.error(),
            "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes `out[0]`, which work-item 0 of work-group 8 \
             (global 16) writes at k.rs:3:5 in the same launch: nothing orders work-groups; where it is meant, atomic \
             memory: `&[Atomic<T>]`"
        );
    }
}

#[test]
fn bytes_side_by_side_do_not_race() {
    let text = "hsir 1
        kernel @k(%out: ptr.global i8[] align 1) {
          %local = id.local.x
          %group = id.group.x
          %before = mul %group, 3:i32
          %item32 = add %before, %local
          %item = extend.u %item32 to i64
          %p = address %out + %item * 1
          %byte = truncate %item32 to i8
          store %p, %byte
          return
        }";
    let case = Case::new(text, 7, 3).output::<u8>(21);
    case.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(case.read::<u8>(0), (0..21).collect::<Vec<u8>>());
}

/// Copies an element into shared memory; `%tile`, `%from` and the token `%t` are there to be used.
fn copying(after: &str) -> Case {
    let text = format!(
        "hsir 1
         kernel @k(%data: ptr.global i32[] align 4, %out: ptr.global i32[] align 4) {{
           file #1 \"k.rs\"
           shared @ring: i32[64] align 16
           shared @second: i32[64] align 16
           load @data
           load @ring
           %i32 = id.local.x
           %i = extend.u %i32 to i64
           %a = array @ring
           %tile = address %a + %i * 4
           %b = array @second
           %other = address %b + %i * 4
           %from = address %data + %i * 4
           %to = address %out + %i * 4
           %t = copy 4 to %tile from %from, @data #1:2:3
           {after}
           return
         }}"
    );
    let data: Vec<i32> = (100..164).collect();
    Case::new(&text, 1, 64).buffer(&data).output::<i32>(64)
}

#[test]
fn a_copy_is_waited_for() {
    let right = copying("wait %t\n%x = load i32 %tile, @ring\nstore %to, %x");
    right.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(right.read::<i32>(1), (100..164).collect::<Vec<i32>>());

    let early = copying("%x = load i32 %tile, @ring #1:3:5\nstore %to, %x\nwait %t");
    assert_eq!(
        early.error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) reads `ring[0]` while its asynchronous copy to it is in \
         flight, started at k.rs:2:3 and not waited for"
    );
    let mut unchecked = copying("%x = load i32 %tile, @ring #1:3:5\nstore %to, %x\nwait %t");
    unchecked.options = Options::FAST;
    assert!(unchecked.run().is_ok());
    assert_eq!(
        unchecked.read::<u32>(1)[0],
        0xa5a5_a5a5,
        "poison where the data are not yet"
    );
}

#[test]
fn the_ends_of_a_copy_are_left_alone() {
    let write = |target: &str| copying(&format!("store {target}, %i32 #1:3:5\nwait %t"));
    assert_eq!(
        write("%tile").error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes `ring[0]` while its asynchronous copy to it is in \
         flight, started at k.rs:2:3 and not waited for"
    );
    assert_eq!(
        write("%from").error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes `data[0]`, which an asynchronous copy of work-item 0 \
         of work-group 0 (global 0) still reads, started at k.rs:2:3"
    );
    let again = copying("%u = copy 4 to %tile from %from, @data #1:3:5\nwait %u");
    assert_eq!(
        again.error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) copies to `ring[0]` while its asynchronous copy to it is in \
         flight, started at k.rs:2:3 and not waited for"
    );
    let other =
        copying("%j = xor %i, 1:i64\n%q = address %a + %j * 4\n%x = load i32 %q, @ring #1:3:5\nwait %t");
    assert_eq!(
        other.error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) reads `ring[1]` while work-item 1's asynchronous copy to it \
         is in flight, started at k.rs:2:3 and not waited for"
    );
    assert!(copying("wait %t\nstore %from, %i32").run().is_ok());
}

#[test]
fn no_work_item_ends_with_copies_in_flight() {
    assert_eq!(
        copying("").error(),
        "k.rs:2:3: work-item 0 of work-group 0 (global 0) ends without waiting for its asynchronous copy to `ring[0]`"
    );
}

#[test]
fn copies_complete_in_order_and_only_as_far_as_waited_for() {
    // Waiting for the first leaves the second in flight.
    let text = |between: &str| {
        let case = copying(&format!(
            "%u = copy 4 to %other from %from, @data #1:4:4
             wait %t
             {between}
             wait %u"
        ));
        case.run().map(drop)
    };
    assert!(text("%x = load i32 %tile, @ring").is_ok());
    let error = text("%x = load i32 %other, @ring #1:3:5").err();
    let error = error.map_or_else(String::new, |error| error.to_string());
    assert!(
        error.contains(
            "reads `second[0]` while its asynchronous copy to it is in flight, started at k.rs:4:4"
        ),
        "{error}"
    );
    // Waiting for the second waits for the first.
    let both = copying(
        "%u = copy 4 to %other from %from, @data\nwait %u\n%x = load i32 %tile, @ring\nstore %to, %x",
    );
    both.run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn a_copied_element_needs_a_barrier_before_another_reads_it() {
    let text = |between: &str| {
        copying(&format!(
            "wait %t #1:3:1
             {between}
             %j = xor %i, 1:i64
             %q = address %a + %j * 4
             %x = load i32 %q, @ring #1:5:5
             store %to, %x"
        ))
    };
    let right = text("barrier");
    right.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(right.read::<i32>(1)[..2], [101, 100]);
    assert_eq!(
        text("").error(),
        "k.rs:5:5: work-item 0 of work-group 0 (global 0) reads `ring[1]`, which work-item 1 wrote at k.rs:2:3 with no \
         barrier between"
    );
}

#[test]
fn barriers_are_reached_by_all() {
    let text = |cond: &str| {
        kernel(
            "",
            &format!("%c = {cond}\nif %c {{ barrier #1:3:5 yield }}\nbarrier #1:4:5"),
        )
    };
    assert_eq!(
        Case::new(&text("lt.u %i32, 5:i32"), 1, 16)
            .output::<i32>(1)
            .error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) reaches a barrier that work-item 5 does not reach with it; \
         all work-items of a work-group that have not ended must reach it"
    );
    assert_eq!(
        Case::new(&text("lt.u %i32, 32:i32"), 1, 64)
            .output::<i32>(1)
            .error(),
        "k.rs:4:5: work-item 32 of work-group 0 (global 32) waits at a barrier while work-item 0 waits at another, at \
         k.rs:3:5; all work-items of a work-group that have not ended must reach the same"
    );
    let ended = kernel("", "%c = lt.u %i32, 5:i32\nif %c { return }\nbarrier");
    assert!(Case::new(&ended, 1, 64).output::<i32>(1).run().is_ok());
}

/// Some reach a barrier and the others, a whole sub-group or a part of one, have ended: the outcome depends on the device.
#[test]
fn who_has_ended_is_missed_at_a_barrier_where_opencl_says_so() {
    let text = |condition: &str| {
        kernel(
            "",
            &format!("%c = lt.u %i32, {condition}:i32\nif %c {{ barrier #1:3:5 yield }}"),
        )
    };
    for (condition, missing) in [("64", "64"), ("40", "40"), ("5", "5")] {
        let kernel = text(condition);
        let case = |options| {
            let mut case = Case::new(&kernel, 1, 96).output::<i32>(1);
            case.options = options;
            case
        };
        let right = case(Options::CHECKING).run();
        assert!(right.is_ok(), "NVIDIA's do without: {right:?}");
        let said = case(Options::CHECKING_OPENCL).error();
        assert!(
            said.starts_with("k.rs:3:5: work-item ")
                && said.contains(&format!(
                    "reaches a barrier that work-item {missing} does not reach: it has ended; on this device all work-items"
                )),
            "{said}"
        );
    }
    let mut all = Case::new(&text("96"), 1, 96).output::<i32>(1);
    all.options = Options::CHECKING_OPENCL;
    all.run().expect("all reach it");
    // A work-item that ends behind the last barrier is not missed.
    let later = kernel("", "barrier\n%c = lt.u %i32, 5:i32\nif %c { return }");
    let mut later = Case::new(&later, 1, 96).output::<i32>(1);
    later.options = Options::CHECKING_OPENCL;
    later.run().expect("all reach it");
}

#[test]
fn promises_not_to_wrap_are_kept() {
    let text = |op: &str| kernel("", &format!("%big = add %i32, 2147483646:i32\n%x = {op} #1:3:5"));
    assert!(
        Case::new(&text("add.nuw %big, 1:i32"), 1, 2)
            .output::<i32>(1)
            .run()
            .is_ok()
    );
    assert_eq!(
        Case::new(&text("add.nsw %big, 1:i32"), 1, 2)
            .output::<i32>(1)
            .error(),
        "k.rs:3:5: work-item 1 of work-group 0 (global 1) computes 2147483647 + 1, which does not fit a signed `i32`"
    );
    assert_eq!(
        Case::new(&text("sub.nuw %i32, 1:i32"), 1, 2)
            .output::<i32>(1)
            .error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) computes 0 - 1, which does not fit an unsigned `i32`"
    );
    // Where no active lane breaks it, it holds.
    let guarded = kernel(
        "",
        "%c = eq %i32, 1:i32\nif %c { %x = sub.nuw %i32, 1:i32 yield }",
    );
    assert!(Case::new(&guarded, 1, 2).output::<i32>(1).run().is_ok());
}

#[test]
fn read_only_memory_is_not_written() {
    let text = "hsir 1
        kernel @k(%in: ptr.global i32[] align 4 readonly) {
          file #1 \"k.rs\"
          store %in, 1:i32 #1:3:5
          return
        }";
    assert_eq!(
        Case::new(text, 1, 1).buffer(&[0i32]).error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) writes `in[0]`, which is read-only"
    );
}

#[test]
fn endless_loops_end() {
    let text = kernel("", "loop { %x = add %i, 1:i64 #1:3:5 continue }");
    let mut case = Case::new(&text, 1, 4).output::<i32>(1);
    case.launch.operation_limit = Some(1000);
    assert_eq!(
        case.error(),
        "k.rs:3:5: work-item 0 of work-group 0 (global 0) has run 1000 operations and has not ended; if the loop does \
         end, raise the limit: `--max-steps`, or `operation_limit` of a launch"
    );
}

#[test]
fn a_request_to_stop_ends_a_loop() {
    static STOP: crate::Stop = crate::Stop::new();
    let text = kernel("", "loop { %x = add %i, 1:i64 #1:3:5 continue }");
    let mut case = Case::new(&text, 1, 4).output::<i32>(1);
    case.options.stop = Some(&STOP);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            STOP.set(true);
        });
        let error = case.run().expect_err("stopped");
        assert_eq!(error.to_string(), "the run was stopped before its end");
    });
    // Nothing is begun either.
    let mut short = Case::new(&kernel("", ""), 1, 4).output::<i32>(1);
    short.options.stop = Some(&STOP);
    short.run().expect_err("stopped");
}

#[test]
fn memory_of_a_group_is_limited() {
    let text = kernel("private @big: i32[100000] align 16", "");
    let mut case = Case::new(&text, 1, 1024).output::<i32>(1);
    case.options.group_memory_limit = 1 << 20;
    let error = case.run().expect_err("400 MB");
    assert_eq!(error.exit_status(), 3);
    assert_eq!(
        error.to_string(),
        "a work-group of `k` takes 819200000 bytes of memory in the simulator; at most 1048576"
    );
}

/// Levels of a search: who reads a zero writes this, with these words behind the levels' facts.
fn search(facts: &str, written: &str) -> Case {
    let text = format!(
        "hsir 1
         kernel @search(%level: ptr.global i32[] align 4{facts}) {{
           load @level
           %id = id.local.x
           %x = load i32 %level, @level
           %new = eq %x, 0:i32
           if %new {{
             store %level, {written}
             yield
           }} else {{ yield }}
           return
         }}"
    );
    Case::new(&text, 3, 40).buffer(&[0i32])
}

#[test]
fn races_that_are_meant_are_no_faults() {
    let said = search("", "1:i32").error();
    assert!(said.contains("`races = true` in a launch file"), "{said}");
    let meant = search(" racing_reads", "1:i32");
    meant.run().expect("either outcome is right");
    assert_eq!(meant.read::<i32>(0), [1]);
    // Of different values one is left: that is another statement.
    let said = search(" racing_reads", "%id").error();
    assert!(said.contains("`races = [\"level\"]` in a launch file"), "{said}");
    let any = search(" racing", "%id");
    any.run().expect("whatever is left is right");
}
