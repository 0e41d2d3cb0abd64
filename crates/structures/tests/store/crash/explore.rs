//! Runs a sequence of operations, crashes it at every moment, and judges what is recovered.
//!
//! After a loss of power with persistent memory, and after a killed process: the operations that had returned are
//! there, and the one that was under way has happened or not. After a loss of power with a page cache: the directories
//! are as after some operation since the last sync, and each page of a file is as it was at some moment since then.
//!
//! A recovery that has ended is repeated with the same result. One that is crashed with a page cache may have completed
//! a page of data that it had dropped, with zeros of a log page of its own in place of a sector that was lost. Then the
//! next recovery takes that page, and what it finds is judged as what the first one found.

use super::images::{Crash, Replay};
use crate::common::{Dump, Model, Op, Seen, dump, perform};
use crate::store::medium::{Event, Simulated};
use crate::store::{Cause, Durability, Durable, Geometry, Options, PAGE, Store, check, make};
use fastrand::Rng;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

/// Pages of a store for crashes.
const PAGES: usize = 64;

/// What is counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    /// Moments of crashes.
    pub moments: usize,
    /// Images, and how many differ from each other.
    pub images: usize,
    pub states: usize,
    /// Recoveries that were crashed themselves.
    pub second: usize,
}

/// How a sequence is explored.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub crash: Crash,
    pub durability: Durability,
    /// Images of a moment, besides none and all.
    pub images: usize,
    /// Moments that are tried are these apart: 1 for all.
    pub apart: usize,
    pub seed: u64,
}

impl Plan {
    pub fn new(crash: Crash, images: usize, seed: u64) -> Self {
        let (durability, apart) = (Durability::Process, 1);
        Self {
            crash,
            durability,
            images,
            apart,
            seed,
        }
    }

    fn durable(&self) -> Durable {
        match self.crash {
            Crash::Lines => Durable::AtFence,
            Crash::Sectors | Crash::Kill => Durable::AtSync,
        }
    }

    /// Opens what an image contains.
    fn open(&self, image: Vec<u8>) -> Result<(Arc<Simulated>, Store<Arc<Simulated>>), String> {
        let medium = Arc::new(Simulated::new(image, self.durable()));
        let options = Options {
            durability: self.durability,
            stocks: 1,
            now: || 1_000,
            ..Options::default()
        };
        match Store::open(Arc::clone(&medium), options) {
            // What one thread leaves when it is killed does not look like damage.
            Ok((_, recovered))
                if self.crash == Crash::Kill && recovered.cause() > Some(Cause::Crash) =>
            {
                Err(format!("the opening says {recovered}"))
            }
            Ok((store, _)) => Ok((medium, store)),
            Err(error) => Err(format!("it is not opened: {error}")),
        }
    }
}

/// An empty store, for a sequence to begin with.
fn empty(plan: &Plan) -> Vec<u8> {
    let medium = Simulated::new(vec![0; PAGES * PAGE], plan.durable());
    let geometry = Geometry {
        inodes: Some(64),
        id: Some(7),
    };
    make(&medium, &geometry).expect("it fits");
    medium.content()
}

/// Runs a sequence whose first operations, `before`, are done and durable when it begins.
pub fn explore(plan: &Plan, before: &[Op], ops: &[Op]) -> Result<Counts, String> {
    let (medium, store) = plan.open(empty(plan))?;
    let mut model = Model::default();
    for op in before {
        expect_equal(&store, &mut model, op)?;
    }
    store.sync().map_err(|error| error.to_string())?;
    let base = medium.content();
    drop(store);
    let (medium, store) = plan.open(base.clone())?;
    let mut models = vec![model.clone()];
    for (number, op) in ops.iter().enumerate() {
        medium.mark([0, number as u64]);
        expect_equal(&store, &mut model, op)?;
        medium.mark([1, number as u64]);
        models.push(model.clone());
    }
    let mut explorer = Explorer {
        plan,
        ops,
        models,
        rng: Rng::with_seed(plan.seed),
        seen: HashSet::new(),
        counts: Counts::default(),
    };
    explorer.all_moments(base, &medium.take_events())?;
    Ok(explorer.counts)
}

fn expect_equal(store: &Store<Arc<Simulated>>, model: &mut Model, op: &Op) -> Result<(), String> {
    let (done, expected) = (perform(store, op), model.perform(op));
    match done == expected {
        true => Ok(()),
        false => Err(format!("{op:?} returned {done}, and the model {expected}")),
    }
}

struct Explorer<'a> {
    plan: &'a Plan,
    ops: &'a [Op],
    /// After no operation, after the first, and so on.
    models: Vec<Model>,
    rng: Rng,
    seen: HashSet<u64>,
    counts: Counts,
}

/// Where a crash happens.
#[derive(Debug, Clone, Copy, Hash)]
struct Moment {
    /// Operations that have returned, and that have begun.
    returned: usize,
    begun: usize,
    /// Operations that had returned before the last sync.
    synced: usize,
}

