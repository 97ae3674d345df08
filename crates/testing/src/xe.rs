//! Listings of Xe machine code, read: how many instructions of each kind, the order of messages in loops, registers.
//!
//! A listing is the output of `ocloc disasm`. The code before the kernel's own (loads of its payload) and its end are left out,
//! and so are instructions that compute nothing: waits (`sync`), and register reads into the null register that wait for a
//! message to have read them.

use std::collections::BTreeMap;
use std::collections::HashMap;

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionKind {
    /// Integers, logic, moves, conversions, choices.
    Integer,
    /// Floating point.
    Float,
    /// The unit for special functions.
    Math,
    /// Jumps, and where lanes meet.
    Control,
    /// A load, from global or shared memory.
    Load,
    /// A store.
    Store,
    /// A load to nowhere.
    Hint,
    /// Atomic operations, fences, barriers.
    Other,
}

impl InstructionKind {
    /// All of them.
    pub const ALL: [InstructionKind; 8] = [
        InstructionKind::Integer,
        InstructionKind::Float,
        InstructionKind::Math,
        InstructionKind::Control,
        InstructionKind::Load,
        InstructionKind::Store,
        InstructionKind::Hint,
        InstructionKind::Other,
    ];

    /// Whether it is a message to memory or to others.
    pub fn is_message(self) -> bool {
        matches!(
            self,
            InstructionKind::Load | InstructionKind::Store | InstructionKind::Hint | InstructionKind::Other
        )
    }
}

/// A message: its kind, and the bytes of a work-item; 0 for messages of the whole sub-group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Message {
    /// What it does.
    pub kind: InstructionKind,
    /// Whether to shared memory.
    pub shared: bool,
    /// Bytes of each work-item.
    pub bytes: u32,
}

/// What a kernel consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Instructions by kind.
    pub counts: BTreeMap<InstructionKind, u32>,
    /// The messages of the whole kernel, in order.
    pub messages: Vec<Message>,
    /// The messages of each innermost loop, in order.
    pub loops: Vec<Vec<Message>>,
    /// Registers of 64 bytes that hold something at the same time, at most.
    pub registers: u32,
}

/// A line of the listing.
#[derive(Debug)]
struct Line {
    kind: Option<InstructionKind>,
    message: Option<Message>,
    /// Where it may go on, but for the next line.
    targets: Vec<String>,
    /// Whether it never goes on with the next line.
    ends: bool,
    writes: Vec<u32>,
    /// Those of `writes` that it writes as a whole.
    replaces: Vec<u32>,
    reads: Vec<u32>,
}

/// Bytes of a register.
const REGISTER: u32 = 64;

/// Reads a listing.
pub fn profile(text: &str) -> Profile {
    let (lines, labels) = lines(text);
    let mut profile = Profile::default();
    for line in &lines {
        if let Some(kind) = line.kind {
            *profile.counts.entry(kind).or_default() += 1;
        }
        if let Some(message) = line.message {
            profile.messages.push(message);
        }
    }
    let target = |name: &String| labels.get(name).copied();
    let mut loops: Vec<(usize, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        for start in line
            .targets
            .iter()
            .filter_map(target)
            .filter(|&start| start <= at)
        {
            // Several jumps to one place are one loop.
            match loops.iter_mut().find(|(first, _)| *first == start) {
                Some((_, end)) => *end = at.max(*end),
                None => loops.push((start, at)),
            }
        }
    }
    loops.sort_unstable();
    let is_innermost = |&&(start, end): &&(usize, usize)| {
        loops
            .iter()
            .all(|&(first, last)| (first, last) == (start, end) || first < start || last > end)
    };
    let innermost = loops.iter().filter(is_innermost);
    profile.loops = innermost
        .map(|&(start, end)| {
            lines[start..=end]
                .iter()
                .filter_map(|line| line.message)
                .collect()
        })
        .collect();
    profile.registers = most_alive(&lines, &labels);
    profile
}

