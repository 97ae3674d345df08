//! The launches and data on which plans that ran on a device were checked.

use serde::{Deserialize, Serialize};

/// How the plans of a report were checked, besides [perturbed launches](super::Perturbed).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Small launches on the simulator: the numbers of iterations of their loops.
    pub sizes: Vec<u64>,
    /// The numbers of iterations at which plans were checked symbolically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic_sizes: Vec<u64>,
    /// The reference for outputs at full size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_full_size: Option<AtFullSize>,
}

/// The reference for the outputs of a whole launch: the unmodified kernel's on the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtFullSize {
    /// The device, by its product's name.
    pub device: String,
    /// The kernel as it is was launched in the module that it came in.
    pub is_its_module: bool,
    /// Each buffer ended where nothing is mapped, so that an access beyond it faults.
    pub guarded: bool,
    /// Outputs were restored before each timed launch: the kernel's results differ on its own earlier outputs.
    #[serde(default)]
    pub restored: bool,
    /// What was found out about the kernel as it is, a sentence each: what it reads before it writes it, and what varies from
    /// launch to launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
}

impl Checked {
    /// The description of it, in a sentence, and what was found out about the kernel as it is.
    pub(crate) fn sentences(&self) -> Vec<String> {
        let findings = self.at_full_size.iter().flat_map(|at| &at.findings);
        std::iter::once(self.sentence())
            .chain(findings.cloned())
            .collect()
    }

    fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if !self.sizes.is_empty() {
            parts.push(format!("on the simulator at {} small sizes", self.sizes.len()));
        }
        if let [_, ..] = self.symbolic_sizes[..] {
            parts.push("symbolically".to_owned());
        }
        if let Some(at) = &self.at_full_size {
            let whose = match at.is_its_module {
                true => "your module's",
                false => "the plain kernel's",
            };
            let with = format!("with {whose} results on the same {}", at.device);
            let guarded = match at.guarded {
                true => ", each buffer ending at an unmapped page",
                false => "",
            };
            let restored = match at.restored {
                true => ", outputs restored before each timed launch",
                false => "",
            };
            parts.push(format!("at full size {with}{guarded}{restored}"));
        }
        match parts.split_last() {
            None => "Checked on nothing.".to_owned(),
            Some((last, [])) => format!("Checked {last}."),
            Some((last, parts)) => format!("Checked {}; and {last}.", parts.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_what_was_checked_on_what() {
        let checked = Checked {
            sizes: vec![0, 1, 5],
            symbolic_sizes: vec![5],
            at_full_size: Some(AtFullSize {
                device: "NVIDIA H200".to_owned(),
                is_its_module: true,
                guarded: true,
                restored: false,
                findings: vec!["The kernel as it is reads `sums` before it writes it.".to_owned()],
            }),
        };
        assert_eq!(
            checked.sentence(),
            "Checked on the simulator at 3 small sizes; symbolically; and at full size with your module's results on the same \
             NVIDIA H200, each buffer ending at an unmapped page."
        );
        let alone = Checked {
            sizes: Vec::new(),
            symbolic_sizes: Vec::new(),
            at_full_size: checked.at_full_size.clone().map(|at| AtFullSize {
                is_its_module: false,
                guarded: false,
                ..at
            }),
        };
        assert_eq!(
            alone.sentences(),
            [
                "Checked at full size with the plain kernel's results on the same NVIDIA H200.",
                "The kernel as it is reads `sums` before it writes it."
            ]
        );
    }
}