impl Explorer<'_> {
    fn all_moments(&mut self, base: Vec<u8>, events: &[Event]) -> Result<(), String> {
        let mut replay = Replay::new(self.plan.crash, base);
        let mut moment = Moment {
            returned: 0,
            begun: 0,
            synced: 0,
        };
        let mut syncing = 0;
        let mut candidates = 0;
        for (at, event) in events.iter().enumerate() {
            let worth = match event {
                Event::Write { .. } => self.plan.crash == Crash::Kill,
                Event::Flush { .. } | Event::SyncBegins { .. } => false,
                // Before it: what it is to make durable may be lost. What is durable after it is so before the next.
                Event::Fence { .. } => self.plan.crash == Crash::Lines,
                Event::SyncEnds { .. } | Event::Mark { .. } => true,
            };
            match event {
                Event::SyncBegins { .. } => syncing = moment.returned,
                Event::SyncEnds { .. } => moment.synced = syncing,
                Event::Mark {
                    what: [0, number], ..
                } => moment.begun = *number as usize + 1,
                Event::Mark {
                    what: [_, number], ..
                } => moment.returned = *number as usize + 1,
                _ => {}
            }
            let sync = matches!(event, Event::SyncEnds { .. });
            if sync {
                // A sync that has not returned promises nothing.
                let before = Moment {
                    synced: 0,
                    ..moment
                };
                self.maybe_crash(&mut candidates, &replay, before, events, at)?;
            }
            if worth && !sync {
                self.maybe_crash(&mut candidates, &replay, moment, events, at)?;
            }
            replay.step(event);
        }
        self.crash(&replay, moment, events, events.len())
    }

    fn maybe_crash(
        &mut self,
        candidates: &mut usize,
        replay: &Replay,
        moment: Moment,
        events: &[Event],
        at: usize,
    ) -> Result<(), String> {
        *candidates += 1;
        match candidates.is_multiple_of(self.plan.apart) {
            true => self.crash(replay, moment, events, at),
            false => Ok(()),
        }
    }

    fn crash(
        &mut self,
        replay: &Replay,
        moment: Moment,
        events: &[Event],
        at: usize,
    ) -> Result<(), String> {
        self.counts.moments += 1;
        let mut images = Vec::new();
        replay.images(&mut self.rng, self.plan.images, |image| images.push(image));
        for image in images {
            self.counts.images += 1;
            let mut hasher = DefaultHasher::new();
            (&image, moment).hash(&mut hasher);
            if self.seen.insert(hasher.finish()) {
                self.counts.states += 1;
                self.judge(image, moment)
                    .map_err(|what| self.explain(&what, moment, events, at))?;
            }
        }
        Ok(())
    }

    fn judge(&mut self, image: Vec<u8>, moment: Moment) -> Result<(), String> {
        let plan = self.plan;
        let (medium, store) = plan.open(image.clone())?;
        let recovered = dump(&store)?;
        self.allowed(&recovered, moment)?;
        // One in eight, since this takes several times as long.
        if self.counts.states.is_multiple_of(8) {
            let events = medium.take_events();
            drop(store);
            self.recover_again(image, &events, medium.content(), &recovered)?
                .iter()
                .try_for_each(|found| self.allowed(found, moment))
                .map_err(|what| format!("after a crash of the recovery: {what}"))?;
        }
        Ok(())
    }

    /// Recovery changes nothing more when it is repeated. Then it is crashed, and the store is used. Returns what is
    /// recovered after a crash of the recovery.
    fn recover_again(
        &mut self,
        image: Vec<u8>,
        events: &[Event],
        after: Vec<u8>,
        recovered: &Dump,
    ) -> Result<Vec<Dump>, String> {
        let (medium, store) = self
            .plan
            .open(after)
            .map_err(|error| format!("after recovery: {error}"))?;
        if &dump(&store)? != recovered {
            return Err("after recovery: something else is recovered".to_owned());
        }
        let mut replay = Replay::new(self.plan.crash, image);
        let mut images = Vec::new();
        for event in events {
            if matches!(event, Event::Fence { .. } | Event::SyncEnds { .. }) {
                replay.images(&mut self.rng, 2, |image| images.push(image));
            }
            replay.step(event);
        }
        let mut again = Vec::new();
        for image in images {
            self.counts.second += 1;
            let opened = self.plan.open(image).and_then(|(_, store)| dump(&store));
            again.push(opened.map_err(|error| format!("after a crash of the recovery: {error}"))?);
        }
        if self.plan.crash != Crash::Sectors && again.iter().any(|found| found != recovered) {
            return Err("after a crash of the recovery: something else is recovered".to_owned());
        }
        let content = |text: &[u8]| Seen::File(Rc::new(text.to_vec()), 1);
        let file = store
            .create("/new", 0o644)
            .map_err(|error| error.to_string())?;
        file.write_at(&[8; 5000], 0)
            .map_err(|error| error.to_string())?;
        drop(file);
        let mut expected = recovered.clone();
        expected.insert("/new".to_owned(), content(&[8; 5000]));
        store.close().map_err(|error| error.to_string())?;
        let report = check(&medium).map_err(|error| error.to_string())?;
        if !report.findings.is_empty() {
            return Err(format!("after recovery and use: {:?}", report.findings));
        }
        let (_, store) = self.plan.open(medium.content())?;
        match dump(&store)? == expected {
            true => Ok(again),
            false => Err("after recovery and use: something else is there".to_owned()),
        }
    }

    fn allowed(&self, found: &Dump, moment: Moment) -> Result<(), String> {
        let models = |range: RangeInclusive<usize>| self.models[range].iter();
        let fits = match self.plan.crash {
            Crash::Lines | Crash::Kill => {
                models(moment.returned..=moment.begun).any(|model| &model.dump() == found)
            }
            Crash::Sectors => {
                let possible: Vec<_> = models(moment.synced..=moment.begun).collect();
                possible
                    .iter()
                    .any(|model| is_mixed(found, model, &possible))
            }
        };
        match fits {
            true => Ok(()),
            false => Err(format!("this is recovered:\n{}", describe(found))),
        }
    }

    fn explain(&self, what: &str, moment: Moment, events: &[Event], at: usize) -> String {
        let range = match self.plan.crash {
            Crash::Sectors => moment.synced..=moment.begun,
            _ => moment.returned..=moment.begun,
        };
        let expected: Vec<_> = self.models[range]
            .iter()
            .map(|model| describe(&model.dump()))
            .collect();
        let steps: Vec<_> = events[at.saturating_sub(16)..at]
            .iter()
            .map(brief)
            .collect();
        format!(
            "{:?}: {what}\nexpected one of, or a mixture:\n{}\noperations: {:?}\n{} of them had returned, {} had begun, and \
             the last sync was after {}\nthe last steps before the crash:\n{}",
            self.plan.crash,
            expected.join("or\n"),
            &self.ops[moment.begun.saturating_sub(6)..moment.begun],
            moment.returned,
            moment.begun,
            moment.synced,
            steps.join("\n")
        )
    }
}

