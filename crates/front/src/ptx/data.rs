//! What the module's variables hold at first.
//!
//! ```text
//! .global .align 4 .f32 weights[4] = {0f3F800000, 2.0};      1.0 2.0 0.0 0.0
//! ```

use super::kinds::type_of;
use super::lexer::Token;
use super::parse::Parser;
use super::tree::Variable;
use crate::error::{Error, Result};
use crate::ir::Type;
use crate::suggest::quoted;

/// Most bytes of a variable that are read from a module.
const MOST_BYTES: u64 = 64 << 20;
/// Most braces inside each other.
const MOST_NESTED: u32 = 16;

/// The bytes of a variable: its values, and zeros behind them. `None` if the text gives it none.
///
/// # Errors
/// The values are no numbers, or more than fit.
pub(super) fn bytes(text: &str, variable: &Variable<'_>) -> Result<Option<Vec<u8>>> {
    let ty = type_of(variable.ty).filter(|ty| *ty != Type::Bool);
    let about = |error: Error| {
        error
            .about(format!("variable {}", quoted(variable.name)))
            .at(format!("line {}", variable.line))
    };
    let ty = ty.ok_or_else(|| {
        about(Error::input(format!(
            "variables of type `.{}` are not supported",
            variable.ty
        )))
    })?;
    let Some((at, line)) = variable.values else {
        return Ok(None);
    };
    let size = variable.length.unwrap_or(0).saturating_mul(u64::from(ty.bytes()));
    if size > MOST_BYTES {
        return Err(about(
            Error::input("its values are too many").accepted(format!("at most {} MiB", MOST_BYTES >> 20)),
        ));
    }
    let mut found = Vec::new();
    let mut parser = Parser::new(text, at, line);
    parser
        .advance()
        .and_then(|_| values(&mut parser, ty, size, &mut found, 0))
        .map_err(about)?;
    found.resize(size as usize, 0);
    Ok(Some(found))
}

fn values(parser: &mut Parser<'_>, ty: Type, size: u64, into: &mut Vec<u8>, depth: u32) -> Result<()> {
    if !parser.take('{')? {
        return value(parser, ty, size, into);
    }
    if depth >= MOST_NESTED {
        return Err(Error::input("its values are nested too deeply"));
    }
    while !parser.take('}')? {
        values(parser, ty, size, into, depth + 1)?;
        if !parser.take(',')? {
            return parser.expect('}');
        }
    }
    Ok(())
}

fn value(parser: &mut Parser<'_>, ty: Type, size: u64, into: &mut Vec<u8>) -> Result<()> {
    let negative = parser.take('-')?;
    let bits = match parser.token {
        Token::Integer(number) => {
            let number = if negative { number.wrapping_neg() } else { number };
            match ty {
                Type::F32 => u64::from((number as i64 as f32).to_bits()),
                Type::F64 => (number as i64 as f64).to_bits(),
                _ => number,
            }
        }
        Token::Single(bits) => {
            let bits = if negative { bits ^ 1 << 31 } else { bits };
            match ty {
                Type::F64 => f64::from(f32::from_bits(bits)).to_bits(),
                _ => u64::from(bits),
            }
        }
        Token::Double(number) => {
            let number = if negative { -number } else { number };
            match ty {
                Type::F32 => u64::from((number as f32).to_bits()),
                _ => number.to_bits(),
            }
        }
        Token::Word(word) => {
            return Err(
                Error::input(format!("it holds the address of {}", quoted(word))).accepted("numbers alone")
            );
        }
        _ => return Err(parser.unexpected("a number")),
    };
    parser.advance()?;
    if into.len() as u64 + u64::from(ty.bytes()) > size {
        return Err(Error::input("it has more values than elements"));
    }
    into.extend_from_slice(&bits.to_le_bytes()[..ty.bytes() as usize]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::parse::module;

    fn of(declaration: &str) -> Result<Option<Vec<u8>>> {
        let module = module(declaration).expect("a module");
        bytes(declaration, &module.variables[0])
    }

    #[test]
    fn values_become_bytes() {
        assert_eq!(
            of(".const .align 4 .b8 t[6] = {1, 0xff, -1};").expect("bytes"),
            Some(vec![1, 255, 255, 0, 0, 0])
        );
        assert_eq!(
            of(".global .f32 t[2][2] = {{1.0, 0f40000000}, {3}};").expect("floats"),
            Some(
                [1.0f32, 2.0, 3.0, 0.0]
                    .iter()
                    .flat_map(|x| x.to_le_bytes())
                    .collect()
            )
        );
        assert_eq!(of(".global .u16 t = 513;").expect("one"), Some(vec![1, 2]));
        assert_eq!(of(".global .u16 t[4];").expect("none"), None);
        for (odd, expected) in [
            (".global .u64 t[2] = {generic(other), 1};", "address of `generic`"),
            (".global .u8 t[1] = {1, 2};", "more values"),
            (".global .u8 t[1] = {(};", "a number is expected"),
        ] {
            assert!(of(odd).expect_err(odd).to_string().contains(expected), "{odd}");
        }
    }
}
