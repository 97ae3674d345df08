//! A better kernel's expected gain for the whole program, from its launches' share of the captured time.

use std::fs;
use std::path::Path;

use headstart::capture::{Captured, WHOLE};
use serde::Deserialize;

/// A capture manifest's entry for a kernel.
#[derive(Debug, Deserialize)]
struct Kernel {
    name: String,
    image: String,
    /// The launch that says most of it.
    typical: u64,
    /// Of the time of all kernels.
    share: Option<f64>,
    /// Of its own time, that of launches which take about as long as that one.
    share_of_typical: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Whole {
    #[serde(default)]
    kernels: Vec<Kernel>,
}

/// A sentence on the combined gain of all kernels of the program, if the captured launch is the typical one of its kernel.
pub fn sentence(captured: &Captured, speedup: f64) -> Option<String> {
    let whole = captured.folder.parent()?.join(WHOLE);
    let of = (captured.kernel.as_str(), captured.image.as_str(), captured.number);
    said(&read(&whole)?, of, speedup)
}

fn read(path: &Path) -> Option<Whole> {
    toml::from_str(&fs::read_to_string(path).ok()?).ok()
}

fn said(whole: &Whole, (name, image, launch): (&str, &str, u64), speedup: f64) -> Option<String> {
    let kernel = whole
        .kernels
        .iter()
        .find(|own| own.name == name && own.image == image && own.typical == launch)?;
    let (share, like) = (kernel.share?, kernel.share_of_typical?);
    let together = |share: f64| 1.0 / (1.0 - share + share / speedup);
    let (least, most) = (together(share * like), together(share));
    // Where all launches are alike there is one number.
    let gain = match most - least < 0.01 {
        true => format!("{most:.2} times as fast"),
        false => {
            format!(
                "{least:.2} to {most:.2} times as fast, if its other launches gain nothing or as much as this one"
            )
        }
    };
    Some(format!(
        "In the program it takes {:.0} % of the time of all kernels, {:.0} % of that in launches about as long as this one: all \
         kernels together are {gain}.\n",
        100.0 * share,
        100.0 * like
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_counts_for_its_share_of_the_time() {
        let text = "format = 1\nprogram = [\"./p\"]\n[[kernels]]\nname = \"k\"\nimage = \"ab\"\nlaunches = 3\ntypical = 2\n\
                    share = 0.8\nshare_of_typical = 0.5\n[[kernels]]\nname = \"k\"\nimage = \"cd\"\ntypical = 2\nshare = 0.5\n\
                    share_of_typical = 1.0\n[[kernels]]\nname = \"untimed\"\nimage = \"ab\"\ntypical = 0\n";
        let whole: Whole = toml::from_str(text).expect("a manifest");
        let of = |name, image, launch| said(&whole, (name, image, launch), 2.0);
        let found = of("k", "ab", 2).expect("a sentence");
        assert!(
            found.contains("80 % of the time of all kernels, 50 % of that"),
            "{found}"
        );
        assert!(found.contains("1.25 to 1.67 times as fast, if"), "{found}");
        let found = of("k", "cd", 2).expect("a sentence");
        assert!(found.ends_with("are 1.33 times as fast.\n"), "{found}");
        // Another launch of the kernel was asked for; its times are not known.
        assert_eq!(of("k", "ab", 1), None);
        assert_eq!(of("untimed", "ab", 0), None);
    }
}
