//! What stands in a piece of a module for text that is not printed from the IR.
//!
//! ```text
//! before    opaque "<copy> 2" (%x)                        a copy of a part of the loop's text
//! after     { … that text, with `%x`'s register … }
//! before    %a = opaque "cvt.rn.f16x2.e4m3x2 =0, @0" nothing unordered alone speculatable settled (i32) (%x)
//! after     cvt.rn.f16x2.e4m3x2 %r1, %r2;                 what an address needs ahead
//! ```
//!
//! A kernel that is printed as a whole has no such instructions: they need what the module declares.

use super::emitter::Emitter;
use super::registers::Class;
use crate::error::{Error, Result};
use crate::ir::carried::Carried;
use crate::ir::{Opaque, OpaqueOperands, Value};

impl Emitter<'_> {
    /// An instruction that is carried.
    ///
    /// # Errors
    /// The kernel is no piece of the module that has the instruction, or it stands where it would be predicated.
    pub(super) fn opaque(&mut self, results: &[Value], what: &Opaque, values: &OpaqueOperands) -> Result<()> {
        let Some(within) = self.within else {
            return Err(Error::device(format!(
                "`{}` is carried as text, which only its own module has",
                what.name()
            ))
            .accepted("an edit of the module that the kernel was read from"));
        };
        if self.guard.is_some() {
            return Err(Error::bug("an instruction that is carried as text is predicated"));
        }
        if let Carried::Copy(number) = *what.does {
            let copy = within.copies.get(number);
            let mut text = copy.ok_or_else(|| Error::bug("a copy of no text"))?.clone();
            for (number, &value) in values.0.iter().enumerate() {
                let register = self.in_register(value);
                text = text.replace(&super::given(number), &register);
            }
            self.line(&text);
            return Ok(());
        }
        let made: Vec<String> = results.iter().map(|&result| self.register(result)).collect();
        // Not every instruction takes numbers where it takes registers.
        let given: Vec<String> = values.0.iter().map(|&value| self.in_register(value)).collect();
        self.line(&what.written(&made, &given));
        Ok(())
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
