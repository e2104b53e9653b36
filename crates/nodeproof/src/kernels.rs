//! The one place with `unsafe` code: inner products, sums of rows, and loops that the compiler can turn into wide vectors.
//!
//! Both versions make the same multiplications and additions in the same order, without fusing them, so that results
//! do not depend on the machine.

/// Length to which vectors of `f32` are padded with zeros.
pub(crate) const LANES: usize = 8;

/// An inner product of two equally long slices.
pub(crate) trait InnerProduct: Copy {
    /// `Σ_j a_j b_j`.
    fn of(self, a: &[f64], b: &[f64]) -> f64;

    /// `Σ_j a_j b_j` in single precision; lengths are multiples of [`LANES`].
    fn rough(self, a: &[f32], b: &[f32]) -> f32;
}

/// Work that needs many inner products.
pub(crate) trait Work {
    /// Does the work with the inner product that suits the machine.
    fn run(self, inner_product: impl InnerProduct);
}

/// Runs `work` with the fastest inner product that the machine has.
#[inline]
pub(crate) fn dispatch(work: impl Work) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        avx2::run(work);
        return;
    }
    work.run(Plain);
}

/// Runs `loops` compiled for the widest vectors that the machine has, as far as they are inlined: short ones are, others may be left
/// as they are (see [`vectorised_loops`]). The results are those of calling it: the compiler neither fuses nor reorders.
#[inline]
pub(crate) fn vectorised(loops: impl FnOnce()) {
    dispatch(Closure(loops));
}

struct Closure<F>(F);

impl<F: FnOnce()> Work for Closure<F> {
    #[inline(always)]
    fn run(self, _: impl InnerProduct) {
        (self.0)();
    }
}

/// Loops of any length.
pub(crate) trait Loops {
    /// Runs them; `#[inline(always)]`, which a closure cannot be.
    fn run(self);
}

/// Runs `loops` compiled for the widest vectors that the machine has, whatever their length; otherwise as [`vectorised`].
#[inline]
pub(crate) fn vectorised_loops(loops: impl Loops) {
    dispatch(Long(loops));
}

struct Long<L>(L);

impl<L: Loops> Work for Long<L> {
    #[inline(always)]
    fn run(self, _: impl InnerProduct) {
        self.0.run();
    }
}

/// Adds `Σ_i p_i row_i` to `sums`, row after row.
#[inline]
pub(crate) fn add_rows<'a>(sums: &mut [f64], rows: impl Iterator<Item = (f64, &'a [f64])> + Clone) {
    dispatch(AddRows { sums, rows, activate: |x| x });
}

/// Adds `Σ_i p_i activate(row_i)` to `sums`, row after row.
#[inline]
pub(crate) fn add_activated_rows<'a>(
    sums: &mut [f64],
    rows: impl Iterator<Item = (f64, &'a [f64])> + Clone,
    activate: impl Fn(f64) -> f64,
) {
    dispatch(AddRows { sums, rows, activate });
}

struct AddRows<'s, R, F> {
    sums: &'s mut [f64],
    rows: R,
    activate: F,
}

/// Columns whose sums stay in registers.
const COLUMNS: usize = 16;

impl<'a, R: Iterator<Item = (f64, &'a [f64])> + Clone, F: Fn(f64) -> f64> Work for AddRows<'_, R, F> {
    #[inline(always)]
    fn run(self, _: impl InnerProduct) {
        let (blocks, rest) = self.sums.as_chunks_mut::<COLUMNS>();
        for (i, block) in blocks.iter_mut().enumerate() {
            let mut sums = *block;
            for (p, row) in self.rows.clone() {
                let row = &row.as_chunks::<COLUMNS>().0[i];
                for column in 0..COLUMNS {
                    sums[column] += p * (self.activate)(row[column]);
                }
            }
            *block = sums;
        }
        if rest.is_empty() {
            return;
        }
        for (p, row) in self.rows {
            for (sum, &x) in rest.iter_mut().zip(row.as_chunks::<COLUMNS>().1) {
                *sum += p * (self.activate)(x);
            }
        }
    }
}

/// [`dot`](crate::dense::dot) as the compiler makes it.
#[derive(Clone, Copy)]
struct Plain;

impl InnerProduct for Plain {
    #[inline(always)]
    fn of(self, a: &[f64], b: &[f64]) -> f64 {
        crate::dense::dot(a, b)
    }

