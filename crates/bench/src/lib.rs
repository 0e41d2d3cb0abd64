//! Workloads, baselines and measurement.
