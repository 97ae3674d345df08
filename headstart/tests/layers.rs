//! The layers of the library: which of its crates use which, and which modules of a crate.
//!
//! A lower layer knows nothing of a higher one. Between crates cargo enforces it; the drawings in `src/lib.rs` and
//! `ARCHITECTURE.md` are made from the manifests (`HEADSTART_BLESS=1` rewrites them), and a manifest names no crate that the
//! sources do not use. In the crates that hold several layers the graph of the modules directly below `src` has no cycle. It is
//! read from `use` declarations and paths, those in the arguments and bodies of macros included. Documentation links and code
//! compiled for tests alone do not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// What uses what: for each pair of top modules the lines that say so.
type Uses = BTreeMap<(String, String), Vec<String>>;

/// The files that hold the drawing, with the heading above it and what stands in front of each line.
const DRAWINGS: [(&str, &str, &str); 2] = [
    ("src/lib.rs", "//! # Layers", "//! "),
    ("../ARCHITECTURE.md", "## Layers", ""),
];

/// The crates that hold several layers, below `crates`.
const OF_SEVERAL_LAYERS: [&str; 3] = ["ir", "report", "tune"];

/// The graph of a crate's modules, or of crates.
#[derive(Debug, Default)]
struct Graph {
    /// The top modules, or the crates.
    modules: BTreeSet<String>,
    uses: Uses,
}

impl Graph {
    /// Reads a crate from the folder with its `lib.rs`.
    fn read(source: &Path) -> Result<Graph, String> {
        let library = parsed(&source.join("lib.rs"))?;
        let mut graph = Graph::default();
        // Names that the crate itself re-exports, by the module that they are from; those of other crates are none of ours.
        let mut facade = BTreeMap::new();
        let mut outside = BTreeSet::new();
        for item in &library.items {
            match item {
                syn::Item::Mod(module) if module.content.is_some() => {
                    outside.insert(module.ident.to_string());
                }
                syn::Item::Mod(module) if !is_for_tests(&module.attrs) => {
                    graph.modules.insert(module.ident.to_string());
                }
                syn::Item::Use(item) if !is_for_tests(&item.attrs) => {
                    let mut paths = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut paths);
                    for (path, _) in paths {
                        if let (Some(module), Some(name)) = (path.first(), path.last()) {
                            if module.starts_with("headstart_") {
                                outside.insert(name.clone());
                            } else {
                                facade.insert(name.clone(), module.clone());
                            }
                        }
                    }
                }
                _ => {}
            }
        }
        for module in graph.modules.clone() {
            let (file, folder) = module_file(source, &module)?;
            let mut reader = Reader {
                source,
                facade: &facade,
                outside: &outside,
                path: vec![module],
                folder,
                shown: shown(source, &file),
                lines: Vec::new(),
                graph: &mut graph,
                wrong: Vec::new(),
            };
            reader.file(&file)?;
            if !reader.wrong.is_empty() {
                return Err(reader.wrong.join("\n"));
            }
        }
        Ok(graph)
    }

    /// The modules that a module uses.
    fn used_by<'g>(&'g self, module: &'g str) -> impl Iterator<Item = &'g str> {
        let own = self.uses.keys().filter(move |(from, _)| from == module);
        own.map(|(_, to)| to.as_str())
    }

    /// The shortest way along uses from a module to another.
    fn way(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(module) = waiting.pop_front() {
            for next in self.used_by(module) {
                if next == to {
                    let mut way = vec![to.to_owned(), module.to_owned()];
                    let mut at = module;
                    while let Some(&earlier) = before.get(at) {
                        way.push(earlier.to_owned());
                        at = earlier;
                    }
                    way.reverse();
                    return Some(way);
                }
                if next != from && !before.contains_key(next) {
                    before.insert(next, module);
                    waiting.push_back(next);
                }
            }
        }
        None
    }

    /// The shortest cycles that have no use in common, each with a line for each of its uses.
    fn cycles(&self) -> Vec<String> {
        let around = |module: &String| self.way(module, module);
        let mut ways: Vec<Vec<String>> = self.modules.iter().filter_map(around).collect();
        ways.sort_by_key(Vec::len);
        let mut seen = BTreeSet::new();
        // One wrong use closes many cycles.
        ways.retain(|way| {
            let is_new = way.windows(2).all(|pair| !seen.contains(pair));
            if is_new {
                seen.extend(way.windows(2).map(<[String]>::to_vec));
            }
            is_new
        });
        let told = |way: &Vec<String>| {
            let mut text = format!("a cycle: {}\n", way.join(" -> "));
            for pair in way.windows(2) {
                let lines = &self.uses[&(pair[0].clone(), pair[1].clone())];
                text.push_str(&format!("  {}\n", lines[0]));
                if lines.len() > 1 {
                    let more = lines.len() - 1;
                    text.push_str(&format!(
                        "    and {more} more uses of `{}` in `{}`\n",
                        pair[1], pair[0]
                    ));
                }
            }
            text
        };
        ways.iter().map(told).collect()
    }

    /// The modules by layer, the lowest first: each as low as what it uses allows.
    fn layers(&self) -> Vec<Vec<&str>> {
        let mut layers: Vec<Vec<&str>> = Vec::new();
        let mut placed = BTreeSet::new();
        while placed.len() < self.modules.len() {
            let is_free = |module: &&str| {
                !placed.contains(*module) && self.used_by(module).all(|used| placed.contains(used))
            };
            let layer: Vec<&str> = self.modules.iter().map(String::as_str).filter(is_free).collect();
            assert!(!layer.is_empty(), "a graph with cycles has no layers");
            placed.extend(layer.iter().copied());
            layers.push(layer);
        }
        layers
    }

    /// The drawing: a line for each module, the highest layer first, with what it uses and does not reach through another
    /// one that it uses.
    fn drawing(&self) -> String {
        let widest = self.modules.iter().map(String::len).max().unwrap_or(0);
        let mut drawing = String::new();
        for (number, layer) in self.layers().iter().enumerate().rev() {
            for (at, module) in layer.iter().enumerate() {
                let head = if at == 0 {
                    number.to_string()
                } else {
                    String::new()
                };
                let through_another = |used: &str| {
                    let mut others = self.used_by(module).filter(|&other| other != used);
                    others.any(|other| self.way(other, used).is_some())
                };
                let direct = self.used_by(module).filter(|&used| !through_another(used));
                let direct: Vec<&str> = direct.collect();
                let line = format!("{head:>2}  {module:widest$}  {}", direct.join(" "));
                drawing.push_str(line.trim_end());
                drawing.push('\n');
            }
        }
        drawing
    }
}

