//! Expressions that never complete: code behind them is unreachable, and their type fits anywhere.
//!
//! The recorded copy of a body is straight-line code, in which a `return` is a call like any other. So the compiler's knowledge
//! from the type `!` is reconstructed here from the syntax.

use syn::visit::Visit;
use syn::{Block, Expr, ExprBreak, Lifetime, Stmt};

/// Whether a block never reaches its end.
pub fn block_diverges(block: &Block) -> bool {
    block.stmts.iter().any(|statement| match statement {
        Stmt::Local(local) => local.init.as_ref().is_some_and(|init| diverges(&init.expr)),
        Stmt::Expr(expression, _) => diverges(expression),
        Stmt::Item(_) | Stmt::Macro(_) => false,
    })
}

/// Whether an expression never gives a value.
pub fn diverges(expression: &Expr) -> bool {
    match expression {
        Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => true,
        Expr::Paren(inner) => diverges(&inner.expr),
        Expr::Group(inner) => diverges(&inner.expr),
        Expr::Unary(unary) => diverges(&unary.expr),
        Expr::Cast(cast) => diverges(&cast.expr),
        Expr::Field(field) => diverges(&field.base),
        Expr::Block(block) => {
            let left = block
                .label
                .as_ref()
                .is_some_and(|label| breaks_to(&block.block, Some(&label.name), false));
            !left && block_diverges(&block.block)
        }
        Expr::If(conditional) => {
            diverges(&conditional.cond)
                || (block_diverges(&conditional.then_branch)
                    && conditional
                        .else_branch
                        .as_ref()
                        .is_some_and(|(_, otherwise)| diverges(otherwise)))
        }
        Expr::Loop(endless) => {
            let label = endless.label.as_ref().map(|label| &label.name);
            !breaks_to(&endless.body, label, true)
        }
        // The right side of `&&` and `||` may not run.
        Expr::Binary(binary) => {
            let lazy = matches!(binary.op, syn::BinOp::And(_) | syn::BinOp::Or(_));
            diverges(&binary.left) || (!lazy && diverges(&binary.right))
        }
        Expr::Assign(assign) => diverges(&assign.right),
        Expr::Index(index) => diverges(&index.index),
        Expr::Call(call) => call.args.iter().any(diverges),
        Expr::MethodCall(call) => diverges(&call.receiver) || call.args.iter().any(diverges),
        Expr::Tuple(tuple) => tuple.elems.iter().any(diverges),
        _ => false,
    }
}

/// Whether something in `body` leaves the loop or block around it: by its label, or without one if it is a
/// loop.
pub fn breaks_to(body: &Block, label: Option<&Lifetime>, is_loop: bool) -> bool {
    let mut search = BreakSearch {
        label,
        unlabelled: is_loop,
        found: false,
    };
    search.visit_block(body);
    search.found
}

struct BreakSearch<'a> {
    label: Option<&'a Lifetime>,
    unlabelled: bool,
    found: bool,
}

impl BreakSearch<'_> {
    fn inside_loop(&mut self, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.unlabelled, false);
        visit(self);
        self.unlabelled = outer;
    }
}

impl<'ast> Visit<'ast> for BreakSearch<'_> {
    fn visit_expr_break(&mut self, node: &'ast ExprBreak) {
        self.found |= match &node.label {
            Some(label) => self.label.is_some_and(|own| own.ident == label.ident),
            None => self.unlabelled,
        };
        syn::visit::visit_expr_break(self, node);
    }

    fn visit_expr_loop(&mut self, node: &'ast syn::ExprLoop) {
        self.inside_loop(|search| syn::visit::visit_expr_loop(search, node));
    }

    fn visit_expr_while(&mut self, node: &'ast syn::ExprWhile) {
        self.inside_loop(|search| syn::visit::visit_expr_while(search, node));
    }

    fn visit_expr_for_loop(&mut self, node: &'ast syn::ExprForLoop) {
        self.inside_loop(|search| syn::visit::visit_expr_for_loop(search, node));
    }

    // Functions and constants inside are worlds of their own.
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str) -> bool {
        diverges(&syn::parse_str(source).expect("the test's source parses"))
    }

    #[test]
    fn what_never_completes() {
        for source in [
            "return",
            "{ x = 1; return; }",
            "if a { return } else { break }",
            "loop { if a { return; } }",
            "'a: loop { loop { break; } }",
            "{ let x = return; }",
        ] {
            assert!(check(source), "{source}");
        }
    }

    #[test]
    fn what_may_complete() {
        for source in [
            "if a { return }",
            "loop { if a { break; } }",
            "'a: loop { loop { break 'a; } }",
            "'a: { break 'a; }",
            "while true { return; }",
            "a && return",
            "5",
        ] {
            assert!(!check(source), "{source}");
        }
    }
}
