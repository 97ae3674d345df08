//! Random loops that write the memory that they read, and random recurrences, under random plans: a plan is refused, or changes
//! no bit.
//!
//! Work-items may write what others of their sub-group read, without a barrier: programs that rely on the order in which a
//! sub-group runs are not checked for races, and must keep their bits, too.
//!
//! `HEADSTART_CASES` sets how many kernels are tried, `HEADSTART_SEED` the first of them.

use headstart::Fault;
use headstart::device::sim::functional::Options;
use headstart::prefetch::{PlanTarget, apply};
use headstart_testing::{self as testing, Case, Random, random_plan_of_any};

/// Plans tried on each kernel.
const PLANS: usize = 6;

/// A place in `%p`, in one width of arithmetic: the counter times a stride, the work-item's place, and a distance.
fn place(random: &mut Random, name: &str, narrow: bool, steps: &[String; 2]) -> String {
    let distance = *random.choose(&[0, 0, 0, 1, 1, 2, 3, 5, 8, 16, 31, 32, 33, 64]);
    let [stride, item] = steps;
    let (ty, counter) = if narrow { ("i32", "%i") } else { ("i64", "%i64") };
    let other = match random.chance(6) {
        true => "2:".to_owned() + ty,
        false => stride.clone(),
    };
    let (product, sum) = (
        format!("%{name}_row = mul {counter}, {other}"),
        format!("%{name}_at = add %{name}_row, {item}"),
    );
    let pointer = match (narrow, random.chance(50)) {
        (false, true) => format!("%{name} = address %p + %{name}_at * 4 + {}", distance * 4),
        (false, false) => format!(
            "%{name}_far = add %{name}_at, {distance}:i64\n    %{name} = address %p + %{name}_far * 4"
        ),
        (true, _) => format!(
            "%{name}_far = add %{name}_at, {distance}:i32\n    %{name}_wide = extend.s %{name}_far to i64\n    \
             %{name} = address %p + %{name}_wide * 4"
        ),
    };
    format!("    {product}\n    {sum}\n    {pointer}\n")
}

/// A kernel with a launch: up to three loads and two stores of one array in a loop.
fn in_place(seed: u64) -> String {
    let mut random = Random::new(seed);
    let narrow = random.chance(40);
    let ty = if narrow { "i32" } else { "i64" };
    let items = *random.choose(&[1, 2, 8, 32, 32, 32, 64]);
    let stride = *random.choose(&[1, 1, 2, 3, 31, 32, 33, 64, 65]);
    let item = *random.choose(&[0, 1, 1, 1, 1, 2, 24, 40]);
    let trips = *random.choose(&[0, 1, 2, 3, 5, 8, 12, 20]);
    let stride_is_known = random.chance(50);
    let known = |number: i64| format!("{number}:{ty}");
    let steps = [
        if stride_is_known {
            known(stride)
        } else {
            "%m".to_owned()
        },
        "%own".to_owned(),
    ];
    let mut body = String::new();
    let (loads, stores) = (*random.choose(&[1, 1, 2, 3]), *random.choose(&[1, 1, 1, 2]));
    let mut sum = "%s".to_owned();
    let (mut loaded, mut stored) = (0, 0);
    while loaded + stored < loads + stores {
        let is_load = stored == stores || (loaded < loads && random.chance(65));
        match is_load {
            true => {
                body += &place(&mut random, &format!("l{loaded}"), narrow, &steps);
                body += &format!("    %x{loaded} = load i32 %l{loaded}, @p{loaded}\n");
                body += &format!(
                    "    %y{loaded} = mul {sum}, 31:i32\n    %s{loaded} = add %y{loaded}, %x{loaded}\n"
                );
                sum = format!("%s{loaded}");
                loaded += 1;
            }
            false => {
                body += &place(&mut random, &format!("w{stored}"), narrow, &steps);
                body += &match random.chance(20) {
                    true => format!(
                        "    %odd{stored} = and {sum}, 1:i32\n    %is{stored} = eq %odd{stored}, 0:i32\n    if %is{stored} {{\n      store %w{stored}, {sum}\n      yield\n    }} else {{ yield }}\n"
                    ),
                    false => format!("    store %w{stored}, {sum}\n"),
                };
                stored += 1;
            }
        }
    }
    let group = match random.chance(60) {
        true => format!(" group {items},1,1"),
        false => String::new(),
    };
    let names: String = (0..loads).map(|number| format!("  load @p{number}\n")).collect();
    let length = trips * stride.max(2) + items * item + 130;
    let again: String = [1, 33, 64]
        .iter()
        .map(|m| format!("; again: m = {m}\n"))
        .collect();
    format!(
        "; launch: 1 × {items}\n; p: {} below 1000\n; o: {items}\n; n: {trips}\n; m: {stride}\n{again}hsir 1\nkernel @k(\n  \
         %p: ptr.global i32[%p_length] align 4 unaliased,\n  %p_length: i64,\n  \
         %o: ptr.global i32[%o_length] align 4 unaliased,\n  %o_length: i64,\n  %n: i32,\n  %m: {ty},\n){group} {{\n{names}  \
         %id = id.local.x\n  %id64 = extend.u %id to i64\n  %own = mul {}, {}\n  \
         %sum = loop 'j (%i = 0:i32, %s = 1:i32) -> i32 {{\n    %more = lt.s %i, %n\n    \
         if %more {{ yield }} else {{ break %s }}\n    %i64 = extend.s %i to i64\n{body}    \
         %next = add.nsw %i, 1:i32\n    continue %next, {sum}\n  }}\n  %to = address %o + %id64 * 4\n  store %to, %sum\n  \
         return\n}}\n",
        length.max(trips * 64 + items * item + 130),
        if narrow { "%id" } else { "%id64" },
        known(item),
    )
}