/// Reads the files of a module.
struct Reader<'a> {
    source: &'a Path,
    facade: &'a BTreeMap<String, String>,
    /// Names at the root that lead to other crates.
    outside: &'a BTreeSet<String>,
    /// The module that is read.
    path: Vec<String>,
    /// Where the files of its modules lie.
    folder: PathBuf,
    /// The file that is read, as messages name it, and its lines.
    shown: String,
    lines: Vec<String>,
    graph: &'a mut Graph,
    wrong: Vec<String>,
}

impl Reader<'_> {
    fn file(&mut self, file: &Path) -> Result<(), String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        self.lines = text.lines().map(str::to_owned).collect();
        self.visit_file(&parsed(file)?);
        Ok(())
    }

    /// Notes a path from the crate's root.
    fn note(&mut self, path: &[String], line: usize) {
        let Some(first) = path.first().filter(|first| !self.outside.contains(*first)) else {
            return;
        };
        let used = self.facade.get(first).unwrap_or(first);
        let place = format!("{}:{line}", self.shown);
        let text = self.lines.get(line - 1).map_or("", |text| text.trim());
        if !self.graph.modules.contains(used) {
            self.wrong
                .push(format!("{place}: `{text}` names no module of the crate"));
        } else if *used != self.path[0] {
            let uses = self.graph.uses.entry((self.path[0].clone(), used.clone()));
            uses.or_default().push(format!("{place}: {text}"));
        }
    }

    /// Notes a path as it is written, if it leads to the crate's root.
    fn note_written(&mut self, path: &[String], line: usize) {
        match path.first().map(String::as_str) {
            Some("crate") => self.note(&path[1..], line),
            Some("super") => {
                let up = path.iter().take_while(|name| *name == "super").count();
                let kept = self.path.len().saturating_sub(up);
                let whole: Vec<String> = self.path[..kept].iter().chain(&path[up..]).cloned().collect();
                self.note(&whole, line);
            }
            _ => {}
        }
    }

    /// Notes the paths in tokens that nobody has parsed: those of macros.
    fn tokens(&mut self, tokens: TokenStream) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        for (at, tree) in trees.iter().enumerate() {
            match tree {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident == "crate" => {
                    if let [
                        TokenTree::Punct(one),
                        TokenTree::Punct(other),
                        TokenTree::Ident(name),
                        ..,
                    ] = &trees[at + 1..]
                        && one.as_char() == ':'
                        && other.as_char() == ':'
                    {
                        self.note(&[name.to_string()], ident.span().start().line);
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[syn::Attribute] = match item {
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Const(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let name = module.ident.to_string();
        let inner = self.folder.join(&name);
        self.path.push(name.clone());
        if module.content.is_some() {
            let folder = std::mem::replace(&mut self.folder, inner);
            visit::visit_item_mod(self, module);
            self.folder = folder;
        } else {
            match module_file(&self.folder, &name) {
                Ok((file, folder)) => {
                    let folder = std::mem::replace(&mut self.folder, folder);
                    let shown = std::mem::replace(&mut self.shown, shown(self.source, &file));
                    let lines = std::mem::take(&mut self.lines);
                    if let Err(error) = self.file(&file) {
                        self.wrong.push(error);
                    }
                    (self.folder, self.shown, self.lines) = (folder, shown, lines);
                }
                Err(error) => self.wrong.push(error),
            }
        }
        self.path.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        flatten(&item.tree, &mut Vec::new(), &mut paths);
        for (path, line) in paths {
            self.note_written(&path, line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.note_written(&names, path.span().start().line);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.tokens(invoked.tokens.clone());
        visit::visit_macro(self, invoked);
    }
}

/// The paths of a `use` declaration, with the line in which each ends.
fn flatten(tree: &syn::UseTree, before: &mut Vec<String>, paths: &mut Vec<(Vec<String>, usize)>) {
    let mut end = |last: &syn::Ident| {
        let path = before.iter().cloned().chain([last.to_string()]).collect();
        paths.push((path, last.span().start().line));
    };
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, paths);
            before.pop();
        }
        syn::UseTree::Name(name) => end(&name.ident),
        syn::UseTree::Rename(rename) => {
            // `use other as name` at the root: paths use the name.
            if before.is_empty() {
                before.push(rename.ident.to_string());
                paths.push((
                    before
                        .iter()
                        .cloned()
                        .chain([rename.rename.to_string()])
                        .collect(),
                    rename.ident.span().start().line,
                ));
                before.pop();
            } else {
                end(&rename.ident);
            }
        }
        syn::UseTree::Glob(glob) => paths.push((before.clone(), glob.span().start().line)),
        syn::UseTree::Group(group) => {
            for item in &group.items {
                flatten(item, before, paths);
            }
        }
    }
}

/// The file of a module, and the folder with the files of its own modules.
fn module_file(folder: &Path, name: &str) -> Result<(PathBuf, PathBuf), String> {
    let inner = folder.join(name);
    let files = [folder.join(format!("{name}.rs")), inner.join("mod.rs")];
    let file = files.into_iter().find(|file| file.is_file());
    let file = file.ok_or_else(|| format!("{}: the module `{name}` has no file", folder.display()))?;
    Ok((file, inner))
}

fn parsed(file: &Path) -> Result<syn::File, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn shown(source: &Path, file: &Path) -> String {
    let within = file.strip_prefix(source).unwrap_or(file);
    format!("src/{}", within.display())
}

/// Whether something is compiled for tests alone. What is also there by a feature is part of the library.
fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
            _ => String::new(),
        };
        matches!(condition.as_str(), "test" | "doctest")
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The graph of the crates that the library is made of, by their manifests. Each dependency is used by the sources.
fn of_crates(repository: &Path) -> Graph {
    let folders = fs::read_dir(repository.join("crates")).expect("the folder is there");
    let folders = folders.map(|folder| folder.expect("it can be read").path());
    let mut graph = Graph::default();
    for folder in folders.chain([repository.join("headstart")]) {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("a manifest");
        let name = manifest["package"]["name"].as_str().expect("a name").to_owned();
        let short = |name: &str| name.strip_prefix("headstart-").unwrap_or(name).to_owned();
        graph.modules.insert(short(&name));
        let sources = all_text(&folder.join("src"));
        for used in manifest["dependencies"].as_table().expect("a table").keys() {
            // The attribute macros are no part of the library.
            if !used.starts_with("headstart") || used == "headstart-macros" {
                continue;
            }
            let path = used.replace('-', "_");
            let is_used =
                sources.contains(&format!("{path}::")) || sources.contains(&format!("use {path} as"));
            assert!(
                is_used,
                "{name} does not use {used}: its manifest need not name it"
            );
            let uses = graph.uses.entry((short(&name), short(used)));
            uses.or_default().push(format!("{}/Cargo.toml", folder.display()));
        }
    }
    graph
}

/// All Rust below a folder.
fn all_text(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            text.push_str(&all_text(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("a source"));
        }
    }
    text
}

/// A text with the drawing below a heading replaced, and the drawing that was there.
fn redrawn(text: &str, heading: &str, mark: &str, drawing: &str) -> Option<(String, String)> {
    let start = format!("{}```text\n", mark);
    let end = format!("{}```\n", mark);
    let from = text.find(&format!("{heading}\n"))?;
    let from = from + text[from..].find(&start)? + start.len();
    let to = from + text[from..].find(&end)?;
    let marked: String = drawing.lines().map(|line| format!("{mark}{line}\n")).collect();
    let old = text[from..to].lines();
    let old = old.map(|line| line.strip_prefix(mark).unwrap_or(line).to_owned() + "\n");
    Some((format!("{}{marked}{}", &text[..from], &text[to..]), old.collect()))
}

#[test]
fn no_layer_uses_a_higher_one() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in OF_SEVERAL_LAYERS {
        let source = package.join("../crates").join(name).join("src");
        let graph = Graph::read(&source).expect("the sources are read");
        let cycles = graph.cycles();
        assert!(cycles.is_empty(), "crates/{name}: {}", cycles.join("\n"));
    }

    let drawing = of_crates(&package.join("..")).drawing();
    for (file, heading, mark) in DRAWINGS {
        let path = package.join(file);
        let text = fs::read_to_string(&path).expect("the file is there");
        let (new, old) = redrawn(&text, heading, mark, &drawing)
            .unwrap_or_else(|| panic!("{file} has no drawing below `{heading}`"));
        if std::env::var_os("HEADSTART_BLESS").is_some() {
            fs::write(&path, new).expect("the file can be written");
        } else {
            assert_eq!(
                old, drawing,
                "{file} shows other layers than the sources have; HEADSTART_BLESS=1 redraws them"
            );
        }
    }
}

