//! Costs of a lock other than throughput.

use super::layout::{Column, Table};
use super::{SPREADS, Width, groups, measured, or_dash, report};
use spanlock_records::record::lock::FLOOR;
use spanlock_records::record::provenance::Provenance;
use spanlock_records::record::{
    Among, Bytes, HOLD, ManyLocks, Memory, Record, Revocation, RwUncontended, Tasks, Uncontended,
    plural,
};
use spanlock_records::stats::{Summary, distinct};
use spanlock_records::trial::times::AcquireTimes;

/// Acquisition times, first ones of a part and later ones.
#[must_use]
pub fn latency(records: &[Record], provenance: &Provenance, width: Width) -> String {
    report(&phases(records, "nanoseconds", width), provenance, width)
}

/// A table for each phase, with the largest of each percentile over repeats.
pub(super) fn phases(records: &[Record], unit: &str, width: Width) -> String {
    let times = |times: fn(&Record) -> Option<AcquireTimes>| {
        percentiles(records, width, times).unwrap_or_default()
    };
    let what = format!(
        "{unit} until a range is held, two readings of the clock included, worst of all repeats"
    );
    format!(
        "first: nobody has locked the part before\n\n{what}\n{}\n\
         again: random parts, after all were locked\n\n{what}\n{}",
        times(|run| run.first_ns),
        times(|run| run.again_ns)
    )
}

/// A row for each panel, number of threads and lock, with the largest of each percentile; `None` if nothing was timed.
pub(super) fn percentiles(
    records: &[Record],
    width: Width,
    times: impl Fn(&Record) -> Option<AcquireTimes>,
) -> Option<String> {
    let timed = records.iter().filter(|record| times(record).is_some());
    by_place(timed, "lock", &AcquireTimes::COLUMNS, width, |runs| {
        AcquireTimes::worst(runs.iter().filter_map(|run| times(run))).to_vec()
    })
}

/// A row for each panel, number of threads and lock, with what its runs yield; `None` if there are none.
pub(super) fn by_place<'a, C: ToString>(
    runs: impl Iterator<Item = &'a Record> + Clone,
    lock: &str,
    heads: &[&str],
    width: Width,
    cells: impl Fn(&[&Record]) -> Vec<C>,
) -> Option<String> {
    let place = |run: &Record| {
        let threads = run.threads.to_string();
        [run.panel.to_string(), threads, run.lock.name.clone()]
    };
    let rows = groups(runs, place);
    rows.first()?;
    let mut table = Table::new(3, ["panel", "threads", lock], heads);
    for runs in rows {
        table.add_row(place(runs[0]), cells(&runs));
    }
    Some(table.text(width))
}

/// The cost of waiting: a row for each lock.
#[must_use]
pub fn waiting(records: &[Record], provenance: &Provenance, width: Width) -> String {
    let columns: [Column<'_, Record>; 7] = [
        ("lock", &|run| run.lock.name.clone()),
        ("Mops/s", &|run| {
            format!("{:.3}", run.ops_per_sec.unwrap_or(0.0) / 1e6)
        }),
        ("CPU share", &|run| {
            or_dash(run.cpu_share.map(|share| format!("{share:.2}")))
        }),
        ("max wait, ms", &|run| {
            let longest = run.acquire_ns.map(|times| times.max as f64 / 1e6);
            or_dash(longest.map(|longest| format!("{longest:.2}")))
        }),
        ("min ops/thread", &|run| run.min_ops_per_thread.to_string()),
        ("max ops/thread", &|run| run.max_ops_per_thread.to_string()),
        ("sleeper CPU, ms", &|run| {
            or_dash(run.sleeper_cpu_ms.map(|ms| format!("{ms:.3}")))
        }),
    ];
    let who = match records.first().map_or(0, |run| run.threads) {
        1 => "1 thread writes".to_owned(),
        threads => format!("{} write", plural(threads)),
    };
    let text = format!(
        "{who} the whole array without a pause. CPU share: of all cores' time; one core's is 1/{}\n\
         sleeper: waits while another thread holds for {} ms\n{}\n",
        provenance.cores,
        HOLD.as_millis(),
        Table::of(1, &columns, records).text(width)
    );
    report(&text, provenance, width)
}

/// Waits among threads that never pause: a row for each case and lock.
#[must_use]
pub fn among(records: &[Among], provenance: &Provenance, width: Width) -> String {
    let ms = |ns: f64| format!("{:.3}", ns / 1e6);
    let columns: [Column<'_, Among>; 6] = [
        ("who waits/among", &|record| record.case.clone()),
        ("lock", &|record| record.lock.clone()),
        ("mean, ms", &|record| ms(record.mean_ns)),
        ("99 %, ms", &|record| ms(record.acquire_ns.p99 as f64)),
        ("max, ms", &|record| ms(record.acquire_ns.max as f64)),
        ("others, Mops/s", &|record| {
            format!("{:.3}", record.others_per_sec / 1e6)
        }),
    ];
    let text = format!(
        "how long requests wait among threads that ask again at once; a lock without ranges takes all for one\n{}\n",
        Table::of(2, &columns, records).text(width)
    );
    report(&text, provenance, width)
}

