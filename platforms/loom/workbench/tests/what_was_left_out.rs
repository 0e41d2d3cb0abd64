//! Says at the end of `cargo test --workspace` what the tests left out.

use spanlock_testkit::{do_all, mutation};

fn main() {
    if !do_all() {
        println!(
            "\nleft out, for time: of each model the schedules after the first {}; of the mutants all but one in {}; of the \
             random schedules nine in ten. To run more, half an hour longer:\n\n    \
             SPANLOCK_TESTS=all cargo test --workspace\n",
            prim::FIRST,
            mutation::SAMPLE
        );
    }
}
