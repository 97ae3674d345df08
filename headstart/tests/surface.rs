//! The public surface of the library: every item that a program can name, in `surface.txt`.
//!
//! A change of the surface changes that file, too, and shows the user-visible effect there. `HEADSTART_BLESS=1` rewrites it. It
//! is read from the sources: modules, items, fields, variants, methods and the implemented traits. Declarations by our own
//! macros are listed by name alone. Hidden items, and what `headstart` shows nowhere, are no part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use quote::ToTokens;
use syn::{Attribute, ImplItem, Item, ItemImpl, Meta, TraitItem, UseTree, Visibility};

/// A module's path, without the crate's name.
type Place = Vec<String>;

/// A module: its items, and whether a program can reach it by its own path.
#[derive(Default)]
struct Module {
    items: Vec<Item>,
    /// What its `use` declarations bring: paths and the names that they get there.
    uses: Vec<(Vec<String>, String)>,
    is_public: bool,
    /// Whether the module around it shows it.
    is_open: bool,
}

/// The crates that the library is made of, by their folders below `crates`. `headstart` says which of their items are shown,
/// and where.
const CRATES: [&str; 13] = [
    "back", "checker", "cuda", "device", "front", "ir", "model", "opencl", "prefetch", "report", "runtime",
    "sim", "tune",
];

/// The library as it is written.
#[derive(Default)]
struct Crate {
    modules: BTreeMap<Place, Module>,
    /// Where the items of other crates lie, by the crates' names in paths.
    mounts: BTreeMap<String, Place>,
    /// Implementations, with the modules that they stand in.
    implementations: Vec<(Place, ItemImpl)>,
}

/// Whether something is there for programs: neither hidden nor for tests.
fn is_shown(attributes: &[Attribute]) -> bool {
    !attributes.iter().any(|one| is_hidden(one) || is_for_tests(one))
}

fn is_hidden(attribute: &Attribute) -> bool {
    matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("doc") && list.tokens.to_string() == "hidden")
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else {
        return false;
    };
    let text = list.tokens.to_string();
    list.path.is_ident("cfg") && (text == "test" || text.contains("\"samples\"") || text == "doctest")
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

/// Tokens as one would write them.
fn spelled(tokens: &impl ToTokens) -> String {
    let text = tokens.to_token_stream().to_string();
    let mut said = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        let is_tight = |c: char| "(<[&:>)],.;?!".contains(c);
        let before = said.chars().last();
        let opens = before.is_none_or(|c| "(<[&:!'".contains(c));
        let closes = next.is_some_and(|c| is_tight(c) && c != '&' && c != '[' && c != '(');
        let calls = next.is_some_and(|c| "(<[".contains(c)) && before.is_some_and(char::is_alphanumeric);
        // `: u32` and `-> T` keep their spaces.
        let kept = before == Some(':') && !said.ends_with("::");
        let arrow = said.ends_with("->") || next == Some('>') && said.ends_with('-');
        match c {
            ' ' if !kept && !arrow && (opens || closes || calls) => {}
            c => said.push(c),
        }
    }
    said
}

impl Crate {
    fn read(source: &Path) -> Crate {
        let mut all = Crate::default();
        all.module(Vec::new(), &source.join("lib.rs"), source, true);
        all
    }

    /// With the crates beside it, below this folder.
    fn with_parts(mut self, crates: &Path) -> Crate {
        for name in CRATES {
            let place = vec![format!("headstart_{name}")];
            self.mounts.insert(place[0].clone(), place.clone());
            let source = crates.join(name).join("src");
            self.module(place, &source.join("lib.rs"), &source, false);
        }
        self
    }

    /// The root of the crate that a module belongs to.
    fn root_of(&self, place: &[String]) -> Place {
        let roots = self.mounts.values().filter(|root| place.starts_with(root));
        roots.max_by_key(|root| root.len()).cloned().unwrap_or_default()
    }

