//! The range locks that models run on.

use prim::clock::Duration;
use spanlock_loom::range::Limited;
use spanlock_loom::range::keys::{KeyRangeLock, Natural, RawKeys};
use spanlock_loom::range::list::{FastPath, ListEx, ListRw, Preference};
use spanlock_loom::range::segment::{Fairness, SrlArray, SrlTree};
use spanlock_loom::range::skip::{SkipEx, SkipRw};
use spanlock_loom::range::slots::{Advice, Plan, RawSlots};
use spanlock_testkit_loom::locks;
use spanlock_testkit_loom::range::World;

/// Every request that sleeps has a reservation at once. (With patience a sleeper would rise again and again: its
/// timeouts take no time here.)
const AT_ONCE: Fairness = Fairness::After(Duration::ZERO);

/// A reservation soon, and pauses between reservations.
const PATIENT: Fairness = Fairness::After(Duration::from_micros(1));

/// A request is asleep before it gets a reservation.
const ASLEEP: Fairness = Fairness::After(Duration::from_micros(20));

const UNFAIR: Fairness = Fairness::Unfair;

/// The plans of slot locks, which do not learn here.
const ONCE: Advice = Advice::Always(Plan::Once);
const KEEP: Advice = Advice::Always(Plan::Keep);
const EVERYTHING: Advice = Advice::Always(Plan::Everything);
const LISTED: Advice = Advice::Always(Plan::Listed);

/// A lock over keys that are numbers, in what limits it.
pub type Wrapped<L> = KeyRangeLock<u64, Natural, L>;

