//! The layers of the library: which of its crates use which, and which modules of a crate.
//!
//! A lower layer knows nothing of a higher one. Between crates cargo enforces it; the drawings in `src/lib.rs` and
//! `ARCHITECTURE.md` are made from the manifests (`HEADSTART_BLESS=1` rewrites them), and a manifest names no crate that the
//! sources do not use. In the crates that hold several layers the graph of the modules directly below `src` has no cycle. It is
//! read from the tokens: paths that begin at the crate's root. Documentation and code for tests alone do not count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// What uses what: for each pair of top modules the places that say so.
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
    fn read(source: &Path) -> Graph {
        let mut graph = Graph::default();
        let mut root = Tokens::default();
        root.read(tokens(&source.join("lib.rs")), 0);
        // Names that the root re-exports, by the module that they are from; those of other crates are none of ours.
        let reexported = root.uses.iter().filter(|path| path.len() > 1);
        let mut facade: BTreeMap<&String, Option<&String>> = BTreeMap::new();
        for path in reexported {
            let module = Some(&path[0]).filter(|module| root.modules.contains(module));
            facade.insert(path.last().expect("a name"), module);
        }
        // Modules in `lib.rs` itself have the items of other crates.
        facade.extend(root.inline.iter().map(|name| (name, None)));
        graph.modules = root.modules.iter().cloned().collect();
        for module in &root.modules {
            let mut waiting = vec![(source.to_owned(), module.clone(), 1)];
            while let Some((folder, name, depth)) = waiting.pop() {
                let inner = folder.join(&name);
                let file = match folder.join(format!("{name}.rs")) {
                    file if file.is_file() => file,
                    _ => inner.join("mod.rs"),
                };
                let mut found = Tokens::default();
                found.read(tokens(&file), depth);
                waiting.extend(
                    found
                        .modules
                        .into_iter()
                        .map(|name| (inner.clone(), name, depth + 1)),
                );
                for (name, line) in found.from_root {
                    let used = match facade.get(&name) {
                        Some(None) => continue,
                        Some(Some(module)) => *module,
                        None => &name,
                    };
                    let place = format!(
                        "{}:{line}",
                        file.strip_prefix(source).expect("below it").display()
                    );
                    assert!(
                        graph.modules.contains(used),
                        "{place}: `{used}` is no module of the crate"
                    );
                    if used != module {
                        let uses = graph.uses.entry((module.clone(), used.clone()));
                        uses.or_default().push(place);
                    }
                }
            }
        }
        graph
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
            let places = way.windows(2).map(|pair| {
                let places = &self.uses[&(pair[0].clone(), pair[1].clone())];
                format!("{} (and {} more)", places[0], places.len() - 1)
            });
            let places: Vec<String> = places.collect();
            format!("{}: {}", way.join(" -> "), places.join(", "))
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

/// What a file's tokens say of modules.
#[derive(Debug, Default)]
struct Tokens {
    /// Modules in files of their own.
    modules: Vec<String>,
    /// Modules in the file itself.
    inline: Vec<String>,
    /// The first names of paths from the crate's root, with their lines.
    from_root: Vec<(String, usize)>,
    /// The paths of `use` declarations.
    uses: Vec<Vec<String>>,
}

impl Tokens {
    /// Reads tokens in a module of this depth.
    fn read(&mut self, tokens: TokenStream, depth: usize) {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(tree) = trees.get(at) {
            at += 1;
            match tree {
                TokenTree::Punct(mark) if mark.as_char() == '#' => {
                    let text = trees.get(at).map(ToString::to_string).unwrap_or_default();
                    if ["[cfg (test)]", "[cfg(test)]", "[cfg (doctest)]", "[cfg(doctest)]"]
                        .contains(&text.as_str())
                    {
                        at = behind_item(&trees, at + 1);
                    }
                }
                TokenTree::Ident(word) if word == "mod" => match &trees[at..] {
                    [TokenTree::Ident(name), TokenTree::Punct(end), ..] if end.as_char() == ';' => {
                        self.modules.push(name.to_string());
                    }
                    [TokenTree::Ident(name), TokenTree::Group(body), ..] => {
                        self.inline.push(name.to_string());
                        self.read(body.stream(), depth + 1);
                        at += 2;
                    }
                    _ => {}
                },
                TokenTree::Ident(word) if word == "use" => {
                    paths(&trees[at..], &mut Vec::new(), &mut self.uses);
                }
                TokenTree::Ident(word) if word == "crate" => {
                    self.path(&trees[at..], word.span().start().line)
                }
                TokenTree::Ident(word) if word == "super" => {
                    let mut up = 1;
                    while let [
                        TokenTree::Punct(_),
                        TokenTree::Punct(_),
                        TokenTree::Ident(next),
                        ..,
                    ] = &trees[at..]
                        && next == "super"
                    {
                        (up, at) = (up + 1, at + 3);
                    }
                    if up == depth {
                        self.path(&trees[at..], word.span().start().line);
                    }
                }
                TokenTree::Group(group) => self.read(group.stream(), depth),
                _ => {}
            }
        }
    }

    /// Notes what follows the crate's root: `::name`, or `::{a, b::c}`.
    fn path(&mut self, behind: &[TokenTree], line: usize) {
        let mut found = Vec::new();
        if let [TokenTree::Punct(mark), TokenTree::Punct(_), rest @ ..] = behind
            && mark.as_char() == ':'
        {
            paths(rest, &mut Vec::new(), &mut found);
        }
        let firsts: BTreeSet<String> = found
            .into_iter()
            .filter_map(|path| path.into_iter().next())
            .collect();
        self.from_root.extend(firsts.into_iter().map(|name| (name, line)));
    }
}

/// The paths that begin here, groups taken apart; a renamed one ends with its new name.
fn paths(trees: &[TokenTree], before: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let kept = before.len();
    for tree in trees {
        match tree {
            TokenTree::Ident(word) if word == "as" => {}
            TokenTree::Ident(word) => before.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == ':' => {}
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let parts =
                    inner.split(|tree| matches!(tree, TokenTree::Punct(mark) if mark.as_char() == ','));
                parts.for_each(|part| paths(part, before, found));
                before.truncate(kept);
                return;
            }
            _ => break,
        }
    }
    if before.len() > kept {
        found.push(before.clone());
    }
    before.truncate(kept);
}

