//! The plain functions beside a kernel. A call of one reports that `#[device_fn]` is missing; otherwise the compiler would
//! report an unknown type of that name.
//!
//! A macro is handed one item. The items beside it are read from the source file, once for all kernels in it. Where that is not
//! to be had (an editor's server, a kernel that a macro writes) nothing is known, and the compiler's message has to do. So it has
//! in every doubtful case: only a function is called plain that certainly is.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::SystemTime;

use syn::visit::{self, Visit};
use syn::{Attribute, Block, Item, ItemFn};

/// Attributes that do not change a function.
const INERT: [&str; 12] = [
    "allow",
    "cfg",
    "cold",
    "deprecated",
    "deny",
    "doc",
    "expect",
    "inline",
    "must_use",
    "rustfmt",
    "track_caller",
    "warn",
];

/// The functions of a module, by name: whether each is plain.
type Functions = BTreeMap<String, bool>;

/// The modules of a file, and when it was written. Names alone: the compiler's parsed tokens do not outlive the macro.
type Modules = (Option<SystemTime>, Rc<Vec<Functions>>);

thread_local! {
    static FILES: RefCell<HashMap<PathBuf, Modules>> = RefCell::default();
}

/// The names of the plain functions in the module of this kernel or device function.
pub fn beside(function: &ItemFn) -> BTreeSet<String> {
    // Outside a running macro there is no source.
    if !proc_macro::is_available() || has_items(&function.block) {
        return BTreeSet::new();
    }
    let file = function.sig.ident.span().unwrap().local_file();
    let modules = file.map(|file| modules_of(&file)).unwrap_or_default();
    plain_in(&modules, &function.sig.ident.to_string())
}

/// Whether a body has items of its own that may hide those beside it.
fn has_items(body: &Block) -> bool {
    struct Found(bool);
    impl<'a> Visit<'a> for Found {
        fn visit_item(&mut self, item: &'a Item) {
            self.0 |= !matches!(item, Item::Const(_) | Item::Type(_));
            visit::visit_item(self, item);
        }
    }
    let mut found = Found(false);
    found.visit_block(body);
    found.0
}

/// Of all modules with a kernel of this name, the functions that are plain in each.
fn plain_in(modules: &[Functions], kernel: &str) -> BTreeSet<String> {
    let with_it = modules
        .iter()
        .filter(|functions| functions.get(kernel) == Some(&false));
    let plain = with_it.map(|functions| {
        let plain = functions.iter().filter(|(_, is_plain)| **is_plain);
        plain.map(|(name, _)| name.clone()).collect::<BTreeSet<_>>()
    });
    plain
        .reduce(|one, other| one.intersection(&other).cloned().collect())
        .unwrap_or_default()
}

fn modules_of(file: &Path) -> Rc<Vec<Functions>> {
    let written = fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
    FILES.with_borrow_mut(|files| match files.get(file) {
        Some((read, modules)) if *read == written => Rc::clone(modules),
        _ => {
            let text = fs::read_to_string(file).unwrap_or_default();
            let modules = Rc::new(modules_in(&text));
            files.insert(file.to_owned(), (written, Rc::clone(&modules)));
            modules
        }
    })
}

/// The functions of each module in a file; none in a file that is not Rust.
fn modules_in(text: &str) -> Vec<Functions> {
    let mut modules = Vec::new();
    if let Ok(file) = syn::parse_file(text) {
        add(&file.items, &mut modules);
    }
    modules
}

fn add(items: &[Item], modules: &mut Vec<Functions>) {
    let mut functions = Functions::new();
    for item in items {
        match item {
            Item::Fn(function) => {
                let is_plain = function.attrs.iter().all(is_inert);
                let known = functions.entry(function.sig.ident.to_string()).or_insert(true);
                *known &= is_plain;
            }
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    add(items, modules);
                }
            }
            _ => {}
        }
    }
    modules.push(functions);
}

fn is_inert(attribute: &Attribute) -> bool {
    let first = attribute.path().segments.first();
    first.is_some_and(|first| INERT.iter().any(|inert| first.ident == inert))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_certainly_plain_is() {
        let text = "
            /// Plain.
            #[inline] fn plain() {}
            #[device_fn] fn device() {}
            #[attribute_of_theirs] fn theirs() {}
            #[cfg(a)] fn either() {}
            #[cfg(not(a))] #[device_fn] fn either() {}
            #[kernel] fn k() {}
            mod inner {
                fn elsewhere() {}
                #[kernel] fn other() {}
                mod innermost { fn plain() {} #[kernel] fn k() {} fn elsewhere() {} }
            }";
        let modules = modules_in(text);
        let plain = |kernel: &str| plain_in(&modules, kernel).into_iter().collect::<Vec<_>>();
        // Two kernels have the name: a function that is plain beside one alone may not be plain to the other.
        assert_eq!(plain("k"), ["plain"]);
        assert_eq!(plain("other"), ["elsewhere"]);
        assert!(plain("plain").is_empty() && plain("missing").is_empty());
        assert!(modules_in("fn broken(").is_empty());
    }

    #[test]
    fn items_inside_hide_those_beside() {
        let has = |body: &str| has_items(&syn::parse_str(body).expect("a block"));
        assert!(has("{ if true { use other::helper; } }"));
        assert!(has("{ #[device_fn] fn helper() {} }"));
        assert!(!has("{ const N: u32 = 4; let x = N; }"));
    }
}
