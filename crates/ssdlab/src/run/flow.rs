//! Processes that keep the numbers of their I/Os in a proportion (fio's `flow`).
//!
//! As in fio all of a number count from the beginning of the run, those too that start later, until they end; a process
//! whose share of the I/Os is larger than that of its weight issues no more until the others have caught up.

use super::process::{Next, Process};
use crate::job::JobFile;
use crate::units::NEVER;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Processes of one `flow_id`.
struct Group {
    /// I/Os of all of them, and one.
    ios: u64,
    weights: u64,
    /// Those that wait for the others.
    waiting: Vec<usize>,
}

/// The part of one process in them.
pub(super) struct Share {
    group: Rc<RefCell<Group>>,
    process: usize,
    weight: u64,
    ios: u64,
    sleep_ns: u64,
    /// It sleeps until then.
    until: u64,
}

/// Gives each process of a flow its share.
pub(super) fn link(processes: &mut [Process], jobs: &JobFile) {
    let mut groups: BTreeMap<u64, Rc<RefCell<Group>>> = BTreeMap::new();
    for (index, process) in processes.iter_mut().enumerate() {
        let flow = jobs.jobs[process.job as usize].schedule.pace.flow;
        let Some(watch) = process.watch.as_mut().filter(|_| flow.weight > 0) else { continue };
        let new = || Rc::new(RefCell::new(Group { ios: 1, weights: 0, waiting: Vec::new() }));
        let group = groups.entry(flow.id).or_insert_with(new).clone();
        let weight = u64::from(flow.weight);
        group.borrow_mut().weights += weight;
        let (ios, until) = (0, 0);
        let sleep_ns = flow.sleep_ns;
        watch.share = Some(Share { group, process: index, weight, ios, sleep_ns, until });
    }
}

impl Share {
    /// It has had more of the I/Os than its weight gives it.
    pub fn is_ahead(&self) -> bool {
        let group = self.group.borrow();
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.ios, group.weights) > product(self.weight, group.ios)
    }

    /// What the process has to wait for that has so much in flight.
    pub fn wait(&mut self, now: u64, in_flight: u32) -> Option<Next> {
        if now < self.until {
            return Some(Next::WaitUntil(self.until));
        }
        if !self.is_ahead() {
            return None;
        }
        if self.sleep_ns == 0 {
            self.group.borrow_mut().waiting.push(self.process);
            return Some(Next::WaitUntil(NEVER));
        }
        if in_flight > 0 {
            return Some(Next::WaitForCompletion);
        }
        self.until = now.saturating_add(self.sleep_ns);
        Some(Next::WaitUntil(self.until))
    }

    /// The process issues an I/O.
    pub fn count(&mut self) {
        self.ios += 1;
        self.group.borrow_mut().ios += 1;
    }

    /// Those that have waited for something to happen.
    pub fn called(&self) -> Vec<usize> {
        std::mem::take(&mut self.group.borrow_mut().waiting)
    }

    /// The process has ended: it no longer counts. Those that have waited for it.
    pub fn leave(self) -> Vec<usize> {
        let mut group = self.group.borrow_mut();
        group.ios -= self.ios;
        group.weights -= self.weight;
        std::mem::take(&mut group.waiting)
    }
}