/// What tasks get done: a row for each load, number of workers and lock. Where waits were timed, they are in a table of
/// their own.
#[must_use]
pub fn tasks(records: &[Tasks], provenance: &Provenance, width: Width) -> String {
    let is_alone = |rounds: &[&Tasks]| rounds[0].workers == 0;
    let columns: [Column<'_, Vec<&Tasks>>; 5] = [
        ("load", &|rounds| rounds[0].load.clone()),
        ("workers", &|rounds| {
            or_dash((!is_alone(rounds)).then_some(rounds[0].workers))
        }),
        ("lock", &|rounds| rounds[0].lock.clone()),
        ("Mops/s", &|rounds| {
            measured(cost(rounds, |round| round.ops_per_sec), 1e6, 2)
        }),
        ("ns each", &|rounds| match is_alone(rounds) {
            true => measured(cost(rounds, |round| 1e9 / round.ops_per_sec), 1.0, 1),
            false => or_dash(None::<f64>),
        }),
    ];
    let rows = groups(records, |round| (&round.load, round.workers, &round.lock));
    let text = format!(
        "acquisitions and releases by tasks on tokio, or by one thread or task alone\n\
         a lock without ranges takes all for one\n{}{}\
         {SPREADS}\n\n",
        Table::of(3, &columns, &rows).text(width),
        waits_of_tasks(records, width),
    );
    report(&text, provenance, width)
}

/// How long tasks waited, and threads beside them: two rows for each lock. Nothing, if that was not timed.
fn waits_of_tasks(records: &[Tasks], width: Width) -> String {
    let timed = records.iter().flat_map(|round| {
        let both = [("tasks", round.task_ns), ("threads", round.thread_ns)];
        both.map(|(who, times)| Some((who, &round.lock, times?)))
    });
    let times: Vec<_> = timed.flatten().collect();
    if times.is_empty() {
        return String::new();
    }
    let mut table = Table::new(2, ["lock", "who waits, us"], AcquireTimes::COLUMNS);
    for rounds in groups(&times, |(who, lock, _)| (*lock, *who)) {
        let (who, lock, _) = rounds[0];
        let worst = AcquireTimes::worst(rounds.iter().map(|(_, _, times)| *times));
        table.add_row([lock.as_str(), who], worst.map(|ns| ns / 1000));
    }
    format!(
        "waits in the crowd, the longest of all rounds\n{}",
        table.text(width)
    )
}

/// Memory: a row for each lock and number of ranges held.
#[must_use]
pub fn memory(records: &[Memory], provenance: &Provenance, width: Width) -> String {
    let each = |bytes: Option<Bytes>, record: &Memory| {
        or_dash(bytes.map(|bytes| format!("{:.1}", bytes as f64 / record.hold as f64)))
    };
    let columns: [Column<'_, Memory>; 8] = [
        ("lock", &|record| record.lock.clone()),
        ("held at once", &|record| record.hold.to_string()),
        ("idle lock", &|record| or_dash(record.idle_bytes)),
        ("all holders", &|record| or_dash(record.held_bytes)),
        ("per holder", &|record| each(record.held_bytes, record)),
        ("its guard", &|record| or_dash(record.guard_bytes)),
        ("kept after", &|record| or_dash(record.kept_bytes)),
        ("per part touched", &|record| {
            each(record.touched_bytes, record)
        }),
    ];
    let rows = groups(records, |record| record.hold);
    let table = Table::of(2, &columns, rows.into_iter().flatten());
    let skipped = |record: &Memory| Some((record.lock.clone(), record.skipped.clone()?));
    let skipped = distinct(records.iter().filter_map(skipped)).into_iter();
    let skipped = skipped.map(|(lock, why)| format!("- {lock} holds one range at a time: {why}\n"));
    let text = format!(
        "bytes asked of the allocator; one thread, new to locks, in a process of its own for each row\n\
         what is kept once for the process does not count: another thread has used such a lock before\n\
         holders: heap beyond the idle lock's, with what is kept for the thread; guards are apart\n\
         part touched: what a lock keeps of parts that were held one at a time, by a thread that is warm\n{}{}\n",
        table.text(width),
        skipped.collect::<String>()
    );
    report(&text, provenance, width)
}

