//! Instructions that were carried as text: written as they were read, with the registers of this kernel.
//!
//! ```text
//! before    %a, %b = opaque "mma.sync… {=0, =1}, {@0}, …" nothing unordered settled (f32, f32) (%x, …)
//! after     mma.sync… {%f1, %f2}, {%r3}, …;
//! ```

use super::emitter::Emitter;
use super::registers::Class;
use crate::error::{Error, Result};
use crate::ir::{Kernel, OpKind, Opaque, OpaqueOperands, Value};

/// Carried instructions, by parts of their text, that are newer than PTX 8.0 (PTX ISA, "PTX ISA notes" of each).
const NEWER: [(&str, &str, (u32, u32)); 12] = [
    ("ld.", ".b128", (8, 4)),
    ("st.", ".b128", (8, 4)),
    ("atom.", ".b128", (8, 4)),
    ("cvt.", ".satfinite.tf32.", (8, 1)),
    ("mma.", ".e4m3.", (8, 4)),
    ("mma.", ".e5m2.", (8, 4)),
    ("wgmma.", ".s8.u8", (8, 4)),
    ("wgmma.", ".u8.s8", (8, 4)),
    ("ldmatrix.", ".b8", (8, 6)),
    ("stmatrix.", ".b8", (8, 6)),
    ("multimem.", "", (8, 1)),
    ("tcgen05.", "", (8, 6)),
];

/// The oldest PTX version that has all instructions that a kernel carries.
pub(super) fn least_version(kernel: &Kernel) -> (u32, u32) {
    let mut least = (8, 0);
    kernel.body.walk(&mut |op| {
        if let OpKind::Opaque(what, _) = &op.kind {
            for (start, part, version) in NEWER {
                if what.text.starts_with(start) && what.name().contains(part) {
                    least = least.max(version);
                }
            }
        }
    });
    least
}

/// Carried instructions that one generation of GPUs has and later ones need not, by their beginnings.
const OF_ONE_GENERATION: [&str; 2] = ["wgmma.", "setmaxnreg."];

/// What follows the name of a kernel's target: `a` where it carries instructions of one generation.
pub(super) fn suffix(kernel: &Kernel) -> &'static str {
    let mut suffix = "";
    kernel.body.walk(&mut |op| {
        if let OpKind::Opaque(what, _) = &op.kind
            && OF_ONE_GENERATION.iter().any(|start| what.text.starts_with(start))
        {
            suffix = "a";
        }
    });
    suffix
}

/// Declarations of the functions that a kernel's carried calls name, for a module of its own; `declared` has some of them.
pub(super) fn declarations(kernel: &Kernel, declared: &str) -> String {
    let mut text = String::new();
    kernel.body.walk(&mut |op| {
        let OpKind::Opaque(what, _) = &op.kind else { return };
        let name = what.name();
        let is_known = [declared, &text]
            .iter()
            .any(|own| own.contains(&format!(" {name}(")));
        if !what.text.contains("call ") || is_known {
            return;
        }
        // The text declares `given0`, `given1`, … and the function's results: `made0`.
        let params = |kind: &str| -> Vec<String> {
            let words = what.text.split(".param ").skip(1);
            let params = words
                .filter_map(|word| word.split_once([';', ',']))
                .map(|(param, _)| param);
            let own =
                params.filter(|param| param.split(' ').nth(1).is_some_and(|name| name.starts_with(kind)));
            own.map(|param| format!(".param {param}")).collect()
        };
        let (given, made) = (params("given").join(", "), params("made").join(", "));
        let made = if made.is_empty() {
            made
        } else {
            format!("({made}) ")
        };
        text.push_str(&format!(".extern .func {made}{name}({given});\n"));
    });
    text
}