/// A kernel whose loads follow a random recurrence, with an exit by what is loaded.
fn recurrence(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut body = String::new();
    let states = *random.choose(&[1, 1, 2, 3]);
    let now = |random: &mut Random| format!("%a{}", random.below(states));
    let mut nexts = String::new();
    for state in 0..states {
        let (one, other) = (now(&mut random), now(&mut random));
        let op = *random.choose(&["add", "sub", "mul", "xor", "and", "or"]);
        let times = *random.choose(&[1, 3, 5, 1_664_525, 31]);
        body += &format!("    %m{state} = mul {one}, {times}:i32\n    %f{state} = {op} %m{state}, {other}\n");
        body += &format!("    %g{state} = add %f{state}, {}:i32\n", random.below(100));
        if random.chance(40) {
            let (left, right) = (now(&mut random), now(&mut random));
            body += &format!(
                "    %c{state} = lt.u {left}, {right}\n    %h{state} = select %c{state}, %g{state}, {one}\n"
            );
        } else {
            body += &format!("    %h{state} = add %g{state}, 0:i32\n");
        }
        nexts += &format!(", %h{state}");
    }
    let exit = match random.chance(50) {
        true => "    %small = lt.u %x, 4:i32\n    if %small { break %s } else { yield }\n",
        false => "",
    };
    let params: String = (0..states)
        .map(|state| format!(", %a{state} = {}", if state == 0 { "%id" } else { "%n" }))
        .collect();
    let (from, trips) = (now(&mut random), *random.choose(&[0, 1, 2, 3, 5, 9, 17, 40]));
    format!(
        "; launch: 1 × 32\n; p: 64 below 100\n; o: 32\n; n: {trips}\n; m: 7\nhsir 1\nkernel @k(\n  \
         %p: ptr.global i32[%p_length] align 4 readonly,\n  %p_length: i64,\n  \
         %o: ptr.global i32[%o_length] align 4 unaliased,\n  %o_length: i64,\n  %n: i32,\n  %m: i32,\n) {{\n  load @p\n  \
         %id = id.local.x\n  %sum = loop 'j (%i = 0:i32, %s = 1:i32{params}) -> i32 {{\n    \
         %more = lt.s %i, %n\n    if %more {{ yield }} else {{ break %s }}\n    %high = shr.u {from}, 3:i32\n    \
         %low = and %high, 63:i32\n    %wide = extend.u %low to i64\n    %at = address %p + %wide * 4\n    \
         %x = load i32 %at, @p\n{exit}{body}    %y = mul %s, 31:i32\n    %t = add %y, %x\n    \
         %next = add.nsw %i, 1:i32\n    continue %next, %t{nexts}\n  }}\n  %to64 = extend.u %id to i64\n  \
         %to = address %o + %to64 * 4\n  store %to, %sum\n  return\n}}\n"
    )
}

/// The launches of a text: those with other strides, too.
fn launches(text: &str) -> Vec<String> {
    let stride = text
        .lines()
        .find(|line| line.starts_with("; m: "))
        .expect("a stride");
    let again = text.lines().filter_map(|line| line.strip_prefix("; again: m = "));
    let others = again.map(|m| text.replacen(stride, &format!("; m: {m}"), 1));
    [text.to_owned()].into_iter().chain(others).collect()
}

fn tried(make: fn(u64) -> String) {
    let seed = testing::base_seed();
    let (mut same, mut refused) = (0, 0);
    for case in seed..seed + testing::count("HEADSTART_CASES", 150) {
        let text = make(case);
        let kernel =
            Case::read(&text, "k.hsir").unwrap_or_else(|error| panic!("seed {case}: {error}\n{text}"));
        let kernel = kernel.expect("a launch").workload;
        let target = PlanTarget::of(kernel.group);
        let mut random = Random::new(case);
        for _ in 0..PLANS {
            let plan = match random.chance(10) {
                true => "early".parse().expect("a plan"),
                false => random_plan_of_any(&mut random, &kernel.kernel),
            };
            let planned = match apply(&kernel.kernel, &plan, &target) {
                Err(error) if error.fault() == Fault::Bug => {
                    panic!("seed {case}, plan {plan}: {error}\n{text}")
                }
                Err(_) => {
                    refused += 1;
                    continue;
                }
                Ok(applied) => applied.kernel,
            };
            same += 1;
            for launch in launches(&text) {
                let workload = Case::read(&launch, "k.hsir")
                    .expect("as above")
                    .expect("a launch")
                    .workload;
                let run = |kernel| {
                    testing::run(&workload, kernel, Options::FAST).map_err(|error| error.to_string())
                };
                let (plain, found) = (run(&workload.kernel), run(&planned));
                assert!(
                    plain.is_err() || plain == found,
                    "seed {case}, plan {plan}: {found:?} is not {plain:?}\n{launch}"
                );
            }
        }
    }
    println!("{same} plans changed no bit, {refused} were refused");
    assert!(
        same * 8 > refused,
        "{same} of {} plans were legal: the test tests too little",
        same + refused
    );
}

#[test]
fn loops_in_place_keep_their_bits() {
    tried(in_place);
}

#[test]
fn recurrences_keep_their_bits() {
    tried(recurrence);
}
