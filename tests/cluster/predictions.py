"""predictions.py CLUSTER BIN LINK REPS: predicted and measured seconds of steps on hosts that were calibrated before.

Prints a table. Exit status 1 if a prediction is off by more than 30 %, or if strategies whose predictions are a tenth
apart come in another order than that."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

OFF = 1.3          # the bar
APART = 1.1        # strategies that are predicted closer together may come in any order
STRATEGIES = ["RANK_ORDER", "TOPOLOGY_AWARE", "CONTENTION_AWARE"]
INTERLEAVED = ["interleaved", "--block", "4K", "--bytes", "4M"]
SOA = ["hacc", "--layout", "soa", "--particles", "100000"]
LAST_SWITCH = SOA + ["--sizes", "normal", "--seed", "1", "--heavy", "last", "--share", "0.75", "--switches", "2"]
BOXES = [
    ("8x1", [], {"blocks of 4 KiB": INTERLEAVED, "HACC SoA": SOA}),
    ("4x2", [], {"blocks of 4 KiB": INTERLEAVED, "HACC SoA": SOA}),
    ("8x1", ["--switches", "2"], {"blocks of 4 KiB": INTERLEAVED, "HACC SoA, last switch": LAST_SWITCH}),
]


def half(rate):
    """A trunk has half of what a host's link has."""
    kbit = int(rate[:-4]) * {"g": 10**6, "m": 1000, "k": 1}[rate[-4]] // 2
    return f"{kbit // 1000}mbit" if kbit % 1000 == 0 else f"{kbit}kbit"


def run(cluster, shape, options, command):
    done = subprocess.run([cluster, shape, *options, "--timeout", "300", "--", *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def measure(cluster, tools, box, platform, workload, strategy, reps, work):
    """The prediction, and the median of what was measured, for writing and reading."""
    shape, options = box
    report = f"{work}/report.json"
    if os.path.exists(report):
        os.unlink(report)
    settings = {"PLATFORM": platform, "DIRECT": "never", "NBAGGR": 4, "STRATEGY": strategy, "REPORT": report}
    run(cluster, shape, options, ["env", *(f"TAPIOCA_{name}={value}" for name, value in settings.items()),
                                  f"{tools}/tapioca-bench", *workload, "--methods", "tapioca", "--reps", reps, "--dir", "{shared}"])
    with open(report) as file:
        found = [one for account in json.load(file)["files"] for one in account["predictions"] if "measured_s" in one]
    for op in "write", "read":
        ours = [one for one in found if one["op"] == op]
        yield op, ours[0]["predicted_s"], statistics.median(one["measured_s"] for one in ours)


def in_order(cells):
    """Whether those that are predicted to be slower by a tenth are."""
    return all(a[1] < b[1] for a in cells for b in cells if a[0] * APART < b[0])


def main():
    cluster, tools, link, reps = sys.argv[1:]
    missed = 0
    print(f"\npredictions: 4 aggregators, links of {link}, trunk of {half(link)}; ms a step")
    print(f"  {'':44} {'':18} {'predicted':>10} {'measured':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        for number, (shape, extra, workloads) in enumerate(BOXES):
            options = ["--link", link, *extra, *(["--trunk", half(link)] if extra else [])]
            platform = f"{work}/{number}.toml"
            run(cluster, shape, options, [f"{tools}/tapioca-calibrate", "--platform", "{platform}", "--dir", "{shared}", "--output", platform])
            for name, workload in workloads.items():
                seen = {"write": [], "read": []}
                for strategy in STRATEGIES:
                    for op, predicted, measured in measure(cluster, tools, (shape, options), platform, workload, strategy, reps, work):
                        seen[op].append((predicted, measured))
                        off = not 1 / OFF <= predicted / measured <= OFF
                        missed += off
                        print(f"  {f'{shape} {chr(32).join(extra)} {name}, {op}':44} {strategy:18} {predicted * 1e3:10.1f} {measured * 1e3:10.1f} "
                              f"{predicted / measured:6.2f}{'  off' if off else ''}", flush=True)
                for op, cells in seen.items():
                    if not in_order(cells):
                        missed += 1
                        print(f"  {shape} {name}, {op}: the strategies come in another order than predicted")
    print("  all within 30 %, the strategies in order" if not missed else f"  {missed} misses")
    sys.exit(missed > 0)


main()
