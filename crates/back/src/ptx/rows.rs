//! Rows of tables in the module's constant memory, for GPUs whose functions by tables are written out.

use super::emitter::Emitter;
use super::registers::Class;
use crate::ir::eval::table;

/// The name of the rows.
const ROWS: &str = "__table_rows";

/// The declarations for them, in a module or a block.
fn declaration(name: &str) -> String {
    let rows: Vec<String> = (0..table::ROWS as u64)
        .map(|index| format!("{:#x}", table::row(index)))
        .collect();
    format!(
        ".const .align 8 .b64 {name}[{}] = {{{}}};\n\n",
        rows.len(),
        rows.join(", ")
    )
}

impl Emitter<'_> {
    /// The declaration of the rows, where the kernel reads any.
    pub(super) fn declared_rows(&self) -> String {
        match self.reads_rows {
            true => declaration(&self.variable(ROWS)),
            false => String::new(),
        }
    }

    /// A row.
    pub(super) fn table_row(&mut self, r: &str, index: &str) {
        self.reads_rows = true;
        let [at, start] = [0; 2].map(|_| self.temporary(Class::B64));
        self.ins(format!("and.b64 {at}, {index}, {}", table::ROWS - 1));
        self.ins(format!("shl.b64 {at}, {at}, 3"));
        let rows = self.variable(ROWS);
        self.ins(format!("mov.u64 {start}, {rows}"));
        self.ins(format!("add.u64 {at}, {at}, {start}"));
        self.ins(format!("ld.const.u64 {r}, [{at}]"));
    }
}