/// Whether the names are those of this model, and each page is as in one of the others.
fn is_mixed(found: &Dump, names: &Model, others: &[&Model]) -> bool {
    let expected = names.dump();
    found.len() == expected.len()
        && found
            .iter()
            .zip(&expected)
            .all(|((path, seen), (other, expected))| {
                path == other
                    && match (seen, expected) {
                        (Seen::Directory, Seen::Directory) => true,
                        (Seen::File(content, links), Seen::File(_, expected)) => {
                            let versions: Vec<_> = others
                                .iter()
                                .filter_map(|model| model.version(names, path))
                                .collect();
                            links == expected && is_mixed_content(content, &versions)
                        }
                        _ => false,
                    }
            })
}

fn is_mixed_content(content: &[u8], versions: &[Rc<Vec<u8>>]) -> bool {
    let page_of = |version: &[u8], number: usize, length: usize| {
        let mut page = vec![0; length];
        let begin = (number * PAGE).min(version.len());
        let end = (number * PAGE + length).min(version.len());
        page[..end - begin].copy_from_slice(&version[begin..end]);
        page
    };
    versions
        .iter()
        .any(|version| version.len() == content.len())
        && content.chunks(PAGE).enumerate().all(|(number, page)| {
            let mut pages = versions
                .iter()
                .map(|version| page_of(version, number, page.len()));
            pages.any(|version| version == page)
        })
}

/// A content in a few words.
fn describe(dump: &Dump) -> String {
    let line = |(path, seen): (&String, &Seen)| match seen {
        Seen::Directory => format!("  {path}/\n"),
        Seen::File(content, links) => {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            let (length, hash) = (content.len(), hasher.finish() & 0xFFFF);
            format!("  {path}: {length} bytes, hash {hash:04x}, {links} names\n")
        }
    };
    dump.iter().map(line).collect()
}

/// A step in a few words.
pub fn brief(event: &Event) -> String {
    match event {
        Event::Write { thread, at, bytes } => {
            format!(
                "  thread {thread}: write page {}, byte {}: {} bytes",
                at / 4096,
                at % 4096,
                bytes.len()
            )
        }
        Event::Flush { thread, at, bytes } => {
            format!(
                "  thread {thread}: flush page {}, byte {}: {bytes} bytes",
                at / 4096,
                at % 4096
            )
        }
        Event::Fence { thread } => format!("  thread {thread}: fence"),
        Event::SyncBegins { thread } => format!("  thread {thread}: a sync begins"),
        Event::SyncEnds { thread } => format!("  thread {thread}: the sync ends"),
        Event::Mark { thread, what } => format!("  thread {thread}: mark {what:?}"),
    }
}
