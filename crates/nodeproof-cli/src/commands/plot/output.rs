//! Where a figure goes, and as what.

use std::path::{Path, PathBuf};

use anyhow::bail;
use nodeproof_report::plot::{Figure, Size};

use crate::cli::FigureArguments;
use crate::outcome::Outcome;
use crate::{outputs, terminal};

/// Pixels in an inch, if nothing else is asked for.
const RESOLUTION: f64 = 300.0;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Format {
    Svg,
    /// With so many dots per inch.
    Png(f64),
}

/// Places for a figure that can be written.
#[derive(Debug)]
pub(in crate::commands) struct Output {
    files: Vec<(PathBuf, Format)>,
    size: Size,
    title: Option<String>,
    quiet: bool,
}

impl Output {
    /// Checks everything about the output that can be checked before the figure is made.
    ///
    /// # Errors
    /// If the name has no format, or nothing can be written there.
    pub(super) fn check(arguments: &FigureArguments, inputs: &[&Path]) -> anyhow::Result<Self> {
        let size = Size::new(arguments.width, arguments.height)?;
        let mut files = Vec::new();
        for out in &arguments.out {
            let format = format(out, arguments.dpi)?;
            files.push((outputs::file(out, "--out", inputs, "a figure", "figure.svg")?, format));
        }
        if arguments.dpi.is_some() && files.iter().all(|(_, format)| *format == Format::Svg) {
            bail!("--dpi: an .svg has no pixels; leave --dpi out, or give --out a name that ends in .png");
        }
        Ok(Self { files, size, title: arguments.title.clone(), quiet: arguments.quiet })
    }

    /// Figures of the usual size at these places, without a word about them.
    ///
    /// # Errors
    /// If a name has no format.
    pub(in crate::commands) fn quietly(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let file = |path: &PathBuf| Ok((path.clone(), format(path, None)?));
        let files = paths.iter().map(file).collect::<anyhow::Result<_>>()?;
        Ok(Self { files, size: Size::default(), title: None, quiet: true })
    }

    /// Writes the figure and says so.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(in crate::commands) fn write(self, figure: Figure) -> anyhow::Result<Outcome> {
        let figure = figure.size(self.size);
        let figure = match &self.title {
            Some(title) => figure.title(title),
            None => figure,
        };
        for (path, format) in &self.files {
            let bytes = match format {
                Format::Svg => figure.svg().into_bytes(),
                Format::Png(dots_per_inch) => figure.png(*dots_per_inch)?,
            };
            outputs::replace(path, &bytes)?;
        }
        if !self.quiet {
            let shown: Vec<String> = self.files.iter().map(|(path, _)| terminal::shown(path)).collect();
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
            "--out: {}: nodeproof does not write .pdf; give a .png, or an .svg, of which `rsvg-convert -f pdf` makes a .pdf",
            out.display()
        ),
        _ => bail!(
            "--out: {} ends neither in .svg nor in .png, which says what to write; give it such a name",
            out.display()
        ),
    }
}
