//! Range locks.

use spanlock::range::Span;
use spanlock::range::raw::{Ask, RawRangeMutex};
use spanlock_testkit_loom::range::*;
use spanlock_testkit_loom::{locks, models};
use spanlock_workbench_loom::{Bitmap, BitmapToken, KernelRw, LustreEx, Pnova, Song, TriedTree};

/// A bitmap with a word for each position: 64 bits are one position.
struct Sparse(Bitmap);

// SAFETY: the inner lock keeps the trait's promises. Ranges overlap as they did before each end was multiplied.
unsafe impl RawRangeMutex for Sparse {
    type Token = BitmapToken;

    fn lock_exclusive(&self, ask: Ask<'_, BitmapToken>) -> Option<BitmapToken> {
        let span = ask.span;
        let wide = Span::of(64 * span.start()..=64 * span.last() + 63);
        self.0
            .lock_exclusive(Ask::new(wide.expect("not empty"), ask.wait))
    }

    unsafe fn unlock(&self, token: BitmapToken) {
        // SAFETY: the caller's token is one of the inner lock, held until now.
        unsafe { self.0.unlock(token) };
    }
}

locks! {
    /// All positions are bits of one word.
    bitmap: Bitmap = Bitmap::new(8, 1);
    sparse_bitmap: Sparse = Sparse(Bitmap::new(8 * 64, 1));
    pnova: Pnova = Pnova::new(8, 1);
    song: Song = Song::new(2);
    kernel_rw: KernelRw = KernelRw::new();
    lustre_ex: LustreEx = LustreEx::new();
    tried: TriedTree = TriedTree::new();
}

models! {
    two_writers_overlapping: 3 on bitmap sparse_bitmap pnova song kernel_rw lustre_ex tried;
    a_reader_and_a_writer: 3 on pnova kernel_rw;
    three_writers: 1 on song kernel_rw lustre_ex;
    overlapping_readers_coexist: 2 on pnova kernel_rw;
    disjoint_holders_coexist:
        all on bitmap,
        2 on song lustre_ex tried;
    disjoint_writers_come_and_go: all on bitmap;
    writers_come_and_go_beside_a_wide_one: 2 on song;
    sleepers_are_woken_one_after_another: 2 on kernel_rw lustre_ex;
    a_writer_and_a_reader_sleep_behind_one_holder: 2 on kernel_rw;
    one_behind_two: 2 on kernel_rw;
    downgrade_lets_waiting_readers_in: 2 on pnova kernel_rw;
    downgrade_keeps_writers_out: 2 on kernel_rw;
    a_try_never_waits_and_never_intrudes: 3 on pnova kernel_rw;
    refused_tries_roll_back: 2 on sparse_bitmap;
    a_reader_that_gives_up_rolls_back: 2 on pnova;
    one_that_gives_up:
        3 on kernel_rw,
        2 on sparse_bitmap song;
    two_that_give_up: 2 on kernel_rw lustre_ex;
    a_time_out_beside_an_inheritance: 2 on kernel_rw lustre_ex;
    many_against_each_other: 2 on bitmap sparse_bitmap kernel_rw lustre_ex;
}
