//! Guards of a ring that have one test are joined (`cleanup::guards`): what the kernel computes stays the same.

use headstart::device::sim::Simulator;
use headstart::device::{Argument, Command, Device, Launch, TypedBuffer};
use headstart::ir::{Kernel, Type, parse, print, verify};
use headstart::prefetch::{self, PlanTarget};
use headstart_ir::cleanup::clean;

/// A sum of `%a[%start..%n]` through `%map`, for a counter of this type, tested like this.
fn gather(ty: &str, test: &str, start: &str) -> Kernel {
    let [wide, at] = match ty {
        "i64" => ["", "%i"],
        _ => ["%wide = extend.u %i to i64", "%wide"],
    };
    let text = format!(
        "hsir 1\nkernel @t(%map: ptr.global i32[%maps] align 4 readonly unaliased, %maps: i64, \
         %a: ptr.global i32[%length] align 4 readonly unaliased, %length: i64, \
         %out: ptr.global i32[%outs] align 4 unaliased, %outs: i64, %n: {ty}) group 1,1,1 {{\n\
         load @map\nload @a\n%total = loop 'l (%i = {start}:{ty}, %sum = 0:i32) -> i32 {{\n%more = {test} %i, %n\n\
         if %more {{ yield }} else {{ break %sum }}\n{wide}\n%p = address %map + {at} * 4\n%k = load i32 %p, @map\n\
         %k64 = extend.u %k to i64\n%q = address %a + %k64 * 4\n%x = load i32 %q, @a\n\
         %product = mul %sum, 3:i32\n%sum2 = add %product, %x\n%next = add %i, 1:{ty}\ncontinue %next, %sum2\n}}\n\
         store %out, %total\nreturn\n}}"
    );
    let kernel = parse(&text, "test").expect("it parses");
    verify(&kernel).expect("it is right");
    kernel
}

fn planned(kernel: &Kernel, plan: &str) -> Kernel {
    let target = PlanTarget::of([1, 1, 1]);
    let plan = plan.parse().expect("a plan");
    prefetch::apply(kernel, &plan, &target)
        .expect("it is legal")
        .kernel
}

/// Runs a kernel on buffers of `elements` elements, with `n` as its last argument: the value that it stores.
fn result(device: &Simulator, kernel: Kernel, elements: u64, n: u64) -> i32 {
    let map: Vec<i32> = (0..elements as i32).rev().collect();
    result_of(device, kernel, &map, n)
}

/// The same for this map.
fn result_of(device: &Simulator, kernel: Kernel, map: &[i32], n: u64) -> i32 {
    let ty = kernel.ty(kernel.params[6].value);
    let elements = map.len();
    let program = device.compile(&kernel.into()).expect("it compiles");
    let queue = device.queue().expect("a thread");
    let map = TypedBuffer::from_slice(device, map).expect("it fits");
    let a: Vec<i32> = (0..elements as i32).map(|i| i * i + 1).collect();
    let a = TypedBuffer::from_slice(device, &a).expect("it fits");
    let out = TypedBuffer::from_slice(device, &[0i32]).expect("it fits");
    let mut arguments = Vec::new();
    for buffer in [&map, &a, &out].map(TypedBuffer::buffer) {
        arguments.push(Argument::Buffer(buffer.clone()));
        arguments.push(Argument::Scalar(Type::I64, buffer.length()));
    }
    arguments.push(Argument::Scalar(ty, n));
    let launch = Launch::new(1, 1, arguments);
    queue
        .submit(Command::Launch(program, launch), &[])
        .wait()
        .expect("it runs");
    out.read(queue.as_ref()).expect("it is there")[0]
}

#[test]
fn every_trip_count_computes_the_same() {
    let device = Simulator::untimed();
    let cases = [
        ("i64", "lt.u", "0"),
        ("i64", "lt.s", "0"),
        ("i32", "lt.s", "0"),
        ("i32", "lt.u", "3"),
        ("i64", "ne", "0"),
    ];
    let plans = [
        "unroll:4,a=rolling-registers:8,map=rolling-registers:12",
        "unroll:4,a=rolling-async:4",
        "unroll:8,a=rolling-shared:8",
        "unroll:4,map=cache:L2:8",
    ];
    for (ty, test, start) in cases {
        let plain = gather(ty, test, start);
        for plan in plans {
            let kernel = planned(&plain, plan);
            let cleaned = clean(&kernel);
            verify(&cleaned).expect("it stays right");
            for n in 0..40 {
                let elements = n.max(1);
                let expected = result(&device, plain.clone(), elements, n);
                let found = result(&device, cleaned.clone(), elements, n);
                assert_eq!(found, expected, "{ty} {test} {start} {plan}: {n} elements");
            }
        }
    }
}

#[test]
fn the_guards_of_a_ring_have_one_test() {
    for (ty, test, start) in [("i64", "lt.u", "0"), ("i32", "lt.s", "0"), ("i64", "ne", "0")] {
        let plain = gather(ty, test, start);
        let text = print(&clean(&planned(&plain, "unroll:4,a=rolling-async:4")));
        let inside = &text[text.find("= loop").expect("a loop")..];
        let together = inside
            .lines()
            .find(|line| line.contains("= if ") && line.contains("token, token"))
            .unwrap_or_else(|| panic!("{text}"));
        // Four indices and four copies.
        assert_eq!(together.matches("i32").count(), 4, "{text}");
        assert_eq!(together.matches("token").count(), 4, "{text}");
    }
}

#[test]
fn few_guards_stay_as_they_are() {
    let plain = gather("i64", "lt.u", "0");
    let text = print(&clean(&planned(&plain, "a=rolling-async:4")));
    assert!(!text.contains("token, token"), "{text}");
}

/// Behind an exit an address may lie in the memory and not be aligned, and no iteration loads from there.
#[test]
fn early_loads_behind_exits_are_aligned() {
    let device = Simulator::untimed();
    let text = print(&gather("i64", "lt.u", "0"))
        .replace("%q = address %a + %k64 * 4\n", "%q = address %a + %k64 * 1\n");
    let exit = "%last = eq %k, 77:i32\nif %last { break %sum } else { yield }\n";
    let at = text.find("%k64 = ").expect("an index");
    let text = format!("{}{exit}{}", &text[..at], &text[at..]);
    let plain = parse(&text, "test").expect("it parses");
    verify(&plain).expect("it is right");
    let offsets = [0, 8, 4, 77, 1, 2, 3, 5];
    let found = |kernel: Kernel| result_of(&device, kernel, &offsets, 8);
    let expected = found(plain.clone());
    for plan in [
        "a=batched-registers:4",
        "unroll:4",
        "a=rolling-async:2",
        "a=rolling-registers:4",
    ] {
        assert_eq!(found(planned(&plain, plan)), expected, "{plan}");
    }
}
