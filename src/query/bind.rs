//! A query with its parameters put in and the rules checked that its shape alone does not tell.
//!
//! Next: `plan`.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::error::QueryError;
use super::filter::Test;
use super::number::Number;
use super::path::Path;
use super::syntax::{Condition, Field, From, Group, Operand, Order, Query, Select, Subject};
use super::value::Value;
use crate::id;

/// The values of a query's parameters, by name without the `$`.
#[derive(Clone, Debug, Default)]
pub struct Parameters(BTreeMap<String, Value<'static>>);

/// A query that can be planned.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub(crate) from: From,
    pub(crate) filter: Test,
    pub(crate) group: Option<BoundGroup>,
    pub(crate) order: Vec<Order>,
    pub(crate) select: Option<Select>,
    pub(crate) include: Vec<Path>,
    pub(crate) timings: bool,
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
}

/// `group by` that can be run.
#[derive(Clone, Debug)]
pub(crate) struct BoundGroup {
    pub(crate) by: Vec<Path>,
    /// The paths that are added up.
    pub(crate) sums: Vec<Path>,
    pub(crate) having: Test,
}

impl Parameters {
    /// Reads the values of a JSON object.
    ///
    /// # Errors
    /// The text is no JSON object.
    pub fn parse(json: &str) -> Result<Self, QueryError> {
        let values: BTreeMap<String, Box<RawValue>> = serde_json::from_str(json)
            .map_err(|error| QueryError::Rule(format!("the parameters are no JSON object: {error}")))?;
        let mut parameters = Self::default();
        for (name, value) in values {
            parameters.set(&name, value.get())?;
        }
        Ok(parameters)
    }

    /// Sets one parameter to a value, given as JSON.
    ///
    /// # Errors
    /// The text is not JSON.
    pub fn set(&mut self, name: &str, json: &str) -> Result<(), QueryError> {
        let parsed = serde_json::from_str::<&RawValue>(json).ok().and_then(|raw| Value::parse(raw.get()));
        let Some(value) = parsed else {
            return Err(QueryError::Rule(format!("the parameter ${name} is not JSON")));
        };
        self.0.insert(name.to_owned(), value.into_owned());
        Ok(())
    }

    /// Appends all values as JSON, in order of the names.
    pub(crate) fn write_json(&self, into: &mut String) {
        for (name, value) in &self.0 {
            into.extend([name, "="]);
            value.write_json(into);
            into.push(';');
        }
    }

    fn value(&self, operand: &Operand) -> Result<Value<'static>, QueryError> {
        Ok(match operand {
            Operand::Parameter(name) => {
                let value = self.0.get(name);
                value
                    .cloned()
                    .ok_or_else(|| QueryError::Rule(format!("the parameter ${name} has no value; give it one")))?
            }
            Operand::Null => Value::Null,
            Operand::Bool(value) => Value::Bool(*value),
            Operand::Number(text) => Value::parse(text).map_or(Value::Null, Value::into_owned),
            Operand::String(text) => Value::String(text.clone().into()),
        })
    }
}

/// Puts the parameters in.
///
/// # Errors
/// A parameter is missing or of the wrong kind; a rule of `group by` or `select` is broken.
pub(crate) fn bind(query: &Query, parameters: &Parameters) -> Result<Bound, QueryError> {
    let binder = Binder { parameters };
    let filter = query.filter.as_ref().map_or(Ok(Test::Always(true)), |filter| binder.test(filter, &of_documents))?;
    let (offset, limit) =
        (binder.count(query.offset.as_ref(), "offset")?, binder.count(query.limit.as_ref(), "limit")?);
    let mut bound = Bound {
        from: query.from.clone(),
        filter,
        group: None,
        order: query.order.clone(),
        select: query.select.clone(),
        include: query.include.clone(),
        timings: query.timings,
        offset: offset.unwrap_or(0),
        limit,
    };
    match &query.group {
        Some(group) => bind_group(query, group, &binder, &mut bound)?,
        None => {
            let selected = query.select.iter().flat_map(|select| select.fields.iter().map(|field| &field.value));
            for subject in query.order.iter().map(|order| &order.by).chain(selected) {
                of_documents(subject)?;
            }
        }
    }
    Ok(bound)
}

