//! The figures of a run, as a table and as JSON.

use std::io::Write;

use serde_json::{Value, json};

use crate::Result;

/// A measured figure, the limit it is held against, and what is aimed at.
#[derive(Debug)]
pub(crate) struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    limit: Option<(f64, &'static str)>,
    aim: String,
}

impl Figure {
    /// A figure alone.
    pub(crate) fn new(name: &str, value: f64, unit: &'static str) -> Self {
        Self { name: name.to_owned(), value, unit, limit: None, aim: String::new() }
    }

    /// Beside the limit that was measured in this run.
    pub(crate) fn limit(mut self, value: f64, name: &'static str) -> Self {
        self.limit = Some((value, name));
        self
    }

    /// With the aim.
    pub(crate) fn aim(mut self, aim: &str) -> Self {
        aim.clone_into(&mut self.aim);
        self
    }

    fn share(&self) -> Option<f64> {
        self.limit.map(|(limit, _)| self.value / limit)
    }
}

/// All figures of a run.
#[derive(Debug)]
pub(crate) struct Report {
    orders: String,
    figures: Vec<Figure>,
}

impl Report {
    /// No figures yet.
    pub(crate) fn new(orders: &str) -> Self {
        Self { orders: orders.to_owned(), figures: Vec::new() }
    }

    /// Adds a figure.
    pub(crate) fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Prints the table.
    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{} orders", self.orders)?;
        writeln!(out, "{:<42} {:>12} {:<8} {:>34} {:>8}  aim", "", "measured", "", "limit in this run", "share")?;
        for figure in &self.figures {
            let limit = figure.limit.map(|(value, name)| format!("{name} {}", shown(value))).unwrap_or_default();
            let share = figure.share().map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default();
            let (name, value, unit, aim) = (&figure.name, shown(figure.value), figure.unit, &figure.aim);
            writeln!(out, "{name:<42} {value:>12} {unit:<8} {limit:>34} {share:>8}  {aim}")?;
        }
        Ok(())
    }

    /// The same as JSON.
    pub(crate) fn json(&self) -> String {
        let figure = |figure: &Figure| {
            json!({
                "name": figure.name.trim(), "value": figure.value, "unit": figure.unit, "aim": figure.aim,
                "limit": figure.limit.map(|(value, name)| json!({ "name": name, "value": value })),
            })
        };
        json!({ "orders": self.orders, "figures": self.figures.iter().map(figure).collect::<Value>() }).to_string()
    }
}

/// Three significant digits or so, with thousands apart.
fn shown(value: f64) -> String {
    if value.abs() < 100.0 {
        return format!("{value:.3}");
    }
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && shown != "-" {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
