//! Functions whose results are exact: every bit is compared with Rust's.

use super::{Random, seed};
use crate::math::Function;

#[test]
fn round() {
    let mut random = Random(seed());
    let edges = [
        0.5,
        0.499_999_999_999_999_94,
        1.5,
        2.5,
        4_503_599_627_370_495.5,
        4_503_599_627_370_497.0,
        8_388_607.5,
    ];
    let edges = edges
        .into_iter()
        .chain([0.0, f64::INFINITY, f64::MAX, f64::from_bits(1), 0.499_999_97]);
    let arguments = (0..200_000).map(|_| random.bits());
    for bits in edges
        .flat_map(|x: f64| [x.to_bits(), (-x).to_bits()])
        .chain(arguments)
    {
        // Exponents around those with fractions, too.
        for x in [
            f64::from_bits(bits),
            f64::from_bits(bits % (65 << 52) + (1000 << 52)),
        ] {
            let canonical = |rounded: f64| if x.is_nan() { f64::NAN } else { rounded };
            let got = Function::Round.f64(&[x]);
            assert_eq!(got.to_bits(), canonical(x.round()).to_bits(), "round({x:e})");
            let got = Function::Round.f32(&[x as f32]);
            let expected = if x.is_nan() { f32::NAN } else { (x as f32).round() };
            assert_eq!(got.to_bits(), expected.to_bits(), "round({x:e})");
        }
    }
}

fn check_rem(x: f64, y: f64) {
    let canonical = |x: f64| if x.is_nan() { f64::NAN } else { x };
    assert_eq!(
        Function::Rem.f64(&[x, y]).to_bits(),
        canonical(x % y).to_bits(),
        "rem({x:e}, {y:e})"
    );
}

fn check_rem_f32(x: f32, y: f32) {
    let canonical = |x: f32| if x.is_nan() { f32::NAN } else { x };
    assert_eq!(
        Function::Rem.f32(&[x, y]).to_bits(),
        canonical(x % y).to_bits(),
        "rem({x:e}, {y:e})"
    );
}

#[test]
fn rem() {
    let mut random = Random(seed());
    let special = [
        0.0,
        1.0,
        3.0,
        f64::INFINITY,
        f64::NAN,
        f64::MAX,
        f64::MIN_POSITIVE,
        f64::from_bits(1),
        0.1,
    ];
    for x in special {
        for y in special {
            for (x, y) in [(x, y), (-x, y), (x, -y)] {
                check_rem(x, y);
                check_rem_f32(x as f32, y as f32);
                check_rem_f32(x as f32, f32::from_bits(3));
            }
        }
    }
    for _ in 0..20_000 {
        let (a, b) = (random.bits(), random.bits());
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        check_rem(x, y);
        check_rem(x, f64::from_bits(b % (1 << 54)));
        check_rem(f64::from_bits(a % (1 << 54)), f64::from_bits(b % (1 << 54)));
        // Multiples and their neighbours.
        let y = random.between(0.5, 2.0);
        check_rem((random.bits() % 1000) as f64 * y, y);
        let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
        check_rem_f32(x, y);
        check_rem_f32(x, f32::from_bits(b as u32 % (1 << 25)));
        check_rem_f32(
            f32::from_bits(a as u32 % (1 << 25)),
            f32::from_bits(b as u32 % (1 << 25)),
        );
        let y = random.between(0.5, 2.0) as f32;
        check_rem_f32((random.bits() % 1000) as f32 * y, y);
    }
}
