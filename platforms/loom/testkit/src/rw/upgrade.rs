//! Readers that become the writer.

use super::*;

in_steps! {
    Upgrades;

    /// Beside a reader.
    fn an_upgrade_beside_a_reader: meet([read, read_and_upgrade]);

    /// Beside a writer.
    fn an_upgrade_beside_a_writer: meet([write, read_and_upgrade]), was_written(2);

    /// Two threads upgrade, one at a time.
    fn one_upgrade_at_a_time: meet([read_and_upgrade, read_and_upgrade]), was_written(2);

    /// What one that only reads saw is before what a writer does next.
    fn an_upgradable_before_a_writer: meet([write, read_upgradable]);

    /// Another one that may upgrade waits beside a writer.
    fn an_upgradable_before_a_writer_and_another: meet([write, read_upgradable, read_upgradable]), was_written(1);

    /// A thread that reads, reads again while an upgrade waits for it.
    fn reading_twice_beside_an_upgrade: read_twice_beside([read_and_upgrade]);

    /// The same beside a writer that waits, too, of a lock that lets readers in all the same.
    fn reading_twice_beside_an_upgrade_and_a_writer: read_twice_beside([read_and_upgrade, write]);
}

in_steps! {
    UpgradesTimed;

    /// A reader that held back for an upgrade goes on when that gives up.
    fn a_reader_goes_on_when_an_upgrade_gives_up: read_together_beside([read_and_upgrade_soon]), is_free();
}

/// One that only reads lets the next in when it leaves.
pub fn one_upgradable_after_another<L: Upgrades>(world: &Arc<World<L>>) {
    let mine = world.upgradable();
    let other = world.start([read_upgradable]);
    mine.get();
    drop(mine);
    other.join();
}

/// One that stays as a reader lets the next in beside it.
pub fn one_upgradable_beside_the_last<L: Upgrades>(world: &Arc<World<L>>) {
    let mine = world.upgradable();
    let other = world.start([read_upgradable]);
    let mine = mine.downgrade();
    other.join();
    mine.done();
    write(world);
}

/// A reader is inside beside one that may upgrade.
pub fn an_upgradable_beside_a_reader<L: Upgrades>(world: &Arc<World<L>>) {
    let mine = world.upgradable();
    world.run([read]);
    mine.get();
}

/// An upgrade and a writer wait for a reader, which lets in the right one.
pub fn an_upgrade_beside_a_reader_and_a_writer<L>(world: &Arc<World<L>>)
where
    L: Upgrades<SharedGuard: 'static>,
{
    let mine = world.read();
    let reading = world.upgradable();
    let writer = world.start([write]);
    let token = mine.into_token();
    let reader = world.spawn(|world| drop(world.reading(token)));
    reading.upgrade().done();
    reader.join().unwrap();
    writer.join();
    world.was_written(2);
}
