//! Nothing takes a message apart: what decides is data, an error's [`Fault`](headstart::Fault) or its cause.
//!
//! The sources outside tests are read as syntax. A message is the text of an error, a reason, a note or a doubt, or a variable
//! that was made from one. To search it, to cut it or to match on it is refused. The crate `testing` counts errors by their
//! words, and is for tests alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Member, Pat};

/// The folders of the library, the command, the laboratory and the preloaded library, beside this package.
const FOLDERS: [&str; 6] = [
    "src",
    "../crates",
    "../headstart-cli/src",
    "../headstart-driver/src",
    "../lab/src",
    "../gallery/src",
];

/// Methods of an error that give its text.
const TEXTS: [&str; 4] = ["what", "accepts", "place", "unblamed"];

/// What holds a message, by its usual names.
const HOLDERS: [&str; 9] = [
    "error", "reason", "message", "why", "note", "doubt", "refusal", "refused", "failure",
];

/// Methods that look for something in a text, or cut it.
const SEARCHES: [&str; 18] = [
    "contains",
    "ends_with",
    "find",
    "match_indices",
    "matches",
    "replace",
    "replacen",
    "rfind",
    "rsplit",
    "rsplit_once",
    "rsplitn",
    "split",
    "split_once",
    "splitn",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_start_matches",
];

/// Methods that leave a text as it is.
const KEEPS: [&str; 8] = [
    "as_deref",
    "as_ref",
    "as_str",
    "clone",
    "to_owned",
    "to_string",
    "trim",
    "unwrap_or_default",
];

/// Files that read the message of another project's parser, which has no other form, and show it in our words.
const OF_OTHERS: [&str; 3] = [
    "crates/model/src/load.rs",
    "gallery/src/spatter.rs",
    "headstart-cli/src/compare/reports.rs",
];

/// Looks for places of a file that take messages apart.
struct Searches {
    /// Variables that were made from a message.
    made: BTreeSet<String>,
    found: Vec<String>,
}

/// Whether an item is compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        syn::Meta::NameValue(_) => false,
    })
}

impl Searches {
    /// Whether an expression is the text of a message.
    fn is_message(&self, expr: &Expr) -> bool {
        match expr {
            Expr::MethodCall(call) => {
                let method = call.method.to_string();
                let is_text = TEXTS.contains(&method.as_str()) || HOLDERS.contains(&method.as_str());
                is_text && call.args.is_empty()
                    || KEEPS.contains(&method.as_str()) && self.is_message(&call.receiver)
            }
            Expr::Path(path) => path.path.get_ident().is_some_and(|name| {
                let name = name.to_string();
                HOLDERS.contains(&name.as_str()) || self.made.contains(&name)
            }),
            Expr::Field(field) => {
                matches!(&field.member, Member::Named(name) if HOLDERS.contains(&name.to_string().as_str()))
            }
            Expr::Reference(inner) => self.is_message(&inner.expr),
            Expr::Paren(inner) => self.is_message(&inner.expr),
            Expr::Try(inner) => self.is_message(&inner.expr),
            _ => false,
        }
    }

    /// Whether a pattern compares with a text.
    fn is_text(pattern: &Pat) -> bool {
        match pattern {
            Pat::Lit(literal) => matches!(literal.lit, syn::Lit::Str(_)),
            Pat::Or(all) => all.cases.iter().any(Searches::is_text),
            Pat::TupleStruct(of) => of.elems.iter().any(Searches::is_text),
            _ => false,
        }
    }

    fn refuse(&mut self, at: proc_macro2::Span) {
        let start = at.start();
        self.found.push(format!("{}:{}", start.line, start.column + 1));
    }
}

