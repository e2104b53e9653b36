//! Axes: what maps where, and which ticks there are.

use super::number;

/// Where the values above zero begin on an axis that has a place for zero.
const ZERO_SHARE: f64 = 0.1;

/// Most ticks that an axis ever gets.
const MOST_TICKS: i64 = 60;

/// How values are spread over an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    Linear,
    Log,
    /// Logarithmic, with a place for zero before it.
    LogWithZero,
}

/// An axis: its label, its range and how values are spread over it.
#[derive(Debug, Clone)]
pub struct Axis {
    pub(crate) label: String,
    from: f64,
    to: f64,
    pub(crate) scale: Scale,
    is_percent: bool,
    is_whole: bool,
    cap: Option<f64>,
}

/// A tick: where it is, from 0 to 1, and its label, if it is not a minor one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) position: f64,
    pub(crate) label: Option<String>,
}

impl Axis {
    /// A linear axis. A range that is empty or not finite is made one of length 1.
    pub fn new(label: impl Into<String>, from: f64, to: f64) -> Self {
        let from = if from.is_finite() { from } else { 0.0 };
        let to = if to.is_finite() && to > from && (to - from).is_finite() { to } else { from + 1.0 };
        let to = if to > from { to } else { from.abs() * 2.0 };
        Self { label: label.into(), from, to, scale: Scale::Linear, is_percent: false, is_whole: false, cap: None }
    }

    /// The same axis, logarithmic. What is not above zero is left out.
    #[must_use]
    pub fn log(mut self) -> Self {
        self.make_positive();
        self.scale = Scale::Log;
        self
    }

    /// The same axis, logarithmic, with a place for zero at its beginning; values between zero and the range stand
    /// at the beginning of the range.
    #[must_use]
    pub fn log_with_zero(mut self) -> Self {
        self.make_positive();
        self.scale = Scale::LogWithZero;
        self
    }

    /// The same axis with ticks in percent: 0.2 is labelled 20.
    #[must_use]
    pub fn percent(mut self) -> Self {
        self.is_percent = true;
        self
    }

    /// The same axis with ticks at whole numbers only.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }

    /// The same axis, whose last tick stands for everything from this value on: `≥ 100`.
    #[must_use]
    pub fn capped(mut self, at: f64) -> Self {
        self.cap = Some(at);
        self
    }

    fn make_positive(&mut self) {
        if self.to <= 0.0 {
            self.to = 1.0;
        }
        if self.from <= 0.0 {
            self.from = self.to / 1000.0;
        }
        if self.from >= self.to {
            self.to = self.from * 10.0;
        }
    }

