//! A query as it was written, checked for shape: what `parse` makes and `bind` reads. Printed, it is RQL that reads back as
//! the same query.

use std::fmt::{self, Display, Formatter};

use super::path::{Path, write_name, write_quoted};

/// A query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What is queried.
    pub from: From,
    /// The conditions before `group by`, or of a query without it.
    pub filter: Option<Condition>,
    /// `group by`.
    pub group: Option<Group>,
    /// `order by`, the first most significant.
    pub order: Vec<Order>,
    /// `select`.
    pub select: Option<Select>,
    /// `include`: paths to ids of documents.
    pub include: Vec<Path>,
    /// `include timings()`.
    pub timings: bool,
    /// How many to skip.
    pub offset: Option<Operand>,
    /// How many to give.
    pub limit: Option<Operand>,
}

/// What is queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// The documents of a collection.
    Collection(String),
    /// All documents.
    AllDocs,
    /// The results of an index.
    Index(String),
}

/// `group by`, with the conditions on groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The paths whose values make the group.
    pub by: Vec<Path>,
    /// The `where` after it.
    pub having: Option<Condition>,
}

/// A condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `true`.
    True,
    /// `false`.
    False,
    /// `not …`.
    Not(Box<Condition>),
    /// `… and …`, two or more.
    And(Vec<Condition>),
    /// `… or …`, two or more.
    Or(Vec<Condition>),
    /// `a = b` and the like.
    Compare(Subject, Comparison, Operand),
    /// `a between b and c`, both included.
    Between(Subject, Operand, Operand),
    /// `a in (…)`.
    In(Subject, Vec<Operand>),
    /// `a all in (…)`.
    AllIn(Subject, Vec<Operand>),
    /// `startsWith(a, b)`.
    StartsWith(Subject, Operand),
    /// `endsWith(a, b)`.
    EndsWith(Subject, Operand),
    /// `exists(a)`.
    Exists(Path),
}

/// What a condition, an order or a projection is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A value of the document.
    Path(Path),
    /// `id()`.
    Id,
    /// `etag()`: the etag of the document's last write.
    Etag,
    /// `key()`: what makes the group.
    Key,
    /// `count()`: the documents of the group.
    Count,
    /// `sum(a)`: the total over the group.
    Sum(Path),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

/// A value that the query gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operand {
    /// `$name`.
    Parameter(String),
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(String),
    /// A string.
    String(String),
}

/// One part of `order by`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By what.
    pub by: Subject,
    /// How values are read.
    pub reading: Reading,
    /// Largest first.
    pub descending: bool,
}

/// How `order by` reads values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As they are.
    Typed,
    /// As text; what is no string by its JSON.
    String,
    /// As a number; what is none comes first.
    Long,
    /// As a number; what is none comes first.
    Double,
}

/// `select`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    /// Whether equal rows are given once.
    pub distinct: bool,
    /// The fields of a row.
    pub fields: Vec<Field>,
}

/// A field of a projected row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// What it shows.
    pub value: Subject,
    /// `as …`.
    pub alias: Option<String>,
}

impl Field {
    /// The name of the field in the row.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.alias, &self.value) {
            (Some(alias), _) => alias.clone(),
            (None, Subject::Path(path)) => path.unquoted(),
            (None, Subject::Id) => "id()".to_owned(),
            (None, Subject::Etag) => "etag()".to_owned(),
            (None, Subject::Key) => "Key".to_owned(),
            (None, Subject::Count) => "Count".to_owned(),
            (None, Subject::Sum(path)) => path.to_string(),
        }
    }
}

impl Display for Query {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "from {}", self.from)?;
        if let Some(filter) = &self.filter {
            write!(f, " where {filter}")?;
        }
        if let Some(group) = &self.group {
            f.write_str(" group by ")?;
            list(f, &group.by)?;
            if let Some(having) = &group.having {
                write!(f, " where {having}")?;
            }
        }
        if !self.order.is_empty() {
            f.write_str(" order by ")?;
            list(f, &self.order)?;
        }
        if let Some(select) = &self.select {
            f.write_str(if select.distinct { " select distinct " } else { " select " })?;
            list(f, &select.fields)?;
        }
        if !self.include.is_empty() || self.timings {
            f.write_str(" include ")?;
            list(f, &self.include)?;
            f.write_str(match (self.timings, self.include.is_empty()) {
                (true, true) => "timings()",
                (true, false) => ", timings()",
                (false, _) => "",
            })?;
        }
        if let Some(limit) = &self.limit {
            write!(f, " limit {limit}")?;
        }
        if let Some(offset) = &self.offset {
            write!(f, " offset {offset}")?;
        }
        Ok(())
    }
}

impl Display for From {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collection(name) => write_quoted(name, f),
            Self::AllDocs => f.write_str("@all_docs"),
            Self::Index(name) => {
                f.write_str("index ")?;
                write_quoted(name, f)
            }
        }
    }
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::True => f.write_str("true"),
            Self::False => f.write_str("false"),
            Self::Not(inner) => {
                f.write_str("not ")?;
                nested(f, inner)
            }
            Self::And(parts) => joined(f, parts, " and "),
            Self::Or(parts) => joined(f, parts, " or "),
            Self::Compare(subject, comparison, operand) => write!(f, "{subject} {comparison} {operand}"),
            Self::Between(subject, low, high) => write!(f, "{subject} between {low} and {high}"),
            Self::In(subject, operands) => {
                write!(f, "{subject} in (")?;
                list(f, operands)?;
                f.write_str(")")
            }
            Self::AllIn(subject, operands) => {
                write!(f, "{subject} all in (")?;
                list(f, operands)?;
                f.write_str(")")
            }
            Self::StartsWith(subject, operand) => write!(f, "startsWith({subject}, {operand})"),
            Self::EndsWith(subject, operand) => write!(f, "endsWith({subject}, {operand})"),
            Self::Exists(path) => write!(f, "exists({path})"),
        }
    }
}

impl Display for Subject {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{path}"),
            Self::Id => f.write_str("id()"),
            Self::Etag => f.write_str("etag()"),
            Self::Key => f.write_str("key()"),
            Self::Count => f.write_str("count()"),
            Self::Sum(path) => write!(f, "sum({path})"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        })
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => write!(f, "${name}"),
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => write_quoted(text, f),
        }
    }
}

impl Display for Order {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let reading = match self.reading {
            Reading::Typed => "",
            Reading::String => " as string",
            Reading::Long => " as long",
            Reading::Double => " as double",
        };
        write!(f, "{}{reading}{}", self.by, if self.descending { " desc" } else { "" })
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)?;
        if let Some(alias) = &self.alias {
            f.write_str(" as ")?;
            write_name(alias, f)?;
        }
        Ok(())
    }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        write!(f, "{}{item}", if position > 0 { ", " } else { "" })?;
    }
    Ok(())
}

fn joined(f: &mut Formatter<'_>, parts: &[Condition], word: &str) -> fmt::Result {
    for (position, part) in parts.iter().enumerate() {
        f.write_str(if position > 0 { word } else { "" })?;
        nested(f, part)?;
    }
    Ok(())
}

fn nested(f: &mut Formatter<'_>, part: &Condition) -> fmt::Result {
    match part {
        Condition::And(_) | Condition::Or(_) => write!(f, "({part})"),
        _ => write!(f, "{part}"),
    }
}
