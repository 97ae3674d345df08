//! Lines that kernels print.

use headstart::device::sim::Simulator;
use headstart::device::{Device, TypedBuffer};
use headstart::prelude::*;

use crate::agree::lowers;
use crate::conformance::Feature;

/// Every type, in base 10 and 16, from a branch and from a loop.
#[kernel(work_group = 4)]
fn says(values: &[f32], small: i8, wide: u64) {
    let i = global_id();
    let x = values[i];
    println!("item {i}: x = {x}, {:x} 100% {{}}", x.to_bits());
    if i % 3 == 0 {
        let half = f16::from_f32(x);
        println!("{} {} {:x} {} {half}", small, wide, small, x > 1.0);
        print!("twice {}", f64::from(x) * 2.0);
        for j in 0..i {
            print!(" {j}");
        }
        print!("\n");
    }
}

#[test]
fn lines_come_in_the_order_of_the_work_items() {
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let values =
        TypedBuffer::from_slice(&device, &[0.1f32, 2.0, -3.5, 1e30, 4.0, 5.0, 6.25, 7.0]).expect("fits");
    let arguments = says::arguments(&values, -2, u64::MAX);
    let compiled = says::compile(&device).expect("compiles");
    let outcome = compiled
        .launch(&*queue, Geometry::new(2, 4), arguments)
        .wait()
        .expect("runs");
    let expected = "\
item 0: x = 0.1, 3dcccccd 100% {}
-2 18446744073709551615 fe false 0.099975586
twice 0.20000000298023224
item 1: x = 2, 40000000 100% {}
item 2: x = -3.5, c0600000 100% {}
item 3: x = 1000000000000000000000000000000, 7149f2ca 100% {}
-2 18446744073709551615 fe true inf
twice 2000000000000000000000000000000 0 1 2
";
    let printed = &outcome.printed;
    assert!(
        printed.starts_with(expected.rsplit_once("twice").map_or("", |(start, _)| start)),
        "{printed}"
    );
    assert!(
        printed.contains("item 6: x = 6.25") && printed.ends_with("item 7: x = 7, 40e00000 100% {}\n"),
        "{printed}"
    );
    let text = lowers(says::kernel());
    for wanted in ["vprintf", "st.local.f64", "call (status_"] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

/// Vectors, and vectors of them: their parts in brackets.
#[test]
fn vectors_are_printed_part_by_part() {
    #[kernel]
    fn says_all(values: &[[f32; 4]], wide: &[[u16; 2]]) {
        let (v, w) = (values[global_id()], wide[global_id()]);
        let both = [w, [w[1], w[0]]];
        println!("{v:?} of {both:?}, {:x?}", w);
    }
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let values = TypedBuffer::from_slice(&device, &[0.5f32, -2.0, 1e10, 0.1]).expect("fits");
    let wide = TypedBuffer::from_slice(&device, &[255u16, 7]).expect("fits");
    let event = says_all::compile(&device).expect("compiles").launch(
        &*queue,
        Geometry::new(1, 1),
        says_all::arguments(&values, &wide),
    );
    let printed = event.wait().expect("runs").printed.clone();
    assert_eq!(
        printed,
        "[0.5, -2, 10000000000, 0.1] of [[255, 7], [7, 255]], [ff, 7]\n"
    );
    lowers(says_all::kernel());
}

/// As by SYCL's `stream(64, 16, …)`.
#[test]
fn a_launch_says_how_much_is_kept() {
    #[kernel]
    fn counts() {
        println!("item {} of {}", global_id(), global_size());
    }
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let compiled = counts::compile(&device).expect("compiles");
    let printed = |geometry: Geometry| {
        let event = compiled.launch(&*queue, geometry, counts::arguments());
        event.wait().expect("runs").printed.clone()
    };
    let all = printed(Geometry::new(1, 100));
    assert!(
        all.starts_with("item 0 of 100\nitem 1 of 100\n") && all.ends_with("item 99 of 100\n"),
        "{all}"
    );
    // Lines of 12 bytes, and room for five.
    let some = printed(Geometry::new(1, 100).print_limits(64, 12));
    assert_eq!(
        some,
        "item 0 of 1\nitem 1 of 1\nitem 2 of 1\nitem 3 of 1\nitem 4 of 1\n… and 95 more, which were not kept\n"
    );
}

#[test]
fn what_is_too_much_is_counted() {
    #[kernel]
    fn chatters(lines: u32) {
        for line in 0..lines {
            println!(
                "{:x} a line that is not short, to fill what there is of room for lines: {line}",
                global_id()
            );
        }
    }
    let device = Simulator::untimed();
    let queue = device.queue().expect("a queue");
    let compiled = chatters::compile(&device).expect("compiles");
    let event = compiled.launch(&*queue, Geometry::new(16, 32), chatters::arguments(100));
    let printed = event.wait().expect("runs").printed.clone();
    assert!(printed.len() <= (1 << 20) + 100, "{}", printed.len());
    assert!(printed.starts_with("0 a line") && printed.ends_with("more, which were not kept\n"));
    let kept = printed.lines().count() - 1;
    assert!(
        printed.contains(&format!("… and {} more", 16 * 32 * 100 - kept)),
        "{kept}"
    );
}

/// What this module shows of the language.
pub const FEATURES: &[Feature] = &[Feature {
    name: "printing",
    spelled: "`println!(\"x = {x}, {:x}\", bits)`; on the simulator `Geometry::print_limits`, as SYCL's `stream` has them",
    kernel: says::kernel,
    test: lines_come_in_the_order_of_the_work_items,
}];
