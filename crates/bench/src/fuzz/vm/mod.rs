//! The work on address spaces: random operations by all threads, and a search for an order in which one thread could
//! have done them with the same results (linearisability).

mod sequential;

use crate::fuzz::crew::{Work, Worker};
use crate::fuzz::{Case, Lock, Run};
use fastrand::Rng;
use prim_sim::mark;
use sequential::block::Block;
use sequential::model::Model;
use sequential::step::{BASE, PAGES, Step, layout, on_model, on_space};
use spanlock_records::trial::lock::Role;
use spanlock_structures_sim::vm::{
    Access, AddressSpace, Flags, Limits, Mapping, PAGE, PageTable, Placement, Protection,
    RawRangeLock, Relocation,
};
use spanlock_testkit::history::{self, History};
use spanlock_workbench_sim::vm::variants::{self, Table, Variant};

/// All variants.
pub(crate) fn variants() -> Vec<Lock> {
    let mut rows = Rows(Vec::new());
    variants::all(&mut rows);
    rows.0
}

struct Rows(Vec<Lock>);

impl Table for Rows {
    fn variant<L: variants::Lock>(&mut self, variant: Variant, make: fn() -> L) {
        // Waiting requests of the tree lock spin without end, as the kernel's would.
        let is_tree = variant.name.starts_with("tree");
        let role = if is_tree {
            Role::Baseline
        } else {
            Role::Library
        };
        let lock = Lock::new(variant.name, role, move |case| run(variant, make, case));
        self.0.push(lock);
    }
}

fn run<L: RawRangeLock + Send + Sync + 'static>(
    variant: Variant,
    make: fn() -> L,
    case: &Case,
) -> Run {
    case.run(move |rng| {
        let limits = match rng.u32(..3) {
            0 => Limits {
                areas: 8,
                data: 12,
                ..Limits::default()
            },
            _ => Limits::default(),
        };
        let builder = AddressSpace::builder()
            .layout(layout())
            .limits(limits)
            .refinement(variant.refinement);
        Resource {
            space: builder.recorded().build(make(), PageTable::new()),
            limits,
            history: History::default(),
        }
    })
}

/// A space, and what happened to it.
struct Resource<L: RawRangeLock> {
    space: AddressSpace<L>,
    limits: Limits,
    history: History<Model>,
}

impl history::Model for Model {
    type Operation = Step;
    type Outcome = String;
    type State = (Vec<Block>, u64);

    fn apply(&mut self, step: &Step) -> String {
        on_model(self, step)
    }

    fn state(&self) -> Self::State {
        Self::state(self)
    }
}

impl<L: RawRangeLock + Send + Sync + 'static> Work for Resource<L> {
    fn operate(worker: &mut Worker<'_, Self>) {
        let step = random(&mut worker.rng);
        worker.perform(step);
    }

    fn act_in_concert(worker: &mut Worker<'_, Self>, number: usize) {
        worker.gather();
        if number == 0 {
            worker.perform(Step::Maps);
            let resource = worker.resource();
            let model = Model::new(layout(), resource.limits);
            let explained = resource.history.explained(model);
            assert_eq!(
                resource.space.pages(),
                explained.pages(),
                "pages are counted wrongly"
            );
            assert_eq!(
                resource.space.areas(),
                explained.blocks.len() as u64,
                "areas are counted wrongly"
            );
        }
    }
}

impl<L: RawRangeLock + Send + Sync + 'static> Worker<'_, Resource<L>> {
    fn perform(&self, step: Step) {
        let Resource { space, history, .. } = self.resource();
        mark(format!("begins {step:x?}"));
        let number = history.begin(step.clone());
        let result = on_space(space, &step);
        mark(format!("has {result} of {step:x?}"));
        history.end(number, result);
    }
}

/// An operation on the few pages of the space.
fn random(rng: &mut Rng) -> Step {
    let at = BASE + rng.u64(..PAGES) * PAGE;
    let length = rng.u64(1..10) * PAGE;
    let some = [
        Protection::READ_WRITE,
        Protection::READ_WRITE,
        Protection::NONE,
        Protection::READ,
    ];
    let protection = rng.choice(some).expect("some");
    match rng.u32(..20) {
        0..4 => {
            let grows = rng.u32(..8) == 0;
            let flags = if grows {
                Flags::GROWS_DOWN | Flags::STACK
            } else {
                Flags::PRIVATE
            };
            let what = Mapping {
                flags,
                ..Mapping::anonymous(protection)
            };
            let places = [
                Placement::Anywhere,
                Placement::Hint(at),
                Placement::Fixed(at),
                Placement::Fixed(at),
                Placement::FixedNoReplace(at),
            ];
            Step::Map(rng.choice(places).expect("some"), length, what)
        }
        4..6 => Step::Unmap(at, length),
        6..11 => Step::Protect(at, length, protection),
        11 => Step::Advise(at, length, Flags::NO_DUMP, Flags::PRIVATE),
        12 => Step::DontNeed(at, length),
        13 => {
            let to = BASE + rng.u64(..PAGES) * PAGE;
            let places = [Relocation::Stay, Relocation::May, Relocation::To(to)];
            Step::Remap(
                at,
                length,
                rng.u64(1..10) * PAGE,
                rng.choice(places).expect("some"),
            )
        }
        14 => Step::Brk(BASE + rng.u64(10 * PAGE..20 * PAGE)),
        15..18 => Step::Fault(
            at,
            rng.choice([Access::Read, Access::Write, Access::Write])
                .expect("some"),
        ),
        18 => Step::Find(at),
        _ => Step::Maps,
    }
}
