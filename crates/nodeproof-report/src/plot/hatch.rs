//! Diagonal lines in a polygon, as plain segments: no patterns with names, which clash where figures share a page.

use super::geometry::Spot;

/// Segments of lines that rise at 45 degrees, `spacing` apart, where they are inside the polygon (even-odd rule).
pub(crate) fn lines(polygon: &[Spot], spacing: f64) -> Vec<(Spot, Spot)> {
    let turned: Vec<Spot> = polygon.iter().map(|&(x, y)| (x - y, x + y)).collect();
    let lowest = turned.iter().map(|spot| spot.1).fold(f64::INFINITY, f64::min);
    let highest = turned.iter().map(|spot| spot.1).fold(f64::NEG_INFINITY, f64::max);
    let distance = spacing * std::f64::consts::SQRT_2;
    let mut segments = Vec::new();
    // Offset by half a line, so that no corner lies on one.
    let mut level = (lowest / distance).floor() * distance + distance / 2.0;
    while level < highest {
        let crossings = crossings(&turned, level);
        for pair in crossings.chunks_exact(2) {
            segments.push((turn_back((pair[0], level)), turn_back((pair[1], level))));
        }
        level += distance;
    }
    segments
}

/// Where the outline of a polygon crosses a horizontal line, from left to right.
fn crossings(polygon: &[Spot], level: f64) -> Vec<f64> {
    let next = polygon.iter().cycle().skip(1);
    let mut crossings: Vec<f64> = polygon
        .iter()
        .zip(next)
        .filter(|(from, to)| (from.1 <= level) != (to.1 <= level))
        .map(|(from, to)| from.0 + (to.0 - from.0) * (level - from.1) / (to.1 - from.1))
        .collect();
    crossings.sort_by(f64::total_cmp);
    crossings
}

fn turn_back((difference, sum): Spot) -> Spot {
    ((sum + difference) / 2.0, (sum - difference) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hatching_stays_inside_and_covers_the_area() {
        let square = [(0.0, 0.0), (20.0, 0.0), (20.0, 20.0), (0.0, 20.0)];
        let segments = lines(&square, 2.0);
        let inside = |spot: Spot| (-1e-9..=20.0 + 1e-9).contains(&spot.0) && (-1e-9..=20.0 + 1e-9).contains(&spot.1);
        assert!(segments.iter().all(|&(from, to)| inside(from) && inside(to)));
        let length: f64 = segments.iter().map(|(from, to)| (to.0 - from.0).hypot(to.1 - from.1)).sum();
        assert!((length * 2.0 - 400.0).abs() < 20.0, "length times spacing is about the area: {length}");
        assert!(segments.iter().all(|(from, to)| ((to.0 - from.0) + (to.1 - from.1)).abs() < 1e-9));
    }

    #[test]
    fn nothing_to_hatch() {
        assert!(lines(&[], 2.0).is_empty());
        assert!(lines(&[(1.0, 1.0), (1.0, 1.0)], 2.0).is_empty());
    }
}
