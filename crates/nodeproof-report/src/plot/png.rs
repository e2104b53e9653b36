//! Rendering an SVG to a PNG image with the embedded font.

use std::sync::{Arc, LazyLock};

use png::{BitDepth, ColorType, Encoder, PixelDimensions, Unit};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::error::PlotError;
use super::figure::Size;
use super::font;

/// Most pixels in one direction.
const MOST_PIXELS: u32 = 20_000;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(font::DATA.to_vec());
    fonts.set_sans_serif_family(font::NAME);
    Arc::new(fonts)
});

/// The picture of an SVG of this size in millimetres.
pub(crate) fn render(svg: &str, size: Size, dots_per_inch: f64) -> Result<Vec<u8>, PlotError> {
    let (width, height) = pixels(size, dots_per_inch)?;
    let options =
        usvg::Options { fontdb: FONTS.clone(), font_family: font::NAME.to_owned(), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| PlotError::Render(error.to_string()))?;
    let mut pixmap =
        Pixmap::new(width, height).ok_or_else(|| PlotError::Render("no room for its pixels".to_owned()))?;
    let scale = |pixels: u32, length: f32| pixels as f32 / length;
    let transform = Transform::from_scale(scale(width, tree.size().width()), scale(height, tree.size().height()));
    resvg::render(&tree, transform, &mut pixmap.as_mut());
    encode(&pixmap, dots_per_inch).map_err(|error| PlotError::Render(error.to_string()))
}

/// Width and height in pixels.
fn pixels(size: Size, dots_per_inch: f64) -> Result<(u32, u32), PlotError> {
    let in_pixels = |millimetres: f64| (millimetres / 25.4 * dots_per_inch).round();
    let (width, height) = (in_pixels(size.width()), in_pixels(size.height()));
    let is_possible = |pixels: f64| (1.0..=f64::from(MOST_PIXELS)).contains(&pixels);
    if is_possible(width) && is_possible(height) {
        Ok((width as u32, height as u32))
    } else {
        Err(PlotError::Pixels { width, height, max: MOST_PIXELS })
    }
}

/// An opaque picture, with its resolution.
fn encode(pixmap: &Pixmap, dots_per_inch: f64) -> Result<Vec<u8>, png::EncodingError> {
    let opaque: Vec<u8> = pixmap.pixels().iter().flat_map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, pixmap.width(), pixmap.height());
    encoder.set_color(ColorType::Rgb);
    encoder.set_depth(BitDepth::Eight);
    let per_metre = (dots_per_inch / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(PixelDimensions { xppu: per_metre, yppu: per_metre, unit: Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&opaque)?;
    writer.finish()?;
    Ok(bytes)
}
