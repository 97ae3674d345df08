//! The parts of a plan that can be checked without the kernel: `#[prefetch("values=roling:4")]` is refused when the program is
//! compiled, at the part at fault.
//!
//! The whole grammar is the library's; it is applied when the kernel is built.

use proc_macro2::Span;
use syn::{Error, LitStr, Result};

/// The strategies, as `headstart::prefetch::plan::StrategyKind` names them; a test of the library compares both.
pub const STRATEGIES: [&str; 8] = [
    "batched-registers",
    "rolling-registers",
    "batched-shared",
    "rolling-shared",
    "rolling-async",
    "cache",
    "joint",
    "bulk",
];

/// How alike a name must be to be proposed: of 1 for the same.
const ALIKE: f64 = 0.7;

/// Checks that every part is `unroll:N` or `LOAD=STRATEGY:…` with a strategy that there is and a distance.
pub fn check(plan: &LitStr) -> Result<()> {
    let text = plan.value();
    if text.trim() == "none" {
        return Ok(());
    }
    let mut start = 0;
    for part in text.split(',') {
        let place = || {
            within(
                plan,
                start + part.len() - part.trim_start().len(),
                part.trim().len(),
            )
        };
        check_part(part.trim()).map_err(|what| Error::new(place(), what))?;
        start += part.len() + 1;
    }
    Ok(())
}

fn check_part(part: &str) -> std::result::Result<(), String> {
    if part == "early" {
        return Ok(());
    }
    if let Some(count) = part.strip_prefix("unroll:") {
        return match count.trim() == "full" || count.trim().parse::<u32>().is_ok_and(|count| count >= 2) {
            true => Ok(()),
            false => Err(format!(
                "`{part}`: accepted: `unroll:N` with N from 2, or `unroll:full`"
            )),
        };
    }
    let split = part
        .split_once('=')
        .map(|(load, strategy)| (load.trim(), strategy.trim()));
    let Some((_, strategy)) = split.filter(|(load, strategy)| !load.is_empty() && !strategy.is_empty())
    else {
        return Err(format!(
            "`{part}` is not part of a plan; accepted: `none`, `unroll:N`, `LOAD=STRATEGY:DISTANCE`, joined by commas"
        ));
    };
    let mut settings = strategy.split(':').map(str::trim);
    let name = settings.next().unwrap_or_default();
    if !STRATEGIES.contains(&name) {
        let alike = STRATEGIES
            .iter()
            .map(|known| (strsim::jaro_winkler(name, known), known));
        let alike = alike
            .filter(|(alike, _)| *alike >= ALIKE)
            .max_by(|one, other| one.0.total_cmp(&other.0));
        let meant = alike.map_or(String::new(), |(_, known)| format!("; did you mean `{known}`?"));
        return Err(format!(
            "no strategy `{name}`{meant} (strategies: {})",
            STRATEGIES.join(", ")
        ));
    }
    let distance = settings.next_back().unwrap_or_default();
    let distance = distance.split('/').next().unwrap_or_default().trim();
    match distance.parse::<u32>().is_ok_and(|distance| distance >= 1) {
        true => Ok(()),
        false => Err(format!(
            "invalid distance `{distance}` in `{part}`; a distance is a number of iterations from 1"
        )),
    }
}

/// The place of some bytes of a string's value; the whole string where the compiler cannot tell, or where escapes make the
/// source differ from the value.
fn within(plan: &LitStr, start: usize, length: usize) -> Span {
    let literal = plan.token();
    let quote = 1;
    match literal.to_string() == format!("\"{}\"", plan.value()) {
        true => literal
            .subspan(quote + start..quote + start + length)
            .unwrap_or(plan.span()),
        false => plan.span(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let plan = LitStr::new(text, Span::call_site());
        check(&plan).expect_err(text).to_string()
    }

    #[test]
    fn wrong_parts_are_named() {
        assert_eq!(
            refused("values=roling-async:4").split(" (").next(),
            Some("no strategy `roling-async`; did you mean `rolling-async`?")
        );
        assert!(refused("values=zzz:4").starts_with("no strategy `zzz` ("));
        assert!(refused("values=rolling-async").contains("invalid distance ``"));
        assert!(refused("values=cache:L1:0").contains("invalid distance `0`"));
        assert!(refused("unroll:1").contains("N from 2"));
        assert!(refused("values").contains("is not part of a plan"));
        for right in [
            "none",
            "unroll:full",
            "unroll:8, a=rolling-async:16/interleaved, b@row=cache:L1:2/nt",
            "a=joint:L2:4/group,b=bulk:L2:1",
        ] {
            assert!(check(&LitStr::new(right, Span::call_site())).is_ok(), "{right}");
        }
    }
}
