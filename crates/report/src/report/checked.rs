//! The launches and data on which plans that ran on a device were checked.

use serde::{Deserialize, Serialize};

use super::number;

/// How the plans of a report were checked, besides [perturbed launches](super::Perturbed).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Small launches on the simulator: the numbers of iterations of their loops.
    pub sizes: Vec<u64>,
    /// The numbers of iterations at which plans were checked symbolically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub symbolic_sizes: Vec<u64>,
    /// Work-groups of the launch at hand that ran on the simulator; none where the first ones did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<Sample>,
    /// The reference for outputs at full size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_full_size: Option<AtFullSize>,
}

/// Work-groups of a launch that ran on the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// How many ran, under each plan.
    pub groups: u64,
    /// How many of them read no memory that others may write: their writes were compared with the device's results.
    pub alone: u64,
    /// How many the launch has.
    pub of: u64,
}

/// The reference for the outputs of a whole launch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtFullSize {
    /// The device, by its product's name.
    pub device: String,
    /// The reference is the simulator's result for all of the launch; otherwise the unmodified kernel's on the device.
    pub is_simulated: bool,
    /// The kernel as it is was launched in the module that it came in.
    pub is_its_module: bool,
    /// Each buffer ended where nothing is mapped, so that an access beyond it faults.
    pub guarded: bool,
    /// Outputs were restored before each timed launch: the kernel's results differ on its own earlier outputs.
    #[serde(default)]
    pub restored: bool,
}

impl Checked {
    /// The description of it, in a sentence.
    pub fn sentence(&self) -> String {
        let mut parts = Vec::new();
        if !self.sizes.is_empty() {
            parts.push(format!("on the simulator at {} small sizes", self.sizes.len()));
        }
        if let [_, ..] = self.symbolic_sizes[..] {
            parts.push("symbolically".to_owned());
        }
        if let Some(Sample { groups: 0, of, .. }) = self.sample {
            parts.push(format!(
                "on none of the launch's {} work-groups, which take too long there",
                number::grouped(of)
            ));
        } else if let Some(Sample { groups, alone, of }) = self.sample {
            let compared = match alone {
                0 => "all of which may read other work-groups' results".to_owned(),
                _ if alone == groups => "also compared with the device's bits".to_owned(),
                _ => {
                    format!("of which the {alone} independent ones were also compared with the device's bits")
                }
            };
            parts.push(format!(
                "on {groups} of the launch's {} work-groups with its data, {compared}",
                number::grouped(of)
            ));
        }
        if let Some(at) = &self.at_full_size {
            let with = match (at.is_simulated, at.is_its_module) {
                (true, _) => "with the simulator's results for the whole launch".to_owned(),
                (false, true) => format!("with your module's results on the same {}", at.device),
                (false, false) => format!("with the plain kernel's results on the same {}", at.device),
            };
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
            sample: Some(Sample {
                groups: 64,
                alone: 64,
                of: 66_407,
            }),
            at_full_size: Some(AtFullSize {
                device: "NVIDIA H200".to_owned(),
                is_simulated: false,
                is_its_module: true,
                guarded: true,
                restored: false,
            }),
        };
        assert_eq!(
            checked.sentence(),
            "Checked on the simulator at 3 small sizes; symbolically; on 64 of the launch's 66,407 work-groups with its data, \
             also compared with the device's bits; and at full size with your module's results on the same \
             NVIDIA H200, each buffer ending at an unmapped page."
        );
        let whole = Checked {
            sizes: Vec::new(),
            symbolic_sizes: Vec::new(),
            sample: None,
            at_full_size: checked.at_full_size.clone().map(|at| AtFullSize {
                is_simulated: true,
                guarded: false,
                ..at
            }),
        };
        assert_eq!(
            whole.sentence(),
            "Checked at full size with the simulator's results for the whole launch."
        );
    }
}
