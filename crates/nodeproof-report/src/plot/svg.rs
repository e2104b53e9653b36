//! Writing SVG: elements, attributes and text, escaped.

use std::fmt::Write;

use super::font;
use super::geometry::Spot;
use super::layer::Stroke;
use super::palette::Colour;

/// Where a text stands relative to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    pub(crate) text: String,
    /// Where its baseline is.
    pub(crate) at: Spot,
    pub(crate) anchor: Anchor,
    pub(crate) size: f64,
    pub(crate) colour: Colour,
    /// Whether it reads upwards.
    pub(crate) is_turned: bool,
}

/// An SVG document under way.
#[derive(Debug, Default)]
pub(crate) struct Document {
    text: String,
}

impl Document {
    /// Begins an element that holds others.
    pub(crate) fn open(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.text.push_str(">\n");
    }

    /// Ends the element.
    pub(crate) fn close(&mut self, name: &str) {
        let _ = writeln!(self.text, "</{name}>");
    }

    /// An element that holds nothing.
    pub(crate) fn element(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.text.push_str("/>\n");
    }

    /// An element that holds text.
    pub(crate) fn text_element(&mut self, name: &str, attributes: &[(&str, &str)], text: &str) {
        self.tag(name, attributes);
        self.text.push('>');
        push_escaped(&mut self.text, text);
        let _ = writeln!(self.text, "</{name}>");
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        let _ = write!(self.text, "<{name}");
        for (attribute, value) in attributes {
            let _ = write!(self.text, " {attribute}=\"");
            push_escaped(&mut self.text, value);
            self.text.push('"');
        }
    }

    /// A line of text; nothing where it is empty.
    pub(crate) fn label(&mut self, label: &Label) {
        if label.text.is_empty() {
            return;
        }
        let (x, y) = (number(label.at.0), number(label.at.1));
        let (size, colour) = (number(label.size), label.colour.to_string());
        let turn = format!("rotate(-90 {x} {y})");
        let mut attributes: Vec<(&str, &str)> = vec![("x", &x), ("y", &y), ("font-size", &size), ("fill", &colour)];
        match label.anchor {
            Anchor::Start => {}
            Anchor::Middle => attributes.push(("text-anchor", "middle")),
            Anchor::End => attributes.push(("text-anchor", "end")),
        }
        if label.is_turned {
            attributes.push(("transform", &turn));
        }
        self.text_element("text", &attributes, &label.text);
    }

    /// A path that is drawn along; nothing where it has no points.
    pub(crate) fn stroke(&mut self, class: &str, path: &str, stroke: &Stroke) {
        if path.is_empty() {
            return;
        }
        let (colour, width) = (stroke.colour.to_string(), number(stroke.width));
        let pattern = stroke.pattern();
        let mut attributes =
            vec![("class", class), ("d", path), ("fill", "none"), ("stroke", &colour), ("stroke-width", &width)];
        attributes.push(("stroke-linejoin", "round"));
        if let Some(pattern) = &pattern {
            attributes.push(("stroke-dasharray", pattern));
        }
        if stroke.dash == super::Dash::Dotted {
            attributes.push(("stroke-linecap", "round"));
        }
        self.element("path", &attributes);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Attributes of all text of a document.
pub(crate) const TEXT_FAMILY: (&str, &str) = ("font-family", font::FAMILY);

/// A path through these spots; empty where there is only one.
pub(crate) fn path(spots: &[Spot]) -> String {
    if spots.len() < 2 {
        return String::new();
    }
    let mut path = String::new();
    for (position, &(x, y)) in spots.iter().enumerate() {
        let command = match position {
            0 => "M",
            1 => "L",
            _ => " ",
        };
        let _ = write!(path, "{command}{} {}", number(x), number(y));
    }
    path
}

/// A number with two decimals at most.
pub(crate) fn number(value: f64) -> String {
    // Far outside is as good as farther outside, and short.
    let rounded = (value.clamp(-1e5, 1e5) * 100.0).round() / 100.0;
    // No negative zero.
    format!("{}", rounded + 0.0)
}

fn push_escaped(out: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(number(1.0), "1");
        assert_eq!(number(-0.001), "0");
        assert_eq!(number(12.345678), "12.35");
        assert_eq!(number(f64::MAX), "100000");
    }

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut document = Document::default();
        document.text_element("text", &[("class", "\"><x")], "<b>&'\"");
        let text = document.finish();
        assert_eq!(text, "<text class=\"&quot;&gt;&lt;x\">&lt;b&gt;&amp;&#39;&quot;</text>\n");
        assert_eq!(roxmltree::Document::parse(&text).unwrap().root_element().text(), Some("<b>&'\""));
    }

    #[test]
    fn paths() {
        assert_eq!(path(&[(0.0, 1.0), (2.0, 3.5), (4.0, 5.0)]), "M0 1L2 3.5 4 5");
        assert_eq!(path(&[(0.0, 1.0)]), "");
    }
}