    /// Where a value is: 0 at the beginning of the axis, 1 at its end, beyond where it is outside; `None` where it has
    /// no place.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let position = match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Log if value <= 0.0 => return None,
            Scale::Log => self.log_position(value),
            Scale::LogWithZero if value <= 0.0 => 0.0,
            Scale::LogWithZero => ZERO_SHARE + (1.0 - ZERO_SHARE) * self.log_position(value).max(0.0),
        };
        position.is_finite().then_some(position)
    }

    fn log_position(&self, value: f64) -> f64 {
        (value / self.from).ln() / (self.to / self.from).ln()
    }

    /// Where an axis with a place for zero is interrupted, from 0 to 1.
    pub(crate) fn break_position(&self) -> Option<f64> {
        (self.scale == Scale::LogWithZero).then_some(ZERO_SHARE / 2.0)
    }

    /// Ticks such that about `room` labels fit.
    pub(crate) fn ticks(&self, room: f64) -> Vec<Tick> {
        match self.scale {
            Scale::Linear => self.linear_ticks(room),
            Scale::Log => self.log_ticks(room),
            Scale::LogWithZero => {
                let mut ticks = vec![Tick { position: 0.0, label: Some("0".to_owned()) }];
                ticks.extend(self.log_ticks(room * (1.0 - ZERO_SHARE)));
                ticks
            }
        }
    }

    fn linear_ticks(&self, room: f64) -> Vec<Tick> {
        let factor = if self.is_percent { 100.0 } else { 1.0 };
        let (from, to) = (self.from * factor, self.to * factor);
        let step = self.nice_step((to - from) / room.clamp(1.0, 40.0));
        let decimals = (-step.log10() + 1e-9).floor().max(0.0) as usize;
        let decimals =
            if step.fract() == 0.0 { 0 } else { decimals + usize::from(step < 1.0 && step.log10().fract() != 0.0) };
        let first = (from / step - 1e-9).ceil() as i64;
        let last = ((to / step + 1e-9).floor() as i64).min(first.saturating_add(MOST_TICKS));
        let mut ticks: Vec<Tick> = (first..=last)
            .map(|count| count as f64 * step)
            .filter_map(|value| self.tick(value / factor, number::any(value, decimals.min(12))))
            .collect();
        if let Some(cap) = self.cap.filter(|cap| cap.is_finite()) {
            let spacing = step / (to - from);
            let place = self.position(cap).unwrap_or(1.0);
            ticks.retain(|tick| place - tick.position > 0.6 * spacing);
            ticks.extend(self.tick(cap, format!("≥\u{2009}{}", number::any(cap * factor, decimals.min(12)))));
        }
        ticks
    }

    fn tick(&self, value: f64, label: String) -> Option<Tick> {
        self.position(value).map(|position| Tick { position, label: Some(label) })
    }

    /// The smallest of 1, 2, 5, 10, 20, … that is no smaller than this; for whole numbers at least 1.
    fn nice_step(&self, least: f64) -> f64 {
        let least = if self.is_whole { least.max(1.0) } else { least.max(f64::MIN_POSITIVE) };
        let power = 10f64.powf(least.log10().floor());
        let nice = [1.0, 2.0, 5.0, 10.0].into_iter().find(|nice| nice * power >= least * (1.0 - 1e-9));
        let step = nice.unwrap_or(10.0) * power;
        if step.is_finite() && step > 0.0 { step } else { least }
    }

    /// Powers of ten, every so many of them if they are many; with few, also twice and five times these.
    fn log_ticks(&self, room: f64) -> Vec<Tick> {
        let first = (self.from.log10() + 1e-9).floor() as i32;
        let last = (self.to.log10() + 1e-9).floor() as i32;
        let decades = (self.to / self.from).log10();
        let every = (decades / room.max(1.0)).ceil().max(1.0) as i32;
        let mut ticks = Vec::new();
        for exponent in first..=last {
            for digit in 1..=9 {
                let value = f64::from(digit) * 10f64.powi(exponent);
                if value < self.from * (1.0 - 1e-9) || value > self.to * (1.0 + 1e-9) {
                    continue;
                }
                let label = match digit {
                    1 if exponent.rem_euclid(every) == 0 => Some(number::power_of_ten(exponent)),
                    2 | 5 if decades * 3.0 <= room => Some(number::any(value, (-exponent).max(0) as usize)),
                    1 => None,
                    _ if decades > 6.0 => continue,
                    _ => None,
                };
                if let Some(position) = self.position(value) {
                    ticks.push(Tick { position, label });
                }
            }
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, room: f64) -> Vec<String> {
        axis.ticks(room).into_iter().filter_map(|tick| tick.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&Axis::new("", 0.0, 100.0), 6.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Axis::new("", 0.0, 1.0).percent(), 6.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Axis::new("", -1.0, 2.0), 7.0), ["−1.0", "−0.5", "0.0", "0.5", "1.0", "1.5", "2.0"]);
        assert_eq!(labels(&Axis::new("", -3.0, 2.0), 6.0), ["−3", "−2", "−1", "0", "1", "2"]);
        assert_eq!(labels(&Axis::new("", 0.0, 0.05), 6.0), ["0.00", "0.01", "0.02", "0.03", "0.04", "0.05"]);
    }

    #[test]
    fn whole_axes_have_no_fractions() {
        assert_eq!(labels(&Axis::new("", 0.0, 1.0).whole(), 6.0), ["0", "1"]);
        assert_eq!(labels(&Axis::new("", 0.0, 3.0).whole(), 6.0), ["0", "1", "2", "3"]);
    }

    #[test]
    fn a_capped_axis_ends_with_its_largest_value() {
        assert_eq!(
            labels(&Axis::new("", 0.0, 102.0).whole().capped(100.0), 6.0),
            ["0", "20", "40", "60", "80", "≥\u{2009}100"]
        );
        assert_eq!(labels(&Axis::new("", 0.0, 45.0).whole().capped(45.0), 5.0), ["0", "10", "20", "30", "≥\u{2009}45"]);
    }

    #[test]
    fn log_ticks_are_powers_of_ten() {
        assert_eq!(labels(&Axis::new("", 0.001, 100.0).log(), 7.0), ["10⁻³", "0.01", "0.1", "1", "10", "100"]);
        assert_eq!(labels(&Axis::new("", 1.0, 60.0).log(), 7.0), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(&Axis::new("", 1e-12, 1.0).log(), 5.0), ["10⁻¹²", "10⁻⁹", "10⁻⁶", "10⁻³", "1"]);
        assert_eq!(labels(&Axis::new("", 1.0, 100.0).log_with_zero(), 3.0), ["0", "1", "10", "100"]);
    }

    #[test]
    fn values_map_to_their_place() {
        let linear = Axis::new("", 10.0, 30.0);
        assert_eq!(linear.position(15.0), Some(0.25));
        assert_eq!(linear.position(f64::NAN), None);
        let log = Axis::new("", 1.0, 100.0).log();
        assert_eq!(log.position(10.0), Some(0.5));
        assert_eq!(log.position(0.0), None);
        let zero = Axis::new("", 1.0, 100.0).log_with_zero();
        assert_eq!(zero.position(0.0), Some(0.0));
        assert_eq!(zero.position(1e-9), Some(ZERO_SHARE));
        assert_eq!(zero.position(100.0), Some(1.0));
    }

    #[test]
    fn hostile_ranges_still_give_an_axis() {
        let bad =
            [(0.0, 0.0), (5.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY), (-f64::MAX, f64::MAX), (1e300, 1e300)];
        for (from, to) in bad {
            for axis in
                [Axis::new("", from, to), Axis::new("", from, to).log(), Axis::new("", from, to).whole().capped(to)]
            {
                let ticks = axis.ticks(6.0);
                assert!(ticks.len() < 600, "{from} {to}");
                assert!(ticks.iter().all(|tick| tick.position.is_finite()), "{from} {to}");
            }
        }
    }
}
