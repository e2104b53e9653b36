//! Figures as a reader of the files meets them: SVG that parses, marks where the numbers say, PNG of the right size.

#![allow(clippy::unwrap_used)]

use nodeproof_report::Attack;
use nodeproof_report::plot::figures::{
    Aims, Compared, Curves, Reference, Run, Together, certificates, collective, comparison, degree, dynamics, gap,
    purity, truth,
};
use nodeproof_report::plot::{Axis, Figure, Line, Marker, PlotError, Size, Stroke, palette};
use roxmltree::{Document, Node};

/// Everything that an attacker of file names could think of, and long.
fn hostile() -> String {
    "</text><script>alert(\"x\")</script>&amp;<![CDATA[ ]]> \u{0}\u{8}\u{1b}[31m\u{202e}\u{feff}\u{ffff} שלום 😀👩‍👩‍👧 '"
        .repeat(120)
}

fn curves() -> Curves {
    Curves { robust: vec![1.0, 0.8, 0.5, 0.1, 0.0], nonrobust: vec![0.0, 0.1, 0.3, 0.7, 1.0], attack: Attack::Flips }
}

/// What one attacker changes, with a gap from two flips on.
fn together() -> [Together; 3] {
    let answer = |global, at_most, at_least, alone| Together { global, at_most, at_least, alone };
    [answer(1, 0.01, 0.01, 0.1), answer(2, 0.02, 0.015, 0.4), answer(10, 0.1, 0.05, 1.0)]
}

/// One of each figure, with every option, and with these names.
fn all(name: &str) -> Vec<(&'static str, Figure)> {
    let curves = curves();
    let fast = Curves {
        robust: vec![1.0, 0.6, 0.3, 0.0, 0.0],
        nonrobust: vec![0.0, 0.1, 0.2, 0.5, 0.9],
        attack: Attack::Flips,
    };
    let reference = Reference { name: name.to_owned(), curves: vec![(name.to_owned(), vec![(0.0, 1.0), (4.0, 0.2)])] };
    let model = |trained_for| Compared {
        name: name.to_owned(),
        robust: curves.robust.clone(),
        attack: Attack::Flips,
        trained_for,
    };
    let run = Run {
        name: name.to_owned(),
        labelled: vec![(1.0, -0.5), (2.0, 1.0)],
        unlabelled: vec![(1.0, 0.1), (2.0, 0.4)],
    };
    let purities: Vec<(f64, u32)> = (0..200).map(|node| (f64::from(node) / 199.0, node / 10)).collect();
    let degrees: Vec<(usize, u32)> = (0..200).map(|node| (node as usize / 4, node / 10)).collect();
    vec![
        ("certificates", certificates((Some(name), &curves), Some((name, &fast)), Some(&reference))),
        ("truth", truth(&fast, &curves)),
        ("comparison", comparison(&[model(None), model(Some(2))], Some(&reference))),
        ("purity", purity(&purities, Attack::Flips, 19)),
        ("degree", degree(&degrees, Attack::Flips, 100)),
        ("collective", collective(&together())),
        ("gap", gap(&[0.0, 0.1, 2.0], &[0.0, 0.0, 0.01])),
        ("dynamics", dynamics(&[run.clone(), run], Some(Aims { labelled: 2.2, unlabelled: 0.4 }))),
    ]
}

/// The same figures of nothing at all.
fn nothing() -> Vec<(&'static str, Figure)> {
    vec![
        ("certificates", certificates((Some(""), &Curves::default()), Some(("", &Curves::default())), None)),
        ("truth", truth(&Curves::default(), &Curves::default())),
        ("comparison", comparison(&[], None)),
        ("purity", purity(&[], Attack::Flips, 0)),
        ("degree", degree(&[], Attack::Flips, 0)),
        ("collective", collective(&[])),
        ("gap", gap(&[], &[])),
        ("dynamics", dynamics(&[], None)),
    ]
}

fn texts(svg: &Document) -> Vec<String> {
    svg.descendants().filter(|node| is_svg(node, "text")).filter_map(|node| node.text()).map(str::to_owned).collect()
}

