//! Writes many changes into a source file at once, each of which is made where `crate::changes::made` says so when the program runs: so
//! that a program is built once, and not for each change.
//!
//!     nodeproof-weave FILE CHANGES FIRST
//!
//! CHANGES is what `cargo mutants --list --json` lists of this file, as JSON; the first one has the number FIRST, and `null` stands for one
//! that is left out. The file is printed, and marks in it say where the text of each change begins and ends: `/*<7*/` and `/*7>*/`. Numbers of
//! changes that cannot be made in this way go to stderr: those of constants, of functions that return `impl Trait`, and of the arms of
//! a match that need all of them.

use std::fmt::Write;
use std::ops::Range;

use anyhow::{Context, Result, bail};
use proc_macro2::LineColumn;
use serde::Deserialize;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A change as cargo-mutants describes it.
#[derive(Deserialize)]
struct Change {
    genre: String,
    replacement: String,
    span: Lines,
}

/// Lines and columns, both from 1 on.
#[derive(Deserialize, Clone, Copy)]
struct Lines {
    start: Place,
    end: Place,
}

#[derive(Deserialize, Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

/// A source file, and where its lines begin.
struct Source {
    text: String,
    lines: Vec<usize>,
}

impl Source {
    fn new(text: String) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(place, _)| place + 1)).collect();
        Self { text, lines }
    }

    /// The byte at a line from 1 on and a column from 0 on, counted in characters.
    fn byte(&self, line: usize, column: usize) -> usize {
        let start = self.lines[line - 1];
        let in_line = self.text[start..].char_indices().nth(column);
        in_line.map_or(self.text.len(), |(place, _)| start + place)
    }

    fn bytes(&self, of: &impl Spanned) -> Range<usize> {
        let at = |place: LineColumn| self.byte(place.line, place.column);
        at(of.span().start())..at(of.span().end())
    }

    fn changed(&self, of: &Change) -> Range<usize> {
        let at = |place: Place| self.byte(place.line, place.column - 1);
        at(of.span.start)..at(of.span.end)
    }
}

/// An expression whose value is another one if a change is made, or a place where something is put in that makes it.
struct Site {
    range: Range<usize>,
    /// Numbers and texts.
    instead: Vec<(usize, String)>,
    /// What is put in.
    inserted: String,
}

/// Finds the sites of changes.
struct Finder<'s> {
    source: &'s Source,
    changes: Vec<(usize, Range<usize>, &'s Change)>,
    sites: Vec<Site>,
}

