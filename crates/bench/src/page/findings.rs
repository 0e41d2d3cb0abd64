//! What follows from all runs: a verdict for each claim and place, who wins where, and what simulation is worth.

use super::figure::{FIGURES, Figure};
use super::input::{Ground, Input};
use super::score::{Score, scores};
use super::validation::{self, Check};
use crate::compare::{
    Claim, Judgement, Panel, Relation, Standing, Verdict, claims, distinct, judge, standings,
};

/// A claim, and what runs say of it, place by place.
#[derive(Debug, Clone)]
pub struct Ruling {
    /// The claim.
    pub claim: &'static Claim,
    /// Where, and what they say there.
    pub verdicts: Vec<(String, Judgement)>,
}

/// A figure, as far as there are runs.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The figure.
    pub figure: &'static Figure,
    /// Its panels that were run.
    pub panels: Vec<Panel>,
    /// What its paper says of it.
    pub rulings: Vec<Ruling>,
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Findings {
    /// Figure by figure.
    pub figures: Vec<Shown>,
    /// Place by place, the best of each family of locks.
    pub standings: Vec<(String, Vec<Standing>)>,
    /// Place by place, who leads how often: range locks, reader-writer locks.
    pub scores: Vec<(String, Vec<Score>)>,
    /// Simulated runs against real ones.
    pub checks: Vec<Check>,
}

impl Findings {
    /// Of an input.
    #[must_use]
    pub fn of(input: &Input) -> Self {
        let panels = input.panels();
        let shown = |figure: &'static Figure| {
            let has = |panel: &&Panel| figure.places.iter().any(|place| place.has(**panel));
            let here = panels.iter().filter(has).copied();
            let here = here.filter(|panel| any_lock(input, figure, *panel));
            let its = claims().filter(|claim| claim.source == figure.source);
            Shown {
                figure,
                panels: here.collect(),
                rulings: its.map(|claim| ruling(claim, input)).collect(),
            }
        };
        let stages = input.stages.iter();
        Self {
            figures: FIGURES.iter().map(shown).collect(),
            standings: stages
                .map(|stage| (stage.ground.to_string(), standings(&stage.field)))
                .filter(|(_, standings)| !standings.is_empty())
                .collect(),
            scores: input
                .stages
                .iter()
                .map(|stage| (stage.ground.to_string(), scores(stage)))
                .filter(|(_, scores)| !scores.is_empty())
                .collect(),
            checks: validation::checks(input),
        }
    }

    /// The figures that nothing was run for.
    #[must_use]
    pub fn left_out(&self) -> Vec<&'static Figure> {
        let empty = self.figures.iter().filter(|shown| shown.panels.is_empty());
        empty.map(|shown| shown.figure).collect()
    }

    /// How many claims hold, fail and cannot be told, of a paper in one place.
    #[must_use]
    pub fn count(&self, paper: &str, ground: &str) -> [usize; 3] {
        let shown = self
            .figures
            .iter()
            .filter(|shown| shown.figure.paper() == paper);
        let verdicts = shown
            .flat_map(|shown| &shown.rulings)
            .flat_map(|one| &one.verdicts);
        let mut counts = [0; 3];
        for (_, judgement) in verdicts.filter(|(place, _)| place == ground) {
            counts[match judgement.verdict {
                Verdict::Holds => 0,
                Verdict::Fails => 1,
                Verdict::CannotTell => 2,
            }] += 1;
        }
        counts
    }

    /// The places that verdicts are of.
    #[must_use]
    pub fn places(&self) -> Vec<&str> {
        let rulings = self.figures.iter().flat_map(|shown| &shown.rulings);
        let verdicts = rulings.flat_map(|ruling| &ruling.verdicts);
        distinct(verdicts.map(|(place, _)| place.as_str()))
    }
}

/// Whether any lock of a figure ran in a panel.
fn any_lock(input: &Input, figure: &Figure, panel: Panel) -> bool {
    let locks = input
        .stages
        .iter()
        .flat_map(|stage| stage.field.locks(panel));
    locks.into_iter().any(|lock| figure.locks.contains(&lock))
}