fn of_documents(subject: &Subject) -> Result<Subject, QueryError> {
    match subject {
        Subject::Key | Subject::Count | Subject::Sum(_) => {
            Err(QueryError::Rule(format!("{subject} is about groups; add 'group by'")))
        }
        other => Ok(other.clone()),
    }
}

fn bind_group(query: &Query, group: &Group, binder: &Binder<'_>, bound: &mut Bound) -> Result<(), QueryError> {
    let Some(select) = &query.select else {
        let rule = "a query with 'group by' says what it shows of each group: select key(), count()";
        return Err(QueryError::Rule(rule.to_owned()));
    };
    if !query.include.is_empty() {
        return Err(QueryError::Rule("a query with 'group by' includes nothing; leave 'include' out".to_owned()));
    }
    let of_groups = |subject: &Subject| of_group(subject, group, select);
    let mut fields = Vec::new();
    for field in &select.fields {
        fields.push(Field { value: of_groups(&field.value)?, alias: Some(field.name()) });
    }
    let mut order = Vec::new();
    for part in &query.order {
        order.push(Order { by: of_groups(&part.by)?, ..part.clone() });
    }
    // Groups that are equal otherwise stand in the order of their keys.
    let keys = group.by.iter().map(|path| Subject::Path(path.clone()));
    order.extend(keys.map(|by| Order { by, reading: super::syntax::Reading::Typed, descending: false }));
    let having = group.having.as_ref().map_or(Ok(Test::Always(true)), |having| binder.test(having, &of_groups))?;
    let mut sums = Vec::new();
    let mut add = |subject: &Subject| match subject {
        Subject::Sum(path) if !sums.contains(path) => sums.push(path.clone()),
        _ => {}
    };
    for subject in fields.iter().map(|field| &field.value).chain(order.iter().map(|part| &part.by)) {
        add(subject);
    }
    having.subjects(&mut add);
    bound.order = order;
    bound.select = Some(Select { distinct: select.distinct, fields });
    bound.group = Some(BoundGroup { by: group.by.clone(), sums, having });
    Ok(())
}

/// What a subject means where it stands for groups: a path of `group by`, the alias of what is selected, or an aggregate.
fn of_group(subject: &Subject, group: &Group, select: &Select) -> Result<Subject, QueryError> {
    let Subject::Path(path) = subject else {
        return match subject {
            Subject::Id | Subject::Etag => {
                Err(QueryError::Rule(format!("{subject} is about documents, and 'group by' gives groups")))
            }
            other => Ok(other.clone()),
        };
    };
    if group.by.contains(path) {
        return Ok(subject.clone());
    }
    let named = path.to_string();
    let field = select.fields.iter().find(|field| field.alias.as_deref() == Some(&named));
    match field.map(|field| &field.value) {
        Some(Subject::Path(path)) if group.by.contains(path) => Ok(Subject::Path(path.clone())),
        Some(aggregate @ (Subject::Key | Subject::Count | Subject::Sum(_))) => Ok(aggregate.clone()),
        _ => Err(QueryError::Rule(format!(
            "'{path}' is not in 'group by', so a group has no one value of it; group by it, or use count() or sum({path})"
        ))),
    }
}

struct Binder<'a> {
    parameters: &'a Parameters,
}

/// Checks a subject, and says what it means where it stands.
type Meaning<'a> = &'a dyn Fn(&Subject) -> Result<Subject, QueryError>;

