//! What follows from all runs: a verdict for each claim and place, who wins where, and how simulation compares.

use super::input::{Input, Site};
use super::score::{Score, scores};
use super::validation::{Check, checks};
use crate::compare::{Claim, Figure, Paper, Relation, judge, papers, standings};
use spanlock_records::record::finding::{Judgement, Standing, Verdict};
use spanlock_records::record::{Line, Panel};
use spanlock_records::stats::distinct;

/// Instead of a place, of what ran nowhere.
pub const NOWHERE: &str = "not run";

/// A claim, and the verdict for each place where its workload ran.
#[derive(Debug, Clone)]
pub struct Judged {
    /// The claim.
    pub claim: &'static Claim,
    /// The places and their verdicts; [`NOWHERE`] alone if the workload ran nowhere.
    pub verdicts: Vec<(String, Judgement)>,
}

/// The findings of a figure.
#[derive(Debug, Clone)]
pub struct OfFigure {
    /// The figure.
    pub figure: &'static Figure,
    /// Its panels in which any of its locks ran.
    pub panels: Vec<Panel>,
    /// What its paper says of it.
    pub claims: Vec<Judged>,
}

/// All findings.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Paper by paper, figure by figure.
    pub papers: Vec<(&'static Paper, Vec<OfFigure>)>,
    /// Place by place, the best of each family of locks.
    pub standings: Vec<(String, Vec<Standing>)>,
    /// Place by place, how often each lock leads.
    pub scores: Vec<(String, Vec<Score>)>,
    /// Simulated runs against measured ones.
    pub checks: Vec<Check>,
}

impl Findings {
    /// The findings of an input.
    #[must_use]
    pub fn of(input: &Input) -> Self {
        let papers = papers().iter().map(|paper| {
            let figures = paper.figures.iter();
            (
                paper,
                figures.map(|figure| of_figure(input, figure)).collect(),
            )
        });
        Self {
            papers: papers.collect(),
            standings: by_place(input, |site| standings(&site.dataset)),
            scores: by_place(input, |site| scores(&site.dataset)),
            checks: checks(input),
        }
    }

    /// Who leads where, and what becomes of the papers' claims, as lines of JSON.
    pub fn lines(self) -> impl Iterator<Item = Line> {
        let standings = self.standings.into_iter().flat_map(|(place, standings)| {
            let at = move |standing| Standing {
                place: Some(place.clone()),
                ..standing
            };
            standings.into_iter().map(at).map(Line::Standing)
        });
        let claims = self.papers.into_iter().flat_map(|(_, figures)| figures);
        let claims = claims.flat_map(|of| of.claims);
        let verdicts = claims.flat_map(|judged| judged.verdicts);
        let judged = verdicts.map(|(place, judgement)| {
            Line::Claim(Judgement {
                place: Some(place),
                ..judgement
            })
        });
        standings.chain(judged)
    }
}

/// What there is of each place, without the places of which there is nothing.
fn by_place<T>(input: &Input, of: impl Fn(&Site) -> Vec<T>) -> Vec<(String, Vec<T>)> {
    let sites = input.sites.iter();
    let all = sites.map(|site| (site.platform.to_string(), of(site)));
    all.filter(|(_, found)| !found.is_empty()).collect()
}

fn of_figure(input: &Input, figure: &'static Figure) -> OfFigure {
    let has = |panel: Panel| figure.places.iter().any(|place| place.has(panel));
    let is_drawn = |lock: &str| figure.locks().any(|drawn| drawn == lock);
    let points = input.sites.iter().flat_map(|site| site.dataset.points());
    let points = points.filter(|point| has(point.panel) && is_drawn(&point.lock.name));
    OfFigure {
        figure,
        panels: distinct(points.map(|point| point.panel)),
        claims: figure
            .claims
            .iter()
            .map(|claim| judged(claim, input))
            .collect(),
    }
}

fn judged(claim: &'static Claim, input: &Input) -> Judged {
    let ran = |site: &&Site| {
        site.dataset
            .points()
            .any(|point| claim.place.has(point.panel))
    };
    let verdicts = input.sites.iter().filter(ran).map(|site| {
        let judgement = judge(claim, &site.dataset, site.platform.cores());
        (site.platform.to_string(), judgement)
    });
    let mut verdicts: Vec<_> = verdicts.collect();
    if verdicts.is_empty() {
        let because = match claim.relation {
            Relation::Unmeasured(why) => why,
            _ => "no runs of it were given",
        };
        let judgement = Judgement {
            source: claim.source.to_owned(),
            says: claim.says.to_owned(),
            verdict: Verdict::CannotTell,
            because: because.to_owned(),
            place: None,
        };
        verdicts.push((NOWHERE.to_owned(), judgement));
    }
    Judged { claim, verdicts }
}

impl OfFigure {
    /// The claims that no place decides, and the others.
    #[must_use]
    pub fn open_and_decided(&self) -> (Vec<&Judged>, Vec<&Judged>) {
        self.claims.iter().partition(|judged| {
            let mut verdicts = judged.verdicts.iter();
            verdicts.all(|(_, judgement)| judgement.verdict == Verdict::CannotTell)
        })
    }
}
