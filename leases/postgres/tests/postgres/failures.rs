//! What fails, and what is held then.

use crate::server::{Server, runtime};
use spanlock_lease::{Engine, News};
use spanlock_lease_testkit::network::{Direction, Way};
use spanlock_lease_testkit::server::{Engines as _, Server as _};

/// What it says first is lost, and so it is not answered: it leaves that connection.
pub fn a_listener_that_is_not_answered_connects_again(server: &Server) {
    let network = server.network();
    network.set(Direction::ToServer, Way::Loses);
    let direct = Server::at_port(network.port())
        .parse()
        .expect("it connects");
    let engine = server.engine().listening(direct);
    runtime().block_on(async {
        engine.open().await.unwrap();
        // The listener is a task of this thread.
        while !network.has_lost() {
            tokio::task::yield_now().await;
        }
        network.mend();
        // That is said by who listens.
        assert!(matches!(engine.news().await, News::Missed));
    });
}
