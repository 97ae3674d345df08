//! The manifest of a captured launch, as TOML.

use serde::Deserialize;

/// The contents of `launch.toml`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub format: u32,
    pub kernel: String,
    pub image: String,
    pub launch: u64,
    pub process: u64,
    pub device: String,
    pub capability: u32,
    pub driver: i64,
    pub groups: [u32; 3],
    pub group: [u32; 3],
    pub shared_bytes: u32,
    pub cooperative: bool,
    #[serde(default)]
    pub attributes: Vec<Attribute>,
    pub parameters: Parameters,
    #[serde(default)]
    pub memory: Vec<Memory>,
    #[serde(default)]
    pub variables: Vec<Memory>,
    #[serde(default)]
    pub taken: Option<Taken>,
}

/// An attribute of `cuLaunchKernelEx`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attribute {
    pub id: u32,
    pub value: String,
}

/// All parameters, one after the other.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Parameters {
    /// In hexadecimal.
    pub bytes: String,
    /// Offset and size of each.
    pub layout: Vec<[u64; 2]>,
}

/// An allocation, or a variable of the module.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Memory {
    pub name: Option<String>,
    pub address: u64,
    pub bytes: u64,
    pub kind: String,
    pub before: String,
    /// Left out where the launch was written down, and did not run.
    #[serde(default)]
    pub after: Option<String>,
}

/// How the capture went.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Taken {
    pub seconds: f64,
}
