//! The conditions of `where`: `not` binds tighter than `and`, `and` tighter than `or`.

use super::super::error::QueryError;
use super::super::syntax::{Comparison, Condition, Operand, Subject};
use super::super::token::What;
use super::Parser;

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Result<Condition, QueryError> {
        self.deeper(|parser| {
            let mut parts = vec![parser.conjunction()?];
            while parser.take_word("or") {
                parts.push(parser.conjunction()?);
            }
            Ok(one_or(parts, Condition::Or))
        })
    }

    fn conjunction(&mut self) -> Result<Condition, QueryError> {
        let mut parts = vec![self.term()?];
        while self.take_word("and") {
            parts.push(self.term()?);
        }
        Ok(one_or(parts, Condition::And))
    }

    fn term(&mut self) -> Result<Condition, QueryError> {
        if self.take_word("not") {
            return self.deeper(|parser| Ok(Condition::Not(Box::new(parser.term()?))));
        }
        if self.take_symbol("(") {
            let inner = self.condition()?;
            self.expect_symbol(")", "after a condition in brackets")?;
            return Ok(inner);
        }
        for (word, condition) in [("true", Condition::True), ("false", Condition::False)] {
            if self.take_word(word) {
                return Ok(condition);
            }
        }
        if self.is_symbol(1, "(")
            && let Some(What::Word(word)) = self.peek()
        {
            let word = word.to_ascii_lowercase();
            if let Some(condition) = self.function(&word)? {
                return Ok(condition);
            }
        }
        let subject = self.subject("a condition")?;
        self.comparison(subject)
    }

    /// A condition that is written as a function; `None` where the function is only a subject.
    fn function(&mut self, word: &str) -> Result<Option<Condition>, QueryError> {
        let condition = match word {
            // Comparison is exact as it is.
            "exact" => {
                self.next += 2;
                self.condition()?
            }
            "exists" => {
                self.next += 2;
                match self.subject("a property in exists(…)")? {
                    Subject::Path(path) => Condition::Exists(path),
                    other => return Err(self.unsupported(format!("'exists({other})', only of properties"))),
                }
            }
            "startswith" | "endswith" => {
                self.next += 2;
                let subject = self.subject("a property or id()")?;
                self.expect_symbol(",", "between a property and its beginning or end")?;
                let operand = self.operand()?;
                match word {
                    "startswith" => Condition::StartsWith(subject, operand),
                    _ => Condition::EndsWith(subject, operand),
                }
            }
            _ => return Ok(None),
        };
        self.expect_symbol(")", &format!("at the end of {word}(…)"))?;
        Ok(Some(condition))
    }

    fn comparison(&mut self, subject: Subject) -> Result<Condition, QueryError> {
        let comparisons = [
            ("=", Comparison::Equal),
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<>", Comparison::NotEqual),
            ("<", Comparison::Less),
            ("<=", Comparison::LessOrEqual),
            (">", Comparison::Greater),
            (">=", Comparison::GreaterOrEqual),
        ];
        for (symbol, comparison) in comparisons {
            if self.take_symbol(symbol) {
                return Ok(Condition::Compare(subject, comparison, self.operand()?));
            }
        }
        let negated = self.is_word(0, "not") && (self.is_word(1, "in") || self.is_word(1, "between"));
        self.next += usize::from(negated);
        let condition = if self.take_word("between") {
            let low = self.operand()?;
            self.expect_word("and", "between the two bounds of 'between'")?;
            Condition::Between(subject, low, self.operand()?)
        } else if self.take_word("in") {
            Condition::In(subject, self.operands()?)
        } else if self.take_word("all") {
            self.expect_word("in", "after 'all'")?;
            Condition::AllIn(subject, self.operands()?)
        } else {
            let expected = format!("a comparison (=, !=, <, <=, >, >=, between, in, all in) after {subject}");
            return Err(self.unexpected(&expected));
        };
        Ok(if negated { Condition::Not(Box::new(condition)) } else { condition })
    }

    fn operands(&mut self) -> Result<Vec<Operand>, QueryError> {
        self.expect_symbol("(", "before the values of 'in'")?;
        if self.take_symbol(")") {
            return Ok(Vec::new());
        }
        let operands = self.list(Self::operand)?;
        self.expect_symbol(")", "after the values of 'in'")?;
        Ok(operands)
    }

    /// A value that the query gives.
    pub(super) fn operand(&mut self) -> Result<Operand, QueryError> {
        let operand = match self.peek() {
            Some(What::Parameter(name)) => Operand::Parameter(name.clone()),
            Some(What::Quoted(text)) => Operand::String(text.clone()),
            Some(What::Number(number)) => Operand::Number(number.clone()),
            Some(What::Word(word)) if word.eq_ignore_ascii_case("null") => Operand::Null,
            Some(What::Word(word)) if word.eq_ignore_ascii_case("true") => Operand::Bool(true),
            Some(What::Word(word)) if word.eq_ignore_ascii_case("false") => Operand::Bool(false),
            Some(What::Word(word)) if !super::is_reserved(word) => {
                let what =
                    format!("comparing with '{word}', only with values; a string is written in quotes: '{word}'");
                return Err(self.unsupported(what));
            }
            _ => return Err(self.unexpected("a value: $parameter, a string, a number, true, false or null")),
        };
        self.next += 1;
        Ok(operand)
    }
}

fn one_or(mut parts: Vec<Condition>, several: fn(Vec<Condition>) -> Condition) -> Condition {
    match parts.len() {
        1 => parts.pop().unwrap_or(Condition::True),
        _ => several(parts),
    }
}
