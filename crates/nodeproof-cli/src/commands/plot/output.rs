//! Where a figure goes, and as what.

use std::path::{Path, PathBuf};

use anyhow::bail;
use nodeproof_report::plot::{Figure, Size};

use crate::cli::FigureArguments;
use crate::export::{Destination, check_replaceable, replace};
use crate::outcome::Outcome;
use crate::terminal;

/// Pixels in an inch, if nothing else is asked for.
const RESOLUTION: f64 = 300.0;

enum Format {
    Svg,
    /// With so many dots per inch.
    Png(f64),
}

/// A place for a figure that can be written.
pub(super) struct Output<'a> {
    arguments: &'a FigureArguments,
    path: PathBuf,
    format: Format,
    size: Size,
}

impl<'a> Output<'a> {
    /// Checks everything about the output that can be checked before the figure is made.
    ///
    /// # Errors
    /// If the name does not tell a format, or nothing can be written there.
    pub(super) fn check(arguments: &'a FigureArguments, inputs: &[&Path]) -> anyhow::Result<Self> {
        let format = format(arguments)?;
        let size = Size::new(arguments.width, arguments.height)?;
        let Destination::File(path) = Destination::check(&arguments.out, "--out", inputs)? else {
            bail!("--out: a figure is a file; give it a name such as figure.svg")
        };
        check_replaceable(&path)?;
        Ok(Self { arguments, path, format, size })
    }

    /// Writes the figure and says so.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(self, figure: Figure) -> anyhow::Result<Outcome> {
        let figure = figure.size(self.size);
        let figure = match &self.arguments.title {
            Some(title) => figure.title(title),
            None => figure,
        };
        let bytes = match self.format {
            Format::Svg => figure.svg().into_bytes(),
            Format::Png(dots_per_inch) => figure.png(dots_per_inch)?,
        };
        replace(&self.path, &bytes)?;
        if !self.arguments.quiet {
            let shown = terminal::printable(&self.path.display().to_string());
            let size = format!("{} × {} mm", self.size.width(), self.size.height());
            terminal::print(&terminal::facts(&[("written", format!("{shown} ({size})"))]))?;
        }
        Ok(Outcome::Done)
    }
}

/// The format that the name of the file says.
fn format(arguments: &FigureArguments) -> anyhow::Result<Format> {
    let extension = arguments.out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") if arguments.dpi.is_some() => {
            bail!("--dpi: an .svg has no pixels; leave --dpi out, or give --out a name that ends in .png")
        }
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png(arguments.dpi.unwrap_or(RESOLUTION))),
        _ => bail!(
            "--out: {} ends neither in .svg nor in .png, which says what to write; give it such a name",
            arguments.out.display()
        ),
    }
}
