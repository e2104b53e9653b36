//! What a robust loss asks of the worst-case margins of one node.

/// The loss of one node as a function of its duals `g_k ≤ min (logit_y − logit_k)`, one for each other class.
pub(super) trait NodeLoss: Copy + Send + Sync {
    /// The loss; its derivative by each dual replaces that dual.
    fn evaluate(self, duals: &mut [f64]) -> f64;
}

/// `Σ_k w_k g_k`, for the derivative of whatever is made of the duals elsewhere.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weighted<'w>(pub(super) &'w [f64]);

impl NodeLoss for Weighted<'_> {
    fn evaluate(self, duals: &mut [f64]) -> f64 {
        let sum = duals.iter().zip(self.0).map(|(dual, weight)| dual * weight).sum();
        duals.copy_from_slice(self.0);
        sum
    }
}

/// What training asks of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Goal {
    /// Cross entropy of the worst-case logits, `log(1 + Σ_k exp(−g_k))` (the paper's robust cross entropy).
    CrossEntropy,
    /// `Σ_k h_k` with `h_k = max(0, margin − g_k)` (the paper's robust hinge loss), or `Σ_k s log(1 + h_k / s)`, which
    /// grows ever more slowly, so that nodes without hope do not bend the network for nothing.
    Hinge {
        /// The margin M that every class is to be kept away.
        margin: f64,
        /// s: the `h_k` at which the pull on a node is halved.
        saturation: Option<f64>,
    },
}

impl NodeLoss for Goal {
    fn evaluate(self, duals: &mut [f64]) -> f64 {
        match self {
            Self::CrossEntropy => {
                // Shifted by the largest exponent, so that nothing overflows.
                let shift = duals.iter().fold(0.0f64, |largest, dual| largest.max(-dual));
                duals.iter_mut().for_each(|dual| *dual = (-*dual - shift).exp());
                let total = (-shift).exp() + duals.iter().sum::<f64>();
                duals.iter_mut().for_each(|share| *share /= -total);
                shift + total.ln()
            }
            Self::Hinge { margin, saturation } => {
                let mut loss = 0.0;
                for dual in duals {
                    let missing = (margin - *dual).max(0.0);
                    let (value, pull) = match saturation {
                        Some(s) => (s * (missing / s).ln_1p(), s / (s + missing)),
                        None => (missing, 1.0),
                    };
                    loss += value;
                    *dual = if missing > 0.0 { -pull } else { 0.0 };
                }
                loss
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(loss: impl NodeLoss, mut duals: Vec<f64>) -> (f64, Vec<f64>) {
        (loss.evaluate(&mut duals), duals)
    }

    #[test]
    fn losses_by_hand() {
        let hinge = Goal::Hinge { margin: 2.0, saturation: None };
        assert_eq!(evaluate(hinge, vec![3.0, 1.5, -1.0]), (3.5, vec![0.0, -1.0, -1.0]));
        assert_eq!(evaluate(hinge, vec![2.0]), (0.0, vec![0.0]), "nothing is asked for at the margin itself");
        let saturating = Goal::Hinge { margin: 2.0, saturation: Some(0.5) };
        let (loss, derivatives) = evaluate(saturating, vec![3.0, 1.5, -1.0]);
        assert!((loss - 0.5 * (2f64.ln() + 7f64.ln())).abs() < 1e-15);
        assert_eq!(derivatives, [0.0, -0.5, -1.0 / 7.0]);
        let (loss, derivatives) = evaluate(Goal::CrossEntropy, vec![0.0, 0.0]);
        assert!((loss - 3f64.ln()).abs() < 1e-15);
        assert!(derivatives.iter().all(|derivative| (derivative + 1.0 / 3.0).abs() < 1e-15));
        assert_eq!(evaluate(Weighted(&[2.0, -1.0]), vec![3.0, 1.5]), (4.5, vec![2.0, -1.0]));
    }

    #[test]
    fn cross_entropy_survives_large_numbers() {
        let (loss, derivatives) = evaluate(Goal::CrossEntropy, vec![-2000.0, 1000.0]);
        assert_eq!((loss, derivatives), (2000.0, vec![-1.0, 0.0]));
        let (loss, derivatives) = evaluate(Goal::CrossEntropy, vec![2000.0]);
        assert_eq!((loss, derivatives), (0.0, vec![0.0]));
    }
}
