use std::fmt::Write;
use std::time::{Duration, Instant};

use super::counted::DEEPEST_CALL;
use super::*;
use crate::ptx::parse;

/// A module whose functions each contain `lines` and call the next one this many times; the last one calls `last`.
fn chain(functions: usize, times: usize, lines: &str, last: &str) -> String {
    let mut text = ".version 8.0\n.target sm_80\n.address_size 64\n".to_owned();
    for number in (0..functions).rev() {
        let next = match number + 1 == functions {
            true => last.to_owned(),
            false => format!("call f{};\n", number + 1).repeat(times),
        };
        let _ = writeln!(text, ".func f{number}()\n{{\n{lines}{next}ret;\n}}");
    }
    text + ".visible .entry k()\n{\ncall f0;\nret;\n}\n"
}

fn statements(text: &str) -> std::result::Result<usize, String> {
    let module = parse::module(text).map_err(|error| error.to_string())?;
    let entry = module.functions.iter().find(|function| function.is_entry);
    let body = expanded(text, &module, entry.expect("an entry"));
    body.map(|body| body.statements.len())
        .map_err(|error| error.to_string())
}

#[test]
fn calls_are_counted_before_they_are_written_out() {
    for (text, expected) in [
        (chain(30, 2, "", ""), "too many instructions; at most 1048576"),
        (chain(20, 2, "", ""), "too many instructions"),
        (
            chain(12, 2, ".reg .b32 %a<4>, x, y;\n".repeat(200).as_str(), ""),
            "",
        ),
        (
            chain(
                12,
                2,
                &(0..400)
                    .map(|own| format!(".reg .b32 x{own};\n"))
                    .collect::<String>(),
                "",
            ),
            "too many registers",
        ),
    ] {
        let begun = Instant::now();
        match (statements(&text), expected) {
            (Ok(_), "") => {}
            (found, expected) => {
                let said = found.expect_err(expected);
                assert!(said.contains(expected), "{said}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn calls_are_nested_so_deeply_at_most() {
    statements(&chain(DEEPEST_CALL, 1, "", "")).expect("they are");
    let said = statements(&chain(DEEPEST_CALL + 1, 1, "", "")).expect_err("too deep");
    assert!(
        said.contains("the calls of `f") && said.contains("line "),
        "{said}"
    );
    // Functions that call themselves are not written out.
    for text in [chain(3, 2, "", "call f1;\n"), chain(1, 1, "", "call f0;\n")] {
        statements(&text).expect("the call stays");
    }
    // A function that was counted where it is called from the entry is called at the bottom, too.
    let deep = chain(DEEPEST_CALL, 1, "", "").replace("call f0;", "call f31;\ncall f0;");
    statements(&deep).expect("as deep as it was");
    let deeper = chain(DEEPEST_CALL, 1, "", "call g;\n")
        .replace(".func f31()", ".func g()\n{\nret;\n}\n.func f31()")
        .replace("call f0;", "call g;\ncall f0;");
    let said = statements(&deeper).expect_err("too deep");
    assert!(said.contains("the calls of `g`"), "{said}");
}