/// The kernel's own lines, and where labels are among them.
fn lines(text: &str) -> (Vec<Line>, HashMap<String, usize>) {
    let all: Vec<&str> = text.lines().collect();
    let is_payload = |line: &&str| line.contains("bti[255]") || line.contains("a32.ca.ca.bti");
    let first = all.iter().rposition(is_payload).map_or(0, |at| at + 1);
    let (mut lines, mut labels) = (Vec::new(), HashMap::new());
    for line in &all[first..] {
        let line = line.trim_end();
        if let Some(label) = line.strip_suffix(':').filter(|label| !label.starts_with(' ')) {
            labels.insert(label.to_owned(), lines.len());
            continue;
        }
        if line.contains("EOT") {
            lines.push(Line {
                kind: None,
                ends: true,
                ..read("nop")
            });
            // What copies the header for the last message.
            if let Some(header) = lines
                .iter_mut()
                .rev()
                .nth(1)
                .filter(|line| !line.kind.is_some_and(InstructionKind::is_message))
            {
                header.kind = None;
            }
            break;
        }
        lines.push(read(line));
    }
    (lines, labels)
}

/// Reads a line.
fn read(line: &str) -> Line {
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let (predicate, code) = match code.trim_start().strip_prefix('(') {
        Some(rest) => rest.split_once(')').unwrap_or(("", rest)),
        None => ("", code),
    };
    let words: Vec<&str> = code.split_whitespace().collect();
    let opcode = words.first().copied().unwrap_or("");
    let width = words
        .get(1)
        .and_then(|word| word.strip_prefix('('))
        .and_then(|word| word.split_once('|'))
        .and_then(|(width, _)| width.parse().ok())
        .unwrap_or(1);
    // Behind the width: a condition's result or a flag, then operands.
    let operands: Vec<&str> = words
        .iter()
        .skip(2)
        .copied()
        .take_while(|word| !word.starts_with('{'))
        .collect();
    let operands = match operands.first() {
        Some(word) if word.starts_with('(') => &operands[1..],
        _ => &operands[..],
    };
    let is_guarded = !predicate.is_empty() && predicate != "W";
    let mut line = Line {
        kind: None,
        message: None,
        targets: Vec::new(),
        ends: false,
        writes: Vec::new(),
        replaces: Vec::new(),
        reads: Vec::new(),
    };
    let base = opcode.split('.').next().unwrap_or("");
    match base {
        "" | "nop" | "sync" => return line,
        "jmpi" | "goto" | "join" | "brc" | "brd" | "while" | "if" | "else" | "endif" | "break" | "cont"
        | "call" | "ret" => {
            line.kind = Some(InstructionKind::Control);
            // A `join` names where it goes if no lane comes.
            let labels = words.iter().skip(1).filter(|word| word.starts_with(['L', '_']));
            line.targets = labels.map(|&label| label.to_owned()).collect();
            line.ends = base == "jmpi" && !predicate.contains('f');
            return line;
        }
        "send" | "sends" | "sendc" => {
            line.message = Some(message(
                opcode,
                comment,
                operands.first().is_some_and(|word| word.starts_with("null")),
            ));
            line.kind = line.message.map(|message| message.kind);
            let (written, read) = payload(comment);
            if let Some(first) = operands.first().and_then(|word| register(word)) {
                line.writes = (first..first + written).collect();
                line.replaces = if is_guarded {
                    Vec::new()
                } else {
                    line.writes.clone()
                };
            }
            for (operand, count) in operands.iter().skip(1).zip(read) {
                if let Some(first) = register(operand) {
                    line.reads.extend(first..first + count);
                }
            }
            return line;
        }
        _ => {}
    }
    let result = operands.first().copied().unwrap_or("");
    if base == "mov" && result.starts_with("null") {
        return line;
    }
    let is_float = |word: &str| [":f", ":df", ":hf", ":bf"].iter().any(|ty| word.ends_with(ty));
    line.kind = Some(match base {
        "math" => InstructionKind::Math,
        "mov" | "sel" | "csel" => InstructionKind::Integer,
        // A comparison has its type at its operands.
        _ if operands.iter().skip(1).any(|word| is_float(word)) || is_float(result) => InstructionKind::Float,
        _ => InstructionKind::Integer,
    });
    if let Some((registers, is_whole)) = region(result, width, true) {
        if is_whole && !is_guarded {
            line.replaces.clone_from(&registers);
        }
        line.writes = registers;
    }
    for operand in operands.iter().skip(1) {
        line.reads
            .extend(region(operand, width, false).map_or(Vec::new(), |(registers, _)| registers));
    }
    line
}

