//! Products of warp groups: their sums, and what may not be used while they are in flight.

use half::f16;

use super::Case;

const PROXY: &str = "opaque \"fence.proxy.async\" anything () ()";
const BARRIER: &str = "barrier";
const FENCE: &str = "opaque \"wgmma.fence.sync.aligned\" shared () ()";
const PRODUCT: &str = "%d0, %d1, %d2, %d3 = opaque \"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {=0, =1, =2, =3}, @0, @1, 1, 1, -1, 0, 0\" \
     shared unordered (f32, f32, f32, f32) (%a, %b, 1:f32, 2:f32, 3:f32, 4:f32)";
const COMMIT: &str = "opaque \"wgmma.commit_group.sync.aligned\" shared () ()";
const WAIT: &str = "opaque \"wgmma.wait_group.sync.aligned 0\" shared () ()";

/// The steps of a kernel that is right.
const STEPS: [&str; 6] = [PROXY, BARRIER, FENCE, PRODUCT, COMMIT, WAIT];

/// Element `k` of a row: small, and another one each.
fn element(row: usize, k: usize) -> f32 {
    ((row * 7 + k * 3) % 11) as f32 - 5.0
}

/// A kernel whose work-items copy an image into shared memory, take these steps, and store their sums. The rows of the image are
/// those of A, and the first eight the columns of B.
fn case(steps: &[&str], group: u32) -> Case {
    let mut copies = String::new();
    for part in 0..4 {
        copies += &format!(
            "%n{part} = add %i, {}:i64
             %f{part} = address %image + %n{part} * 4
             %v{part} = load i32 %f{part}, @image
             %t{part} = address %tile + %n{part} * 4
             store %t{part}, %v{part}\n",
            128 * part
        );
    }
    let mut stores = String::new();
    for register in 0..4 {
        stores += &format!(
            "%m{register} = add %first, {register}:i64
             %o{register} = address %out + %m{register} * 4
             store %o{register}, %d{register}\n"
        );
    }
    let text = format!(
        "hsir 1
         kernel @k(%image: ptr.global i32[512:i64] align 4 readonly unaliased, %out: ptr.global f32[512:i64] align 4 unaliased) {{
           file #1 \"k.rs\"
           shared @tile: i32[512] align 1024
           shared @other: i32[4] align 16
           load @image #1:1:1
           %i32 = id.local.x
           %i = extend.u %i32 to i64
           %first = mul %i, 4:i64
           %tile = array @tile
           %at = bits %tile to i64
           %low = and %at, 262143:i64
           %start = shr.u %low, 4:i64
           %a = or %start, {descriptor}:i64
           %b = or %a, 0:i64
           {copies}
           {steps}
           {stores}
           return
         }}",
        // 128 bytes to the next eight of `k`, 256 to the next eight rows.
        descriptor = (8u64 << 16) | (16u64 << 32),
        steps = steps.join("\n"),
    );
    let mut image = vec![0u16; 1024];
    for row in 0..64 {
        for k in 0..16 {
            let at = row / 8 * 128 + k / 8 * 64 + row % 8 * 8 + k % 8;
            image[at] = f16::from_f32(element(row, k)).to_bits();
        }
    }
    let words: Vec<i32> = image
        .chunks(2)
        .map(|pair| i32::from(pair[0]) | i32::from(pair[1]) << 16)
        .collect();
    Case::new(&text, 1, group).buffer(&words).output::<f32>(512)
}

fn without(step: &str) -> Vec<&str> {
    STEPS.into_iter().filter(|other| *other != step).collect()
}

/// The error of a kernel with a step in front of the one with this number.
fn error_of(step: &str, before: usize) -> String {
    let mut steps = STEPS.to_vec();
    steps.insert(before, step);
    case(&steps, 128).error()
}

#[test]
fn sums_are_those_of_the_matrices() {
    let right = case(&STEPS, 128);
    right.run().unwrap_or_else(|error| panic!("{error}"));
    let sums = right.read::<f32>(1);
    for item in 0..128 {
        for register in 0..4 {
            let row = item / 32 * 16 + item % 32 / 4 + register / 2 * 8;
            let column = item % 4 * 2 + register % 2;
            let products = (0..16).map(|k| element(row, k) * element(column, k));
            // B is negated.
            let expected = (register + 1) as f32 - products.sum::<f32>();
            assert_eq!(sums[item * 4 + register], expected, "row {row}, column {column}");
        }
    }
}

