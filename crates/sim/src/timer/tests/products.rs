//! Products of tensor cores, and the moves of their matrices.

use super::*;

/// The text of a product, given the names of its sums after and before, and the number of registers of a sum.
type Product = (fn(&str, &str) -> String, usize);

const HALVES: Product = (
    |after, before| {
        format!(
            "{after} = opaque \"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {{=0, =1, =2, =3}}, {{@0, @1, @2, @3}}, {{@4, @5}}, \
             {{@6, @7, @8, @9}};\" nothing unordered settled (f32, f32, f32, f32) ({}, {before})\n",
            ["%word"; 6].join(", ")
        )
    },
    4,
);

/// `m64n64k16` of a warp group.
const OF_WARP_GROUPS: Product = (
    |after, before| {
        let registers: Vec<String> = (0..32).map(|number| format!("={number}")).collect();
        format!(
            "{after} = opaque \"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {{{}}}, @0, @1, 1, 1, 1, 0, 0\" shared unordered ({}) \
             (%j, %j, {before})\n",
            registers.join(", "),
            ["f32"; 32].join(", ")
        )
    },
    32,
);

/// Cycles of `count` products in a loop of 100 iterations, by `groups` sub-groups on one core. `dependent` products all add to
/// one sum.
fn products((product, registers): Product, count: usize, groups: u32, dependent: bool) -> f64 {
    let bench = Bench::new("h100", &[]).with_cores(Cores::Exactly(1));
    let out = bench.buffer(Type::F32, 32, Pattern::Constant(0));
    let sums = if dependent { 1 } else { count };
    let name = |sum: usize, step: usize, part: usize| format!("%s{sum}_{step}_{part}");
    let mut body = String::new();
    for at in 0..count {
        let (sum, step) = if dependent { (0, at) } else { (at, 0) };
        let of = |step: usize| {
            (0..registers)
                .map(|part| name(sum, step, part))
                .collect::<Vec<_>>()
                .join(", ")
        };
        body.push_str(&product(&of(step + 1), &of(step)));
    }
    let last = if dependent { count } else { 1 };
    let all = |step: usize| -> Vec<String> {
        let parts = (0..sums).flat_map(|sum| (0..registers).map(move |part| (sum, part)));
        parts.map(|(sum, part)| name(sum, step, part)).collect()
    };
    let starts: Vec<String> = all(0).iter().map(|own| format!("{own} = 0.0:f32")).collect();
    let types = vec!["f32"; registers * sums].join(", ");
    let ends: Vec<String> = (0..registers * sums)
        .map(|number| format!("%end{number}"))
        .collect();
    let text = format!(
        "hsir 1
        kernel @products(%out: ptr.global f32[%out_len] align 8 unaliased, %out_len: i64, %count: i64) {{
          shared @tile: i32[1024] align 1024
          %word = id.local.x
          {} = loop (%j = 0:i64, {}) -> {types} {{
            %more = lt.s %j, %count
            if %more {{ yield }} else {{ break {} }}
            {body}
            %after = add.nw %j, 1:i64
            continue %after, {}
          }}
          store %out, %end0
          return
        }}",
        ends.join(", "),
        starts.join(", "),
        all(0).join(", "),
        all(last).join(", ")
    );
    bench
        .time(&text, 1, 32 * groups, vec![out, index(32), index(100)])
        .cycles
}

#[test]
fn tensor_cores_take_as_long_as_on_an_h200() {
    // Measured: 27.3 cycles from one product to the next that adds to it; 1.8 cycles of a core where none waits.
    let waiting = (products(HALVES, 12, 1, true) - products(HALVES, 4, 1, true)) / 800.0;
    assert!((25.0..30.0).contains(&waiting), "{waiting} cycles");
    let busy = (products(HALVES, 6, 16, false) - products(HALVES, 4, 16, false)) / (2.0 * 100.0 * 16.0);
    assert!((1.7..1.9).contains(&busy), "{busy} cycles");
}