/// The place behind an item whose attribute ends here: its body, or its semicolon.
fn behind_item(trees: &[TokenTree], from: usize) -> usize {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    };
    let behind = trees[from..].iter().position(ends);
    // `use a::{b};` has its semicolon behind a group.
    let end = behind.map_or(trees.len(), |at| from + at + 1);
    match trees.get(end) {
        Some(TokenTree::Punct(mark)) if mark.as_char() == ';' => end + 1,
        _ => end,
    }
}

fn tokens(file: &Path) -> TokenStream {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.parse()
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
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
        let cycles = Graph::read(&source).cycles();
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
    Graph::read(&source).cycles()
}

#[test]
fn each_way_to_use_a_higher_layer_is_found() {
    for (low, line) in [
        ("use crate::high;\n", 1),
        ("\nuse crate::{\n    low,\n    high::Shown,\n};\n", 2),
        ("use super::super::high;\n", 1),
        ("use crate::Shown;\n", 1),
        ("pub use crate::high::*;\n", 1),
        ("fn f() {\n    crate::high::g();\n}\n", 2),
        ("fn f(_: &crate::high::T) {}\n", 1),
        ("fn f() {\n    println!(\"{}\", crate::high::g());\n}\n", 2),
        ("macro_rules! m {\n    () => { $crate::high::g() };\n}\n", 2),
        ("mod deeper {\n    use super::super::super::high;\n}\n", 2),
        ("#[cfg(test)]\nuse crate::{high};\nuse crate::high;\n", 3),
    ] {
        let expected =
            format!("high -> low -> high: high.rs:1 (and 0 more), low/inner.rs:{line} (and 0 more)");
        assert_eq!(with_low(low), [expected], "{low}");
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
fn a_drawing_shows_layers_without_what_is_reached_through_others() {
    let (_folder, source) = crate_of(&[
        ("lib.rs", "mod bottom;\nmod middle;\nmod other;\nmod top;\n"),
        ("bottom.rs", ""),
        ("middle.rs", "use crate::bottom;\n"),
        ("other.rs", "use crate::bottom;\n"),
        ("top.rs", "use crate::{bottom, middle};\n"),
    ]);
    let graph = Graph::read(&source);
    assert_eq!(
        graph.drawing(),
        " 2  top     middle\n 1  middle  bottom\n    other   bottom\n 0  bottom\n"
    );
}
