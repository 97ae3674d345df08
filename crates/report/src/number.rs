//! Numbers as people read them: three figures and a unit.

/// A time in nanoseconds with the unit that fits: `535 µs`, `1.27 ms`.
pub fn duration(nanoseconds: f64) -> String {
    scaled(nanoseconds, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
}

/// A number of bytes: `4.19 MB`, in powers of ten.
pub fn bytes(bytes: f64) -> String {
    scaled(
        bytes,
        &[
            (1e12, "TB"),
            (1e9, "GB"),
            (1e6, "MB"),
            (1e3, "kB"),
            (1.0, "bytes"),
        ],
    )
}

/// The size of a memory: `228 KiB`, `141 GiB`, in powers of two.
pub fn capacity(bytes: u64) -> String {
    const KIB: f64 = 1024.0;
    let bytes = bytes as f64;
    scaled(
        bytes,
        &[
            (KIB * KIB * KIB * KIB, "TiB"),
            (KIB * KIB * KIB, "GiB"),
            (KIB * KIB, "MiB"),
            (KIB, "KiB"),
            (1.0, "bytes"),
        ],
    )
}

/// A speedup: `2.38×`.
pub fn speedup(factor: f64) -> String {
    if factor >= 99.95 {
        format!("{factor:.0}×")
    } else {
        format!("{factor:.2}×")
    }
}

/// The two ends of a speedup: `1.02–1.26×`.
pub fn interval((low, high): (f64, f64)) -> String {
    format!("{}–{}", speedup(low).trim_end_matches('×'), speedup(high))
}

/// A share of 1 as a percentage: `6.3 %`, `57 %`.
pub fn percent(share: f64) -> String {
    // A sum of nothing is -0.
    let percent = 100.0 * share + 0.0;
    if percent.abs() < 9.95 && percent != 0.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A whole number with its thousands set apart: `16,777,216`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Three significant figures, as far as the number has them: `0.123`, `12.3`, `1,230`.
pub fn figures(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size >= 999.5 => {
            let sign = if number < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(size.round() as u64))
        }
        size if size.fract() == 0.0 => format!("{number:.0}"),
        size if size >= 99.95 => format!("{number:.0}"),
        size if size >= 9.995 => format!("{number:.1}"),
        size if size >= 0.9995 => format!("{number:.2}"),
        _ => format!("{number:.3}"),
    }
}

fn scaled(number: f64, units: &[(f64, &str)]) -> String {
    // A number that three figures round up to a thousand of a unit is shown in the next one.
    let fits = |&&(scale, _): &&(f64, &str)| number.abs() >= 0.9995 * scale;
    let &(scale, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    format!("{} {unit}", figures(number / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_and_the_unit_that_fits() {
        let times = [0.0, 1.0, 999.4, 999.6, 535_000.0, 1_273_000.0, 61e9, 7.2e12].map(duration);
        assert_eq!(
            times,
            [
                "0 ns", "1 ns", "999 ns", "1.00 µs", "535 µs", "1.27 ms", "61 s", "7,200 s"
            ]
        );
        assert_eq!(bytes(4_194_304.0), "4.19 MB");
        assert_eq!(
            [100, 232_448, 151_397_597_184].map(capacity),
            ["100 bytes", "227 KiB", "141 GiB"]
        );
        assert_eq!(
            [0.0, 0.0625, 0.57, 1.0].map(percent),
            ["0 %", "6.2 %", "57 %", "100 %"]
        );
        assert_eq!(
            [1, 999, 1000, 16_777_216].map(grouped),
            ["1", "999", "1,000", "16,777,216"]
        );
        assert_eq!([0.5, 2.375, 250.0].map(speedup), ["0.50×", "2.38×", "250×"]);
        assert_eq!(
            [-1234.5, 9.996, 0.01234].map(figures),
            ["-1,235", "10.0", "0.012"]
        );
    }
}
