//! Kinds of networks that can be trained.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{SettingsError, one_of};

/// How the layers of a network in training are put together. P is the propagation of the settings, α = 0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Architecture {
    /// `h' = relu(P h W + b)`, the last layer without ReLU (Kipf and Welling, 2017).
    #[default]
    Gcn,
    /// `h' = relu(M h W₁ + h W₂ + b)` with M the mean of the neighbours (Hamilton et al., 2017).
    Sage,
    /// Convolutions `h' = relu((I + A) h W₁ + b₁) W₂ + b₂` with ReLUs between them (Xu et al., 2019).
    Gin,
    /// `P² X W + b` (Wu et al., 2019).
    Sgc,
    /// A multilayer perceptron with `Π h W + b` for its last layer, Π being ten steps `h ← (1 − α) P h + α h⁰` in one (Gasteiger et
    /// al., 2019).
    Appnp,
    /// `h⁰ = relu(X W + b)`, then `h' = relu(S ((1 − β) I + β W) + b)` with `S = (1 − α) P h + α h⁰` and β = ln(1 + 1 / 2l) in
    /// the l-th of these layers, and a linear layer (Chen et al., 2020).
    Gcnii,
    /// A multilayer perceptron: the node's own attributes, and nothing else.
    Mlp,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 7] = [Self::Gcn, Self::Sage, Self::Gin, Self::Sgc, Self::Appnp, Self::Gcnii, Self::Mlp];

    /// Its name: `gcn`, `sage`, `gin`, `sgc`, `appnp`, `gcnii` or `mlp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gcn => "gcn",
            Self::Sage => "sage",
            Self::Gin => "gin",
            Self::Sgc => "sgc",
            Self::Appnp => "appnp",
            Self::Gcnii => "gcnii",
            Self::Mlp => "mlp",
        }
    }

    /// Whether there is a propagation P to choose.
    pub fn has_propagation(self) -> bool {
        matches!(self, Self::Gcn | Self::Sgc | Self::Appnp | Self::Gcnii)
    }

    /// Units of the hidden layers where none are given.
    pub fn default_hidden(self) -> &'static [usize] {
        match self {
            Self::Sgc => &[],
            Self::Gcnii => &[32; 3],
            Self::Gcn | Self::Sage | Self::Gin | Self::Appnp | Self::Mlp => &[32],
        }
    }

    /// Share of hidden activations left out where none is given. Sums over many neighbours make too much noise of it: GIN
    /// does not learn Cora-ML with a half left out.
    pub fn default_dropout(self) -> f64 {
        if self == Self::Gin { 0.0 } else { 0.5 }
    }

    /// Inputs and outputs of the dense layers, one after the other: attributes, units, …, classes. Both linear layers of a
    /// convolution of GIN count, and its inner one is as wide as the hidden layer that the convolution makes, or reads if it is
    /// the last.
    pub fn widths(self, attributes: usize, hidden: &[usize], classes: usize) -> Vec<usize> {
        let mut widths = vec![attributes];
        for &units in hidden {
            widths.extend(std::iter::repeat_n(units, if self == Self::Gin { 2 } else { 1 }));
        }
        widths.extend(hidden.last().filter(|_| self == Self::Gin));
        widths.push(classes);
        widths
    }

    /// Number of weights and biases of the dense layers.
    pub(super) fn parameters(self, widths: &[usize]) -> f64 {
        let weights_a_layer = if self == Self::Sage { 2.0 } else { 1.0 };
        widths.windows(2).map(|pair| (weights_a_layer * pair[0] as f64 + 1.0) * pair[1] as f64).sum()
    }

    /// Checks that hidden layers of these sizes can be.
    pub(super) fn check_hidden(self, hidden: &[usize]) -> Result<(), SettingsError> {
        let sizes: Vec<String> = hidden.iter().map(ToString::to_string).collect();
        let fail = |remedy: &str| Err(SettingsError::value("hidden", sizes.join(","), remedy));
        match (self, hidden) {
            (Self::Sgc, [_, ..]) => fail("sgc has no hidden layer, so leave it out"),
            (Self::Gin, []) => Err(SettingsError::value(
                "hidden",
                "none",
                "gin needs at least one hidden layer, such as one of 32 units",
            )),
            (Self::Gcnii, [] | [_]) => Err(SettingsError::value(
                "hidden",
                if hidden.is_empty() { "none".to_owned() } else { sizes.join(",") },
                "gcnii needs a first hidden layer and one for each convolution, such as 32,32,32",
            )),
            (Self::Gcnii, [first, rest @ ..]) if rest.iter().any(|units| units != first) => {
                fail("gcnii adds its first hidden layer to the others, so give all of them the same size")
            }
            _ => Ok(()),
        }
    }

    /// Checks that there is a propagation to choose.
    ///
    /// # Errors
    /// If there is none.
    pub fn check_propagation(self) -> Result<(), SettingsError> {
        if self.has_propagation() {
            return Ok(());
        }
        let others: Vec<_> = Self::ALL.into_iter().filter(|other| other.has_propagation()).map(Self::name).collect();
        Err(SettingsError::NoPropagation { option: "propagation", architecture: self, used_by: one_of(&others) })
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Architecture {
    type Err = SettingsError;

    fn from_str(text: &str) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|architecture| architecture.name() == text);
        found.ok_or_else(|| SettingsError::unknown("architecture", text, &Self::ALL.map(Self::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed_and_others_answered_with_a_list() {
        for architecture in Architecture::ALL {
            assert_eq!(architecture.name().parse::<Architecture>().unwrap(), architecture);
            let json = serde_json::to_string(&architecture).unwrap();
            assert_eq!(json, format!("\"{architecture}\""));
        }
        let error = "gat".parse::<Architecture>().unwrap_err().to_string();
        assert_eq!(error, "architecture is gat; choose gcn, sage, gin, sgc, appnp, gcnii or mlp");
    }

    #[test]
    fn widths_by_hand() {
        assert_eq!(Architecture::Gcn.widths(9, &[4, 5], 2), [9, 4, 5, 2]);
        assert_eq!(Architecture::Sgc.widths(9, &[], 2), [9, 2]);
        assert_eq!(Architecture::Gin.widths(9, &[4, 5], 2), [9, 4, 4, 5, 5, 5, 2]);
        assert_eq!(Architecture::Sage.parameters(&[9, 4, 2]), 2.0 * (9.0 * 4.0 + 4.0 * 2.0) + 6.0);
    }

    #[test]
    fn hidden_layers_must_fit() {
        for architecture in Architecture::ALL {
            assert!(architecture.check_hidden(architecture.default_hidden()).is_ok(), "{architecture}");
        }
        let wrong =
            |architecture: Architecture, hidden: &[usize]| architecture.check_hidden(hidden).unwrap_err().to_string();
        assert_eq!(wrong(Architecture::Sgc, &[64, 32]), "hidden is 64,32; sgc has no hidden layer, so leave it out");
        assert!(wrong(Architecture::Gin, &[]).starts_with("hidden is none; gin needs at least one"));
        assert!(wrong(Architecture::Gcnii, &[8]).starts_with("hidden is 8; gcnii needs a first hidden layer"));
        assert!(wrong(Architecture::Gcnii, &[8, 4]).contains("the same size"));
        assert!(Architecture::Mlp.check_hidden(&[]).is_ok() && Architecture::Gcnii.check_hidden(&[8, 8]).is_ok());
    }

    #[test]
    fn only_some_have_a_propagation_to_choose() {
        assert!(Architecture::Appnp.check_propagation().is_ok());
        let error = Architecture::Mlp.check_propagation().unwrap_err().to_string();
        let expected =
            "propagation: architecture mlp has none to choose; leave it out, or choose gcn, sgc, appnp or gcnii";
        assert_eq!(error, expected);
    }
}
