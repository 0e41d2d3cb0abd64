//! Requests that do not wait for long.

use super::*;

in_steps! {
    Timed;

    /// A reader that may give up, behind a writer and beside a patient reader.
    fn a_hasty_reader: behind_a_writer([read_soon, read]), is_free();

    /// A reader that may give up, behind a writer and beside a patient writer.
    fn a_hasty_reader_beside_a_writer: behind_a_writer([read_soon, write]), is_free();

    /// A writer that may give up, behind a writer and beside a patient one: it takes no other's wake-up with it.
    fn a_hasty_writer_beside_a_writer: behind_a_writer([write_soon, write]), is_free();

    /// A reader that held back for a writer goes on when the writer gives up.
    fn a_reader_goes_on_when_the_writer_gives_up: read_together_beside([write_soon]), is_free();
}

/// A writer that may give up, behind a reader and beside a patient writer.
pub fn a_hasty_writer<L: Timed>(world: &Arc<World<L>>) {
    world.behind_a_reader([write_soon, write]);
    read(world);
    world.is_free();
}

/// A writer that may give up, behind a writer: it is handed nothing.
pub fn a_hasty_writer_alone<L: Timed>(world: &Arc<World<L>>) {
    world.behind_a_writer([write_soon]);
    read(world);
}
