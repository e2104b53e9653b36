//! Curves from elsewhere, as CSV.

use std::path::Path;

use anyhow::{anyhow, bail};
use nodeproof_report::plot::Point;
use nodeproof_report::plot::figures::Reference;
use nodeproof_report::text::short_name;

use crate::inputs;
use crate::values::NamedFile;

/// Reads the file that was given, if one was.
///
/// # Errors
/// If it does not hold percentages by global budget.
pub(super) fn read(file: Option<&NamedFile>) -> anyhow::Result<Option<Reference>> {
    let Some(file) = file else { return Ok(None) };
    inputs::check_readable(&file.path, "--reference")?;
    let curves = curves(&file.path)?;
    Ok(Some(Reference { name: file.shown_name(), curves }))
}

/// The columns but the first, named by the first row, against the first.
fn curves(path: &Path) -> anyhow::Result<Vec<(String, Vec<Point>)>> {
    let shown = path.display();
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_path(path)?;
    let unreadable =
        |error: csv::Error| anyhow!("{shown} is not a CSV file with rows of the same length: {error}; correct it");
    let names: Vec<String> = reader.headers().map_err(unreadable)?.iter().skip(1).map(str::to_owned).collect();
    if names.is_empty() {
        bail!(
            "{shown} has no curves; its first column must be the global budget, the others percentages, with a row of names"
        );
    }
    let mut curves: Vec<(String, Vec<Point>)> = names.into_iter().map(|name| (name, Vec::new())).collect();
    for row in reader.records() {
        let row = row.map_err(unreadable)?;
        let line = row.position().map_or(0, csv::Position::line);
        let number = |cell: &str, largest: f64| match cell.parse::<f64>() {
            Ok(number) if (0.0..=largest).contains(&number) => Ok(number),
            _ => Err(anyhow!(
                "{shown}, line {line}: “{}” is not a number from 0 to {largest}; correct it",
                short_name(cell)
            )),
        };
        let mut cells = row.iter();
        let budget = number(cells.next().unwrap_or_default(), f64::from(u32::MAX))?;
        for (cell, (_, points)) in cells.zip(&mut curves).filter(|(cell, _)| !cell.is_empty()) {
            points.push((budget, number(cell, 100.0)? / 100.0));
        }
    }
    for (_, points) in &mut curves {
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    if curves.iter().all(|(_, points)| points.is_empty()) {
        bail!("{shown} has names but no rows of numbers; add them");
    }
    Ok(curves)
}
