//! Help and tables: how wide they are, and what they leave out.

use super::*;
use spanlock_testkit::on_all_processors;

/// The longest line, but for the command, which is whole so that it can be copied.
fn widest(text: &str) -> usize {
    let lines = text.lines().filter(|line| !line.starts_with("command: "));
    lines.map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The commands below one, and theirs, as help lists them.
fn below(command: &str) -> Vec<String> {
    let help = written(&format!("{command} --help"));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| {
        line.strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
    });
    let names = names
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help");
    let one = |name: &str| format!("{command} {name}").trim().to_owned();
    let mut all = Vec::new();
    for name in names {
        all.push(one(name));
        all.extend(below(&one(name)));
    }
    all
}

#[test]
fn help_fits_and_breaks_no_word() {
    let mut commands = vec![String::new()];
    for first in ["bench", "sim", "report", "run"] {
        commands.push(first.to_owned());
        commands.extend(below(first));
    }
    assert!(
        commands.len() > 25 && commands.contains(&"bench rw hash_table".to_owned()),
        "{commands:?}"
    );
    for command in commands {
        for flag in ["--help", "-h"] {
            let arguments = format!("{command} {flag}").trim().to_owned();
            let narrow = written_at("80", &arguments);
            assert!(widest(&narrow) <= 80, "{arguments}:\n{narrow}");
            let words = |help: &str| {
                help.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                words(&narrow),
                words(&written_at("100", &arguments)),
                "{arguments}"
            );
        }
    }
}

const COMMANDS: [&str; 15] = [
    "bench --list",
    "bench rw --list",
    "bench arr --locks list-rw kernel-rw list-rw-nofast --variant full --reads 100 --threads 1:9 --seconds 0.001 \
     --repeat 2 --latency --counters",
    "bench async --locks slots tokio --load read-async whole crowd --crowd 9 --workers 1 2 --seconds 0.001 --repeat 2",
    "bench batch --locks list-ex parking-lot --threads 1 2 --seconds 0.001 --warmup 0 --repeat 2",
    "bench blob --records 2 --locks copy list-rw-nofast null --cache 0 64 --threads 1 2 --seconds 0.002 --repeat 2",
    "bench latency --locks list-rw-nofast --threads 1 --parts 50 --repeat 1",
    "bench memory --locks list-rw-nofast std-rwlock --hold 1 16",
    "bench micro --threads 1:9 --seconds 0.001 --repeat 2",
    "bench uncontended --locks list-rw-unfair floor-2rmw --pairs 10",
    "bench waiting --locks list-rw-unfair --threads 2 --seconds 0.001",
    "bench rw interference --locks futex bravo-futex-paper-1024 --threads 1 --seconds 0.001 --repeat 2",
    "bench rw readers --locks futex floor-private --threads 1:9 --seconds 0.001 --repeat 2",
    "bench rw uncontended --pairs 10 --repeat 2",
    "sim arr --locks list-rw lustre-ex --threads 1 2 8 16 20 24 28 32 --variant full --reads 60 --seconds 0.0001 \
     --latency --no-cache --seeds 2",
];

#[test]
fn tables_are_as_wide_as_the_terminal() {
    on_all_processors(COMMANDS.into_iter(), |command| {
        let usual = written(command);
        assert!(widest(&usual) <= 80, "{command}:\n{usual}");
        let wide = written_at("200", command);
        assert!(widest(&wide) <= 200, "{command}:\n{wide}");
        assert!(
            wide.matches('┌').count() <= usual.matches('┌').count(),
            "{command}:\n{wide}"
        );
        let narrow = written_at("70", command);
        assert!(widest(&narrow) <= 70, "{command}:\n{narrow}");
    });
}

#[test]
fn a_single_run_has_no_spread_and_one_thread_is_one() {
    for command in [
        "bench arr --locks list-rw kernel-rw --threads 1 2 --seconds 0.001 --repeat 1",
        "bench batch --locks list-ex --threads 1 --seconds 0.001 --repeat 1",
        "bench blob --locks copy bitmap --records 1 --threads 1 --seconds 0.005 --repeat 1",
        "bench micro --threads 1 --seconds 0.001 --repeat 1",
        "bench uncontended --locks list-rw --pairs 10 --repeat 1",
        "bench async --locks list-rw --load read disjoint --pairs 10 --workers 1 --seconds 0.001 --repeat 1",
        "bench waiting --locks list-rw --threads 1 --seconds 0.001",
        "bench rw rwbench --locks futex --threads 1 --seconds 0.001 --repeat 1",
        "bench rw interference --locks futex --pool 1 --threads 1 --seconds 0.001 --repeat 1",
        "bench rw uncontended --locks futex --pairs 10 --repeat 1",
        "bench rw revocation --threads 1 --repeat 1",
        "sim arr --locks list-rw --threads 1 --seconds 0.0001 --no-cache",
        "sim rw readers --locks futex --threads 1 --seconds 0.0001 --no-cache",
    ] {
        let table = written(command).replace("±half", "");
        assert!(!table.contains('±'), "{command}:\n{table}");
        assert!(!table.contains("1 threads"), "{command}:\n{table}");
    }
    let twice = "bench arr --locks list-rw --variant full --threads 1 --seconds 0.001 --repeat 2";
    assert!(written(twice).replace("±half", "").contains('±'));
}

#[test]
fn lists_are_given_with_blanks_or_commas() {
    for line in [
        "bench arr --seconds 0.001 --repeat 1 --variant full --reads 60 --locks list-rw kernel-rw",
        "bench arr --seconds 0.001 --repeat 1 --variant full --reads 60 --locks null --threads 1 3",
        "bench arr --seconds 0.001 --repeat 1 --locks null --threads 1 --variant full random",
        "bench batch --seconds 0.001 --repeat 1 --locks null --threads 1 --hold 1 2",
        "bench blob --seconds 0.002 --repeat 1 --records 1 --threads 1 --cache 0 --locks own-area copy,bitmap:block=4096,65536",
        "bench rw readers --seconds 0.001 --repeat 1 --locks futex --threads 1 3",
        "sim arr --seconds 0.0001 --variant full --reads 60 --no-cache --locks list-rw kernel-rw",
        "sim arr --seconds 0.0001 --variant full --locks list-ex --no-cache --threads 1 3",
        "sim batch --seconds 0.0001 --threads 1 --no-cache --locks list-ex song",
        "sim latency --parts 64 --threads 1 --no-cache --locks list-ex song",
        "sim micro --seconds 0.0001 --threads 1 --no-cache --kernels add mcs",
        "sim rw readers --seconds 0.0001 --threads 1 --no-cache --locks futex pf-q",
    ] {
        let (command, other) = line.rsplit_once(' ').unwrap();
        let (command, one) = command.rsplit_once(' ').unwrap();
        let runs = |list: String| {
            let lines = json_lines(&format!("{command} {list} --format json"));
            let fields = |line: &Value| {
                let fields = ["workload", "lock", "threads", "variant", "hold"];
                fields.map(|field| line[field].clone())
            };
            let runs = lines
                .iter()
                .filter(|line| line["ops_per_sec"].is_f64() || line["first_ns"].is_object());
            runs.map(fields).collect::<Vec<_>>()
        };
        let blanks = runs(format!("{one} {other}"));
        assert!(blanks.len() >= 2, "{command}: {blanks:?}");
        assert_eq!(blanks, runs(format!("{one},{other}")), "{command}");
    }
}
