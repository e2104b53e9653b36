//! What measures nodeproof: benchmarks, and the experiments of the paper again.
//!
//! | module | what it measures |
//! |---|---|
//! | [`bench::certify`] | the `fast` engine against the plain dense formula |
//! | [`bench::engines`] | what each engine decides, and how long it takes |
//! | [`bench::train`] | a step of training |
//! | [`reproduce`] | the paper's table and figures, ours beside the published numbers |
//!
//! Everything takes plain settings, keeps an observer informed, and returns data that can be serialised and put
//! into words. Nothing is printed.

pub mod bench;
pub mod reproduce;

mod error;
mod threads;

pub use error::LabError;

/// `count` members of `all`, or all if there are fewer, evenly spaced.
fn spread<T>(all: &[T], count: usize) -> Vec<&T> {
    let count = count.min(all.len());
    (0..count).map(|i| &all[i * all.len() / count]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_spread() {
        let all: Vec<usize> = (0..10).collect();
        assert_eq!(spread(&all, 4), [&0, &2, &5, &7]);
        assert_eq!((spread(&all, 99).len(), spread(&all, 0).len(), spread(&all[..0], 3).len()), (10, 0, 0));
    }
}
