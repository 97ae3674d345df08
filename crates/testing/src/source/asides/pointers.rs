//! Pointers `q` that lead into one of several rows: in all the forms that CUDA C has.

use super::{ROW, Weaver};

/// A row that a pointer may lead into.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    Global,
    Shared,
    Local,
    /// Read alone.
    Constant,
}

/// What an aside may do through a pointer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
    /// No row of local memory.
    Atomic,
}

/// A pointer `q` to words: its declaration, and how many there are.
pub(super) struct Made {
    pub text: String,
    pub words: u64,
    /// It is aligned as the row is.
    pub aligned: bool,
}

impl Weaver<'_> {
    pub(super) fn rows(&self, wanted: Use) -> Vec<Row> {
        let mut rows = vec![Row::Global];
        rows.extend(self.shared.then_some(Row::Shared));
        rows.extend((self.local && wanted != Use::Atomic).then_some(Row::Local));
        rows.extend((wanted == Use::Read).then_some(Row::Constant));
        rows
    }

    /// A row's first word.
    pub(super) fn row(&mut self, row: Row, counters: &[String]) -> String {
        match row {
            Row::Global => "rg".to_owned(),
            Row::Shared => "rs".to_owned(),
            Row::Local => "rl".to_owned(),
            Row::Constant => {
                let index = self.index(counters);
                format!("((unsigned*)xc + (({index}) & 3u) * 16u)")
            }
        }
    }

    /// Two rows, mostly of different memory.
    pub(super) fn two(&mut self, wanted: Use, counters: &[String]) -> (String, String) {
        let rows = self.rows(wanted);
        let one = *self.random.choose(&rows);
        let others: Vec<Row> = rows.iter().copied().filter(|row| *row != one).collect();
        let other = self.random.any_of(&others).copied().unwrap_or(one);
        (self.row(one, counters), self.row(other, counters))
    }

    /// A pointer `q` that leads into one of several rows.
    pub(super) fn pointer(&mut self, wanted: Use, counters: &[String]) -> Made {
        let (a, b) = self.two(wanted, counters);
        let (c, i) = (self.condition(counters), self.index(counters));
        let mask = format!("ull k0 = {c} ? ~0ull : 0ull;");
        let made = |text, words, aligned| Made { text, words, aligned };
        let whole = |text: String| made(text, ROW, true);
        let (name, pointer) = match self.random.below(20) {
            0 | 1 => ("one row", whole(format!("unsigned* q = {a};"))),
            2 | 3 => ("?:", whole(format!("unsigned* q = {c} ? {a} : {b};"))),
            4 => ("if", whole(format!("unsigned* q = {a}; if ({c}) q = {b};"))),
            5 => {
                let (other, _) = self.two(wanted, counters);
                let d = self.condition(counters);
                (
                    "?: ?:",
                    whole(format!("unsigned* q = {c} ? {a} : {d} ? {b} : {other};")),
                )
            }
            6 => {
                let text = format!("unsigned* table[2] = {{{a}, {b}}}; unsigned* q = table[({i}) & 1u];");
                ("table", whole(text))
            }
            7 => {
                let text =
                    format!("unsigned* q = (unsigned*)((ull)({c} ? {a} : {b}) | ((({i}) & 1u) * 32u));");
                ("or", made(text, ROW / 2, true))
            }
            8 => {
                let text =
                    format!("{mask} unsigned* q = (unsigned*)(((ull)({a}) & k0) | ((ull)({b}) & ~k0));");
                ("and or", whole(text))
            }
            9 => {
                let text = format!(
                    "{mask} unsigned* q = (unsigned*)((ull)({a}) ^ (((ull)({a}) ^ (ull)({b})) & k0));"
                );
                ("xor", whole(text))
            }
            10 => {
                let text = format!(
                    "unsigned* q = (unsigned*)((ull)({a}) + ({c} ? (ull)({b}) - (ull)({a}) : 0ull));"
                );
                ("difference", whole(text))
            }
            11 | 12 => {
                let pick = self.one(&["picked", "picked_far"]);
                let text =
                    format!("Pair two; two.one = {a}; two.other = {b}; unsigned* q = {pick}(two, {c});");
                ("struct", whole(text))
            }
            13 if self.shared => {
                self.kept = true;
                let text = format!(
                    "*(unsigned* volatile*)&kept[threadIdx.x] = {c} ? {a} : {b}; \
                     unsigned* q = *(unsigned* volatile*)&kept[threadIdx.x];"
                );
                ("kept in memory", whole(text))
            }
            14 => {
                let by = self.random.below(9);
                let text = format!("unsigned* q = ({c} ? {a} : {b}) + {by}u;");
                ("moved", made(text, ROW / 2, false))
            }
            15 => {
                let text = format!(
                    "ull k1 = (ull)({a}), k2 = (ull)({b}); unsigned k3 = {c} ? 0x3210u : 0x7654u; unsigned* q = \
                     (unsigned*)((ull)__byte_perm((unsigned)k1, (unsigned)k2, k3) | \
                     (ull)__byte_perm((unsigned)(k1 >> 32), (unsigned)(k2 >> 32), k3) << 32);"
                );
                ("prmt", whole(text))
            }
            16 => {
                let text =
                    format!("unsigned* q; asm(\"mov.b64 %0, %1;\" : \"=l\"(q) : \"l\"({c} ? {a} : {b}));");
                ("asm", whole(text))
            }
            // One register with two definitions: the form of its address follows from both.
            17 => {
                let text = format!(
                    "unsigned* table[2] = {{{b}, {a}}}; unsigned* q = {a}; if ({c}) q = table[({i}) & 1u];"
                );
                ("if table", whole(text))
            }
            18 => {
                let text = format!(
                    "unsigned* q = {a}; if ({c}) q = (unsigned*)((ull)({b}) | ((({i}) & 1u) * 32u));"
                );
                ("if or", made(text, ROW / 2, true))
            }
            _ => {
                let text = format!("unsigned* q = {a}; if ({c}) {{ q = {b}; e0 += 1u; }}");
                ("if", whole(text))
            }
        };
        self.features.insert(name);
        pointer
    }
}
