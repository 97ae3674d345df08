//! Broken modules: an error or a kernel, never a panic.

use super::{Facts, entries, read};
use headstart_testing::Random;

const TEXTS: [&str; 4] = [
    include_str!("../../../../corpus/first.ptx"),
    include_str!("../../../../corpus/together.ptx"),
    include_str!("../../../../corpus/lookup.ptx"),
    include_str!("../../../../corpus/dense.ptx"),
];

/// The text with some of its words and lines exchanged, doubled or gone.
fn mutated(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..random.between(1, 6) {
        let at = random.below(lines.len() as u64) as usize;
        let other = random.below(lines.len() as u64) as usize;
        match random.below(7) {
            0 => {
                lines.remove(at);
            }
            1 => lines.swap(at, other),
            2 => {
                let line = lines[other].clone();
                lines.insert(at, line);
            }
            3 => {
                // One character for another one.
                let odd = *random.choose(&[
                    "{", "}", ";", "[", "0", "-", ".", "%r1", "%p1", "\"", "/*", "é", ":", "@",
                ]);
                let position = random.below(lines[at].chars().count() as u64 + 1) as usize;
                let line: Vec<char> = lines[at].chars().collect();
                let (head, tail) = line.split_at(position);
                let tail: String = tail.iter().skip(1).collect();
                lines[at] = format!("{}{odd}{tail}", head.iter().collect::<String>());
            }
            _ => {
                // A word of one line in place of one of another.
                let words: Vec<&str> = lines[other].split_whitespace().collect();
                if words.is_empty() {
                    continue;
                }
                let word = (*random.choose(&words)).to_owned();
                let mut own: Vec<&str> = lines[at].split_whitespace().collect();
                if !own.is_empty() {
                    let position = random.below(own.len() as u64) as usize;
                    own[position] = &word;
                    lines[at] = own.join(" ");
                }
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

#[test]
fn mutated_modules_are_read_or_refused() {
    let mut random = Random::new(7);
    let (mut whole, mut refused) = (0, 0);
    for round in 0..240 {
        let text = mutated(&mut random, TEXTS[round % TEXTS.len()]);
        let Ok(names) = entries(&text) else {
            refused += 1;
            continue;
        };
        if names.is_empty() {
            continue;
        }
        match read(
            &text,
            "mutated.ptx",
            Some(random.choose(&names).as_str()),
            &Facts::default(),
        ) {
            Ok(_) => whole += 1,
            Err(error) => {
                assert_ne!(error.fault(), headstart_ir::Fault::Bug, "{error}\n{text}");
                refused += 1;
            }
        }
    }
    assert!(whole > 50 && refused > 20, "{whole} whole, {refused} refused");
}

#[test]
fn what_is_too_deep_or_too_much_is_refused() {
    let head =
        ".version 8.0\n.target sm_80\n.address_size 64\n.entry k()\n{\n.reg .pred %p<3>;\n.reg .b32 %r<3>;\n";
    let many = 3000;
    let mut branches = head.to_owned();
    for level in 0..many {
        branches.push_str(&format!("LOOP{level}:\nadd.u32 %r1, %r1, 1;\n"));
    }
    for level in (0..many).rev() {
        branches.push_str(&format!(
            "setp.ne.u32 %p1, %r1, {level};\n@%p1 bra LOOP{level};\n"
        ));
    }
    let blocks = format!("{head}{}", "{".repeat(100_000));
    let operands = format!("{head}mov.u32 %r1, {}1;\n}}", "{".repeat(100_000));
    for text in [format!("{branches}ret;\n}}"), blocks, operands] {
        let error = read(&text, "deep.ptx", None, &Facts::default()).expect_err("too deep");
        assert_eq!(error.fault(), headstart_ir::Fault::Input, "{error}");
    }
}