#[test]
fn warp_groups_multiply_as_fast_as_on_an_h200() {
    // Measured: 35.2 cycles from one product of a warp group to the next that adds to it, and twice as much for two warp groups.
    for (sub_groups, range) in [(4, 34.0..37.0), (8, 68.0..73.0)] {
        let cycles =
            products(OF_WARP_GROUPS, 12, sub_groups, true) - products(OF_WARP_GROUPS, 4, sub_groups, true);
        let each = cycles / 800.0;
        assert!(range.contains(&each), "{sub_groups} sub-groups: {each} cycles");
    }
}

/// A kernel that moves matrices once. `body` computes its pointers from `%matrix`, `%tile` in shared memory and `%wide`, the
/// lane.
fn moves(body: &str) -> LaunchTime {
    let bench = Bench::new("h100", &[]).with_cores(Cores::Exactly(1));
    let text = format!(
        "hsir 1
        kernel @moves(%matrix: ptr.global i32[%length] align 16 unaliased, %length: i64, %out: ptr.global i32[32:i64] align 4 unaliased) {{
          shared @tile: i32[1024] align 16
          %lane = id.local.x
          %wide = extend.u %lane to i64
          %tile = array @tile
          {body}
          %to = address %out + %wide * 4
          store %to, %a
          return
        }}"
    );
    let matrix = bench.buffer(Type::I32, 4096, Pattern::Constant(0));
    let out = bench.buffer(Type::I32, 32, Pattern::Constant(0));
    bench.time(&text, 1, 32, vec![matrix, index(4096), out])
}

#[test]
fn moves_of_matrices_take_the_traffic_of_their_accesses() {
    let registers = |letter: char, count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("{letter}{number}")).collect();
        names.join(", ")
    };
    let (made, types) = (registers('=', 8), ["i32"; 8].join(", "));
    let results = format!(
        "%a, {}",
        (1..8)
            .map(|number| format!("%a{number}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    // 16 rows of 32 bytes, 256 bytes apart: each of four registers holds 16 bytes of eight rows.
    let a = moves(&format!(
        "{results} = opaque \"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {{{made}}}, [@0], 128\" reads unordered settled ({types}) (%matrix)"
    ));
    assert_eq!((a.memory.loads, a.memory.l1_sectors), (4, 32), "{:?}", a.memory);
    assert_eq!(a.memory.l2_sectors * 32, 512, "{:?}", a.memory);
    let floats = ["f32"; 8].join(", ");
    let c = moves(&format!(
        "{} = opaque \"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {{{made}}}, [@0], 16\" reads unordered settled ({floats}) (%matrix)\n\
         opaque \"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [@0], {{{}}}, 16\" anything unordered settled () (%matrix, {})\n%a = bits %f0 to i32",
        results.replace("%a", "%f").replacen("%f,", "%f0,", 1),
        (1..9)
            .map(|number| format!("@{number}"))
            .collect::<Vec<_>>()
            .join(", "),
        (0..8)
            .map(|number| format!("%f{number}"))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    assert_eq!(
        (c.memory.loads, c.memory.l2_sectors * 32),
        (4, 1024),
        "{:?}",
        c.memory
    );
    // The matrix, and the output.
    assert_eq!(
        (c.memory.stores, c.memory.l2_written_sectors),
        (5, 36),
        "{:?}",
        c.memory
    );
    // Adjacent rows have no bank conflicts. Rows 128 bytes apart start in the same bank, and all conflict.
    let rows = |stride: u32| {
        moves(&format!(
            "%from = address %tile + %wide * {stride}\n%a, %b, %c, %d = opaque \"ldmatrix.sync.aligned.m8n8.x4.shared.b16 \
             {{=0, =1, =2, =3}}, [@0]\" reads unordered settled (i32, i32, i32, i32) (%from)"
        ))
    };
    let (dense, apart) = (rows(16), rows(128));
    assert_eq!(
        (dense.memory.shared_accesses, dense.memory.bank_conflicts),
        (1, 0),
        "{:?}",
        dense.memory
    );
    assert_eq!(
        (apart.memory.shared_accesses, apart.memory.bank_conflicts),
        (1, 28),
        "{:?}",
        apart.memory
    );
    assert!(
        apart.cycles >= dense.cycles + 28.0,
        "{} and {}",
        apart.cycles,
        dense.cycles
    );
}
