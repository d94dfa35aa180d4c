//! Counts what is looked at one by one in lists of what is in flight, for the test that no command costs more the
//! more there is. Without debug assertions nothing is counted.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// Another thing was looked at.
#[inline]
pub(crate) fn look() {
    if cfg!(debug_assertions) {
        LOOKS.set(LOOKS.get() + 1);
    }
}

/// How many things this thread has looked at.
pub fn looks() -> u64 {
    LOOKS.get()
}