locks! {
    pub list: ListRw = ListRw::builder().build();
    pub slow_list: ListRw = ListRw::builder().fast_path(FastPath::Off).build();
    pub writers_first_list: ListRw = ListRw::builder().preference(Preference::Writers).build();
    pub slow_writers_first_list: ListRw =
        ListRw::builder().preference(Preference::Writers).fast_path(FastPath::Off).build();
    pub fair_list: ListRw = ListRw::builder().fairness(AT_ONCE).build();
    pub later_list: ListRw = ListRw::builder().fairness(ASLEEP).build();
    pub slow_fair_list: ListRw = ListRw::builder().fairness(AT_ONCE).fast_path(FastPath::Off).build();
    pub unfair_list: ListRw = ListRw::builder().fairness(UNFAIR).build();
    pub slow_unfair_list: ListRw = ListRw::builder().fairness(UNFAIR).fast_path(FastPath::Off).build();
    pub unfair_writers_first_list: ListRw =
        ListRw::builder().fairness(UNFAIR).preference(Preference::Writers).build();
    pub exclusive_list: ListEx = ListEx::builder().build();
    pub slow_exclusive_list: ListEx = ListEx::builder().fast_path(FastPath::Off).build();
    pub fair_exclusive_list: ListEx = ListEx::builder().fairness(AT_ONCE).build();

    pub skip_list: SkipRw = SkipRw::builder().height(2).build();
    pub slow_skip_list: SkipRw = SkipRw::builder().height(2).fast_path(FastPath::Off).build();
    pub fair_skip_list: SkipRw = SkipRw::builder().height(2).fairness(AT_ONCE).build();
    pub exclusive_skip_list: SkipEx = SkipEx::builder().height(2).build();
    pub slow_exclusive_skip_list: SkipEx = SkipEx::builder().height(2).fast_path(FastPath::Off).build();
    pub higher_exclusive_skip_list: SkipEx =
        SkipEx::builder().height(3).fast_path(FastPath::Off).build();
    pub higher_skip_list: SkipRw = SkipRw::builder().height(3).fast_path(FastPath::Off).build();
    pub unfair_exclusive_skip_list: SkipEx = SkipEx::builder().height(2).fairness(UNFAIR).build();

    /// Over keys that are numbers.
    pub keys: KeyRangeLock<u64> = KeyRangeLock::builder().levels(1, 0).build();
    pub slow_keys: KeyRangeLock<u64> = KeyRangeLock::builder().levels(1, 0).fast_path(FastPath::Off).build();
    pub fair_keys: KeyRangeLock<u64> = KeyRangeLock::builder().levels(1, 0).fairness(AT_ONCE).build();
    pub unfair_keys: KeyRangeLock<u64> = KeyRangeLock::builder().levels(1, 0).fairness(UNFAIR).build();

    pub limited_keys: Wrapped<Limited<RawKeys<u64, Natural>>> =
        KeyRangeLock::builder().levels(1, 0).fairness(UNFAIR).build().limited(8);

    /// Moves when its threads meet for the first time, and learns then.
    pub moving_slots: RawSlots = RawSlots::builder().fairness(AT_ONCE).build();
    /// Slots from the beginning, without advice.
    pub slots: RawSlots = RawSlots::builder().slots_at_once().advice(ONCE).build();
    pub fair_slots: RawSlots = RawSlots::builder().slots_at_once().advice(ONCE).fairness(AT_ONCE).build();
    pub patient_slots: RawSlots = RawSlots::builder().slots_at_once().advice(ONCE).fairness(PATIENT).build();
    pub later_slots: RawSlots = RawSlots::builder().slots_at_once().advice(ONCE).fairness(ASLEEP).build();
    pub unfair_slots: RawSlots = RawSlots::builder().slots_at_once().advice(ONCE).fairness(UNFAIR).build();
    /// Each grant is kept.
    pub keeping_slots: RawSlots = RawSlots::builder().slots_at_once().advice(KEEP).fairness(AT_ONCE).build();
    /// Each reader asks for everything.
    pub everything_slots: RawSlots = RawSlots::builder().slots_at_once().advice(EVERYTHING).build();
    /// Narrow requests are listed once there are buckets.
    pub listing_slots: RawSlots = RawSlots::builder().slots_at_once().advice(LISTED).build();
    /// With buckets of two positions, two lines for all buckets, and two words in each.
    pub bucket_slots: RawSlots = RawSlots::builder().buckets_at_once(1).advice(LISTED).fairness(AT_ONCE).build();
    pub unfair_bucket_slots: RawSlots =
        RawSlots::builder().buckets_at_once(1).advice(LISTED).fairness(UNFAIR).build();
    /// What a thread holds besides one range is in the annex.
    pub annex_slots: RawSlots = RawSlots::builder().annex_at_once().advice(ONCE).fairness(AT_ONCE).build();
    pub unfair_annex_slots: RawSlots = RawSlots::builder().annex_at_once().advice(ONCE).fairness(UNFAIR).build();
    pub keeping_annex_slots: RawSlots = RawSlots::builder().annex_at_once().advice(KEEP).fairness(AT_ONCE).build();
    pub everything_annex_slots: RawSlots =
        RawSlots::builder().annex_at_once().advice(EVERYTHING).fairness(AT_ONCE).build();

    /// Eight segments of one position.
    pub segments: SrlArray = SrlArray::builder().segments(8).fairness(AT_ONCE).build();
    pub unfair_segments: SrlArray = SrlArray::builder().segments(8).fairness(UNFAIR).build();
    pub segments_of_two: SrlArray =
        SrlArray::builder().segment(2).segments(4).fairness(AT_ONCE).build();
    pub segments_of_four: SrlArray =
        SrlArray::builder().segment(4).segments(2).fairness(AT_ONCE).build();
    pub patient_segments: SrlArray =
        SrlArray::builder().segments(8).fairness(Fairness::After(Duration::from_micros(3))).build();
    pub tree: SrlTree = SrlTree::builder().fan_out(2).depth(3).fairness(AT_ONCE).build();
}

/// A list in which the next request of this thread goes by the fast path: a thread's first, in any lock, does not.
pub fn warm_list() -> ListRw {
    World::new(list()).write(0..1).done();
    list()
}

/// A skip list in which the next request of this thread goes by the fast path.
pub fn warm_skip_list() -> SkipRw {
    World::new(slow_skip_list()).write(0..1).done();
    skip_list()
}