fn is_svg(node: &Node, name: &str) -> bool {
    node.has_tag_name(("http://www.w3.org/2000/svg", name))
}

/// Paths of a class, as their points.
fn paths(svg: &Document, class: &str) -> Vec<Vec<(f64, f64)>> {
    let of_class = svg.descendants().filter(|node| is_svg(node, "path") && node.attribute("class") == Some(class));
    of_class
        .map(|node| {
            let path = node.attribute("d").unwrap().replace(['M', 'L', 'Z'], " ");
            let numbers: Vec<f64> = path.split_whitespace().map(|number| number.parse().unwrap()).collect();
            numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        })
        .collect()
}

/// Left, top, right and bottom of the frame, from the spines.
fn frame(svg: &Document) -> (f64, f64, f64, f64) {
    let spines = &paths(svg, "spines")[0];
    (spines[0].0, spines[0].1, spines[2].0, spines[2].1)
}

#[test]
fn every_figure_is_valid_svg_with_text_and_layers() {
    for (name, figure) in all("model").into_iter().chain(nothing()) {
        let text = figure.svg();
        let svg = Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
        let root = svg.root_element();
        assert!(is_svg(&root, "svg"), "{name}");
        assert_eq!((root.attribute("width"), root.attribute("height")), (Some("84mm"), Some("58mm")), "{name}");
        assert!(texts(&svg).len() >= 4, "{name} has labels");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{name}: {text}");
        assert!(!text.contains(" id=\""), "{name}: names clash where figures share a page");
    }
}

#[test]
fn hostile_names_stay_text_and_short() {
    for (name, figure) in all(&hostile()) {
        let text = figure.title(hostile()).svg();
        let svg = Document::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!svg.descendants().any(|node| node.tag_name().name() == "script"), "{name}");
        for label in texts(&svg) {
            assert!(label.chars().count() < 90, "{name}: {label}");
            assert!(
                !label.chars().any(|c| c.is_control() || matches!(c, '\u{202e}' | '\u{feff}' | '\u{ffff}')),
                "{name}"
            );
        }
        assert!(text.len() < 40_000, "{name}: {} bytes", text.len());
    }
}

/// Where the curves of a figure of what one attacker changes are, from the bottom of the frame (0) to its top (1).
fn heights(answers: &[Together]) -> (Vec<Vec<f64>>, usize) {
    let text = collective(answers).svg();
    let svg = Document::parse(&text).unwrap();
    let (_, top, _, bottom) = frame(&svg);
    let height = |y: f64| (bottom - y) / (bottom - top);
    let of_line = |line: &Vec<(f64, f64)>| line.iter().map(|point| height(point.1)).collect();
    (paths(&svg, "line").iter().map(of_line).collect(), paths(&svg, "break").len())
}

#[test]
fn what_one_attacker_changes_stands_on_a_logarithmic_axis() {
    // From 1 % to 100 %: a tenth of all predictions is half-way up.
    let (curves, breaks) = heights(&together());
    let expected = [[0.5, 0.801, 1.0], [0.0, 0.151, 0.5], [0.0, 0.088, 0.349]];
    assert_eq!((curves.len(), breaks), (3, 0));
    for (curve, expected) in curves.iter().zip(expected) {
        assert!(
            curve.iter().zip(expected).all(|(drawn, place)| (drawn - place).abs() < 0.002),
            "{curve:?} {expected:?}"
        );
    }
    let mut nothing_found = together();
    nothing_found[0].at_least = 0.0;
    let (curves, breaks) = heights(&nothing_found);
    assert_eq!((curves[2][0], breaks > 0), (0.0, true), "none at all has a place below the break");
    assert!(curves[1][0] > 0.05, "{curves:?}");
}