/// By each place where what it speaks of was run.
fn ruling(claim: &'static Claim, input: &Input) -> Ruling {
    let was_run = |ground: &Ground| {
        let stage = input.stages.iter().find(|stage| stage.ground == *ground);
        let panels = stage.map(|stage| stage.field.panels()).unwrap_or_default();
        panels.into_iter().any(|panel| claim.place.has(panel))
    };
    let stages = input.stages.iter().filter(|stage| was_run(&stage.ground));
    let mut verdicts: Vec<_> = stages
        .map(|stage| {
            let judgement = judge(claim, &stage.field, stage.ground.cores());
            (stage.ground.to_string(), judgement)
        })
        .collect();
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
        };
        verdicts.push((NOWHERE.to_owned(), judgement));
    }
    Ruling { claim, verdicts }
}

/// Instead of a place, of what was not run.
pub const NOWHERE: &str = "not run";

/// How many that are level with the leader have names in a cell.
const NAMED: usize = 4;

/// Who leads, and who is level: for a cell.
#[must_use]
pub fn leaders(standing: &Standing) -> String {
    let level = standing.families.iter().filter(|placed| !placed.behind);
    let names: Vec<_> = level.map(|placed| placed.lock.as_str()).collect();
    match names.split_first() {
        None => "-".to_owned(),
        Some((leader, [])) => (*leader).to_owned(),
        Some((leader, rest)) if rest.len() <= NAMED => {
            format!("{leader}, level with {}", rest.join(", "))
        }
        Some((leader, rest)) => {
            let (named, more) = rest.split_at(NAMED - 1);
            format!(
                "{leader}, level with {} and {} more",
                named.join(", "),
                more.len()
            )
        }
    }
}

/// What becomes of the order of locks on varied machines, one text a machine.
#[must_use]
pub fn rankings(input: &Input) -> Vec<(&str, String)> {
    let swept = input
        .sources
        .iter()
        .filter(|source| !source.rankings.is_empty());
    swept
        .map(|source| {
            let lines = source.rankings.iter().map(|ranking| format!("{ranking}\n"));
            (
                source.simulated.as_deref().unwrap_or_default(),
                lines.collect(),
            )
        })
        .collect()
}

/// What was given, in a sentence.
#[must_use]
pub fn lead(input: &Input) -> String {
    let runs: usize = input.sources.iter().map(|source| source.runs).sum();
    let places: Vec<_> = input
        .stages
        .iter()
        .map(|stage| stage.ground.to_string())
        .collect();
    format!(
        "{runs} runs by {} commands; {}. Numbers are medians over equal runs, and what is within the spreads is a tie. \
         Simulated throughput is in virtual time, and of use for comparisons only.",
        input.sources.len(),
        places.join("; ")
    )
}

/// What a reader should know of the input before the findings.
#[must_use]
pub fn notes(input: &Input, findings: &Findings) -> Vec<String> {
    let mut notes = Vec::new();
    let commits = distinct(
        input
            .sources
            .iter()
            .map(|source| source.provenance.commit.as_str()),
    );
    if commits.len() > 1 {
        notes.push(format!(
            "The runs are of different commits: {}.",
            commits.join(", ")
        ));
    }
    let left_out = findings.left_out();
    if !left_out.is_empty() {
        let names: Vec<_> = left_out.iter().map(|figure| figure.source).collect();
        notes.push(format!(
            "Left out, as no runs of them were given: {}.",
            names.join("; ")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::FIGURES;
    use crate::compare::claims;
    use std::collections::HashSet;

    #[test]
    fn each_claim_is_of_a_figure_and_figures_are_distinct() {
        let sources: HashSet<_> = FIGURES.iter().map(|figure| figure.source).collect();
        assert_eq!(sources.len(), FIGURES.len());
        for claim in claims() {
            assert!(sources.contains(claim.source), "{}", claim.source);
        }
        let anchors: HashSet<_> = FIGURES.iter().map(|figure| figure.anchor()).collect();
        assert_eq!(anchors.len(), FIGURES.len());
    }
}
