"""table.py DIRECTORY RUNS [FILE]: the cells of all runs as a table, the worst first; in Markdown into FILE, too."""
import json
import statistics
import sys


def cells(directory, runs):
    for number in range(1, runs + 1):
        with open(f"{directory}/{number}.where") as where:
            place, io = where.read().split()
        with open(f"{directory}/{number}.json") as file:
            for cell in json.load(file):
                yield place, io if cell["interface"] == "drop-in" else "-", cell


# So often, of all pairs of repetitions, the best way must have been the faster one for a cell to count as a loss
# beyond the scatter: of 4 and 4, which are all that 9 repetitions leave, one pair may be the wrong way round.
CERTAIN = 0.93


def with_certainty(regret, certainty):
    return f"{regret:.2f}" + ("*" if regret < 1 and certainty >= CERTAIN else "")


def losses(cells, key, bar):
    below = [one[2] for one in cells if one[2][f"regret{key}"] < bar]
    sure = sum(cell[f"certainty{key}"] >= CERTAIN for cell in below)
    return f"{len(below)} below {bar}, {sure} of them beyond the scatter (*)"


def row(place, io, cell):
    times = {way["way"]: statistics.median(way["seconds"]) for way in cell["ways"]}
    predicted = next((way.get("predicted_s") for way in cell["ways"] if way["way"] == cell["chosen"]), None)
    default = statistics.median(cell["default_s"])
    return [
        cell["workload"], cell["op"], cell["interface"], io, str(cell["ranks"]), place,
        cell["chosen"], cell["best"], f"{predicted * 1e3:.3f}" if predicted else "-", f"{default * 1e3:.3f}",
        f"{times[cell['best']] * 1e3:.3f}", with_certainty(cell["regret"], cell["certainty"]),
        with_certainty(cell["regret_after_learning"], cell["certainty_after_learning"]),
        "" if cell["verified"] else "WRONG DATA",
    ]


def main():
    directory, runs = sys.argv[1], int(sys.argv[2])
    found = sorted(cells(directory, runs), key=lambda one: one[2]["regret"])
    head = ["workload", "op", "interface", "MPI-IO", "ranks", "in", "chosen", "best", "predicted ms", "chosen ms",
            "best ms", "regret", "after learning", ""]
    rows = [row(*one) for one in found]
    widths = [max(len(line[i]) for line in [head, *rows]) for i in range(len(head))]
    for line in [head, *rows]:
        print("  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip())
    first = [one[2]["regret"] for one in found]
    later = [one[2]["regret_after_learning"] for one in found]
    summary = (f"{len(found)} cells. First steps: median {statistics.median(first):.2f}, least {min(first):.2f}, "
               f"{losses(found, '', 0.85)}. After learning: median {statistics.median(later):.2f}, "
               f"least {min(later):.2f}, {losses(found, '_after_learning', 0.95)}.")
    print("\n" + summary)
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as out:
            print(f"{summary}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}", file=out)
            for line in rows:
                print(f"| {' | '.join(line)} |", file=out)
    sys.exit(any(not one[2]["verified"] for one in found))


main()
