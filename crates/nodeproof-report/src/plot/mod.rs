//! Figures for papers: a description of axes and layers that becomes SVG, and that SVG rendered to PNG.
//!
//! [`figures`] has one function for each figure of the paper, and some more; each takes plain numbers and gives a
//! [`Figure`]. A figure lays itself out with the metrics of one embedded font, so that labels do not collide, and draws
//! only what is there: two spines, ticks, layers, a legend where no data are.
//!
//! The same figure gives the same bytes. Labels may hold anything; they are cleaned, shortened to the room there is, and
//! escaped.
//!
//! ```
//! use nodeproof_report::plot::{Axis, Figure, Line, Size, Stroke, palette};
//!
//! # fn main() -> Result<(), nodeproof_report::plot::PlotError> {
//! let falling = (0..=20).map(|q| (f64::from(q), (-f64::from(q) / 8.0).exp())).collect();
//! let figure = Figure::new(Axis::new("Global budget Q", 0.0, 20.0).whole(), Axis::new("Nodes (%)", 0.0, 1.0).percent())
//!     .size(Size::new(84.0, 60.0)?)
//!     .line(Line::new(falling, Stroke::solid(palette::ROBUST)).named("a model"));
//! assert!(figure.svg().starts_with("<svg"));
//! assert_eq!(&figure.png(300.0)?[1..4], b"PNG");
//! # Ok(())
//! # }
//! ```

mod axis;
mod error;
mod figure;
pub mod figures;
mod font;
mod geometry;
mod hatch;
mod layer;
mod layout;
mod legend;
mod number;
pub mod palette;
mod png;
mod svg;
mod text;

pub use axis::Axis;
pub use error::PlotError;
pub use figure::{Figure, Size};
pub use layer::{Area, Dash, Dots, Fill, Line, Marker, Point, Stroke};
