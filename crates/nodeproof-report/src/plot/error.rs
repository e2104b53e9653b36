//! What can go wrong with a figure.

use thiserror::Error;

/// Why a figure cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PlotError {
    /// Width or height are not between the smallest and the largest that make sense.
    #[error("a figure of {width} × {height} mm; width and height must be from {min} to {max} mm")]
    Size {
        /// Width in millimetres.
        width: f64,
        /// Height in millimetres.
        height: f64,
        /// Smallest width and height.
        min: f64,
        /// Largest width and height.
        max: f64,
    },
    /// The picture would have no pixels, or too many.
    #[error(
        "a picture of {width:.0} × {height:.0} pixels; from 1 to {max} each way are possible: choose another resolution"
    )]
    Pixels {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
        /// Most pixels in one direction.
        max: u32,
    },
    /// The SVG cannot be rendered: a mistake of this crate.
    #[error("the figure cannot be rendered: {0}")]
    Render(String),
}
