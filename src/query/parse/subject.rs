//! What conditions, orders and projections are about: paths and functions.

use super::super::error::QueryError;
use super::super::path::{Path, Step};
use super::super::syntax::Subject;
use super::super::token::What;
use super::{Parser, is_reserved};

impl Parser<'_> {
    pub(super) fn subject(&mut self, expected: &str) -> Result<Subject, QueryError> {
        if self.is_symbol(1, "(")
            && let Some(What::Word(word)) = self.peek()
        {
            let word = word.clone();
            return self.called(&word);
        }
        self.path(expected).map(Subject::Path)
    }

    fn called(&mut self, word: &str) -> Result<Subject, QueryError> {
        let subject = match word.to_ascii_lowercase().as_str() {
            "id" => Subject::Id,
            "etag" => Subject::Etag,
            "key" => Subject::Key,
            "count" => Subject::Count,
            "sum" => {
                self.next += 2;
                let path = self.path("a property in sum(…)")?;
                self.expect_symbol(")", "after the property of sum(…)")?;
                return Ok(Subject::Sum(path));
            }
            _ => return Err(self.unsupported(format!("the function '{word}(…)'"))),
        };
        self.next += 2;
        // `id(o)` names what the query calls its documents.
        if let (Some(What::Word(word)), Some(alias)) = (self.peek(), &self.alias)
            && word == alias
            && subject == Subject::Id
        {
            self.next += 1;
        }
        self.expect_symbol(")", &format!("after '{word}('"))?;
        Ok(subject)
    }

    /// A path, without the name by which the query calls its documents.
    pub(super) fn path(&mut self, expected: &str) -> Result<Path, QueryError> {
        if let (Some(What::Word(word)), Some(alias)) = (self.peek(), &self.alias)
            && word == alias
        {
            if !self.is_symbol(1, ".") {
                return Err(self.unsupported(format!("'{word}' alone, only its properties: {word}.Name")));
            }
            self.next += 2;
        }
        let mut steps = self.named_step(expected, true)?;
        loop {
            if self.take_symbol(".") {
                steps.extend(self.named_step("the name of a property after '.'", false)?);
            } else if self.take_symbol("[") {
                steps.push(self.element()?);
            } else {
                return Ok(Path(steps));
            }
        }
    }

    /// The rest of `[]` or `[7]`.
    fn element(&mut self) -> Result<Step, QueryError> {
        let step = match self.peek() {
            Some(What::Number(number)) => match number.parse() {
                Ok(number) => {
                    self.next += 1;
                    Step::Element(number)
                }
                Err(_) => return Err(self.unexpected("the position of an element, counted from 0")),
            },
            _ => Step::Each,
        };
        self.expect_symbol("]", "after '['")?;
        Ok(step)
    }

    /// One name; one in quotes may hold a whole path, as RavenDB's clients write it: `'Address.the city'`, `'Lines[].Name'`.
    fn named_step(&mut self, expected: &str, is_first: bool) -> Result<Vec<Step>, QueryError> {
        let steps = match self.peek() {
            Some(What::Word(word)) if !is_first || !is_reserved(word) => vec![Step::Name(word.clone())],
            Some(What::Quoted(text)) if !text.is_empty() => quoted_steps(text),
            _ => return Err(self.unexpected(expected)),
        };
        self.next += 1;
        Ok(steps)
    }

    /// A name, in quotes or plain.
    pub(super) fn name(&mut self, expected: &str) -> Result<String, QueryError> {
        let name = match self.peek() {
            Some(What::Word(word)) if !is_reserved(word) => word.clone(),
            Some(What::Quoted(text)) if !text.is_empty() => text.clone(),
            _ => return Err(self.unexpected(expected)),
        };
        self.next += 1;
        Ok(name)
    }
}

fn quoted_steps(text: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for name in text.split('.') {
        match name.strip_suffix("[]") {
            Some(name) => steps.extend([Step::Name(name.to_owned()), Step::Each]),
            None => steps.push(Step::Name(name.to_owned())),
        }
    }
    steps
}
