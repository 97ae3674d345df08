//! A dependency's shared library as bytes.
//!
//! `cargo install` installs programs and no libraries, and a stable Cargo does not expose the path of a dependency's `cdylib`.
//! But one compiler call writes a dependency's `cdylib` and its `rlib`, side by side, and the compiler gets the path of the
//! `rlib` on its command line when it compiles a program. The macro reads that command line.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro::TokenStream;

/// `shared_library!(name)`: the shared library that was built with the dependency `name`, as `Option<&'static [u8]>`.
///
/// `None` where there is none: the target has no shared libraries, or nothing is linked (`cargo check`, an editor).
#[proc_macro]
pub fn shared_library(input: TokenStream) -> TokenStream {
    let name = input.to_string();
    let found = find(&name, &arguments(std::env::args()));
    let code = match found {
        Some(path) => format!(
            "{{ const BYTES: &[u8] = ::core::include_bytes!({path:?}); ::core::option::Option::Some(BYTES) }}"
        ),
        None => "::core::option::Option::None".to_owned(),
    };
    code.parse().expect("an expression")
}

/// The compiler's arguments, those in `@FILE` among them.
fn arguments(given: impl Iterator<Item = String>) -> Vec<String> {
    let mut all = Vec::new();
    for argument in given {
        match argument.strip_prefix('@').map(fs::read_to_string) {
            Some(Ok(text)) => all.extend(text.lines().map(str::to_owned)),
            _ => all.push(argument),
        }
    }
    all
}

/// The shared library beside the `rlib` of a dependency.
fn find(name: &str, arguments: &[String]) -> Option<PathBuf> {
    let apart = arguments
        .windows(2)
        .filter(|pair| pair[0] == "--extern")
        .map(|pair| pair[1].as_str());
    let joined = arguments
        .iter()
        .filter_map(|argument| argument.strip_prefix("--extern="));
    apart.chain(joined).find_map(|value| {
        let (dependency, path) = value.split_once('=')?;
        // Options stand in front of the name: `priv:NAME`.
        let dependency = dependency.rsplit(':').next()?;
        let path = Path::new(path);
        if dependency != name || path.extension()? != "rlib" {
            return None;
        }
        let shared = [
            path.with_file_name(format!("lib{name}.so")),
            path.with_extension("so"),
        ];
        shared.into_iter().find_map(|path| fs::canonicalize(path).ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        arguments(text.split(' ').map(str::to_owned))
    }

    #[test]
    fn the_library_lies_beside_the_rlib() {
        let folder = std::env::temp_dir().join(format!("headstart-embed-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let at = |name: &str| folder.join(name).display().to_string();
        fs::write(folder.join("libshim.so"), "library").expect("a file");
        fs::write(folder.join("libother-12.so"), "library").expect("a file");
        fs::write(
            folder.join("arguments"),
            format!("--extern\nshim={}\n", at("libshim-1.rlib")),
        )
        .expect("a file");
        let shim = fs::canonicalize(folder.join("libshim.so")).ok();
        assert!(shim.is_some());
        let find = |name: &str, text: &str| find(name, &words(text));
        let apart = format!("rustc --extern a=x.rlib --extern shim={}", at("libshim-1.rlib"));
        assert_eq!(find("shim", &apart), shim);
        let joined = format!("rustc --extern=priv:shim={}", at("libshim-1.rlib"));
        assert_eq!(find("shim", &joined), shim);
        assert_eq!(find("shim", &format!("rustc @{}", at("arguments"))), shim);
        let other = format!("rustc --extern other={}", at("libother-12.rlib"));
        assert_eq!(
            find("other", &other),
            fs::canonicalize(folder.join("libother-12.so")).ok()
        );
        // Nothing is linked; another dependency; no library.
        let checked = format!("rustc --extern shim={}", at("libshim-1.rmeta"));
        assert_eq!(find("shim", &checked), None);
        assert_eq!(find("a", &apart), None);
        assert_eq!(find("shim", "rustc --extern shim --crate-name b"), None);
        fs::remove_dir_all(&folder).expect("removed");
    }
}
