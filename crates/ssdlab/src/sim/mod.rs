//! The simulation kernel: which component acts next.

mod calendar;

pub use calendar::Calendar;
