//! [`Persist`](super::Persist) from the names of fields and values.

use super::{Archive, Persist, mismatch};
use crate::error::Result;

/// The place of an enum's value among all, for [`persistent_enum!`](persistent_enum).
pub(crate) fn persist_choice<T: Copy + PartialEq>(
    value: &mut T,
    all: &[T],
    archive: &mut Archive<'_>,
) -> Result<()> {
    let mut at = all.iter().position(|one| one == value).map_or(u8::MAX, |at| at as u8);
    at.persist(archive)?;
    *value = *all.get(usize::from(at)).ok_or_else(|| mismatch("is none of the values known"))?;
    Ok(())
}

/// Implements [`Persist`] for a struct: its state; parts whose presence or length was decided when it
/// was built; what follows from how it was built, which is left alone. Names all fields. What it is generic over
/// stands in front: `impl<T: Persist, K>`.
macro_rules! persistent {
    (impl<$($any:ident $(: $bound:ident)?),*> $type:ty {
        $(state { $($state:ident),* $(,)? })?
        $(parts { $($part:ident),* $(,)? })?
        $(built { $($built:ident),* $(,)? })?
    }) => {
        impl<$($any $(: $crate::persist::$bound + Default)?),*> $crate::persist::Persist for $type {
            fn persist(
                &mut self,
                _archive: &mut $crate::persist::Archive<'_>,
            ) -> $crate::error::Result<()> {
                let Self { $($($state,)*)? $($($part,)*)? $($($built: _,)*)? } = self;
                $($($crate::persist::Persist::persist($state, _archive)?;)*)?
                $($($crate::persist::Part::persist_part($part, _archive)?;)*)?
                Ok(())
            }
        }
    };
    ($type:ty { $($fields:tt)* }) => {
        $crate::persist::persistent!(impl<> $type { $($fields)* });
    };
}
pub(crate) use persistent;

/// Implements [`Persist`] for an enum without fields, by the place of its values in the list of all.
macro_rules! persistent_enum {
    ($type:ty { $($value:ident),* $(,)? }) => {
        impl $crate::persist::Persist for $type {
            fn persist(
                &mut self,
                archive: &mut $crate::persist::Archive<'_>,
            ) -> $crate::error::Result<()> {
                // A new value does not compile before it has its place.
                match self {
                    $(Self::$value => {})*
                }
                $crate::persist::persist_choice(self, &[$(Self::$value),*], archive)
            }
        }
    };
}
pub(crate) use persistent_enum;

/// The place of a case among `count`, for [`persistent_cases!`](persistent_cases).
pub(crate) fn persist_case(own: usize, count: usize, archive: &mut Archive<'_>) -> Result<usize> {
    let mut at = own as u8;
    at.persist(archive)?;
    let at = usize::from(at);
    if at < count { Ok(at) } else { Err(mismatch("is none of the values known")) }
}

/// Implements [`Persist`] for an enum all of whose cases have fields, and `Default`, which is the first case.
macro_rules! persistent_cases {
    ($type:ty { $first:ident($($ff:ident),*) $(, $case:ident($($field:ident),*))* $(,)? }) => {
        impl Default for $type {
            fn default() -> Self {
                $(let $ff = Default::default();)*
                Self::$first($($ff),*)
            }
        }
        $crate::persist::persistent_cases!(@persist $type {
            $first($($ff),*) $(, $case($($field),*))*
        });
    };
    (@persist $type:ty { $($case:ident($($field:ident),*)),* }) => {
        impl $crate::persist::Persist for $type {
            fn persist(
                &mut self,
                archive: &mut $crate::persist::Archive<'_>,
            ) -> $crate::error::Result<()> {
                let names = [$(stringify!($case)),*];
                let own = match self { $(Self::$case(..) => stringify!($case)),* };
                let own = names.iter().position(|name| *name == own).expect("one of all");
                let at = $crate::persist::persist_case(own, names.len(), archive)?;
                if archive.loads() {
                    $(if names[at] == stringify!($case) {
                        $(let $field = Default::default();)*
                        *self = Self::$case($($field),*);
                    })*
                }
                match self {
                    $(Self::$case($($field),*) => {
                        $($crate::persist::Persist::persist($field, archive)?;)*
                    })*
                }
                Ok(())
            }
        }
    };
}
pub(crate) use persistent_cases;
