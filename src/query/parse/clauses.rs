//! The clauses of a query, in their order: `from`, `where`, `group by`, `where`, `order by`, `select`, `include`, `limit`.

use super::super::error::QueryError;
use super::super::path::Path;
use super::super::syntax::{Field, From, Group, Operand, Order, Query, Reading, Select, Subject};
use super::super::token::What;
use super::{Parser, is_reserved};

/// Clauses that RavenDB has, with their names.
const UNSUPPORTED: [(&str, &str); 7] = [
    ("load", "'load' in queries; use 'include', or 'load' in an index"),
    ("filter", "'filter'; use 'where'"),
    ("filter_limit", "'filter_limit'"),
    ("update", "'update': patching by query"),
    ("declare", "'declare': functions in queries"),
    ("with", "'with': named queries and graphs"),
    ("match", "'match': graph queries"),
];

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Result<Query, QueryError> {
        self.refuse_clauses()?;
        self.expect_word("from", "at the beginning of a query")?;
        let from = self.from()?;
        self.alias = self.alias()?;
        let mut filter = self.filter()?;
        let mut group = None;
        if self.take_word("group") {
            self.expect_word("by", "after 'group'")?;
            let by = self.list(Self::group_path)?;
            group = Some(Group { by, having: self.filter()? });
        }
        self.refuse_clauses()?;
        let order = self.order()?;
        self.refuse_clauses()?;
        let select = self.select()?;
        let (include, timings) = self.include()?;
        let (offset, limit) = self.limit()?;
        self.take_symbol(";");
        self.refuse_clauses()?;
        if self.peek().is_some() {
            let expected = "'where', 'group by', 'order by', 'select', 'include' or 'limit' in this order, or the end";
            return Err(self.unexpected(expected));
        }
        // `where true` is no condition; clients begin with it before they negate one.
        if filter == Some(super::super::syntax::Condition::True) {
            filter = None;
        }
        Ok(Query { from, filter, group, order, select, include, timings, offset, limit })
    }

    fn refuse_clauses(&self) -> Result<(), QueryError> {
        match UNSUPPORTED.iter().find(|(word, _)| self.is_word(0, word)) {
            Some((_, what)) => Err(self.unsupported(*what)),
            None => Ok(()),
        }
    }

    fn from(&mut self) -> Result<From, QueryError> {
        let is_index = self.is_word(0, "index") && matches!(self.peek_at(1), Some(What::Word(_) | What::Quoted(_)));
        // `from index as i`: a collection of this name.
        if is_index && !self.is_word(1, "as") && !self.is_clause(1) {
            self.next += 1;
            return self.source_name("the name of an index after 'index'").map(From::Index);
        }
        if self.take_word("@all_docs") {
            return Ok(From::AllDocs);
        }
        let name = self.source_name("a collection, '@all_docs' or 'index' after 'from'")?;
        if self.is_symbol(0, "(") {
            self.next -= 1;
            return Err(self.unsupported(format!("conditions in brackets after 'from' ({name}(…)); use 'where'")));
        }
        Ok(From::Collection(name))
    }

    /// A name, in quotes or of words with slashes between.
    fn source_name(&mut self, expected: &str) -> Result<String, QueryError> {
        let mut name = match self.peek() {
            Some(What::Quoted(name)) if !name.is_empty() => {
                let name = name.clone();
                self.next += 1;
                return Ok(name);
            }
            Some(What::Word(word)) if !is_reserved(word) => word.clone(),
            _ => return Err(self.unexpected(expected)),
        };
        self.next += 1;
        while self.is_symbol(0, "/")
            && let Some(What::Word(word)) = self.peek_at(1)
        {
            name.extend(["/", word]);
            self.next += 2;
        }
        Ok(name)
    }

    fn alias(&mut self) -> Result<Option<String>, QueryError> {
        let named = self.take_word("as");
        match self.peek() {
            Some(What::Word(word)) if !is_reserved(word) && (named || !self.is_clause(0)) => {
                let alias = word.clone();
                self.next += 1;
                Ok(Some(alias))
            }
            _ if named => Err(self.unexpected("a name after 'as'")),
            _ => Ok(None),
        }
    }

    /// Whether a word stands here that begins a clause.
    fn is_clause(&self, ahead: usize) -> bool {
        let begins = ["where", "group", "order", "select", "include", "limit", "offset"];
        begins.iter().chain(UNSUPPORTED.iter().map(|(word, _)| word)).any(|word| self.is_word(ahead, word))
    }

    fn filter(&mut self) -> Result<Option<super::super::syntax::Condition>, QueryError> {
        if self.take_word("where") { self.condition().map(Some) } else { Ok(None) }
    }

    fn group_path(&mut self) -> Result<Path, QueryError> {
        let at = self.next;
        match self.subject("a property to group by")? {
            Subject::Path(path) if !path.is_plural() => Ok(path),
            other => {
                self.next = at;
                Err(self.unsupported(format!("'group by {other}'; group by properties, or put a map-reduce index")))
            }
        }
    }

    fn order(&mut self) -> Result<Vec<Order>, QueryError> {
        if !self.take_word("order") {
            return Ok(Vec::new());
        }
        self.expect_word("by", "after 'order'")?;
        self.list(|parser| {
            let by = parser.subject("a property or id() to order by")?;
            let reading = if parser.take_word("as") { parser.reading()? } else { Reading::Typed };
            let descending = parser.take_word("desc") || parser.take_word("descending");
            if !descending && !parser.take_word("asc") {
                parser.take_word("ascending");
            }
            Ok(Order { by, reading, descending })
        })
    }

    fn reading(&mut self) -> Result<Reading, QueryError> {
        for (word, reading) in [("string", Reading::String), ("long", Reading::Long), ("double", Reading::Double)] {
            if self.take_word(word) {
                return Ok(reading);
            }
        }
        match self.peek() {
            Some(What::Word(word)) => Err(self.unsupported(format!(
                "'order by … as {word}', only string, long and double; without 'as' values are ordered by type and value"
            ))),
            _ => Err(self.unexpected("string, long or double after 'as'")),
        }
    }

    fn select(&mut self) -> Result<Option<Select>, QueryError> {
        if !self.take_word("select") {
            return Ok(None);
        }
        let distinct = self.take_word("distinct");
        let fields = self.list(|parser| {
            if parser.is_symbol(0, "{") {
                return Err(parser.unsupported("'select { … }'; select properties: select Name, Address.City as City"));
            }
            let value = parser.subject("a property, id(), key(), count() or sum(…) to select")?;
            let alias = if parser.take_word("as") { Some(parser.name("a name after 'as'")?) } else { None };
            Ok(Field { value, alias })
        })?;
        Ok(Some(Select { distinct, fields }))
    }

    fn include(&mut self) -> Result<(Vec<Path>, bool), QueryError> {
        let (mut paths, mut timings) = (Vec::new(), false);
        if !self.take_word("include") {
            return Ok((paths, timings));
        }
        loop {
            if self.is_word(0, "timings") && self.is_symbol(1, "(") && self.is_symbol(2, ")") {
                self.next += 3;
                timings = true;
            } else if let (Some(What::Word(word)), true) = (self.peek(), self.is_symbol(1, "(")) {
                return Err(self.unsupported(format!("'include {word}(…)', only properties with ids, and timings()")));
            } else {
                match self.subject("a property with ids to include")? {
                    Subject::Path(path) => paths.push(path),
                    other => return Err(self.unexpected(&format!("a property after 'include', not {other}"))),
                }
            }
            if !self.take_symbol(",") {
                return Ok((paths, timings));
            }
        }
    }

    /// `limit count`, `limit offset, count`, `limit count offset n`, `offset n limit count`.
    fn limit(&mut self) -> Result<(Option<Operand>, Option<Operand>), QueryError> {
        let (mut offset, mut limit) = (None, None);
        if self.take_word("offset") {
            offset = Some(self.operand()?);
        }
        if self.take_word("limit") {
            let first = self.operand()?;
            if offset.is_none() && self.take_symbol(",") {
                (offset, limit) = (Some(first), Some(self.operand()?));
            } else {
                limit = Some(first);
            }
        }
        if offset.is_none() && self.take_word("offset") {
            offset = Some(self.operand()?);
        }
        Ok((offset, limit))
    }
}
