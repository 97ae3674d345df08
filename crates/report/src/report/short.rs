//! Short names for loads if plans would be too long for their table: `A=rolling-async:4` for
//! `param_3@L__BB1_4=rolling-async:4`, with a legend.

use super::columns::broken;
use crate::prefetch::Plan;
use crate::prefetch::plan::LoadName;

/// A load's name up to this length is as short as it needs to be.
const SHORT: usize = 8;

/// How plans are spelled in a table.
#[derive(Debug, Default)]
pub(crate) struct Short {
    /// The loads that have a letter, in the order of the letters.
    loads: Vec<LoadName>,
}

impl Short {
    /// For these plans in a column of some width: letters where a plan is longer and has a load with a long name.
    pub(crate) fn of<'p>(plans: impl IntoIterator<Item = &'p Plan> + Clone, width: usize) -> Short {
        let is_long = |plan: &&Plan| plan.to_string().chars().count() > width;
        let mut loads: Vec<LoadName> = Vec::new();
        if !plans.clone().into_iter().any(|plan| is_long(&plan)) {
            return Short::default();
        }
        for (load, _) in plans.into_iter().flat_map(|plan| plan.loads()) {
            if load.to_string().chars().count() > SHORT && !loads.contains(load) {
                loads.push(load.clone());
            }
        }
        // There are 26 letters; with more loads than that names are shown.
        loads.truncate(26);
        Short { loads }
    }

    fn letter(position: usize) -> char {
        char::from(b'A' + u8::try_from(position.min(25)).unwrap_or_default())
    }

    /// A plan in lines of at most this width, broken between its parts.
    pub(crate) fn plan(&self, plan: &Plan, width: usize) -> String {
        if plan.is_none() {
            return plan.to_string();
        }
        let inner = plan.inner().map(|inner| format!("inner:{inner}"));
        let unroll = plan.unroll().map(|unroll| unroll.to_string());
        let registers = plan.registers().map(|registers| format!("registers:{registers}"));
        let loads = plan.loads().iter().map(|(load, strategy)| {
            match self.loads.iter().position(|known| known == load) {
                Some(position) => format!("{}={strategy}", Short::letter(position)),
                None => format!("{load}={strategy}"),
            }
        });
        let parts: Vec<String> = inner
            .into_iter()
            .chain(unroll)
            .chain(registers)
            .chain(loads)
            .collect();
        broken(&parts.join(","), width, &[','])
    }

    /// The legend of the letters: `A is param_3@L__BB1_4, B is …`; none if there are none.
    pub(crate) fn legend(&self) -> Option<String> {
        let loads = self.loads.iter().enumerate();
        let said: Vec<String> = loads
            .map(|(position, load)| format!("{} is `{load}`", Short::letter(position)))
            .collect();
        (!said.is_empty()).then(|| said.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_become_letters_where_plans_are_too_long() {
        let plans: Vec<Plan> = [
            "unroll:8,param_3@L__BB1_4=rolling-async:8,x=rolling-registers:9",
            "param_4@L__BB1_4=cache:L1:2",
        ]
        .iter()
        .map(|plan| plan.parse().expect("a plan"))
        .collect();
        let short = Short::of(&plans, 60);
        assert_eq!(
            short.plan(&plans[0], 60),
            "unroll:8,A=rolling-async:8/interleaved,x=rolling-registers:9"
        );
        assert_eq!(
            short.plan(&plans[0], 40),
            "unroll:8,A=rolling-async:8/interleaved,\nx=rolling-registers:9"
        );
        assert_eq!(short.plan(&plans[1], 60), "B=cache:L1:2");
        assert_eq!(
            short.legend().expect("letters"),
            "A is `param_3@L__BB1_4`, B is `param_4@L__BB1_4`"
        );
        let wide = Short::of(&plans, 100);
        assert_eq!(wide.plan(&plans[0], 100), plans[0].to_string());
        assert_eq!(wide.legend(), None);
    }
}
