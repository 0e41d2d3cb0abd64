//! Choices that users make by name.

/// Displays each value of a type as JSON has it, and reads each of `ALL` from that name.
#[macro_export]
macro_rules! by_name {
    ($choice:ty) => {
        impl std::fmt::Display for $choice {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                serde::Serialize::serialize(self, f)
            }
        }

        impl std::str::FromStr for $choice {
            type Err = String;

            fn from_str(name: &str) -> Result<Self, String> {
                $crate::trial::setting::named(name, Self::ALL, Self::to_string)
            }
        }

        impl $choice {
            /// The name, if it is one.
            ///
            /// # Errors
            /// The names that there are.
            pub fn named(name: &str) -> Result<String, String> {
                name.parse().map(|choice: Self| choice.to_string())
            }
        }
    };
}