impl Binder<'_> {
    fn test(&self, condition: &Condition, meaning: Meaning<'_>) -> Result<Test, QueryError> {
        let all =
            |parts: &[Condition]| parts.iter().map(|part| self.test(part, meaning)).collect::<Result<Vec<_>, _>>();
        Ok(match condition {
            Condition::True => Test::Always(true),
            Condition::False => Test::Always(false),
            Condition::Not(inner) => Test::Not(Box::new(self.test(inner, meaning)?)),
            Condition::And(parts) => Test::All(all(parts)?),
            Condition::Or(parts) => Test::Any(all(parts)?),
            Condition::Compare(subject, comparison, operand) => {
                let subject = meaning(subject)?;
                let value = self.operand(&subject, operand)?;
                Test::Compare(subject, *comparison, value)
            }
            Condition::Between(subject, low, high) => {
                let subject = meaning(subject)?;
                let (low, high) = (self.operand(&subject, low)?, self.operand(&subject, high)?);
                Test::Between(subject, low, high)
            }
            Condition::In(subject, operands) => {
                let subject = meaning(subject)?;
                let values = self.operands(&subject, operands)?;
                Test::In(subject, values)
            }
            Condition::AllIn(subject, operands) => {
                let subject = meaning(subject)?;
                let values = self.operands(&subject, operands)?;
                Test::AllIn(subject, values)
            }
            Condition::StartsWith(subject, operand) => {
                let subject = meaning(subject)?;
                let text = self.text(&subject, operand, "startsWith")?;
                Test::StartsWith(subject, text)
            }
            Condition::EndsWith(subject, operand) => {
                let subject = meaning(subject)?;
                let text = self.text(&subject, operand, "endsWith")?;
                Test::EndsWith(subject, text)
            }
            Condition::Exists(path) => match meaning(&Subject::Path(path.clone()))? {
                Subject::Path(path) => Test::Exists(path),
                _ => Test::Always(true),
            },
        })
    }

    /// The value that a subject is compared with; ids are lower-cased.
    fn operand(&self, subject: &Subject, operand: &Operand) -> Result<Value<'static>, QueryError> {
        Ok(match (subject, self.parameters.value(operand)?) {
            (Subject::Id, Value::String(text)) => Value::String(id::lower(&text).into()),
            (_, value) => value,
        })
    }

    /// The values of `in`, in order; an array stands for its elements.
    fn operands(&self, subject: &Subject, operands: &[Operand]) -> Result<Vec<Value<'static>>, QueryError> {
        let mut values = Vec::with_capacity(operands.len());
        for operand in operands {
            let value = self.operand(subject, operand)?;
            match (value.elements(), subject) {
                (None, _) => values.push(value),
                (Some(elements), Subject::Id) => values.extend(elements.into_iter().map(|element| match element {
                    Value::String(text) => Value::String(id::lower(&text).into()),
                    other => other.into_owned(),
                })),
                (Some(elements), _) => values.extend(elements.into_iter().map(Value::into_owned)),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }

    fn text(&self, subject: &Subject, operand: &Operand, function: &str) -> Result<String, QueryError> {
        match self.operand(subject, operand)? {
            Value::String(text) => Ok(text.into_owned()),
            _ => Err(QueryError::Rule(format!("{function}({subject}, {operand}) needs a string"))),
        }
    }

    /// A number of rows: a whole number; null and a negative one as RavenDB has them, none and zero.
    fn count(&self, operand: Option<&Operand>, clause: &str) -> Result<Option<u64>, QueryError> {
        let Some(operand) = operand else { return Ok(None) };
        let refused = || QueryError::Rule(format!("'{clause} {operand}' needs a whole number"));
        match self.parameters.value(operand)? {
            Value::Null => Ok(None),
            Value::Number(number) if number < Number::from(0) => Ok(Some(0)),
            Value::Number(number) => number.to_string().parse().map(Some).map_err(|_| refused()),
            _ => Err(refused()),
        }
    }
}

impl Test {
    /// Calls `visit` with everything that values are asked of.
    fn subjects(&self, visit: &mut dyn FnMut(&Subject)) {
        match self {
            Self::Always(_) | Self::Exists(_) => {}
            Self::Not(inner) => inner.subjects(visit),
            Self::All(tests) | Self::Any(tests) => tests.iter().for_each(|test| test.subjects(visit)),
            Self::Compare(subject, ..)
            | Self::Between(subject, ..)
            | Self::In(subject, _)
            | Self::AllIn(subject, _)
            | Self::StartsWith(subject, _)
            | Self::EndsWith(subject, _) => visit(subject),
        }
    }
}
