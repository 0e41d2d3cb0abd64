//! What the file of a workload says of its settings.

use crate::record::{Kind, Panel};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{Debug, Display};

/// The settings of a workload: the fields of its panels. In words they name a panel.
pub trait Settings:
    Copy + Debug + Display + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The workload's name: its command, and the workload of its lines.
    const NAME: &'static str;
    /// What it compares.
    const KIND: Kind;
    /// Threads that run beside those that are counted.
    const BESIDE: usize = 0;

    /// The panel of these settings.
    fn panel(self) -> Panel {
        let panel = Panel::new(Self::NAME, Self::KIND, &self.to_string(), &self);
        panel.beside(Self::BESIDE)
    }
}
