//! The words of RQL: a query's text, cut into tokens with their places.
//!
//! Next: `parse`.

use winnow::LocatingSlice;
use winnow::combinator::{alt, delimited, opt, preceded, repeat};
use winnow::error::{EmptyError, ParserError};
use winnow::prelude::*;
use winnow::token::{any, none_of, one_of, take_till, take_until, take_while};

use super::error::{Position, QueryError};

/// A token and the byte at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) what: What,
    pub(crate) at: usize,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A name or a keyword, as written.
    Word(String),
    /// A string between quotes, without its escapes.
    Quoted(String),
    /// A number, as written.
    Number(String),
    /// `$name`.
    Parameter(String),
    /// Punctuation.
    Symbol(&'static str),
}

/// Longest first.
const SYMBOLS: [&str; 22] =
    ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ".", ";", "*", "/", "+", "-", ":"];

type Input<'a> = LocatingSlice<&'a str>;

/// Cuts a text into tokens; white space and comments (`//`, `/* */`) are left out.
///
/// # Errors
/// A character that begins no token; a string or comment without an end; a misshapen escape or number.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let mut input = LocatingSlice::new(text);
    let mut tokens = Vec::new();
    loop {
        let wrong = |input: &Input<'_>, what: &str| {
            let at = Position::of(text, text.len() - input.len());
            QueryError::Syntax { at, message: what.to_owned() }
        };
        if space.parse_next(&mut input).is_err() {
            return Err(wrong(&input, "A comment begins here and has no end; close it with */"));
        }
        if input.is_empty() {
            return Ok(tokens);
        }
        let at = text.len() - input.len();
        match token.parse_next(&mut input) {
            Ok(what) => tokens.push(Token { what, at }),
            Err(_) => return Err(wrong(&input, &complaint(&input))),
        }
    }
}

/// Whether a name needs no quotes anywhere.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let mut input = LocatingSlice::new(name);
    let is_word = matches!(word.parse_next(&mut input), Ok(word) if word == name);
    is_word && !super::parse::is_reserved(name)
}

fn complaint(rest: &str) -> String {
    match rest.chars().next() {
        Some('\'' | '"') => {
            "A string begins here and has no end, or holds an escape other than \\\\, \\', \\\", \\/, \\n, \
                             \\r, \\t, \\b, \\f and \\uXXXX"
                .to_owned()
        }
        Some('$') => "A parameter has a name behind its '$': $name".to_owned(),
        Some(digit) if digit == '-' || digit.is_ascii_digit() => {
            "A number is written as in JSON: 1, -2.5, 3e10".to_owned()
        }
        Some(other) => format!("'{other}' begins nothing that RQL knows"),
        None => "The query ends here".to_owned(),
    }
}

fn space(input: &mut Input<'_>) -> Result<(), EmptyError> {
    loop {
        take_while(0.., char::is_whitespace).void().parse_next(input)?;
        if input.starts_with("//") {
            take_till(0.., '\n').void().parse_next(input)?;
        } else if input.starts_with("/*") {
            let start = *input;
            let comment: Result<(), EmptyError> = ("/*", take_until(0.., "*/"), "*/").void().parse_next(input);
            if comment.is_err() {
                *input = start;
                return comment;
            }
        } else {
            return Ok(());
        }
    }
}

fn token(input: &mut Input<'_>) -> Result<What, EmptyError> {
    alt((
        word.map(|word: &str| What::Word(word.to_owned())),
        quoted('\'').map(What::Quoted),
        quoted('"').map(What::Quoted),
        number.map(|number: &str| What::Number(number.to_owned())),
        preceded('$', take_while(1.., is_in_word)).map(|name: &str| What::Parameter(name.to_owned())),
        symbol.map(What::Symbol),
    ))
    .parse_next(input)
}

/// `Name`, `_x1`, `@metadata`, `@last-modified`: a hyphen only where the word begins with `@`.
fn word<'a>(input: &mut Input<'a>) -> Result<&'a str, EmptyError> {
    alt((
        ('@', take_while(1.., |c| is_in_word(c) || c == '-')).take(),
        (one_of(|c: char| c.is_alphabetic() || c == '_'), take_while(0.., is_in_word)).take(),
    ))
    .parse_next(input)
}

