//! Conditions, as truths and as ways out.

use super::Translator;
use crate::front::lang::record::tree::TargetId;
use crate::ir::{BinaryOp, Builder, CompareOp, Type, UnaryOp, Value};
use crate::source::tree::{Condition, Expr, Relation, Scalar, Statement};

impl Translator<'_> {
    pub(super) fn conditional(&mut self, condition: &Condition, then: &[Statement], otherwise: &[Statement]) {
        let lazy = matches!(
            condition,
            Condition::And(..) | Condition::Or(..) | Condition::Not(_)
        );
        if !lazy || self.style.eager {
            let cond = self.truth(condition);
            self.branch(cond, |t| t.statements(then), |t| t.statements(otherwise));
            return;
        }
        self.block(|translator, end| {
            translator.block(|translator, no| {
                translator.jump(condition, false, no);
                translator.statements(then);
                translator.leave(end);
            });
            translator.statements(otherwise);
        });
    }

    /// Leaves the target where the condition is as `sense` says, and goes on where it is not.
    pub(super) fn jump(&mut self, condition: &Condition, sense: bool, target: TargetId) {
        match condition {
            Condition::Not(inner) => self.jump(inner, !sense, target),
            Condition::And(_, right) | Condition::Or(_, right) if self.style.eager && is_free(right) => {
                let truth = self.truth(condition);
                self.leave_if(truth, sense, target);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let one = matches!(condition, Condition::Or(..)) == sense;
                if one {
                    self.jump(left, sense, target);
                    self.jump(right, sense, target);
                } else if self.style.leaves_last && !matches!(**left, Condition::And(..) | Condition::Or(..))
                {
                    self.block(|translator, skip| {
                        let left = translator.truth(left);
                        let go_on = |_: &mut Self| {};
                        let test = |translator: &mut Self| {
                            translator.jump(right, !sense, skip);
                            translator.leave(target);
                        };
                        match sense {
                            true => translator.branch(left, test, go_on),
                            false => translator.branch(left, go_on, test),
                        }
                    });
                } else {
                    self.block(|translator, skip| {
                        translator.jump(left, !sense, skip);
                        translator.jump(right, sense, target);
                    });
                }
            }
            _ => {
                let truth = self.truth(condition);
                self.leave_if(truth, sense, target);
            }
        }
    }

    pub(super) fn leave_if(&mut self, truth: Value, sense: bool, target: TargetId) {
        let leave = |translator: &mut Self| translator.leave(target);
        match sense {
            true => self.branch(truth, leave, |_| {}),
            false => self.branch(truth, |_| {}, leave),
        }
    }

    /// The condition as a `Bool`.
    pub(super) fn truth(&mut self, condition: &Condition) -> Value {
        match condition {
            Condition::Compare(relation, ty, left, right) => {
                let (left, right) = (self.expr(left), self.expr(right));
                self.build(|b| compare(b, *relation, *ty, left, right))
            }
            Condition::Pointers(relation, left, right) => {
                let (left, right) = (self.pointer(left), self.pointer(right));
                self.build(|b| compare(b, *relation, Scalar::U64, left, right))
            }
            Condition::Not(inner) => {
                let inner = self.truth(inner);
                self.build(|b| b.unary(UnaryOp::Not, inner))
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                let is_and = matches!(condition, Condition::And(..));
                let left = self.truth(left);
                if self.style.eager && is_free(right) {
                    // It is computed where C would not, and then its sums may wrap.
                    let promises = std::mem::replace(&mut self.style.promises, false);
                    let right = self.truth(right);
                    self.style.promises = promises;
                    let op = if is_and { BinaryOp::And } else { BinaryOp::Or };
                    return self.build(|b| b.binary(op, left, right));
                }
                let variable = self.temporary(Type::Bool);
                let decided = self.kernel.constant(Type::Bool, u64::from(!is_and));
                let long = |translator: &mut Self| {
                    let right = translator.truth(right);
                    translator.write(variable, right);
                };
                let short = |translator: &mut Self| translator.write(variable, decided);
                match is_and {
                    true => self.branch(left, long, short),
                    false => self.branch(left, short, long),
                }
                self.read(variable)
            }
        }
    }
}

pub(super) fn compare(
    b: &mut Builder<'_>,
    relation: Relation,
    ty: Scalar,
    left: Value,
    right: Value,
) -> Value {
    let (less, less_equal) = match ty {
        Scalar::F32 => (CompareOp::FLt, CompareOp::FLe),
        _ if ty.is_signed() => (CompareOp::LtS, CompareOp::LeS),
        _ => (CompareOp::LtU, CompareOp::LeU),
    };
    let is_float = ty == Scalar::F32;
    match relation {
        Relation::Less => b.compare(less, left, right),
        Relation::LessEqual => b.compare(less_equal, left, right),
        Relation::Greater => b.compare(less, right, left),
        Relation::GreaterEqual => b.compare(less_equal, right, left),
        Relation::Equal => b.compare(if is_float { CompareOp::FEq } else { CompareOp::Eq }, left, right),
        Relation::NotEqual => b.compare(if is_float { CompareOp::FNe } else { CompareOp::Ne }, left, right),
    }
}

/// Whether a condition may be computed where it is not asked for: it has no effect and touches no memory.
fn is_free(condition: &Condition) -> bool {
    match condition {
        Condition::Compare(_, _, left, right) => is_free_number(left) && is_free_number(right),
        Condition::Pointers(..) => false,
        Condition::Not(inner) => is_free(inner),
        Condition::And(left, right) | Condition::Or(left, right) => is_free(left) && is_free(right),
    }
}

fn is_free_number(expr: &Expr) -> bool {
    match expr {
        Expr::Number(..) | Expr::Variable(_) | Expr::Parameter(_) | Expr::Item | Expr::Group => true,
        Expr::Binary(_, _, left, right) => is_free_number(left) && is_free_number(right),
        Expr::Cast(_, inner) => is_free_number(inner),
        Expr::Choose(..) | Expr::Load(..) | Expr::Step(..) => false,
    }
}
