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
    files: Vec<(PathBuf, Format)>,
    size: Size,
}

impl<'a> Output<'a> {
    /// Checks everything about the output that can be checked before the figure is made.
    ///
    /// # Errors
    /// If the name does not tell a format, or nothing can be written there.
    pub(super) fn check(arguments: &'a FigureArguments, inputs: &[&Path]) -> anyhow::Result<Self> {
        let size = Size::new(arguments.width, arguments.height)?;
        let mut files = Vec::new();
        for out in &arguments.out {
            let format = format(out, arguments.dpi)?;
            let Destination::File(path) = Destination::check(out, "--out", inputs)? else {
                bail!("--out: a figure is a file; give it a name such as figure.svg")
            };
            check_replaceable(&path)?;
            files.push((path, format));
        }
        if arguments.dpi.is_some() && files.iter().all(|(_, format)| matches!(format, Format::Svg)) {
            bail!("--dpi: an .svg has no pixels; leave --dpi out, or give --out a name that ends in .png");
        }
        Ok(Self { arguments, files, size })
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
        for (path, format) in &self.files {
            let bytes = match format {
                Format::Svg => figure.svg().into_bytes(),
                Format::Png(dots_per_inch) => figure.png(*dots_per_inch)?,
            };
            replace(path, &bytes)?;
        }
        if !self.arguments.quiet {
            let shown: Vec<String> =
                self.files.iter().map(|(path, _)| terminal::printable(&path.display().to_string())).collect();
            let size = format!("{} × {} mm", self.size.width(), self.size.height());
            terminal::print(&terminal::facts(&[("written", format!("{} ({size})", shown.join(", ")))]))?;
        }
        Ok(Outcome::Done)
    }
}

/// The format that the name of the file says.
fn format(out: &Path, dots_per_inch: Option<f64>) -> anyhow::Result<Format> {
    let extension = out.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png(dots_per_inch.unwrap_or(RESOLUTION))),
        Some("pdf") => bail!(
            "--out: {} is to be a .pdf, which nodeproof does not write; give a .png, or an .svg, of which `rsvg-convert -f pdf` makes a .pdf",
            out.display()
        ),
        _ => bail!(
            "--out: {} ends neither in .svg nor in .png, which says what to write; give it such a name",
            out.display()
        ),
    }
}
