//! What is done with a text's tokens: number literals become exact, names of properties are noted, and all are hashed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::hash::Hasher as _;
use std::rc::Rc;

use rhai::{Engine, LexError, Position, Token};
use siphasher::sip128::{Hasher128 as _, SipHasher24};

use super::super::number::Number;

/// The hash that definitions are compared by.
const SIGNATURE_KEY: &[u8; 16] = b"treepie/script/1";

/// What was seen of a text.
#[derive(Debug)]
pub(in crate::script) struct Seen {
    hasher: SipHasher24,
    after_dot: bool,
    /// What follows a dot: names of properties and methods.
    pub(in crate::script) names: BTreeSet<String>,
}

impl Seen {
    pub(in crate::script) fn new() -> Self {
        Self { hasher: SipHasher24::new_with_key(SIGNATURE_KEY), after_dot: false, names: BTreeSet::new() }
    }

    /// The hash of the tokens so far.
    pub(in crate::script) fn signature(&self) -> [u8; 16] {
        self.hasher.finish128().as_bytes()
    }

    fn note(&mut self, token: &Token) {
        let (kind, text): (u8, String) = match token {
            Token::StringConstant(text) => (b's', text.to_string()),
            Token::Identifier(name) => {
                if self.after_dot {
                    self.names.insert(name.to_string());
                }
                (b'n', name.to_string())
            }
            other => (b'o', other.to_string()),
        };
        self.after_dot = matches!(token, Token::Period | Token::Elvis);
        self.hasher.write_u8(kind);
        self.hasher.write(&(text.len() as u64).to_le_bytes());
        self.hasher.write(text.as_bytes());
    }
}

/// Looks at every token that the engine parses.
pub(in crate::script) fn observe(engine: &mut Engine, seen: &Rc<RefCell<Seen>>) {
    let seen = Rc::clone(seen);
    #[expect(deprecated, reason = "not deprecated, but marked so because it may change; the version is pinned")]
    engine.on_parse_token(move |token, _: Position, _| {
        let token = exact(token);
        seen.borrow_mut().note(&token);
        token
    });
}

/// A number literal by value; `'c'` is text like `"c"`.
fn exact(token: Token) -> Token {
    let text = match &token {
        Token::FloatConstant(literal) => &literal.1,
        Token::DecimalConstant(literal) => &literal.1,
        // The engine would not let us charge for the texts it makes.
        Token::InterpolatedString(_) => {
            return Token::LexError(Box::new(LexError::Runtime("text with ${…} is not supported".to_owned())));
        }
        Token::CharConstant(c) => return Token::StringConstant(Box::new(c.to_string().into())),
        _ => return token,
    };
    let plain = text.replace('_', "");
    let plain = plain.strip_suffix('.').unwrap_or(&plain);
    let significant = plain.split(['e', 'E']).next().unwrap_or("").replace('.', "");
    let significant = significant.trim_start_matches('0').trim_end_matches('0').len();
    match Number::parse(plain) {
        Some(Number::Int(value)) if significant <= 28 => Token::IntegerConstant(value),
        Some(Number::Decimal(value)) if significant <= 28 => Token::DecimalConstant(Box::new((value, text.clone()))),
        _ => Token::LexError(Box::new(LexError::MalformedNumber(format!(
            "{} (numbers have 28 digits and 28 decimal places at most, and are below 10^28)",
            plain.chars().take(60).collect::<String>()
        )))),
    }
}