/// A crate of files in a folder of its own.
fn crate_of(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(path, text).expect("the file is written");
    }
    let source = folder.path().to_owned();
    (folder, source)
}

/// The cycles of a crate in which `high` uses `low`, and `low` is this.
fn with_low(low: &str) -> Vec<String> {
    let (_folder, source) = crate_of(&[
        ("lib.rs", "pub mod high;\npub mod low;\npub use high::Shown;\n"),
        ("high.rs", "use crate::low;\npub struct Shown;\n"),
        ("low/mod.rs", "mod inner;\n#[cfg(test)]\nmod tests;\n"),
        ("low/inner.rs", low),
        ("low/tests.rs", "use crate::high;\n"),
    ]);
    Graph::read(&source).expect("the crate is read").cycles()
}

#[test]
fn each_way_to_use_a_higher_layer_is_found_and_its_line_named() {
    for (low, line) in [
        ("use crate::high;\n", "src/low/inner.rs:1: use crate::high;"),
        (
            "\nuse crate::{\n    low,\n    high::Shown,\n};\n",
            "src/low/inner.rs:4: high::Shown,",
        ),
        (
            "use super::super::high;\n",
            "src/low/inner.rs:1: use super::super::high;",
        ),
        ("use crate::Shown;\n", "src/low/inner.rs:1: use crate::Shown;"),
        (
            "pub use crate::high::*;\n",
            "src/low/inner.rs:1: pub use crate::high::*;",
        ),
        (
            "fn f() {\n    crate::high::g();\n}\n",
            "src/low/inner.rs:2: crate::high::g();",
        ),
        (
            "fn f(_: &crate::high::T) {}\n",
            "src/low/inner.rs:1: fn f(_: &crate::high::T) {}",
        ),
        (
            "fn f() {\n    println!(\"{}\", crate::high::g());\n}\n",
            "src/low/inner.rs:2: println!(\"{}\", crate::high::g());",
        ),
        (
            "macro_rules! m {\n    () => { $crate::high::g() };\n}\n",
            "src/low/inner.rs:2: () => { $crate::high::g() };",
        ),
        (
            "mod deeper {\n    use super::super::super::high;\n}\n",
            "src/low/inner.rs:2: use super::super::super::high;",
        ),
    ] {
        let cycles = with_low(low);
        assert_eq!(cycles.len(), 1, "{low}");
        assert!(
            cycles[0].starts_with("a cycle: high -> low -> high\n"),
            "{}",
            cycles[0]
        );
        assert!(
            cycles[0].contains("  src/high.rs:1: use crate::low;\n"),
            "{}",
            cycles[0]
        );
        assert!(
            cycles[0].contains(&format!("  {line}\n")),
            "{} lacks {line}",
            cycles[0]
        );
    }
}

