//! What workloads run on, as users name it.

use crate::setting::named;
use std::slice::Iter;

/// A row of a table that users choose from by name.
pub trait Named: Sized + 'static {
    /// All of them, in the order of tables.
    fn all() -> Iter<'static, Self>;

    /// The name that users give it.
    fn name(&self) -> &'static str;

    /// The one of that name.
    ///
    /// # Errors
    /// The names that were expected instead.
    fn find(name: &str) -> Result<&'static Self, String> {
        named(name, Self::all(), |row| row.name())
    }
}

/// Makes the rows of tables known: a type, its table, and where a row has its name.
macro_rules! named_rows {
    ($($Row:ty: $TABLE:ident by $($name:ident).+;)+) => {$(
        impl $crate::named::Named for $Row {
            fn all() -> ::std::slice::Iter<'static, Self> {
                $TABLE.iter()
            }

            fn name(&self) -> &'static str {
                self.$($name).+
            }
        }
    )+};
}
pub(crate) use named_rows;
