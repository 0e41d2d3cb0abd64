//! Random sequences against the model.

use crate::common::{Model, Op, dump, perform};
use proptest::prelude::*;
use spanlock::range::raw::RawRangeLock;
use spanlock_structures::store::{Geometry, Memory, Options, Store, check, locks, make};
use std::sync::Arc;

const FILES: [&str; 6] = ["/foo", "/bar", "/A/foo", "/A/bar", "/B/foo", "/A/C/foo"];
const DIRECTORIES: [&str; 4] = ["/A", "/B", "/A/C", "/B/C"];

/// A step of a sequence.
#[derive(Debug, Clone)]
enum Step {
    Op(Op),
    /// Close and open.
    Reopen,
    /// Open again without closing, as after `kill -9`.
    Crash,
}

fn path() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => prop::sample::select(&FILES), 1 => prop::sample::select(&DIRECTORIES)]
}

fn step() -> impl Strategy<Value = Step> {
    let at = || {
        prop_oneof![
            0..200_u64,
            3000..9000_u64,
            Just(4096),
            Just(8192),
            290_000..310_000_u64
        ]
    };
    let length = || {
        prop_oneof![
            0..100_usize,
            4000..4200_usize,
            Just(4096),
            Just(8192),
            10_000..20_000_usize
        ]
    };
    let op = prop_oneof![
        3 => path().prop_map(Op::Create),
        2 => prop::sample::select(&DIRECTORIES).prop_map(Op::Mkdir),
        8 => (path(), at(), length(), any::<u8>()).prop_map(|(path, at, length, tag)| Op::Write(path, at, length, tag)),
        3 => (path(), length(), any::<u8>()).prop_map(|(path, length, tag)| Op::Append(path, length, tag)),
        3 => (path(), at()).prop_map(|(path, size)| Op::Truncate(path, size)),
        1 => (path(), path()).prop_map(|(path, new)| Op::Link(path, new)),
        1 => path().prop_map(Op::Unlink),
        1 => path().prop_map(Op::Rmdir),
        2 => (path(), path()).prop_map(|(path, new)| Op::Rename(path, new)),
        1 => Just(Op::Sync),
    ];
    prop_oneof![20 => op.prop_map(Step::Op), 1 => Just(Step::Reopen), 1 => Just(Step::Crash)]
}

fn compare<L: RawRangeLock>(lock: fn() -> L, steps: &[Step]) -> Result<(), TestCaseError> {
    let medium = Arc::new(Memory::new(4 << 20));
    make(&medium, &Geometry::default()).expect("it fits");
    let open = || {
        Store::open(Arc::clone(&medium), Options::with_lock(lock))
            .expect("it is sound")
            .0
    };
    let (mut store, mut model) = (open(), Model::default());
    for step in steps {
        match step {
            Step::Op(op) => prop_assert_eq!(perform(&store, op), model.perform(op), "{:?}", op),
            Step::Reopen => {
                store.close().expect("nothing is open");
                let report = check(&medium).expect("it is a store");
                prop_assert!(report.closed && report.findings.is_empty(), "{:?}", report);
                store = open();
            }
            Step::Crash => {
                drop(store);
                store = open();
            }
        }
    }
    prop_assert_eq!(dump(&store).expect("it can be read"), model.dump());
    drop(store);
    prop_assert_eq!(dump(&open()).expect("it can be read"), model.dump());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_store_is_the_model(steps in prop::collection::vec(step(), 1..120)) {
        compare(locks::slots, &steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn under_each_other_lock_too(steps in prop::collection::vec(step(), 1..60)) {
        compare(locks::list_rw, &steps)?;
        compare(locks::inode, &steps)?;
        compare(locks::srl_tree, &steps)?;
        compare(locks::srl_array, &steps)?;
        compare(spanlock_workbench::baseline::KernelRw::new, &steps)?;
    }
}
