//! Parameters and outcomes of runs: plain data. The settings of a workload are in its file in `spanlock-workbench`.
//!
//! | module | what it is |
//! |---|---|
//! | [`settings`] | what a workload says of its settings |
//! | [`argument`] | settings as users choose them |
//! | [`named`] | choices that users make by name |
//! | [`run`] | the parameters of a run and its outcome |
//! | [`times`] | acquisition times |
//! | [`vm`] | what is reported of address spaces |
//! | [`counters`] | hardware counters |
//! | [`lock`] | the description of a lock |
//! | [`setting`] | the resource that a lock is made for, and the parameters that users choose |

pub mod argument;
pub mod counters;
pub mod lock;
pub mod named;
pub mod run;
pub mod setting;
pub mod settings;
pub mod times;
pub mod vm;
