//! A program's loops, from a profile on the host.
//!
//! A CSV with a header, which begins with `loop`; the other columns stand in any order, and most may be missing:
//!
//! ```text
//! loop,seconds,calls,iterations,bytes in,bytes out,bytes,flops
//! smooth,2.5,100,16777216,134217728,134217728,268435456,167772160
//! ```
//!
//! `seconds` is the time of all calls together; the columns behind `calls` are per call. `bytes in` and `bytes out` are copied
//! if a device runs the loop, `bytes` are the loop's reads and writes, `flops` its floating-point operations (`flops 64` those
//! in double precision).

use super::super::profiler::{number::Spelling, table::Table};
use crate::error::{Error, Result};

/// A loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostLoop {
    /// Its name.
    pub name: String,
    /// Seconds on the host, all calls together.
    pub seconds: f64,
    /// How often it is entered.
    pub calls: f64,
    /// Iterations of a call: as many work-items could do it.
    pub iterations: f64,
    /// Bytes that a call needs from the host.
    pub(crate) bytes_in: f64,
    /// Bytes that the host needs from a call.
    pub(crate) bytes_out: f64,
    /// Bytes that a call reads and writes; those of the copies, if nothing is said.
    pub bytes: f64,
    /// Operations of a call in single precision.
    pub flops: f64,
    /// Operations of a call in double precision.
    pub(crate) flops_64: f64,
}

/// Most loops that are read.
const MOST: usize = 1 << 14;

/// The accepted format.
const EXPECTED: &str = "a CSV with the columns `loop` and `seconds`, and of a call `iterations`, `bytes in`, `bytes out`, `bytes`, `flops`, `flops 64`";

/// The loops of a profile's text, in its order.
///
/// # Errors
/// It is no such table, or a number in it is none.
pub fn loops_of(text: &str) -> Result<Vec<HostLoop>> {
    let table = Table::find(text, "loop", &["loop", "seconds"], "", EXPECTED)?;
    let names: Vec<String> = table
        .header
        .iter()
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let column = |named: &[&str]| names.iter().position(|name| named.contains(&name.trim()));
    let spelling = Spelling::of(table.rows.iter().flatten().map(String::as_str));
    if table.rows.len() > MOST {
        return Err(
            Error::input(format!("the profile has {} loops", table.rows.len()))
                .accepted(format!("at most {MOST}")),
        );
    }
    let of_row = |(position, row): (usize, &Vec<String>)| -> Result<HostLoop> {
        let number = |named: &[&str], otherwise: f64| -> Result<f64> {
            let Some(text) = column(named)
                .map(|column| row[column].trim())
                .filter(|text| !text.is_empty())
            else {
                return Ok(otherwise);
            };
            spelling
                .number(text)
                .filter(|number| number.is_finite() && *number >= 0.0)
                .ok_or_else(|| {
                    Error::input(format!("`{text}` is not a number of {}", named[0]))
                        .at(format!("row {}", position + 1))
                        .accepted("0 or more")
                })
        };
        let (bytes_in, bytes_out) = (number(&["bytes in"], 0.0)?, number(&["bytes out"], 0.0)?);
        Ok(HostLoop {
            name: column(&["loop"])
                .map(|column| row[column].clone())
                .unwrap_or_default(),
            seconds: number(&["seconds"], 0.0)?,
            calls: number(&["calls"], 1.0)?.max(1.0),
            iterations: number(&["iterations"], 0.0)?,
            bytes_in,
            bytes_out,
            bytes: number(&["bytes"], bytes_in + bytes_out)?,
            flops: number(&["flops"], 0.0)?,
            flops_64: number(&["flops 64"], 0.0)?,
        })
    };
    table.rows.iter().enumerate().map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_any_order_and_some_may_be_missing() {
        let loops = loops_of("loop,Flops 64,Seconds,Bytes in\na,10,0.5,64\nb,,1.25,\n").expect("a profile");
        assert_eq!(loops.len(), 2);
        assert_eq!(
            (
                loops[0].seconds,
                loops[0].flops_64,
                loops[0].bytes_in,
                loops[0].bytes,
                loops[0].calls
            ),
            (0.5, 10.0, 64.0, 64.0, 1.0)
        );
        assert_eq!((loops[1].name.as_str(), loops[1].bytes), ("b", 0.0));
    }

    #[test]
    fn what_is_no_profile_is_refused_with_the_row() {
        let error = loops_of("loop,seconds\na,1\nb,fast\n")
            .expect_err("refused")
            .to_string();
        assert!(
            error.contains("`fast` is not a number of seconds") && error.contains("row 2"),
            "{error}"
        );
        let error = loops_of("hello").expect_err("refused").to_string();
        assert!(error.contains("bytes in"), "{error}");
    }
}