impl Finder<'_> {
    /// Has the changes of this kind that begin within `place` be made in `site`.
    fn add(&mut self, genre: &str, place: &Range<usize>, site: Range<usize>) {
        let (here, others) = std::mem::take(&mut self.changes)
            .into_iter()
            .partition(|(_, range, change)| change.genre == genre && place.contains(&range.start));
        self.changes = others;
        let text = &self.source.text;
        let instead = |(number, range, change): (usize, Range<usize>, &Change)| {
            let after = &text[range.end..site.end];
            // What follows a field that is left out is a comma, perhaps, and that goes with it.
            let after = if genre == "StructField" { after.trim_start().trim_start_matches(',') } else { after };
            (number, [&text[site.start..range.start], &change.replacement, after].concat())
        };
        let instead: Vec<_> = Vec::into_iter(here).map(instead).collect();
        if instead.is_empty() {
            return;
        }
        match self.sites.iter_mut().find(|other| other.range == site && other.inserted.is_empty()) {
            Some(other) => other.instead.extend(instead),
            None => self.sites.push(Site { range: site, instead, inserted: String::new() }),
        }
    }

    /// Puts in what makes the changes of this kind at such places.
    fn insert(
        &mut self,
        is_here: impl Fn(&Change, &Range<usize>) -> bool,
        at: usize,
        text: impl Fn(usize, &Change) -> String,
    ) {
        let (here, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.changes).into_iter().partition(|(_, range, change)| is_here(change, range));
        self.changes = others;
        let inserted: String = here.into_iter().map(|(number, _, change)| text(number, change)).collect();
        if !inserted.is_empty() {
            self.sites.push(Site { range: at..at, instead: Vec::new(), inserted });
        }
    }

    /// What a function returns has one type, which a change of it may not have where that type has no name.
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if matches!(&signature.output, syn::ReturnType::Type(_, of) if matches!(**of, syn::Type::ImplTrait(_))) {
            return;
        }
        let body = self.source.bytes(block);
        let is_here = |change: &Change, range: &Range<usize>| {
            change.genre == "FnValue" && body.start <= range.start && range.end <= body.end
        };
        let early = |number: usize, change: &Change| {
            format!(" if {} {{ return /*<{number}*/{}/*{number}>*/; }}", made(number), change.replacement)
        };
        self.insert(is_here, body.start + 1, early);
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    // Functions within functions first: what is within both is the inner one's.
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        visit::visit_item_fn(self, item);
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        visit::visit_impl_item_fn(self, item);
        self.function(&item.sig, &item.block);
    }

    // Nothing can be asked while a constant is computed.
    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}

    fn visit_expr_binary(&mut self, of: &'a syn::ExprBinary) {
        self.add("BinaryOperator", &self.source.bytes(&of.op), self.source.bytes(of));
        visit::visit_expr_binary(self, of);
    }

    fn visit_expr_unary(&mut self, of: &'a syn::ExprUnary) {
        self.add("UnaryOperator", &self.source.bytes(&of.op), self.source.bytes(of));
        visit::visit_expr_unary(self, of);
    }

    fn visit_expr_struct(&mut self, of: &'a syn::ExprStruct) {
        for field in &of.fields {
            self.add("StructField", &self.source.bytes(field), self.source.bytes(of));
        }
        visit::visit_expr_struct(self, of);
    }

    fn visit_expr_match(&mut self, of: &'a syn::ExprMatch) {
        let is_any = |arm: &syn::Arm| match &arm.pat {
            _ if arm.guard.is_some() => false,
            syn::Pat::Wild(_) => true,
            syn::Pat::Ident(name) => name.ident.to_string().starts_with(char::is_lowercase),
            _ => false,
        };
        let last = of.arms.iter().position(is_any).unwrap_or(0);
        for (place, arm) in of.arms.iter().enumerate() {
            let (start, pattern) = (self.source.bytes(arm).start, self.source.bytes(&arm.pat));
            // What no arm behind it takes cannot be left to these.
            let is_here = |change: &Change, range: &Range<usize>| {
                change.genre == "MatchArm" && range.start == start && place < last
            };
            let Some((_, guard)) = &arm.guard else {
                self.insert(is_here, pattern.end, |number, _| format!(" if !{}", made(number)));
                continue;
            };
            let guard = self.source.bytes(guard);
            self.insert(is_here, guard.start, |number, _| format!("!{} && (", made(number)));
            if self.sites.last().is_some_and(|site| site.range == (guard.start..guard.start)) {
                let inserted = ")".to_string();
                self.sites.push(Site { range: guard.end..guard.end, instead: Vec::new(), inserted });
            }
            self.add("MatchArmGuard", &guard, guard.clone());
        }
        visit::visit_expr_match(self, of);
    }
}

fn made(number: usize) -> String {
    format!("crate::changes::made({number})")
}

/// The text of a range with its sites, which are sorted, outer ones first.
fn woven(text: &str, range: Range<usize>, mut sites: &[Site]) -> String {
    let (mut out, mut from) = (String::new(), range.start);
    while let Some((site, rest)) = sites.split_first() {
        let within = rest.iter().take_while(|other| other.range.start < site.range.end).count();
        let (within, behind) = rest.split_at(within);
        out += &text[from..site.range.start];
        out += &site.inserted;
        from = site.range.end;
        sites = behind;
        if !site.instead.is_empty() {
            out.push('(');
            for (number, instead) in &site.instead {
                let _ = write!(out, "if {} {{ /*<{number}*/{instead}/*{number}>*/ }} else ", made(*number));
            }
            let _ = write!(out, "{{ {} }})", woven(text, site.range.clone(), within));
        }
    }
    out + &text[from..range.end]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, changes, first] = &arguments[..] else { bail!("usage: nodeproof-weave FILE CHANGES FIRST") };
    let source = Source::new(std::fs::read_to_string(file).with_context(|| file.clone())?);
    let changes: Vec<Option<Change>> = serde_json::from_str(&std::fs::read_to_string(changes)?)?;
    let numbered = changes.iter().zip(first.parse::<usize>()?..);
    let numbered = numbered.filter_map(|(change, number)| Some((number, change.as_ref()?)));
    let changes = numbered.map(|(number, change)| (number, source.changed(change), change)).collect();
    let mut finder = Finder { source: &source, changes, sites: Vec::new() };
    finder.visit_file(&syn::parse_file(&source.text)?);
    for (number, ..) in &finder.changes {
        eprintln!("{number}");
    }
    let mut sites = finder.sites;
    sites.sort_by_key(|site| (site.range.start, site.inserted.is_empty(), std::cmp::Reverse(site.range.end)));
    print!("{}", woven(&source.text, 0..source.text.len(), &sites));
    Ok(())
}