/// Memory of many locks that each thread uses once: a row for each lock and number of threads.
#[must_use]
pub fn many_locks(records: &[ManyLocks], provenance: &Provenance, width: Width) -> String {
    let of = |bytes: Bytes, count: usize| format!("{:.1}", bytes as f64 / count as f64);
    let columns: [Column<'_, ManyLocks>; 8] = [
        ("lock", &|record| record.lock.clone()),
        ("threads", &|record| record.threads.to_string()),
        ("locks", &|record| record.locks.to_string()),
        ("per lock", &|record| of(record.idle_bytes, record.locks)),
        ("per lock and thread", &|record| {
            of(record.touched_bytes, record.locks * record.threads)
        }),
        ("per thread", &|record| {
            of(record.thread_bytes, record.threads)
        }),
        ("kept per lock", &|record| {
            of(record.kept_bytes, record.locks)
        }),
        ("left", &|record| record.left_bytes.to_string()),
    ];
    let table = Table::of(2, &columns, records);
    let text = format!(
        "bytes asked of the allocator; in a process of its own for each row\n\
         what is kept once for the process does not count: another thread has used such a lock before\n\
         per lock: before anybody uses it; per lock and thread: when each thread has used each lock once\n\
         per thread: what a thread allocates for its first lock; kept: when the threads have ended\n\
         left: of all together, when the locks have been dropped, too\n{}\n",
        table.text(width),
    );
    report(&text, provenance, width)
}

/// The median of a value over several records.
fn cost<'a, R: 'a>(
    records: impl IntoIterator<Item = &'a &'a R>,
    value: impl Fn(&R) -> f64,
) -> Option<Summary> {
    Summary::of(records.into_iter().map(|record| value(record)))
}

/// One cost as a fraction of another.
fn fraction(cost: Option<Summary>, of: Option<Summary>) -> String {
    let both = cost.zip(of);
    or_dash(both.map(|(cost, of)| format!("{:.2}", cost.median / of.median)))
}

/// Uncontended range locks: a row for each lock and mode.
#[must_use]
pub fn uncontended(records: &[Uncontended], provenance: &Provenance, width: Width) -> String {
    let ns = |rounds: &[&Uncontended]| cost(rounds, |round| round.ns_per_pair);
    let is_yardstick = |round: &&Uncontended| round.lock == "parking-lot" && round.mode == "write";
    let yardstick: Vec<_> = records.iter().filter(is_yardstick).collect();
    let yardstick = ns(&yardstick);
    let columns: [Column<'_, Vec<&Uncontended>>; 5] = [
        ("lock", &|rounds| rounds[0].lock.clone()),
        ("mode", &|rounds| rounds[0].mode.clone()),
        ("ns", &|rounds| measured(ns(rounds), 1.0, 1)),
        ("of parking-lot's write", &|rounds| {
            fraction(ns(rounds), yardstick)
        }),
        ("RMW (by reading)", &|rounds| {
            rounds[0].rmw_by_reading.clone()
        }),
    ];
    let rows = groups(records, |round| {
        (&round.lock, &round.mode, &round.rmw_by_reading)
    });
    let text = format!(
        "one thread, acquisition and release of one range; RMW: atomic read-modify-writes per pair\n{}\
         {SPREADS}\n\n",
        Table::of(2, &columns, &rows).text(width),
    );
    report(&text, provenance, width)
}

/// Uncontended reader-writer locks: a row for each lock.
#[must_use]
pub fn rw_uncontended(records: &[RwUncontended], provenance: &Provenance, width: Width) -> String {
    let read = |rounds: &[&RwUncontended]| cost(rounds, |round| round.read_ns);
    let write = |rounds: &[&RwUncontended]| cost(rounds, |round| round.write_ns);
    let floor: Vec<_> = records.iter().filter(|round| round.lock == FLOOR).collect();
    let columns: [Column<'_, Vec<&RwUncontended>>; 5] = [
        ("lock", &|rounds| rounds[0].lock.clone()),
        ("read ns", &|rounds| measured(read(rounds), 1.0, 1)),
        ("of floor", &|rounds| fraction(read(rounds), read(&floor))),
        ("write ns", &|rounds| measured(write(rounds), 1.0, 1)),
        ("of floor", &|rounds| fraction(write(rounds), write(&floor))),
    ];
    let rows = groups(records, |round| &round.lock);
    let text = format!(
        "one thread, acquisition and release; floor: {FLOOR}\n{}\
         {SPREADS}\n\n",
        Table::of(1, &columns, &rows).text(width),
    );
    report(&text, provenance, width)
}

/// Revocation: a row for each size of the table of readers.
#[must_use]
pub fn rw_revocation(records: &[Revocation], provenance: &Provenance, width: Width) -> String {
    let columns: [Column<'_, Vec<&Revocation>>; 3] = [
        ("rows in use", &|rounds| rounds[0].rows.to_string()),
        ("fenced ns", &|rounds| {
            measured(cost(rounds, |round| round.scan_ns), 1.0, 0)
        }),
        ("free ns", &|rounds| {
            let both = |round: &Revocation| round.fence_ns + round.scan_ns;
            measured(cost(rounds, both), 1.0, 0)
        }),
    ];
    let rows = groups(records, |round| round.rows);
    let text = format!(
        "what a writer that revokes a bias pays, by the grade of the bias\n\
         fenced: a scan of the table; free: a fence for all threads before it\n{}\
         {SPREADS}\n\n",
        Table::of(1, &columns, &rows).text(width),
    );
    report(&text, provenance, width)
}