#[test]
fn what_orders_a_product_may_not_be_missing() {
    for (step, expected) in [
        (FENCE, "with no `wgmma.fence` before"),
        (PROXY, "with no `fence.proxy.async` between"),
        (BARRIER, "with no barrier between"),
        (
            COMMIT,
            "uses a result of a product of its warp group that is in flight",
        ),
        (
            WAIT,
            "uses a result of a product of its warp group that is in flight",
        ),
    ] {
        let error = case(&without(step), 128).error();
        assert!(error.contains(expected), "{step}: {error}");
    }
    // Behind the barrier is as good as in front of it.
    let behind = [BARRIER, PROXY, FENCE, PRODUCT, COMMIT, WAIT];
    case(&behind, 128).run().unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn factors_may_not_be_written_before_their_product_has_ended() {
    let own_row = "%to = address %tile + %i * 4\nstore %to, 0:i32";
    let error = error_of(own_row, 5);
    assert!(
        error.contains("which a product of a warp group still reads"),
        "{error}"
    );
    // Of sub-group 3, whose 16 rows no other reads; its own products have ended.
    let last = "%third = le.u 96:i32, %i32
        if %third { %row = add %i, 384:i64\n%at3 = sub %row, 96:i64\n%to = address %tile + %at3 * 4\nstore %to, 0:i32 yield }";
    let mut steps = STEPS.to_vec();
    steps.push(last);
    case(&steps, 128).run().unwrap_or_else(|error| panic!("{error}"));
    // The columns of B are read by all.
    let first = "%third = eq %i32, 97:i32\nif %third { store %tile, 0:i32 yield }";
    let mut steps = STEPS.to_vec();
    steps.push(first);
    let error = case(&steps, 128).error();
    assert!(
        error.contains("writes `tile[0]`, which work-item 0 read"),
        "{error}"
    );
}

#[test]
fn a_warp_group_is_whole() {
    let error = case(&STEPS, 96).error();
    assert!(error.contains("is in no warp group"), "{error}");
    let some = format!(
        "%some = lt.u %i32, 32:i32\nif %some {{ {FENCE}\n{}\n{COMMIT}\n{WAIT} yield }}",
        PRODUCT.replace("%d", "%e")
    );
    let error = error_of(&some, 6);
    assert!(
        error.contains("runs 2 products of its warp group, and work-item 32 runs 1"),
        "{error}"
    );
    let lane = format!("%some = ne %i32, 5:i32\nif %some {{ {FENCE} yield }}");
    let error = error_of(&lane, 2);
    assert!(
        error.contains("runs a step of a warp group of its sub-group without work-item 5"),
        "{error}"
    );
}

#[test]
fn descriptors_lead_into_one_array() {
    let beyond = PRODUCT.replace("(%a, %b,", "(%a, %beyond,");
    let beyond = format!("%beyond = add %a, 120:i64\n{beyond}");
    let error = case(&[PROXY, BARRIER, FENCE, &beyond, COMMIT, WAIT], 128).error();
    assert!(error.contains("`tile[512]`, out of bounds"), "{error}");
    let mixed = PRODUCT.replace("(%a, %b,", "(%a, %mixed,");
    let mixed = format!("%oa = array @other\n%ob = bits %oa to i64\n%mixed = or %a, %ob\n{mixed}");
    let error = case(&[PROXY, BARRIER, FENCE, &mixed, COMMIT, WAIT], 128)
        .run()
        .expect_err("nobody knows");
    assert!(
        error
            .to_string()
            .contains("of no array of shared memory, or of several"),
        "{error}"
    );
    let lanes = PRODUCT.replace("(%a, %b,", "(%a, %differs,");
    let lanes = format!("%differs = or %a, %i\n{lanes}");
    let error = case(&[PROXY, BARRIER, FENCE, &lanes, COMMIT, WAIT], 128).error();
    assert!(error.contains("different descriptors"), "{error}");
}

#[test]
fn groups_end_in_their_order() {
    // The second product is not waited for; the first one's sums may be used.
    let second = PRODUCT.replace("%d", "%e");
    let early = WAIT.replace(" 0\"", " 1\"");
    let steps = [PROXY, BARRIER, FENCE, PRODUCT, COMMIT, &second, COMMIT, &early];
    case(&steps, 128).run().unwrap_or_else(|error| panic!("{error}"));
    let mut late = steps.to_vec();
    late.push("%sum = fadd %e0, %d0");
    let error = case(&late, 128).error();
    assert!(error.contains("in flight"), "{error}");
    // A sum may go on while it is in flight.
    let chained = second.replace("1:f32, 2:f32, 3:f32, 4:f32", "%d0, %d1, %d2, %d3");
    let steps = [PROXY, BARRIER, FENCE, PRODUCT, &chained, COMMIT, WAIT];
    case(&steps, 128).run().unwrap_or_else(|error| panic!("{error}"));
}