    #[inline(always)]
    fn rough(self, a: &[f32], b: &[f32]) -> f32 {
        let mut lanes = [0.0; LANES];
        for (x, y) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
            for lane in 0..LANES {
                lanes[lane] += x[lane] * y[lane];
            }
        }
        let four: [f32; 4] = std::array::from_fn(|lane| lanes[lane] + lanes[lane + 4]);
        (four[0] + four[2]) + (four[1] + four[3])
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod avx2 {
    use std::arch::x86_64::*;

    use super::{InnerProduct, LANES, Work};

    /// An inner product in AVX2. Only [`run`] makes one, and only where the processor has AVX2.
    #[derive(Clone, Copy)]
    struct Avx2(());

    /// Runs `work` compiled for AVX2.
    ///
    /// # Panics
    /// If the processor has no AVX2.
    #[inline]
    pub(super) fn run(work: impl Work) {
        assert!(std::arch::is_x86_feature_detected!("avx2"));
        // SAFETY: the processor has AVX2, as asserted just now.
        unsafe { run_inside(work) }
    }

    #[target_feature(enable = "avx2")]
    fn run_inside(work: impl Work) {
        work.run(Avx2(()));
    }

    impl InnerProduct for Avx2 {
        #[inline(always)]
        fn of(self, a: &[f64], b: &[f64]) -> f64 {
            // SAFETY: an `Avx2` exists only inside `run_inside`, so the processor has AVX2.
            unsafe { dot(a, b) }
        }

        #[inline(always)]
        fn rough(self, a: &[f32], b: &[f32]) -> f32 {
            // SAFETY: an `Avx2` exists only inside `run_inside`, so the processor has AVX2.
            unsafe { rough(a, b) }
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn rough(a: &[f32], b: &[f32]) -> f32 {
        let mut sum = _mm256_setzero_ps();
        for (x, y) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
            // SAFETY: each chunk holds eight numbers.
            sum =
                unsafe { _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(x.as_ptr()), _mm256_loadu_ps(y.as_ptr()))) };
        }
        let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn dot(a: &[f64], b: &[f64]) -> f64 {
        let (a8, a_rest) = a.as_chunks::<8>();
        let (b8, b_rest) = b.as_chunks::<8>();
        let (mut low, mut high) = (_mm256_setzero_pd(), _mm256_setzero_pd());
        for (x, y) in a8.iter().zip(b8) {
            // SAFETY: each chunk holds eight numbers: four at its start and four after those.
            unsafe {
                let product = _mm256_mul_pd(_mm256_loadu_pd(x.as_ptr()), _mm256_loadu_pd(y.as_ptr()));
                low = _mm256_add_pd(low, product);
                let product = _mm256_mul_pd(_mm256_loadu_pd(x.as_ptr().add(4)), _mm256_loadu_pd(y.as_ptr().add(4)));
                high = _mm256_add_pd(high, product);
            }
        }
        let four = _mm256_add_pd(low, high);
        let two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd::<1>(four));
        let one = _mm_cvtsd_f64(two) + _mm_cvtsd_f64(_mm_unpackhi_pd(two, two));
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
        one + rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Compare<'a>(&'a [f64], &'a [f64]);

    impl Work for Compare<'_> {
        fn run(self, inner_product: impl InnerProduct) {
            assert_eq!(inner_product.of(self.0, self.1).to_bits(), Plain.of(self.0, self.1).to_bits());
            let padded = |x: &[f64]| {
                let mut rough: Vec<f32> = x.iter().map(|&x| x as f32).collect();
                rough.resize(x.len().next_multiple_of(LANES), 0.0);
                rough
            };
            let (a, b) = (padded(self.0), padded(self.1));
            assert_eq!(inner_product.rough(&a, &b).to_bits(), Plain.rough(&a, &b).to_bits());
        }
    }

    proptest! {
        #![proptest_config(crate::seed::config(256))]

        #[test]
        fn every_machine_gets_the_same_bits(pairs in prop::collection::vec((-1e3..1e3, -1e3..1e3), 0..70)) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            dispatch(Compare(&a, &b));
        }

        #[test]
        fn sums_of_rows_are_added_in_order(columns in 0usize..40, p in prop::collection::vec(-2.0..2.0, 0..5)) {
            let row = |i: usize| (0..columns).map(|j| ((7 * i + j) as f64).sin()).collect::<Vec<f64>>();
            let rows: Vec<(f64, Vec<f64>)> = p.into_iter().zip((1..).map(row)).collect();
            let mut sums = row(0);
            let mut expected = sums.clone();
            for (p, row) in &rows {
                expected.iter_mut().zip(row).for_each(|(sum, x)| *sum += p * x);
            }
            add_rows(&mut sums, rows.iter().map(|(p, row)| (*p, row.as_slice())));
            prop_assert_eq!(sums, expected);
            let (mut sums, mut expected) = (row(0), row(0));
            for (p, row) in &rows {
                expected.iter_mut().zip(row).for_each(|(sum, &x)| *sum += p * x.max(0.0));
            }
            add_activated_rows(&mut sums, rows.iter().map(|(p, row)| (*p, row.as_slice())), |x| x.max(0.0));
            prop_assert_eq!(sums, expected);
        }
    }
}