fn is_in_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// JSON's numbers; a letter or point right behind one belongs to nothing.
fn number<'a>(input: &mut Input<'a>) -> Result<&'a str, EmptyError> {
    let digits = || take_while(1.., |c: char| c.is_ascii_digit());
    let start = *input;
    let number =
        (opt('-'), digits(), opt(('.', digits())), opt((one_of(['e', 'E']), opt(one_of(['+', '-'])), digits())))
            .take()
            .parse_next(input)?;
    let is_json = super::number::Number::parse(number).is_some();
    if !is_json || input.starts_with(|c: char| is_in_word(c) || c == '.') {
        *input = start;
        return Err(EmptyError::from_input(input));
    }
    Ok(number)
}

/// A string: escapes as in JSON, `\'`, and a doubled quote for the quote itself.
fn quoted(quote: char) -> impl FnMut(&mut Input<'_>) -> Result<String, EmptyError> {
    move |input| {
        let doubled = if quote == '\'' { "''" } else { "\"\"" };
        let character = alt((doubled.value(quote), preceded('\\', escaped), none_of(['\\', quote])));
        let characters = repeat(0.., character).fold(String::new, |mut text, character| {
            text.push(character);
            text
        });
        delimited(quote, characters, quote).parse_next(input)
    }
}

fn escaped(input: &mut Input<'_>) -> Result<char, EmptyError> {
    let start = *input;
    let character = match any.parse_next(input)? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'u' => {
            let high = unit(input)?;
            match high {
                0xD800..0xDC00 => {
                    "\\u".void().parse_next(input)?;
                    let low = unit(input)?;
                    char::decode_utf16([high, low]).next().and_then(Result::ok)
                }
                _ => char::from_u32(u32::from(high)),
            }
        }
        same @ ('\\' | '\'' | '"' | '/') => Some(same),
        _ => None,
    };
    character.ok_or_else(|| {
        *input = start;
        EmptyError::from_input(input)
    })
}

/// Four hexadecimal digits.
fn unit(input: &mut Input<'_>) -> Result<u16, EmptyError> {
    let digits = take_while(4..=4, |c: char| c.is_ascii_hexdigit());
    digits.try_map(|digits: &str| u16::from_str_radix(digits, 16)).parse_next(input)
}

fn symbol(input: &mut Input<'_>) -> Result<&'static str, EmptyError> {
    match SYMBOLS.into_iter().find(|symbol| input.starts_with(symbol)) {
        Some(symbol) => symbol.value(symbol).parse_next(input),
        None => Err(EmptyError::from_input(input)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(text: &str) -> Vec<What> {
        tokens(text).unwrap().into_iter().map(|token| token.what).collect()
    }

    #[test]
    fn a_text_is_cut_into_words_strings_numbers_parameters_and_symbols() {
        let word = |text: &str| What::Word(text.to_owned());
        assert_eq!(
            whats("from 'O''\\'x' /* c */ as o where o.@last-modified<=-1.5e3 // end\nand $p0"),
            [
                word("from"),
                What::Quoted("O''x".to_owned()),
                word("as"),
                word("o"),
                word("where"),
                word("o"),
                What::Symbol("."),
                word("@last-modified"),
                What::Symbol("<="),
                What::Number("-1.5e3".to_owned()),
                word("and"),
                What::Parameter("p0".to_owned()),
            ]
        );
        assert_eq!(whats(r#""\u0041\ud83d\ude00\n""#), [What::Quoted("A😀\n".to_owned())]);
    }

    #[test]
    fn what_is_no_token_is_told_with_its_place() {
        for (text, place) in [("from 'x", "1:6"), ("a\n  ^", "2:3"), ("x $", "1:3"), ("12ab", "1:1"), ("é /* x", "1:3")]
        {
            let error = tokens(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{place} ")), "{text}: {error}");
        }
    }
}
