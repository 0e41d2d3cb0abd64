//! Reader-writer locks on hardware.
//!
//! | module | what it is |
//! |---|---|
//! | [`locks`] | all the locks, by name: to add a peer, add an entry |
//! | [`harm`] | means to judge whether a bias does harm |
//! | [`revocation`] | the cost of a revocation, by the size of the table |

pub mod harm;
pub mod locks;
pub mod revocation;
