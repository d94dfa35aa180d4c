//! Stopping in steady state (fio's `steadystate`): rates of each second, in a window as long as the job says.

use crate::job::Steady;
use std::collections::VecDeque;

/// What is known of the steady state of processes that are reported together.
#[derive(Clone, Debug, PartialEq)]
pub struct SteadyState {
    /// What the job asks for.
    pub asked: Steady,
    /// Rates of the last seconds, the first ones first: I/Os and bytes per second.
    pub rates: VecDeque<(u64, u64)>,
    /// It was attained, and has ended the job.
    pub attained: bool,
    /// What is compared with the limit, in its unit.
    pub criterion: f64,
    /// Largest distance from the mean, of criteria of that kind.
    pub deviation: f64,
    /// Slope of the regression line per second, of the other kind.
    pub slope: f64,
}

impl SteadyState {
    pub(super) fn new(asked: &Steady) -> Self {
        SteadyState {
            asked: asked.clone(),
            rates: VecDeque::new(),
            attained: false,
            criterion: 0.0,
            deviation: 0.0,
            slope: 0.0,
        }
    }

    /// Takes the rates of another second.
    pub(super) fn add(&mut self, iops: u64, bw_bytes: u64) {
        let window = self.asked.duration_s as usize;
        if self.rates.len() == window {
            self.rates.pop_front();
        }
        self.rates.push_back((iops, bw_bytes));
        if self.rates.len() < window {
            return;
        }
        let by_iops = self.asked.iops;
        let values = || self.rates.iter().map(|(iops, bw)| if by_iops { *iops } else { *bw });
        let (n, sum) = (window as f64, values().map(u128::from).sum::<u128>());
        let part = if self.asked.slope {
            let sum_x = n * (n - 1.0) / 2.0;
            let sum_x_squared = (n - 1.0) * n * (2.0 * n - 1.0) / 6.0;
            let sum_xy: u128 = values().zip(0u128..).map(|(y, x)| u128::from(y) * x).sum();
            self.slope =
                (sum_xy as f64 - sum_x * sum as f64 / n) / (sum_x_squared - sum_x * sum_x / n);
            // fio's mean is a whole number here.
            self.slope / (sum / window as u128) as f64
        } else {
            let mean = sum as f64 / n;
            self.deviation = values().map(|y| (y as f64 - mean).abs()).fold(0.0, f64::max);
            self.deviation / mean
        };
        let absolute = if self.asked.slope { self.slope } else { self.deviation };
        self.criterion = if self.asked.percent { 100.0 * part } else { absolute };
        self.attained = self.criterion.abs() < self.asked.limit;
    }
}