impl<'a> Visit<'a> for Searches {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            self.made.clear();
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.made.clear();
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        let is_message = local
            .init
            .as_ref()
            .is_some_and(|init| self.is_message(&init.expr));
        if let (Pat::Ident(name), true) = (&local.pat, is_message) {
            self.made.insert(name.ident.to_string());
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if SEARCHES.contains(&call.method.to_string().as_str()) && self.is_message(&call.receiver) {
            self.refuse(call.method.span());
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_match(&mut self, matched: &'a syn::ExprMatch) {
        if self.is_message(&matched.expr)
            && let Some(arm) = matched.arms.iter().find(|arm| Searches::is_text(&arm.pat))
        {
            self.refuse(arm.fat_arrow_token.spans[0]);
        }
        // `match error.what() { what if what.starts_with(…) => …`
        let bound = matched.arms.iter().filter_map(|arm| match &arm.pat {
            Pat::Ident(name) if self.is_message(&matched.expr) => Some(name.ident.to_string()),
            _ => None,
        });
        let bound: Vec<String> = bound.collect();
        self.made.extend(bound);
        visit::visit_expr_match(self, matched);
    }
}

/// The places in a source that take messages apart, as `line:column`.
fn searches(text: &str) -> Result<Vec<String>, syn::Error> {
    let mut searches = Searches {
        made: BTreeSet::new(),
        found: Vec::new(),
    };
    searches.visit_file(&syn::parse_file(text)?);
    Ok(searches.found)
}

/// The files of a module tree that are not for tests alone.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    for entry in entries {
        let path = entry.expect("an entry of it").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !matches!(&*name, "tests" | "testing" | "examples" | "target") {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" && !is_declared_for_tests(&path) {
            found.push(path);
        }
    }
}

/// Whether the module that declares a file does so under `#[cfg(test)]`.
fn is_declared_for_tests(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else {
        return false;
    };
    let name = name.to_string_lossy();
    let parents = [
        folder.join("mod.rs"),
        folder.join("lib.rs"),
        folder.join("main.rs"),
        folder.with_extension("rs"),
    ];
    parents
        .iter()
        .filter_map(|parent| fs::read_to_string(parent).ok())
        .any(|text| {
            let file = syn::parse_file(&text).expect("it compiles");
            file.items.iter().any(|item| {
            matches!(item, syn::Item::Mod(module) if module.ident == *name && is_for_tests(&module.attrs))
        })
        })
}

#[test]
fn no_message_is_taken_apart() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in FOLDERS {
        sources(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "{} files were found", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source");
        let places = searches(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if OF_OTHERS.iter().any(|known| file.ends_with(known)) {
            assert!(!places.is_empty(), "{} need not be listed", file.display());
            continue;
        }
        found.extend(places.iter().map(|place| format!("{}:{place}", file.display())));
    }
    assert!(
        found.is_empty(),
        "a message is searched or cut: decide by `Error::cause` or other data\n{}",
        found.join("\n")
    );
}

#[test]
fn each_way_to_take_a_message_apart_is_found() {
    for wrong in [
        "error.what().contains(\"out of bounds\")",
        "error.to_string().ends_with(\"has not ended\")",
        "(&error.to_string()).strip_prefix(\"a bug\").is_some()",
        "trial.reason().split_once(\": \").is_some()",
        "self.reason.starts_with(WORDS)",
        "{ let said = error.what(); said.contains(\"race\") }",
        "match error.what() { what if what.starts_with(\"no\") => true, _ => false }",
        "match error.what() { \"no line\" => true, _ => false }",
    ] {
        let text = format!("fn f() -> bool {{ {wrong} }}");
        assert_eq!(searches(&text).expect("it parses").len(), 1, "{wrong}");
        let tested = format!("#[cfg(test)] mod tests {{ #[test] {text} }}");
        assert_eq!(searches(&tested).expect("it parses").len(), 0, "{wrong}");
    }
    for right in [
        "matches!(error.cause(), Some(Violation::Race { .. }))",
        "what.text.starts_with(\"wgmma\")",
        "match error.place() { Some(place) => f(place), None => false }",
    ] {
        let text = format!("fn f() -> bool {{ {right} }}");
        assert_eq!(searches(&text).expect("it parses").len(), 0, "{right}");
    }
}