    fn module(&mut self, place: Place, file: &Path, folder: &Path, is_public: bool) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let items = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.items(place, items.items, folder, is_public);
    }

    fn items(&mut self, place: Place, items: Vec<Item>, folder: &Path, is_public_module: bool) {
        let mut kept = Vec::new();
        for item in items {
            match item {
                Item::Mod(module) if module.attrs.iter().any(is_for_tests) => {}
                Item::Mod(module) => {
                    let name = module.ident.to_string();
                    let mut inner = place.clone();
                    inner.push(name.clone());
                    // The items of a hidden one may be shown elsewhere.
                    let is_open = is_public(&module.vis) && is_shown(&module.attrs);
                    self.modules.entry(inner.clone()).or_default().is_open = is_open;
                    let is_public_here = is_public_module && is_open;
                    let folder = folder.join(&name);
                    match module.content {
                        Some((_, items)) => self.items(inner, items, &folder, is_public_here),
                        None => {
                            let file = match folder.join("mod.rs") {
                                file if file.exists() => file,
                                _ => folder.with_extension("rs"),
                            };
                            self.module(inner, &file, &folder, is_public_here);
                        }
                    }
                }
                Item::Impl(one) if is_shown(&one.attrs) => self.implementations.push((place.clone(), one)),
                item => kept.push(item),
            }
        }
        let uses = kept.iter().filter_map(|item| match item {
            Item::Use(item) => Some(flattened(&item.tree)),
            _ => None,
        });
        let module = self.modules.entry(place).or_default();
        module.uses.extend(uses.flatten());
        module.items.extend(kept);
        module.is_public |= is_public_module;
    }

    /// Where a path that stands in a module leads: to a module, or to an item of one.
    fn resolve(&self, from: &[String], path: &[String]) -> Option<(Place, Option<String>)> {
        let mut at: Place = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                at = self.root_of(from);
                rest = &path[1..];
            }
            name if self.mounts.contains_key(name) => {
                at = self.mounts[name].clone();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            _ => {}
        }
        while rest.first().is_some_and(|part| part == "super") {
            at.pop();
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let mut inner = at.clone();
            inner.push(name.clone());
            if self.modules.contains_key(&inner) {
                at = inner;
                rest = &rest[1..];
                continue;
            }
            let module = self.modules.get(&at)?;
            if rest.len() == 1 && module.items.iter().any(|item| declares(item, name)) {
                return Some((at, Some(name.clone())));
            }
            // Another module's re-export.
            for (path, alias) in &module.uses {
                let (first, behind) = path.split_first().expect("a path has a name");
                let is_itself = behind.is_empty() && first == name
                    || self.mounts.get(first) == Some(&at) && behind == std::slice::from_ref(name);
                let is_meant = alias == name && !is_itself;
                if is_meant && let Some((place, item)) = self.resolve(&at, path) {
                    let further = place.into_iter().chain(item).chain(rest[1..].iter().cloned());
                    return self.resolve(&[], &further.collect::<Place>());
                }
            }
            return None;
        }
        Some((at, None))
    }
}

/// An item: its module, its name there, and its path below what brings it.
type Brought = (Place, String, Vec<String>);

impl Crate {
    /// What a re-export of this path brings: an item, or what a module shows.
    fn brought(&self, from: &[String], path: &[String]) -> Vec<Brought> {
        let path = path.strip_suffix(&["*".to_owned()]).unwrap_or(path);
        match self.resolve(from, path) {
            Some((place, Some(name))) => vec![(place, name, Vec::new())],
            Some((place, None)) => self.inside(&place),
            None => Vec::new(),
        }
    }

    /// What a module shows, with what its modules show.
    fn inside(&self, place: &Place) -> Vec<Brought> {
        let module = &self.modules[place];
        let shown = module.items.iter().filter(|item| is_shown(attributes(item)));
        let mut found: Vec<Brought> = Vec::new();
        for item in shown {
            match item {
                Item::Use(item) if is_public(&item.vis) => {
                    for (path, alias) in flattened(&item.tree) {
                        let brought = self.brought(place, &path).into_iter();
                        found.extend(brought.map(|(inner, name, mut within)| {
                            if alias != "*" {
                                within.insert(0, alias.clone());
                            }
                            (inner, name, within)
                        }));
                    }
                }
                item => {
                    let names = names(item).into_iter();
                    found.extend(names.map(|name| (place.clone(), name.clone(), vec![name])));
                }
            }
        }
        let modules = self.modules.iter();
        let inner = modules.filter(|(inner, module)| {
            module.is_open && inner.len() == place.len() + 1 && inner.starts_with(place)
        });
        for (inner, _) in inner {
            let own = &inner[place.len()];
            found.extend(self.inside(inner).into_iter().map(|(place, name, mut within)| {
                within.insert(0, own.clone());
                (place, name, within)
            }));
        }
        found
    }
}