#[test]
fn what_is_no_use_does_not_count() {
    for low in [
        "//! [`Shown`](crate::high::Shown)\n",
        "// use crate::high;\n",
        "/* use crate::high; */\n",
        "const TEXT: &str = \"crate::high\";\n",
        "#[cfg(test)]\nuse crate::high;\n",
        "#[cfg(test)]\nmod tests {\n    use crate::high;\n}\n",
        "#[cfg(test)]\nfn f() {\n    crate::high::g();\n}\n",
        "mod deeper {\n    use super::super::high;\n}\n",
        "use super::high;\n",
    ] {
        assert_eq!(with_low(low), Vec::<String>::new(), "{low}");
    }
}

#[test]
fn a_cycle_of_three_is_told_with_its_three_lines() {
    let (_folder, source) = crate_of(&[
        ("lib.rs", "mod one;\nmod three;\nmod two;\n"),
        ("one.rs", "use crate::two;\n"),
        ("two.rs", "use crate::three;\n"),
        ("three.rs", "use crate::one;\nuse crate::one::A;\n"),
    ]);
    let cycles = Graph::read(&source).expect("the crate is read").cycles();
    assert_eq!(
        cycles,
        [
            "a cycle: one -> two -> three -> one\n  src/one.rs:1: use crate::two;\n  src/two.rs:1: use crate::three;\n  \
          src/three.rs:1: use crate::one;\n    and 1 more uses of `one` in `three`\n"
        ]
    );
}

#[test]
fn a_drawing_shows_layers_without_what_is_reached_through_others() {
    let (_folder, source) = crate_of(&[
        ("lib.rs", "mod bottom;\nmod middle;\nmod other;\nmod top;\n"),
        ("bottom.rs", ""),
        ("middle.rs", "use crate::bottom;\n"),
        ("other.rs", "use crate::bottom;\n"),
        ("top.rs", "use crate::{bottom, middle};\n"),
    ]);
    let graph = Graph::read(&source).expect("the crate is read");
    assert_eq!(
        graph.drawing(),
        " 2  top     middle\n 1  middle  bottom\n    other   bottom\n 0  bottom\n"
    );
}