/// What a message is, by its words in the comment: `wr:4+0, rd:2; load.ugm.d32x4.a64.ca.ca`.
fn message(opcode: &str, comment: &str, to_nowhere: bool) -> Message {
    let name = comment.rsplit(';').next().unwrap_or("").trim();
    let kind = match name.split('.').next().unwrap_or("") {
        "load" | "load_block2d" | "load_quad" if to_nowhere => InstructionKind::Hint,
        "load" | "load_block2d" | "load_quad" => InstructionKind::Load,
        "store" | "store_block2d" | "store_quad" => InstructionKind::Store,
        _ => InstructionKind::Other,
    };
    let shared = opcode.contains(".slm");
    let size = name.split('.').find_map(|part| part.strip_prefix('d'));
    // `d32`, `d8u32`, `d32x4`; a transposed one, `d32x8t`, is the sub-group's as a whole.
    let size = size.filter(|size| size.starts_with(|c: char| c.is_ascii_digit()));
    let number = |text: &str| -> u32 {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    let bytes = size.map_or(0, |size| {
        let (bits, count) = size.split_once('x').unwrap_or((size, "1"));
        match size.ends_with('t') {
            true => 0,
            false => number(bits) / 8 * number(count),
        }
    });
    Message { kind, shared, bytes }
}

/// The registers that a message writes, and those of its two payloads.
fn payload(comment: &str) -> (u32, [u32; 2]) {
    let after = |name: &str| -> Vec<u32> {
        let found = comment.split_once(name).map_or("", |(_, rest)| rest);
        let end = found.find([',', ';', ' ']).unwrap_or(found.len());
        found[..end]
            .split('+')
            .map(|part| part.parse().unwrap_or(0))
            .collect()
    };
    let read = after("wr:");
    let written = after("rd:").first().copied().unwrap_or(0);
    (
        written,
        [
            read.first().copied().unwrap_or(0),
            read.get(1).copied().unwrap_or(0),
        ],
    )
}

/// The number of a register: of `r12`, `-r12.0<1;1,0>:f`, `r5:8`.
fn register(operand: &str) -> Option<u32> {
    let operand = operand.trim_start_matches(['-', '~', '(', '[']);
    let operand = operand
        .strip_prefix("abs")
        .unwrap_or(operand)
        .trim_start_matches(['(', '-']);
    let digits: String = operand
        .strip_prefix('r')?
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// The registers of an operand, and whether it is all of them: by its place, its strides and its type.
fn region(operand: &str, width: u32, is_result: bool) -> Option<(Vec<u32>, bool)> {
    let first = register(operand)?;
    let ty = operand.rsplit(':').next().unwrap_or("ud");
    let size = match ty {
        "df" | "q" | "uq" => 8,
        "w" | "uw" | "hf" | "bf" => 2,
        "b" | "ub" => 1,
        _ => 4,
    };
    let numbers = |text: &str| -> u32 {
        text.chars()
            .take_while(char::is_ascii_digit)
            .collect::<String>()
            .parse()
            .unwrap_or(0)
    };
    let inside = operand.split_once('<').map_or("", |(_, rest)| rest);
    // A result has one stride; an operand `<8;8,1>` or, packed, `<1;1,0>`, of which the first says how far its elements are.
    // Those of the macros of division and square root have none to show.
    let stride = if operand.contains("mme") {
        1
    } else {
        numbers(inside)
    };
    let offset = match operand
        .split_once('<')
        .map_or(operand, |(before, _)| before)
        .split_once('.')
    {
        Some((name, sub)) if name.trim_start_matches(['-', '~', '(']).starts_with('r') => numbers(sub) * size,
        _ => 0,
    };
    let elements = if stride == 0 { 1 } else { width };
    let last = offset + (elements - 1) * stride.max(1) * size + size;
    let registers: Vec<u32> = (first..first + last.div_ceil(REGISTER)).collect();
    let is_whole = is_result && stride == 1 && offset == 0 && (elements * size).is_multiple_of(REGISTER);
    Some((registers, is_whole))
}

/// The most registers that are wanted at the same time.
fn most_alive(lines: &[Line], labels: &HashMap<String, usize>) -> u32 {
    const COUNT: usize = 256;
    let mut before: Vec<[bool; COUNT]> = vec![[false; COUNT]; lines.len() + 1];
    let mut changes = true;
    let mut most = 0;
    while changes {
        changes = false;
        most = 0;
        for (at, line) in lines.iter().enumerate().rev() {
            let mut alive = match line.ends {
                true => [false; COUNT],
                false => before[at + 1],
            };
            for target in line.targets.iter().filter_map(|name| labels.get(name)) {
                let there = before[*target];
                alive
                    .iter_mut()
                    .zip(there)
                    .for_each(|(alive, there)| *alive |= there);
            }
            let mut wanted = alive;
            line.writes
                .iter()
                .for_each(|&register| wanted[register as usize % COUNT] = true);
            most = most.max(wanted.iter().filter(|&&wanted| wanted).count());
            line.replaces
                .iter()
                .for_each(|&register| alive[register as usize % COUNT] = false);
            line.reads
                .iter()
                .for_each(|&register| alive[register as usize % COUNT] = true);
            if before[at] != alive {
                before[at] = alive;
                changes = true;
            }
        }
    }
    most as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "\
(W)     send.ugm (1|M0)          r4       r127    null:0  0xFF000000            0x6218D500           {I@1,$2} // wr:1+0, rd:1; load.ugm.d32x16t.a32.ca.ca.bti[255]
(W)     mov (1|M0)               null<1>:ud    0x30433:ud                              {$2.src}
        sync.nop                             null                             {Compacted,I@1}
(W)     shl (1|M0)               r4.6<1>:d     r0.1<0;1,0>:d     7:w               {A@1,$2.dst}
L880:
(W)     cmp (32|M0)   (lt)f0.0   null<1>:ud    r4.0<0;1,0>:ud    r4.1<0;1,0>:ud   {I@1}
        add (16|M0)              r18.0<1>:q    r14.0<1;1,0>:q    128:w               {Compacted}
        add (16|M16)             r20.0<1>:q    r16.0<1;1,0>:q    128:w               {Compacted}
(W&~f0.0) jmpi                               L984
        send.ugm (32|M0)         null     r18     null:0  0x0            0x08080580           {A@2,$3} // wr:4+0, rd:0; load.ugm.d32.a64.ca.ca
L984:
        send.ugm (32|M0)         r2       r14     null:0  0x0            0x08200580           {$4} // wr:4+0, rd:2; load.ugm.d32x4.a64
        math.rsqtm (16|M0) (eo)f3.0  r92.mme0:f  r2.nomme<1;1,0>:f             {A@1}
        add (32|M0)              r26.0<1>:f    r2.0<1;1,0>:f    r26.0<1;1,0>:f               {$5.dst}
(W&f0.0) jmpi                                L880
        send.slm (32|M0)         null     r14     r26:2  0x0            0x08200580           {$4} // wr:4+2, rd:0; store.slm.d32.a32
(W)     mov (16|M0)              r127.0<1>:f   r0.0<1;1,0>:f                    {Compacted}
(W)     send.gtwy (1|M0)         null     r127    null:0  0x0            0x02000010           {EOT,F@1,$6} // wr:1+0, rd:0; end of thread
        nop
(W)     mov (16|M0)              null<1>:ud    0x9A5BFFAB:ud
";

    #[test]
    fn a_listing_is_read() {
        let profile = profile(LISTING);
        let counts: Vec<(InstructionKind, u32)> = profile.counts.into_iter().collect();
        assert_eq!(
            counts,
            [
                (InstructionKind::Integer, 4),
                (InstructionKind::Float, 1),
                (InstructionKind::Math, 1),
                (InstructionKind::Control, 2),
                (InstructionKind::Load, 1),
                (InstructionKind::Store, 1),
                (InstructionKind::Hint, 1),
            ]
        );
        let message = |kind, bytes| Message {
            kind,
            bytes,
            shared: false,
        };
        assert_eq!(
            profile.loops,
            [[
                message(InstructionKind::Hint, 4),
                message(InstructionKind::Load, 16)
            ]]
        );
        // r0, r4, r14 to r17, r26 and r27 all along; r2, r3 where they are loaded, r18 to r21 before.
        assert_eq!(profile.registers, 12);
    }
}
