//! `docs/strategies.md`: each strategy as its pass describes itself, and a table from the descriptors.

use std::fmt::Write;

use headstart::prefetch::plan::{Carried, StrategyKind};

use crate::{compare, read};

const HEAD: &str = "# Strategies

How a plan can fetch a load's values early. `headstart plans` prints the grammar; [reading a report](reading.md) shows plans at work;
[the same bits](soundness.md) has the rules that make them safe. This page is made from the passes in `crates/prefetch/src`.

| strategy | where the values wait | who fetches them | options |
|---|---|---|---|
";

const TAIL: &str = "
`unroll:N` in front of a plan's loads runs N iterations together: their early fetches are issued together and waited for together. A
ring whose depth is a multiple of N needs no moves from one register to the next. `D`, the distance, is 1 to 4096 iterations, with
`unroll:N` a multiple of N.

`registers:R` behind it lets the compiler use R registers for a work-item (`.maxnreg R` in PTX). A module that serves any launch leaves
ptxas in doubt, and it keeps to 32 registers where it can: it then starts fewer loads at once. Where a launch leaves a core with few
work-groups there is room for more, and the plans for a user's module say how much.

`inner:N` in front of all else makes iterations of the loops inside part of the planned loop; the last section has the picture.
";

fn place(carried: Carried) -> &'static str {
    match carried {
        Carried::InBatches => "registers, from the start of a batch",
        Carried::InRegisters => "registers, a ring",
        Carried::InSlots => "shared memory, a ring",
        Carried::InBatchesOfSlots => "shared memory, from the start of a batch",
        Carried::Not => "a cache",
    }
}

/// A module's own description, without links into the code.
fn described(file: &str) -> String {
    let source = read(&format!("crates/prefetch/src/{file}.rs"));
    let lines = source.lines().take_while(|line| line.starts_with("//!"));
    let mut text = String::new();
    for line in lines {
        let line = line.trim_start_matches("//!");
        let line = line.strip_prefix(' ').unwrap_or(line);
        let _ = writeln!(
            text,
            "{}",
            line.replace("[`super::", "`")
                .replace("[`", "`")
                .replace("`]", "`")
        );
    }
    text
}

#[test]
fn the_page_of_strategies_is_what_the_passes_say() {
    let passes = read("crates/prefetch/src/apply.rs");
    let mut page = HEAD.to_owned();
    let mut files: Vec<&str> = Vec::new();
    for kind in StrategyKind::ALL {
        let it = kind.descriptor();
        let file = passes.lines().find_map(|line| {
            let (kinds, pass) = line.split_once(" => ")?;
            let mut kinds = kinds
                .split('|')
                .filter_map(|kind| kind.trim().strip_prefix("StrategyKind::"));
            kinds.find(|own| *own == format!("{kind:?}"))?;
            Some(pass.split_once("::pass(")?.0)
        });
        let file = file.unwrap_or_else(|| panic!("{kind:?} has no pass"));
        if !files.contains(&file) {
            files.push(file);
        }
        let who = match (it.is_joint, it.is_asynchronous) {
            (true, _) => "the sub-group together",
            (false, true) => "each work-item, by an asynchronous copy",
            (false, false) => "each work-item",
        };
        let levels = it.takes.levels.iter().map(|level| format!("`{level:?}`"));
        let mut options: Vec<String> = levels.collect();
        for (is_taken, option) in [
            (it.takes.layout, "`/plain`, `/padded`, `/interleaved`"),
            (it.takes.nontemporal, "`/nt`"),
            (it.takes.group, "`/group`"),
        ] {
            if is_taken {
                options.push(option.to_owned());
            }
        }
        let _ = writeln!(
            page,
            "| `{}` | {} | {who} | {} |",
            it.name,
            place(it.carried),
            options.join(", ")
        );
    }
    page.push_str(TAIL);
    for file in files.into_iter().chain(["inner"]) {
        let text = described(file);
        let (title, rest) = text.split_once("\n\n").expect("a first paragraph");
        let _ = write!(
            page,
            "\n## {}\n\n{}\n\n{rest}",
            file.replace('_', "-"),
            title.replace('\n', " ")
        );
    }
    compare("docs/strategies.md", &page);
}

#[test]
fn no_two_strategies_look_alike() {
    let looks: Vec<_> = StrategyKind::ALL
        .iter()
        .flat_map(|kind| {
            let it = kind.descriptor();
            std::iter::once(it.look).chain(it.look_at_l1)
        })
        .collect();
    for (at, look) in looks.iter().enumerate() {
        assert!(!looks[..at].contains(look), "{look:?} is there twice");
    }
}
