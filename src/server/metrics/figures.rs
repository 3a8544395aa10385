//! Figures with their names, labels and help, and how Prometheus' library writes them.

use std::fmt;

use indexmap::IndexMap;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::store::Spread;

/// Labels of one figure: names and values.
pub(super) type Labels = Vec<(&'static str, String)>;

/// One figure.
#[derive(Clone, Debug)]
pub(super) enum Figure {
    /// Only rises, until the server starts again.
    Count(u64),
    /// A count in millionths, shown in whole ones: microseconds as seconds.
    Millionths(u64),
    /// Rises and falls.
    Level(f64),
    /// A distribution of whole numbers.
    Spread(Spread),
    /// A distribution of millionths, shown in whole ones.
    SpreadMillionths(Spread),
}

impl Figure {
    /// A level that is a whole number.
    #[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
    pub(super) fn level(value: u64) -> Self {
        Self::Level(value as f64)
    }

    fn kind(&self) -> MetricType {
        match self {
            Self::Count(_) | Self::Millionths(_) => MetricType::Counter,
            Self::Level(_) => MetricType::Gauge,
            Self::Spread(_) | Self::SpreadMillionths(_) => MetricType::Histogram,
        }
    }
}

#[derive(Debug)]
struct Family {
    help: &'static str,
    figures: Vec<(Labels, Figure)>,
}

/// All figures, by name.
#[derive(Debug, Default)]
pub(super) struct Figures(IndexMap<&'static str, Family>);

impl Figures {
    /// Adds a figure; all of one name are of one kind.
    pub(super) fn add(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)], is: Figure) {
        let labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let family = self.0.entry(name).or_insert_with(|| Family { help, figures: Vec::new() });
        family.figures.push((labels, is));
    }
}

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, family) in &self.0 {
            let Some((_, first)) = family.figures.first() else { continue };
            let mut metric = encoder.encode_descriptor(name, family.help, None, first.kind())?;
            for (labels, figure) in &family.figures {
                if labels.is_empty() {
                    encode_one(&mut metric, figure)?;
                } else {
                    encode_one(&mut metric.encode_family(labels)?, figure)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_one(one: &mut MetricEncoder<'_>, figure: &Figure) -> fmt::Result {
    match figure {
        Figure::Count(count) => one.encode_counter::<NoLabelSet, _, u64>(count, None),
        Figure::Millionths(count) => one.encode_counter::<NoLabelSet, _, u64>(&whole(*count), None),
        Figure::Level(level) => one.encode_gauge(level),
        Figure::Spread(spread) => encode_spread(one, spread, 1.0),
        Figure::SpreadMillionths(spread) => encode_spread(one, spread, 1e6),
    }
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn whole(millionths: u64) -> f64 {
    millionths as f64 / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus knows no other numbers")]
fn encode_spread(encoder: &mut MetricEncoder<'_>, spread: &Spread, divisor: f64) -> fmt::Result {
    let bounds = spread.bounds.iter().map(|bound| *bound as f64 / divisor).chain([f64::MAX]);
    let buckets: Vec<(f64, u64)> = bounds.zip(spread.counts.iter().copied()).collect();
    encoder.encode_histogram::<NoLabelSet>(spread.sum as f64 / divisor, spread.count(), &buckets, None)
}