#[test]
fn values_are_where_the_axes_say() {
    let line = vec![(0.0, 0.0), (5.0, 1.0), (10.0, 0.25)];
    let figure = Figure::new(Axis::new("x", 0.0, 10.0), Axis::new("y", 0.0, 1.0))
        .line(Line::new(line, Stroke::solid(palette::ROBUST)))
        .marker(Marker::vertical(2.5, "here"));
    let text = figure.svg();
    let svg = Document::parse(&text).unwrap();
    let (left, top, right, bottom) = frame(&svg);
    let expected = [(left, bottom), ((left + right) / 2.0, top), (right, bottom - 0.25 * (bottom - top))];
    for (drawn, expected) in paths(&svg, "line")[0].iter().zip(expected) {
        assert!((drawn.0 - expected.0).abs() < 0.011 && (drawn.1 - expected.1).abs() < 0.011, "{drawn:?} {expected:?}");
    }
    let marker = &paths(&svg, "marker")[0];
    assert!((marker[0].0 - (left + 0.25 * (right - left))).abs() < 0.011 && marker[0].0 == marker[1].0);
    assert!(texts(&svg).contains(&"here".to_owned()));
}

#[test]
fn certificates_go_from_below_and_from_above() {
    let text = certificates((None, &curves()), None, None).svg();
    let svg = Document::parse(&text).unwrap();
    let (left, top, right, bottom) = frame(&svg);
    let at = |q: f64, share: f64| (left + (right - left) * q / 4.0, bottom - (bottom - top) * share);
    let lines = paths(&svg, "line");
    for (line, shares) in lines.iter().zip([[1.0, 0.8, 0.5, 0.1, 0.0], [1.0, 0.9, 0.7, 0.3, 0.0]]) {
        assert_eq!(line.len(), 5);
        for (q, (drawn, share)) in line.iter().zip(shares).enumerate() {
            let expected = at(q as f64, share);
            assert!((drawn.0 - expected.0).abs() < 0.011 && (drawn.1 - expected.1).abs() < 0.011, "Q = {q}");
        }
    }
    assert_eq!(paths(&svg, "area").len(), 3, "robust, undecided, nonrobust");
    let names = texts(&svg);
    assert!(["robust", "undecided", "nonrobust"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
}

#[test]
fn what_is_robust_everywhere_fills_the_figure() {
    let all_robust = Curves { robust: vec![1.0; 13], nonrobust: vec![0.0; 13], attack: Attack::Flips };
    let text = certificates((None, &all_robust), None, None).svg();
    let svg = Document::parse(&text).unwrap();
    let (left, top, right, bottom) = frame(&svg);
    let largest = paths(&svg, "area").into_iter().map(|area| {
        let xs = area.iter().map(|spot| spot.0);
        let ys = area.iter().map(|spot| spot.1);
        (xs.clone().fold(0.0, f64::max) - xs.fold(1e9, f64::min))
            * (ys.clone().fold(0.0, f64::max) - ys.fold(1e9, f64::min))
    });
    let largest = largest.fold(0.0, f64::max);
    assert!((largest - (right - left) * (bottom - top)).abs() < 5.0);
    let names = texts(&svg);
    assert!(names.contains(&"12".to_owned()), "the last budget is shown: {names:?}");
    assert!(!names.contains(&"undecided".to_owned()) && !names.contains(&"nonrobust".to_owned()), "{names:?}");
}

/// Axes of figures about deletions say so, also beside flips.
#[test]
fn axes_say_what_budgets_count() {
    let of = |attack| Curves { attack, ..curves() };
    let [flips, deletions, both] = [Attack::Flips, Attack::Deletions, Attack::Both].map(of);
    let compared = |attack| Compared { name: format!("{attack:?}"), robust: vec![1.0, 0.5], attack, trained_for: None };
    let mixed = [compared(Attack::Flips), compared(Attack::Deletions)];
    for (figure, words) in [
        (certificates((None, &flips), None, None), "Global budget Q"),
        (certificates((None, &deletions), Some(("other", &deletions)), None), "Deletions Q"),
        (certificates((None, &both), None, None), "Deletions Q beside flips"),
        (certificates((None, &flips), Some(("other", &deletions)), None), "Flips or deletions Q"),
        (truth(&deletions, &deletions), "Deletions Q"),
        (comparison(&mixed[..1], None), "Global budget Q"),
        (comparison(&mixed[1..], None), "Deletions Q"),
        (comparison(&mixed, None), "Flips or deletions Q"),
        (comparison(&[], None), "Global budget Q"),
        (purity(&[(0.5, 1)], Attack::Flips, 2), "Largest Q proven robust"),
        (purity(&[(0.5, 1)], Attack::Deletions, 2), "Most deletions withstood"),
        (degree(&[(3, 1)], Attack::Deletions, 2), "Most deletions withstood"),
    ] {
        let text = figure.svg();
        let names = texts(&Document::parse(&text).unwrap());
        assert!(names.contains(&words.to_owned()), "{words}: {names:?}");
    }
}

#[test]
fn one_budget_and_one_node_are_enough() {
    for curves in [
        Curves { robust: vec![1.0], nonrobust: vec![0.0], attack: Attack::Flips },
        Curves { robust: vec![0.0], nonrobust: vec![1.0], attack: Attack::Flips },
        Curves { robust: vec![1.0, 0.0], nonrobust: vec![0.0, 1.0], attack: Attack::Flips },
        Curves { robust: vec![1.0, 0.5], nonrobust: vec![], attack: Attack::Flips },
    ] {
        let text = certificates((None, &curves), None, None).svg();
        assert!(Document::parse(&text).is_ok());
    }
    for figure in [purity(&[(1.0, 0)], Attack::Flips, 0), degree(&[(0, 3)], Attack::Flips, 5), gap(&[0.0], &[0.0])] {
        assert!(Document::parse(&figure.svg()).is_ok());
    }
}

#[test]
fn references_share_the_colour_of_their_model() {
    let model =
        Compared { name: "RH-U".to_owned(), robust: vec![1.0, 0.5, 0.2], attack: Attack::Flips, trained_for: None };
    let other = Compared { name: "CE".to_owned(), ..model.clone() };
    let curve = |name: &str| (name.to_owned(), vec![(0.0, 1.0), (2.0, 0.3)]);
    let reference = Reference { name: "published".to_owned(), curves: vec![curve("ce"), curve("RCE")] };
    let text = comparison(&[model, other], Some(&reference)).svg();
    let svg = Document::parse(&text).unwrap();
    let lines: Vec<Node> = svg.descendants().filter(|node| node.attribute("class") == Some("line")).collect();
    let is_dotted = |node: &Node| node.attribute("stroke-linecap") == Some("round");
    let colour = |node: &Node| node.attribute("stroke").unwrap().to_owned();
    assert!(is_dotted(&lines[0]) && is_dotted(&lines[1]) && !is_dotted(&lines[2]));
    assert_eq!(colour(&lines[0]), colour(&lines[3]), "the model CE");
    assert!(colour(&lines[1]) != colour(&lines[2]) && colour(&lines[1]) != colour(&lines[3]));
    let names = texts(&svg);
    assert!(["RH-U", "CE", "RCE", "published"].iter().all(|name| names.contains(&(*name).to_owned())), "{names:?}");
    assert!(!names.contains(&"ce".to_owned()));
}

#[test]
fn what_fast_leaves_open_is_hatched() {
    let fast = Curves { robust: vec![1.0, 0.4, 0.0], nonrobust: vec![0.0, 0.2, 0.6], attack: Attack::Flips };
    let complete = Curves { robust: vec![1.0, 0.7, 0.3], nonrobust: vec![0.0, 0.3, 0.7], attack: Attack::Flips };
    let text = truth(&fast, &complete).svg();
    let svg = Document::parse(&text).unwrap();
    let hatched = |text: &str| {
        let svg = Document::parse(text).unwrap();
        svg.descendants().any(|node| node.attribute("class") == Some("area") && node.attribute("fill") == Some("none"))
    };
    assert!(hatched(&text));
    assert!(!texts(&svg).contains(&"undecided".to_owned()), "complete leaves nothing open");
    assert!(!hatched(&truth(&complete, &complete).svg()));
}

#[test]
fn no_gap_is_a_dot_at_zero() {
    let text = gap(&[0.0, 0.0, 0.5, 1.0], &[0.0, 0.0, 0.0, 0.2]).svg();
    let svg = Document::parse(&text).unwrap();
    let (left, top, _, bottom) = frame(&svg);
    let starts: Vec<(f64, f64)> = paths(&svg, "line").iter().map(|line| line[0]).collect();
    for (start, share) in starts.iter().zip([0.5, 0.75]) {
        assert!((start.0 - left).abs() < 0.011 && (start.1 - (bottom - share * (bottom - top))).abs() < 0.011);
    }
    let marks = svg.descendants().filter(|node| node.attribute("class") == Some("mark"));
    let at = |node: Node, side: &str| node.attribute(side).unwrap().parse::<f64>().unwrap();
    let marks: Vec<(f64, f64)> = marks.map(|node| (at(node, "cx"), at(node, "cy"))).collect();
    assert_eq!(marks, starts, "marks are exactly where the numbers are");
    assert!(texts(&svg).iter().any(|name| name.contains("no gap: 75 %")));
}

#[test]
fn many_nodes_stay_a_small_file() {
    let nodes: Vec<(f64, u32)> =
        (0..20_000u32).map(|node| (f64::from(node % 997) / 996.0, node * 7919 % 101)).collect();
    let text = purity(&nodes, Attack::Flips, 100).svg();
    assert!(text.len() < 700_000, "{} bytes", text.len());
    assert!(Document::parse(&text).is_ok());
}

#[test]
fn points_that_are_no_numbers_are_left_out() {
    let line = vec![(0.0, 0.5), (f64::NAN, 0.5), (1.0, f64::INFINITY), (2.0, f64::MAX), (3.0, 0.5)];
    let figure = Figure::new(Axis::new("x", 0.0, 3.0), Axis::new("y", 0.0, 1.0))
        .line(Line::new(line, Stroke::solid(palette::INK)));
    let text = figure.svg();
    let svg = Document::parse(&text).unwrap();
    assert_eq!(paths(&svg, "line")[0].len(), 3);
    assert!(figure.png(100.0).is_ok());
}

/// Width, height and the share of pixels that are not white.
fn look(png: &[u8]) -> (u32, u32, f64) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let inked =
        pixels[..info.buffer_size()].chunks_exact(3).filter(|pixel| pixel.iter().any(|&value| value < 250)).count();
    (info.width, info.height, inked as f64 / f64::from(info.width * info.height))
}

#[test]
fn pictures_have_the_size_asked_for_and_are_not_blank() {
    for (name, figure) in all("model") {
        let (width, height, inked) = look(&figure.png(150.0).unwrap());
        assert_eq!((width, height), (496, 343), "{name}: 84 and 58 mm at 150 dots per inch");
        assert!(inked > 0.01, "{name}: {inked}");
    }
}

#[test]
fn text_is_drawn_with_the_embedded_font() {
    let empty = |label: &str| Figure::new(Axis::new(label, 0.0, 1.0), Axis::new("", 0.0, 1.0));
    let (_, _, without) = look(&empty("").png(150.0).unwrap());
    let (_, _, with) = look(&empty("MMMMMMMMMMMM").png(150.0).unwrap());
    assert!(with > without + 0.002, "{with} {without}");
}

#[test]
fn the_same_figure_gives_the_same_bytes() {
    for ((name, first), (_, second)) in all("model").into_iter().zip(all("model")) {
        assert_eq!(first.svg(), second.svg(), "{name}");
        assert_eq!(first.png(60.0).unwrap(), second.png(60.0).unwrap(), "{name}");
    }
}

#[test]
fn impossible_sizes_are_refused() {
    for (width, height) in [(0.0, 60.0), (84.0, -1.0), (f64::NAN, 60.0), (84.0, f64::INFINITY), (29.0, 60.0)] {
        assert!(matches!(Size::new(width, height), Err(PlotError::Size { .. })), "{width} {height}");
    }
    let figure = certificates((None, &curves()), None, None);
    for resolution in [0.0, -300.0, f64::NAN, f64::INFINITY, 1e6] {
        assert!(matches!(figure.png(resolution), Err(PlotError::Pixels { .. })), "{resolution}");
    }
    let smallest = figure.size(Size::new(Size::MIN, Size::MIN).unwrap()).title(hostile());
    assert!(Document::parse(&smallest.svg()).is_ok());
    assert!(smallest.png(72.0).is_ok());
}
