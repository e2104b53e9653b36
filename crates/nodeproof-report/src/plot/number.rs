//! Numbers as they stand on axes.

/// A number with so many decimals, a real minus sign, and commas between thousands from 10,000 on.
pub(crate) fn plain(value: f64, decimals: usize) -> String {
    let digits = format!("{:.*}", decimals, value.abs());
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let is_zero = digits.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { "−" } else { "" };
    format!("{sign}{}{fraction}", with_commas(whole))
}

fn with_commas(digits: &str) -> String {
    if digits.len() < 5 {
        return digits.to_owned();
    }
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A power of ten: written out from 0.01 to 10,000, else as 10⁵.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    match exponent {
        0..=4 => plain(10f64.powi(exponent), 0),
        -2..=-1 => plain(10f64.powi(exponent), exponent.unsigned_abs() as usize),
        _ => format!("10{}", superscript(exponent)),
    }
}

/// A number of any size: plain where that is short, else with a power of ten.
pub(crate) fn any(value: f64, decimals: usize) -> String {
    let exponent = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    if decimals <= 4 && exponent < 7 {
        return plain(value, decimals);
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let mantissa = value / 10f64.powi(exponent);
    let significant = plain((mantissa * 100.0).round() / 100.0, 2);
    let short = significant.trim_end_matches('0').trim_end_matches('.');
    format!("{short}×10{}", superscript(exponent))
}

fn superscript(exponent: i32) -> String {
    exponent
        .to_string()
        .chars()
        .map(|character| match character {
            '-' => '⁻',
            '0' => '⁰',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '4' => '⁴',
            '5' => '⁵',
            '6' => '⁶',
            '7' => '⁷',
            '8' => '⁸',
            _ => '⁹',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_have_real_minus_signs_and_commas() {
        assert_eq!(plain(-1.5, 1), "−1.5");
        assert_eq!(plain(-0.0001, 1), "0.0");
        assert_eq!(plain(2995.0, 0), "2995");
        assert_eq!(plain(19717.0, 0), "19,717");
        assert_eq!(plain(1234567.25, 2), "1,234,567.25");
    }

    #[test]
    fn powers_of_ten_are_short() {
        assert_eq!(power_of_ten(0), "1");
        assert_eq!(power_of_ten(-2), "0.01");
        assert_eq!(power_of_ten(4), "10,000");
        assert_eq!(power_of_ten(-6), "10⁻⁶");
        assert_eq!(power_of_ten(12), "10¹²");
    }

    #[test]
    fn numbers_of_any_size() {
        assert_eq!(any(2.5, 1), "2.5");
        assert_eq!(any(3e8, 0), "3×10⁸");
        assert_eq!(any(-2.5e-7, 8), "−2.5×10⁻⁷");
        assert_eq!(any(0.0, 9), "0");
    }
}