/// An instruction on registers of 128 bits, from one on pairs of registers; the first pair is the result, if there is one.
///
/// ```text
/// before    atom.exch.b128 {%rd1, %rd2}, [%rd3], {%rd4, %rd5}
/// after     { .reg .b128 q0, q1; mov.b128 q1, {%rd4, %rd5}; atom.exch.b128 q0, [%rd3], q1; mov.b128 {%rd1, %rd2}, q0; }
/// ```
fn with_quads(text: &str, has_result: bool) -> String {
    let (mut names, mut before, mut behind, mut whole) =
        (Vec::new(), String::new(), String::new(), String::new());
    let mut rest = text;
    while let Some((plain, pair, after)) = rest
        .split_once('{')
        .and_then(|(plain, open)| open.split_once('}').map(|(pair, after)| (plain, pair, after)))
    {
        let name = format!("q{}", names.len());
        whole.push_str(plain);
        whole.push_str(&name);
        match has_result && names.is_empty() {
            true => behind.push_str(&format!(" mov.b128 {{{pair}}}, {name};")),
            false => before.push_str(&format!(" mov.b128 {name}, {{{pair}}};")),
        }
        names.push(name);
        rest = after;
    }
    whole.push_str(rest);
    format!("{{ .reg .b128 {};{before} {whole};{behind} }}", names.join(", "))
}

impl Emitter<'_> {
    /// An instruction that is carried.
    ///
    /// # Errors
    /// It stands where it would be predicated.
    pub(super) fn opaque(&mut self, results: &[Value], what: &Opaque, values: &OpaqueOperands) -> Result<()> {
        if self.guard.is_some() {
            return Err(Error::bug("an instruction that is carried as text is predicated"));
        }
        if let Some((number, within)) = what.as_copy().zip(self.within) {
            let copy = within.copies.get(number);
            let mut text = copy.ok_or_else(|| Error::bug("a copy of no text"))?.clone();
            for (number, &value) in values.0.iter().enumerate() {
                let register = self.in_register(value);
                text = text.replace(&super::given(number), &register);
            }
            self.line(&text);
            return Ok(());
        }
        self.accumulate(results, what, values);
        let made: Vec<String> = results.iter().map(|&result| self.register(result)).collect();
        let mut given = Vec::with_capacity(values.0.len());
        for &value in &values.0 {
            // Not every instruction takes numbers where it takes registers.
            given.push(self.in_register(value));
        }
        let text = what.written(&made, &given);
        match what.name().ends_with(".b128") {
            true => self.line(&with_quads(&text, results.len() == 2)),
            false => self.line(&text),
        }
        Ok(())
    }

    /// The accumulators of asynchronous products are their last operands, in the registers of the results. They are not copied
    /// unless they are used elsewhere, because they may be in flight.
    fn accumulate(&mut self, results: &[Value], what: &Opaque, values: &OpaqueOperands) {
        if !what.text.starts_with("wgmma.mma_async") {
            return;
        }
        let first = values.0.len() - results.len().min(values.0.len());
        for (&result, &value) in results.iter().zip(&values.0[first..]) {
            let is_last_use = self.uses.get(&value) == Some(&1) && self.kernel.as_constant(value).is_none();
            if is_last_use && self.has_register(value) {
                let register = self.register(value);
                self.share(result, register);
                continue;
            }
            let (from, to) = (self.operand(value), self.register(result));
            let class = Class::of(self.ty(result)).map_or("b32", Class::ptx);
            self.ins(format!("mov.{class} {to}, {from}"));
        }
    }

    /// A value in a register, of any kind.
    pub(super) fn in_register(&mut self, value: Value) -> String {
        let operand = self.operand(value);
        match (operand.starts_with('%'), Class::of(self.ty(value))) {
            (false, Some(class)) => {
                let register = self.temporary(class);
                self.ins(format!("mov.{} {register}, {operand}", class.ptx()));
                register
            }
            _ => operand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_registers_become_registers_of_128_bits() {
        assert_eq!(
            with_quads("atom.exch.b128 {%rd1, %rd2}, [%rd3], {%rd4, %rd5}", true),
            "{ .reg .b128 q0, q1; mov.b128 q1, {%rd4, %rd5}; atom.exch.b128 q0, [%rd3], q1; mov.b128 {%rd1, %rd2}, q0; }"
        );
        assert_eq!(
            with_quads("st.relaxed.gpu.b128 [%rd3], {%rd4, %rd5}", false),
            "{ .reg .b128 q0; mov.b128 q0, {%rd4, %rd5}; st.relaxed.gpu.b128 [%rd3], q0; }"
        );
    }
}