/// The paths of a `use`, with the names that they get. A star has the name `*`.
fn flattened(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let inner = flattened(&path.tree).into_iter();
            inner
                .map(|(mut path, name)| {
                    let name = if path == ["self"] && name == "self" {
                        first.clone()
                    } else {
                        name
                    };
                    if path == ["self"] {
                        path.clear();
                    }
                    path.insert(0, first.clone());
                    (path, name)
                })
                .collect()
        }
        UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        UseTree::Rename(renamed) => vec![(vec![renamed.ident.to_string()], renamed.rename.to_string())],
        UseTree::Glob(_) => vec![(vec!["*".to_owned()], "*".to_owned())],
        UseTree::Group(group) => group.items.iter().flat_map(flattened).collect(),
    }
}

/// The name of an item, where it has one.
fn name_of(item: &Item) -> Option<String> {
    Some(match item {
        Item::Const(item) => item.ident.to_string(),
        Item::Enum(item) => item.ident.to_string(),
        Item::Fn(item) => item.sig.ident.to_string(),
        Item::Static(item) => item.ident.to_string(),
        Item::Struct(item) => item.ident.to_string(),
        Item::Trait(item) => item.ident.to_string(),
        Item::Type(item) => item.ident.to_string(),
        Item::Union(item) => item.ident.to_string(),
        _ => return None,
    })
}

/// The items that a macro of ours declares: what stands behind a `pub`.
fn of_macro(item: &syn::ItemMacro) -> Vec<(String, String)> {
    let text = item.mac.tokens.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let kinds = ["enum", "struct", "fn", "trait", "type", "const"];
    let declared = words
        .windows(3)
        .filter(|words| words[0] == "pub" && kinds.contains(&words[1]) && words[2] != "$");
    declared
        .map(|words| (words[1].to_owned(), words[2].to_owned()))
        .collect()
}

/// The names that an item declares.
fn names(item: &Item) -> Vec<String> {
    match item {
        Item::Macro(item) => of_macro(item).into_iter().map(|(_, name)| name).collect(),
        item => name_of(item).into_iter().collect(),
    }
}

fn declares(item: &Item, name: &str) -> bool {
    names(item).iter().any(|own| own == name)
}

/// An item and what a program can reach of it, a line each.
fn lines(path: &str, item: &Item, name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut fields = |path: &str, fields: &syn::Fields, is_open: bool| {
        for (number, field) in fields.iter().enumerate() {
            if (is_open || is_public(&field.vis)) && is_shown(&field.attrs) {
                let name = field
                    .ident
                    .as_ref()
                    .map_or(number.to_string(), ToString::to_string);
                lines.push(format!("{path}::{name}: {}", spelled(&field.ty)));
            }
        }
    };
    let mut first = Vec::new();
    match item {
        Item::Const(item) if is_public(&item.vis) => {
            first.push(format!("const {path}: {}", spelled(&item.ty)))
        }
        Item::Static(item) if is_public(&item.vis) => {
            first.push(format!("static {path}: {}", spelled(&item.ty)))
        }
        Item::Type(item) if is_public(&item.vis) => {
            first.push(format!(
                "type {path}{} = {}",
                spelled(&item.generics),
                spelled(&item.ty)
            ));
        }
        Item::Fn(item) if is_public(&item.vis) => first.push(function(path, &item.sig)),
        Item::Struct(item) if is_public(&item.vis) => {
            first.push(format!(
                "struct {path}{}{}",
                spelled(&item.generics),
                derived(&item.attrs)
            ));
            fields(path, &item.fields, false);
        }
        Item::Enum(item) if is_public(&item.vis) => {
            first.push(format!(
                "enum {path}{}{}",
                spelled(&item.generics),
                derived(&item.attrs)
            ));
            for variant in &item.variants {
                let path = format!("{path}::{}", variant.ident);
                fields(&path, &variant.fields, true);
                first.push(format!("{path} (variant)"));
            }
        }
        Item::Trait(item) if is_public(&item.vis) => {
            let above = item.supertraits.to_token_stream();
            let above = if above.is_empty() {
                String::new()
            } else {
                format!(": {}", spelled(&above))
            };
            first.push(format!("trait {path}{}{above}", spelled(&item.generics)));
            for item in &item.items {
                first.extend(match item {
                    TraitItem::Fn(item) if is_shown(&item.attrs) => {
                        let provided = if item.default.is_some() { " { … }" } else { "" };
                        Some(format!(
                            "{}{provided}",
                            function(&format!("{path}::{}", item.sig.ident), &item.sig)
                        ))
                    }
                    TraitItem::Const(item) if is_shown(&item.attrs) => {
                        Some(format!("const {path}::{}: {}", item.ident, spelled(&item.ty)))
                    }
                    TraitItem::Type(item) if is_shown(&item.attrs) => {
                        Some(format!("type {path}::{}", item.ident))
                    }
                    _ => None,
                });
            }
        }
        Item::Macro(item) => {
            let own = of_macro(item).into_iter().filter(|(_, own)| own == name);
            first.extend(own.map(|(kind, _)| format!("{kind} {path} (by {}!)", spelled(&item.mac.path))));
        }
        _ => {}
    }
    first.extend(lines);
    first
}

