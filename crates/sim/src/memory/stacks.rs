//! The link between the stacks of a card, where memory lies in another one's.
//!
//! A stack reaches the other's memory over a link of its own, whose bandwidth is about that of one stack's memory. Either the
//! program divides the work itself and places each buffer in a stack (explicit scaling), or one device has both stacks, and the
//! first half of the work-groups and of each buffer belong to the first one (implicit scaling).

use std::ops::Range;

use super::host::WithHost;
use super::port::{Cycles, Port};
use crate::model::DeviceModel;

/// Where a launch's buffers are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Placement {
    /// Those in the memory of another stack than the one that runs the launch.
    pub elsewhere: Vec<Range<u64>>,
    /// Those that are divided over the stacks of the device, where it has several.
    pub divided: Vec<Range<u64>>,
    /// Those that lie with the host.
    pub with_host: WithHost,
}

/// The link, or the part of it that the simulated cores can claim.
#[derive(Clone, Debug)]
pub(super) struct Link {
    port: Port,
    latency: Cycles,
    stacks: u64,
    placement: Placement,
    /// The stack of the work-group that each core runs.
    of_core: Vec<u64>,
}

impl Link {
    /// None where everything lies in the stack that asks for it.
    pub(super) fn new(model: &DeviceModel, placement: &Placement, cores: u32, share: f64) -> Option<Link> {
        let card = model.card.as_ref()?;
        let stacks = u64::from(model.core.stacks.max(1));
        if placement.elsewhere.is_empty() && stacks == 1 {
            return None;
        }
        let bytes_per_cycle = *card.stack_bandwidth * 1000.0 / *model.core.clock;
        // Each stack has a way in of its own.
        Some(Link {
            port: Port::new((bytes_per_cycle * stacks as f64 * share).max(f64::MIN_POSITIVE)),
            latency: f64::from(*card.stack_latency),
            stacks,
            placement: placement.clone(),
            of_core: vec![0; cores as usize],
        })
    }

    /// A core runs a work-group of this stack from now on.
    pub(super) fn run(&mut self, core: usize, stack: u64) {
        self.of_core[core] = stack;
    }

    /// The additional time for bytes that a core requests at `now`.
    pub(super) fn cross(&mut self, core: usize, now: Cycles, address: u64, bytes: f64) -> Cycles {
        let holds = |buffer: &&Range<u64>| buffer.contains(&address);
        let is_elsewhere = self
            .placement
            .elsewhere
            .iter()
            .any(|buffer| buffer.contains(&address))
            || self.placement.divided.iter().find(holds).is_some_and(|buffer| {
                let part = (buffer.end - buffer.start).div_ceil(self.stacks).max(1);
                (address - buffer.start) / part != self.of_core[core]
            });
        match is_elsewhere {
            true => self.port.take(now, bytes) - now + self.latency,
            false => 0.0,
        }
    }
}
