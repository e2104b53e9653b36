//! Rectangles, segments and where there is room between them, in points from the top left.

/// A place in the figure.
pub(crate) type Spot = (f64, f64);

/// A rectangle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

impl Rect {
    pub(crate) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(crate) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    pub(crate) fn contains(&self, (x, y): Spot) -> bool {
        x >= self.left && x <= self.right && y >= self.top && y <= self.bottom
    }

    pub(crate) fn grown(&self, by: f64) -> Rect {
        Rect { left: self.left - by, top: self.top - by, right: self.right + by, bottom: self.bottom + by }
    }

    /// Whether a segment touches the rectangle: clips it to each side in turn (Liang and Barsky, 1984).
    pub(crate) fn touches(&self, from: Spot, to: Spot) -> bool {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let sides = [
            (-dx, from.0 - self.left),
            (dx, self.right - from.0),
            (-dy, from.1 - self.top),
            (dy, self.bottom - from.1),
        ];
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (change, distance) in sides {
            if change == 0.0 {
                if distance < 0.0 {
                    return false;
                }
            } else if change < 0.0 {
                enter = enter.max(distance / change);
            } else {
                leave = leave.min(distance / change);
            }
        }
        enter <= leave
    }
}

/// Height of a curve, given from left to right, at `x`; `None` outside it.
pub(crate) fn height_at(curve: &[Spot], x: f64) -> Option<f64> {
    let after = curve.partition_point(|spot| spot.0 < x);
    let right = curve.get(after)?;
    if right.0 == x {
        return Some(right.1);
    }
    let left = curve.get(after.checked_sub(1)?)?;
    Some(left.1 + (right.1 - left.1) * (x - left.0) / (right.0 - left.0))
}

/// Smallest and largest height of a curve between two places.
pub(crate) fn heights_between(curve: &[Spot], from: f64, to: f64) -> Option<(f64, f64)> {
    let inner = curve.iter().filter(|spot| spot.0 > from && spot.0 < to).map(|spot| spot.1);
    let ends = [height_at(curve, from)?, height_at(curve, to)?];
    let heights = || inner.clone().chain(ends);
    Some((heights().fold(f64::INFINITY, f64::min), heights().fold(f64::NEG_INFINITY, f64::max)))
}

/// Centres of labels that want to stand at `wanted`, moved as little as needed so that none overlap and all lie between
/// `from` and `to`, if they fit there at all.
pub(crate) fn spread(wanted: &[f64], lengths: &[f64], from: f64, to: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    let mut centres = wanted.to_vec();
    let mut free = from;
    for &label in &order {
        centres[label] = centres[label].max(free + lengths[label] / 2.0);
        free = centres[label] + lengths[label] / 2.0;
    }
    let mut free = to;
    for &label in order.iter().rev() {
        centres[label] = centres[label].min(free - lengths[label] / 2.0);
        free = centres[label] - lengths[label] / 2.0;
    }
    centres
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOX: Rect = Rect { left: 10.0, top: 10.0, right: 20.0, bottom: 20.0 };

    #[test]
    fn segments_touch_a_rectangle_or_not() {
        assert!(BOX.touches((0.0, 0.0), (30.0, 30.0)));
        assert!(BOX.touches((15.0, 0.0), (15.0, 12.0)));
        assert!(BOX.touches((12.0, 12.0), (12.0, 12.0)));
        assert!(!BOX.touches((0.0, 15.0), (9.0, 15.0)));
        assert!(!BOX.touches((0.0, 25.0), (25.0, 45.0)));
        assert!(!BOX.touches((5.0, 0.0), (5.0, 30.0)));
    }

    #[test]
    fn heights_are_interpolated() {
        let curve = [(0.0, 0.0), (10.0, 10.0), (10.0, 4.0), (20.0, 4.0)];
        assert_eq!(height_at(&curve, 5.0), Some(5.0));
        assert_eq!(height_at(&curve, 15.0), Some(4.0));
        assert_eq!(height_at(&curve, 21.0), None);
        assert_eq!(height_at(&curve, -1.0), None);
        assert_eq!(heights_between(&curve, 5.0, 12.0), Some((4.0, 10.0)));
    }

    #[test]
    fn labels_are_spread_without_overlap() {
        assert_eq!(spread(&[10.0, 50.0], &[4.0, 4.0], 0.0, 100.0), [10.0, 50.0]);
        assert_eq!(spread(&[10.0, 11.0], &[4.0, 4.0], 0.0, 100.0), [10.0, 14.0]);
        assert_eq!(spread(&[99.0, 99.0], &[4.0, 4.0], 0.0, 100.0), [94.0, 98.0]);
    }
}
