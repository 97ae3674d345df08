//! The source function of an instruction, if the module has it: the function that the user called, not one inlined from a
//! library.
//!
//! ```text
//! .loc 2 45 3, function_name $L__info_string0, inlined_at 1 10 3
//! .section .debug_str { $L__info_string0: .b8 95,90,52,101,120,112,102,102,0 }       _Z4expff: `expf`
//! ```

use super::lexer::{Lexer, Token};

/// Longest name that is read, in bytes.
const MOST: usize = 256;

/// The name behind a label of the debug sections, as people write it.
pub(super) fn function(text: &str, label: &str) -> Option<String> {
    let at = text.rfind(&format!("\n{label}:"))?;
    let mut lexer = Lexer::new(text, at + label.len() + 2, 1);
    let mut bytes = Vec::new();
    while bytes.len() < MOST {
        match lexer.next().ok()? {
            Token::Dot("b8") | Token::Mark(',') => {}
            Token::Integer(0) => break,
            Token::Integer(byte) => bytes.push(u8::try_from(byte).ok()?),
            _ => return None,
        }
    }
    Some(plain(&String::from_utf8(bytes).ok()?))
}

/// A mangled name without its types: `_ZN3foo4expfEf` is `foo::expf`. Others stay as they are.
fn plain(name: &str) -> String {
    let Some(mut rest) = name.strip_prefix("_Z") else {
        return name.to_owned();
    };
    let nested = rest.starts_with('N');
    rest = rest.trim_start_matches(['N', 'K', 'L']);
    let mut parts = Vec::new();
    loop {
        let digits = rest.chars().take_while(char::is_ascii_digit).count();
        let Some(length) = rest[..digits].parse::<usize>().ok().filter(|&length| length > 0) else {
            break;
        };
        let Some(part) = rest.get(digits..digits + length) else {
            break;
        };
        parts.push(part);
        rest = &rest[digits + length..];
        if !nested {
            break;
        }
    }
    match parts.is_empty() {
        true => name.to_owned(),
        false => parts.join("::"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx::{Facts, read};

    #[test]
    fn names_lose_their_types() {
        assert_eq!(plain("_Z4expff"), "expf");
        assert_eq!(plain("_ZN3foo4expfEf"), "foo::expf");
        assert_eq!(plain("main"), "main");
    }

    #[test]
    fn an_error_names_the_function_that_was_called() {
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{\n.reg .b8 %f<9>;\n\
                    .loc 2 45 3, function_name $L__info_string0, inlined_at 1 10 3\nfrobnicate.b8 %f1, %f2;\nret;\n}\n\
                    .file 1 \"a.cu\"\n.file 2 \"math.h\"\n.section .debug_str\n{\n$L__info_string0:\n\
                    .b8 95,90,52,101,120,112,102,102\n.b8 0\n}\n";
        let error = read(text, "k.ptx", None, &Facts::default()).expect_err("no such register");
        assert!(error.to_string().contains("`expf`"), "{error}");
    }
}
