//! The paper's certificate against the truth.

use super::{Area, Curves, Figure, Fill, Line, Stroke, palette, shares_by_budget, with_areas};

/// What the `fast` engine, the paper's certificate, proves of a model (dashed), over what is the case according to the
/// `complete` engine (areas): nodes between the dashed lines, hatched, are undecided with `fast`. Where `complete` decides
/// all nodes, the areas meet.
pub fn truth(fast: &Curves, complete: &Curves) -> Figure {
    let last = fast.last().max(complete.last());
    let (robust, rest) = (fast.robust_points(), fast.not_nonrobust_points());
    let dashed = Stroke::dashed(palette::INK).width(0.8);
    let open = Area::new(robust.clone(), rest.clone(), Fill::Hatched(palette::INK));
    let figure = with_areas(shares_by_budget("Nodes (%)", [complete.attack], last), complete);
    let (figure, proven) = (figure.line(Line::new(rest, dashed)), Line::new(robust, dashed));
    if fast.has_undecided() {
        figure.area(open.named("undecided with fast")).line(proven)
    } else {
        figure.line(proven.named("proven with fast"))
    }
}
