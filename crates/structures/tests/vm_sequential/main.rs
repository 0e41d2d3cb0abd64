//! Random operations of one thread have the results, and leave the areas, that a simple model says: in every variant.

mod block;
mod calls;
mod model;
mod step;

use block::Block;
use model::Model;
use proptest::prelude::*;
use spanlock_structures::vm::{
    self, Access, AddressSpace, Flags, Limits, Mapping, PAGE, PageTable, Placement, Protection,
    Relocation, Source,
};
use spanlock_testkit::exact::Exact;
use spanlock_workbench::vm::variants::{self, Table, Variant};
use step::{BASE, PAGES, Step, layout, on_model, on_space};

#[global_allocator]
static HEAP: Exact = Exact;

/// An address, now and then one that is no page's.
fn address() -> impl Strategy<Value = u64> {
    (
        0..PAGES + 2,
        prop::sample::select(vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 8]),
    )
        .prop_map(|(page, odd)| BASE + page * PAGE + odd)
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![9 => (1..10_u64).prop_map(|pages| pages * PAGE), 1 => 0..PAGE]
}

fn protection() -> impl Strategy<Value = Protection> {
    let some = [
        Protection::READ_WRITE,
        Protection::READ_WRITE,
        Protection::NONE,
        Protection::READ,
    ];
    let execute = Protection::READ | Protection::EXECUTE;
    prop::sample::select([&some[..], &[execute]].concat())
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let flags = vec![
        Flags::PRIVATE,
        Flags::PRIVATE,
        Flags::PRIVATE,
        Flags::PRIVATE,
        Flags::SHARED,
        Flags::GROWS_DOWN | Flags::STACK,
    ];
    let source = prop_oneof![
        4 => Just(Source::Anonymous),
        1 => (0..3_u64, 0..4_u64).prop_map(|(file, page)| Source::File { file, offset: page * PAGE }),
    ];
    let most = prop_oneof![5 => Just(Protection::ALL), 1 => Just(Protection::READ)];
    (protection(), most, prop::sample::select(flags), source).prop_map(
        |(protection, most, flags, source)| Mapping {
            protection,
            most,
            flags,
            source,
        },
    )
}

fn placement() -> impl Strategy<Value = Placement> {
    prop_oneof![
        2 => Just(Placement::Anywhere),
        1 => address().prop_map(Placement::Hint),
        3 => address().prop_map(Placement::Fixed),
        1 => address().prop_map(Placement::FixedNoReplace),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let relocation = prop_oneof![
        Just(Relocation::Stay),
        Just(Relocation::May),
        address().prop_map(Relocation::To)
    ];
    let advice = vec![Flags::NO_DUMP, Flags::HUGE, Flags::PRIVATE];
    let access = vec![Access::Read, Access::Write, Access::Write, Access::Execute];
    prop_oneof![
        4 => (placement(), length(), mapping()).prop_map(|(at, length, what)| Step::Map(at, length, what)),
        2 => (address(), length()).prop_map(|(at, length)| Step::Unmap(at, length)),
        6 => (address(), length(), protection()).prop_map(|(at, length, to)| Step::Protect(at, length, to)),
        1 => (address(), length(), prop::sample::select(advice.clone()), prop::sample::select(advice))
            .prop_map(|(at, length, set, clear)| Step::Advise(at, length, set, clear)),
        1 => (address(), length()).prop_map(|(at, length)| Step::DontNeed(at, length)),
        2 => (address(), length(), length(), relocation)
            .prop_map(|(at, old, new, to)| Step::Remap(at, old, new, to)),
        1 => (10..20 * PAGE).prop_map(|more| Step::Brk(BASE + 10 * PAGE + more)),
        1 => address().prop_map(Step::Find),
        1 => Just(Step::Maps),
        5 => (address(), prop::sample::select(access)).prop_map(|(at, access)| Step::Fault(at, access)),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    let small = Limits {
        areas: 8,
        pages: 30,
        data: 12,
    };
    prop_oneof![2 => Just(Limits::default()), 1 => Just(small)]
}

/// Runs the steps on each variant beside the model.
struct Run<'a> {
    limits: Limits,
    steps: &'a [Step],
}

impl Table for Run<'_> {
    fn variant<L: variants::Lock>(&mut self, variant: Variant, make: fn() -> L) {
        let builder = AddressSpace::builder()
            .layout(layout())
            .limits(self.limits)
            .refinement(variant.refinement);
        let space = builder.build(make(), PageTable::new());
        let mut model = Model::new(layout(), self.limits);
        for (number, step) in self.steps.iter().enumerate() {
            let said = on_model(&mut model, step);
            let context = || format!("{}, step {number}: {step:x?}", variant.name);
            assert_eq!(on_space(&space, step), said, "{}", context());
            let expected: Vec<_> = model.state().0.iter().map(Block::area).collect();
            assert_eq!(space.maps(), expected, "{}", context());
            assert_eq!(space.pages(), model.pages(), "{}", context());
            assert_eq!(space.areas(), expected.len() as u64, "{}", context());
        }
        for page in (0..PAGES).map(|page| BASE + page * PAGE) {
            assert_eq!(space.find(page), model.at(page).map(Block::area));
            let present = model.present.get(&page);
            assert_eq!(
                space.backing().page(page).is_some(),
                present.is_some(),
                "{page:x}"
            );
            assert_eq!(
                space.backing().is_written(page),
                present == Some(&true),
                "{page:x}"
            );
            if present.is_some() {
                assert_eq!(
                    space.backing().page(page),
                    model.at(page).map(|block| block.protection),
                    "{page:x}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn every_variant_does_what_the_model_does(
        limits in limits(),
        steps in prop::collection::vec(step(), 1..60),
    ) {
        variants::all(&mut Run { limits, steps: &steps });
    }
}
