//! Options with a few possible values.

use clap::ValueEnum;
use nodeproof::{Architecture, Arithmetic, Engine, Method, Propagation, Schedule, TargetClass, WorstCase};

/// Values of `--engine`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineChoice {
    /// The paper's bound, evaluated once, and the flips that follow from it
    Fast,
    /// Then bounds whose parameters are optimised for the node
    Tight,
    /// Then branch and bound until the node is decided
    Complete,
}

impl From<EngineChoice> for Engine {
    fn from(choice: EngineChoice) -> Self {
        match choice {
            EngineChoice::Fast => Self::Fast,
            EngineChoice::Tight => Self::Tight,
            EngineChoice::Complete => Self::Complete,
        }
    }
}

/// Values of `--class`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassChoice {
    /// The class that the model predicts on the graph as it is
    Predicted,
    /// The node's label; a misclassified node is then nonrobust without any flip
    Label,
}

impl From<ClassChoice> for TargetClass {
    fn from(choice: ClassChoice) -> Self {
        match choice {
            ClassChoice::Predicted => Self::Predicted,
            ClassChoice::Label => Self::Label,
        }
    }
}

/// Values of `--arithmetic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ArithmeticChoice {
    /// Real numbers: nothing is rounded
    #[default]
    Exact,
    /// Double precision
    F64,
    /// Single precision
    F32,
    /// Products read 11 bits of each factor, and add up in single precision
    Tf32,
    /// Numbers have 8 bits; products add up in single precision
    Bf16,
}

impl From<ArithmeticChoice> for Arithmetic {
    fn from(choice: ArithmeticChoice) -> Self {
        match choice {
            ArithmeticChoice::Exact => Self::Exact,
            ArithmeticChoice::F64 => Self::F64,
            ArithmeticChoice::F32 => Self::F32,
            ArithmeticChoice::Tf32 => Self::Tf32,
            ArithmeticChoice::Bf16 => Self::Bf16,
        }
    }
}

/// Values of `--propagation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PropagationChoice {
    /// Weights 1 / √(degree × degree), as in Kipf and Welling's GCN
    SymmetricGcn,
    /// The mean of the neighbours and the node itself
    RowNormalised,
}

impl From<PropagationChoice> for Propagation {
    fn from(choice: PropagationChoice) -> Self {
        match choice {
            PropagationChoice::SymmetricGcn => Self::SymmetricGcn,
            PropagationChoice::RowNormalised => Self::RowNormalised,
        }
    }
}

/// Values of `--architecture`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ArchitectureChoice {
    /// Kipf and Welling's graph convolutional network
    Gcn,
    /// GraphSAGE: the mean of the neighbours and the node itself, each with its weights
    Sage,
    /// The graph isomorphism network: sums, and a perceptron after each
    Gin,
    /// Simplified GCN: two propagations and one linear layer
    Sgc,
    /// A perceptron whose logits take ten steps of personalised PageRank
    Appnp,
    /// GCN with a share of the first layer in every other
    Gcnii,
    /// A perceptron that sees no neighbours
    Mlp,
}

impl From<ArchitectureChoice> for Architecture {
    fn from(choice: ArchitectureChoice) -> Self {
        match choice {
            ArchitectureChoice::Gcn => Self::Gcn,
            ArchitectureChoice::Sage => Self::Sage,
            ArchitectureChoice::Gin => Self::Gin,
            ArchitectureChoice::Sgc => Self::Sgc,
            ArchitectureChoice::Appnp => Self::Appnp,
            ArchitectureChoice::Gcnii => Self::Gcnii,
            ArchitectureChoice::Mlp => Self::Mlp,
        }
    }
}

/// Values of `--method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodChoice {
    /// Cross entropy on labelled nodes: standard training
    Ce,
    /// Cross entropy of worst-case logits of labelled nodes
    Rce,
    /// Hinge loss of worst-case margins of labelled nodes, and cross entropy
    Rh,
    /// The same, then also with unlabelled nodes, around their predicted class
    RhU,
}

impl From<MethodChoice> for Method {
    fn from(choice: MethodChoice) -> Self {
        match choice {
            MethodChoice::Ce => Self::CrossEntropy,
            MethodChoice::Rce => Self::RobustCrossEntropy,
            MethodChoice::Rh => Self::RobustHinge,
            MethodChoice::RhU => Self::RobustHingeUnlabelled,
        }
    }
}

/// Values of `--schedule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScheduleChoice {
    /// It stays the same
    Constant,
    /// It falls to 0 along half a cosine
    Cosine,
}

impl From<ScheduleChoice> for Schedule {
    fn from(choice: ScheduleChoice) -> Self {
        match choice {
            ScheduleChoice::Constant => Self::Constant,
            ScheduleChoice::Cosine => Self::Cosine,
        }
    }
}

/// Values of `--worst-case`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorstCaseChoice {
    /// The lower bound that the `fast` engine computes, as in the paper
    Dual,
    /// What the steepest flips do, each charged for bending activations; no limits of hidden units, which widen with depth
    FirstOrder,
}

impl From<WorstCaseChoice> for WorstCase {
    fn from(choice: WorstCaseChoice) -> Self {
        match choice {
            WorstCaseChoice::Dual => Self::Dual,
            WorstCaseChoice::FirstOrder => Self::FirstOrder,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_can_be_chosen_by_its_name() {
        for engine in Engine::ALL {
            assert_eq!(EngineChoice::from_str(engine.name(), false).map(Engine::from), Ok(engine));
        }
    }

    #[test]
    fn every_architecture_can_be_chosen_by_its_name() {
        for architecture in Architecture::ALL {
            let chosen = ArchitectureChoice::from_str(architecture.name(), false).map(Architecture::from);
            assert_eq!(chosen, Ok(architecture));
        }
    }

    #[test]
    fn every_worst_case_can_be_chosen_by_its_name() {
        for worst_case in WorstCase::ALL {
            assert_eq!(WorstCaseChoice::from_str(worst_case.name(), false).map(WorstCase::from), Ok(worst_case));
        }
    }

    #[test]
    fn every_method_can_be_chosen_by_its_name() {
        for method in Method::ALL {
            assert_eq!(MethodChoice::from_str(method.name(), false).map(Method::from), Ok(method));
        }
    }
}
