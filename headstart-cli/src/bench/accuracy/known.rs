//! Known errors of the simulator's times, and their suspected causes. The times themselves come from the record.

use super::record::{Record, Side};

/// A time that is far from the measured one.
#[derive(Clone, Copy, Debug)]
pub struct Off {
    /// The models on whose pages it stands.
    pub models: &'static [&'static str],
    /// The case's name.
    pub case: &'static str,
    /// The plan, or `none`.
    pub plan: &'static str,
    /// The suspected cause.
    pub cause: &'static str,
}

/// The known errors.
pub const OFF: &[Off] = &[
    Off {
        models: &["h200", "h100"],
        case: "attention sequences=4 tokens=8192 pool=2^13 group=128",
        plan: "keys=rolling-registers:4,values=rolling-registers:4",
        cause: "ptxas takes a pair of 16-bit values apart right behind the guarded load that brings it, so that each iteration waits for the loads that it has just begun; halves of registers cost nothing here",
    },
    Off {
        models: &["h200", "h100"],
        case: "triad quads=2^24 items=4 group=256",
        plan: "unroll:16,b=rolling-registers:16,c=rolling-registers:16",
        cause: "ptxas spills most of the rings, and that cost nothing here when these times were predicted",
    },
    Off {
        models: &["h200", "h100"],
        case: "embedding-bag bags=2048 bag=150 group=64",
        plan: "table=rolling-registers:12",
        cause: "ptxas finds room for a few registers more than is expected here, and with it for more work-groups",
    },
    Off {
        models: &["h200", "h100"],
        case: "nbody bodies=2^14 group=256",
        plan: "bodies=rolling-async:8/interleaved",
        cause: "copies of 16 bytes that all work-items make of the same go to L2 one by one here, at the rate of `micro/copies`; some of them meet on a GPU",
    },
    Off {
        models: &["h200", "h100"],
        case: "nbody bodies=2^14 group=256",
        plan: "none",
        cause: "not known: square roots with jumps over rare code between other arithmetic",
    },
    Off {
        models: &["h200", "h100"],
        case: "embedding-bag bags=256 bag=150 group=128",
        plan: "table=cache:L1:2",
        cause: "not known: a hint to L1 is a copy to a scratch word, which takes too long here where few sub-groups are resident",
    },
    Off {
        models: &["h200", "h100"],
        case: "gather groups=528 group=256 items=128",
        plan: "values=cache:L1:2",
        cause: "not known: the same, which takes too little where many are",
    },
    Off {
        models: &["h200", "h100"],
        case: "gather groups=132 group=128 items=1024",
        plan: "values=cache:L2:16",
        cause: "hints far ahead bring more than L2 has room for; on a GPU some of it is gone when the load comes",
    },
    Off {
        models: &["h200", "h100"],
        case: "bfs scale=18 degree=16 steps=2 lanes=16",
        plan: "unroll:16",
        cause: "most sub-groups leave a body of 16 iterations early, and each way out is charged a jump that ptxas lays out of the way",
    },
    Off {
        models: &["h200", "h100"],
        case: "spmv matrix=random16 rows=1048576 lanes=16",
        plan: "unroll:16",
        cause: "not known: a lane has one iteration, so that the body of 16 is never entered, but it costs time here",
    },
    Off {
        models: &["h200", "h100"],
        case: "spmv matrix=random256 rows=65536 lanes=32",
        plan: "none",
        cause: "not known: streams of indices and values beside scattered loads",
    },
    Off {
        models: &["h100"],
        case: "btree groups=528 group=256 items=8 levels=7",
        plan: "none",
        cause: "the rate at which L2 serves scattered words is fitted where all cores stream them; searches, which wait for each word, get more of it",
    },
];

impl Off {
    /// The measured and the simulated time of a record, in nanoseconds; none where it lacks one of them.
    pub fn times(&self, record: &Record) -> Option<(f64, f64)> {
        let case = record.cases.iter().find(|case| case.case == self.case)?;
        let time = |side: &Side| match self.plan {
            "none" => Some(side.plain_ns),
            plan => Some(side.plans.iter().find(|own| own.plan == plan)?.ns),
        };
        Some((time(case.measured.as_ref()?)?, time(case.simulated.as_ref()?)?))
    }
}