fn function(path: &str, signature: &syn::Signature) -> String {
    let mut bare = signature.clone();
    let marker = syn::Ident::new("f", proc_macro2::Span::call_site());
    bare.ident = marker;
    let text = spelled(&bare);
    text.replacen("fn f", &format!("fn {path}"), 1)
}

fn derived(attributes: &[Attribute]) -> String {
    let lists = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"));
    let all: Vec<String> = lists
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .flat_map(|list| {
            list.tokens
                .to_string()
                .split(',')
                .map(|one| one.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .filter(|one| !one.is_empty())
        .collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(": {}", all.join(" + ")),
    }
}

/// The surface, a line each.
fn surface(all: &Crate) -> BTreeSet<String> {
    let spelled_path = |place: &[String]| {
        let parts = std::iter::once("headstart").chain(place.iter().map(String::as_str));
        parts.collect::<Vec<_>>().join("::")
    };
    let mut lines_of: BTreeSet<String> = BTreeSet::new();
    // Where a program finds each item first: where it is declared, or a re-export.
    let mut known: BTreeMap<(Place, String), String> = BTreeMap::new();
    let public = || all.modules.iter().filter(|(_, module)| module.is_public);
    for (place, module) in public() {
        lines_of.insert(format!("mod {}", spelled_path(place)));
        for item in module.items.iter().filter(|item| is_shown(attributes(item))) {
            for name in names(item) {
                let path = format!("{}::{name}", spelled_path(place));
                let own = lines(&path, item, &name);
                if !own.is_empty() {
                    known.insert((place.clone(), name), path);
                }
                lines_of.extend(own);
            }
        }
    }
    for (place, module) in public() {
        for item in &module.items {
            let Item::Use(item) = item else { continue };
            if !is_public(&item.vis) || !is_shown(&item.attrs) {
                continue;
            }
            for (path, alias) in flattened(&item.tree) {
                let here = format!("{}::{alias}", spelled_path(place));
                let found = all.brought(place, &path);
                if found.is_empty() {
                    lines_of.insert(format!("use {here} = {}", path.join("::")));
                }
                for (inner, name, within) in found {
                    let here = match (alias.as_str(), within) {
                        ("*", within) => [vec![spelled_path(place)], within].concat().join("::"),
                        (_, within) => [vec![here.clone()], within].concat().join("::"),
                    };
                    if let Some(known) = known.get(&(inner.clone(), name.clone())) {
                        if *known != here {
                            lines_of.insert(format!("use {here} = {known}"));
                        }
                        continue;
                    }
                    let declared = all.modules[&inner]
                        .items
                        .iter()
                        .filter(|item| declares(item, &name));
                    let own: Vec<String> = declared.flat_map(|item| lines(&here, item, &name)).collect();
                    if !own.is_empty() {
                        known.insert((inner, name), here);
                        lines_of.extend(own);
                    }
                }
            }
        }
    }
    lines_of.extend(
        all.implementations
            .iter()
            .flat_map(|(place, one)| methods(all, &known, place, one)),
    );
    lines_of
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// What an implementation adds to the surface: a trait, or public methods.
fn methods(
    all: &Crate,
    known: &BTreeMap<(Place, String), String>,
    place: &Place,
    one: &ItemImpl,
) -> Vec<String> {
    let syn::Type::Path(ty) = one.self_ty.as_ref() else {
        return Vec::new();
    };
    let parts: Vec<String> = ty
        .path
        .segments
        .iter()
        .map(|part| part.ident.to_string())
        .collect();
    // The type's name in that module: declared, or brought there by a `use`.
    let in_scope = all.resolve(place, &parts).or_else(|| all.resolve(&[], &parts));
    let Some((inner, Some(name))) = in_scope else {
        return Vec::new();
    };
    let Some(path) = known.get(&(inner, name)) else {
        return Vec::new();
    };
    if let Some((_, of, _)) = &one.trait_ {
        return vec![format!("impl {} for {path}", spelled(of))];
    }
    let items = one.items.iter().filter_map(|item| match item {
        ImplItem::Fn(item) if is_public(&item.vis) && is_shown(&item.attrs) => {
            Some(function(&format!("{path}::{}", item.sig.ident), &item.sig))
        }
        ImplItem::Const(item) if is_public(&item.vis) && is_shown(&item.attrs) => {
            Some(format!("const {path}::{}: {}", item.ident, spelled(&item.ty)))
        }
        _ => None,
    });
    items.collect()
}

#[test]
fn the_surface_is_changed_on_purpose_only() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let found: BTreeSet<String> =
        surface(&Crate::read(&folder.join("src")).with_parts(&folder.join("../crates")));
    let text: String = found.iter().map(|line| format!("{line}\n")).collect();
    let file = folder.join("surface.txt");
    if std::env::var_os("HEADSTART_BLESS").is_some() {
        fs::write(&file, &text).expect("it can be written");
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    let before: BTreeSet<String> = committed.lines().map(str::to_owned).collect();
    let more: Vec<String> = found
        .difference(&before)
        .map(|line| format!("+ {line}"))
        .collect();
    let less: Vec<String> = before
        .difference(&found)
        .map(|line| format!("- {line}"))
        .collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "the public surface is another one than surface.txt says:\n{}\n{}\nIf that is meant: HEADSTART_BLESS=1 cargo test -p \
         headstart --test surface, and a line in CHANGELOG.md",
        more.join("\n"),
        less.join("\n")
    );
}

#[test]
fn it_is_read_as_the_compiler_reads_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it can be written");
    write(
        "lib.rs",
        "mod inner; pub mod open; #[doc(hidden)] pub mod hidden {} #[cfg(test)] mod tests {}\n\
         pub use inner::{Told as Said, deep};\npub(crate) struct Own;\npub use half::f16;",
    );
    write(
        "inner.rs",
        "#[derive(Clone)] pub struct Told { pub number: u32, own: u8 }\n\
         impl Told { pub fn number(&self) -> Option<u32> { None } fn own(&self) {} }\n\
         pub fn deep(of: &[u8]) -> Vec<u8> { of.to_vec() } pub struct Unreached;",
    );
    write(
        "open.rs",
        "use crate::inner::Told; impl From<Told> for Way { fn from(_: Told) -> Way { Way::Out } }\n\
         pub enum Way { Out, In(u32) } pub trait Walk: Send { fn walk(&self); fn back(&self) {} }\n\
         words! { pub enum Word { A } }",
    );
    let found: Vec<String> = surface(&Crate::read(folder.path())).into_iter().collect();
    let expected = [
        "enum headstart::open::Way",
        "enum headstart::open::Word (by words!)",
        "fn headstart::Said::number(&self) -> Option<u32>",
        "fn headstart::deep(of: &[u8]) -> Vec<u8>",
        "fn headstart::open::Walk::back(&self) { … }",
        "fn headstart::open::Walk::walk(&self)",
        "headstart::Said::number: u32",
        "headstart::open::Way::In (variant)",
        "headstart::open::Way::In::0: u32",
        "headstart::open::Way::Out (variant)",
        "impl From<Told> for headstart::open::Way",
        "mod headstart",
        "mod headstart::open",
        "struct headstart::Said: Clone",
        "trait headstart::open::Walk: Send",
        "use headstart::f16 = half::f16",
    ];
    assert_eq!(found, expected);
}
