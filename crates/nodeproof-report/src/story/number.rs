//! Margins and bounds with as many digits as a reader needs.

/// A margin with three decimals, or with a power of ten where they would hide it: three decimals would show a tiny negative
/// margin as zero, which is the one thing that must be seen.
pub fn number(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() || size >= f64::MAX => "unknown".to_owned(),
        size if size >= 1e6 || (size < 0.0005 && size > 0.0) => format!("{value:.1e}"),
        _ => format!("{value:.3}"),
    }
}

/// A value with four significant digits.
pub fn value(value: f64) -> String {
    let size = value.abs();
    if !(1e-6..1e9).contains(&size) {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.3e}") };
    }
    let decimals = (3.0 - size.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// A lower bound: rounded down, but for the last digits of a double, so that 1 reads 1.000.
pub fn bound(lower: f64) -> String {
    let down = |unit: f64| (lower / unit + 1e-6).floor() * unit;
    match lower.abs() {
        size if (0.001..1e6).contains(&size) => format!("{:.3}", down(0.001)),
        size if (1e-300..1e300).contains(&size) => format!("{:.1e}", down(10_f64.powf(size.log10().floor() - 1.0))),
        _ => number(lower),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiny_margins_keep_their_sign() {
        assert_eq!([0.5, -0.0001, 0.0].map(number), ["0.500", "-1.0e-4", "0.000"]);
        assert_eq!([f64::MIN, -1e200].map(number), ["unknown", "-1.0e200"]);
    }

    #[test]
    fn bounds_are_rounded_down() {
        assert_eq!([0.9996, -0.5001, 0.0125].map(bound), ["0.999", "-0.501", "0.012"]);
        assert_eq!([0.000_798, -1.01e-9, 2.99e7].map(bound), ["7.9e-4", "-1.1e-9", "2.9e7"]);
        assert_eq!([1.0 - 1e-15, 0.0, -1.0].map(bound), ["1.000", "0.000", "-1.000"]);
    }
}
