"""names.py EXPLAINED FOLDER...: type names that are defined in more than one folder, but for those that EXPLAINED has.

A folder of src is a folder here, and so is everything else that is named on the command line. With `--all` in place of
EXPLAINED every such name is listed, with its places."""
import collections
import json
import os
import subprocess
import sys

KINDS = {"class", "struct", "enum", "union", "typedef", "alias"}


def folder(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "src" else parts[0]


def explained(path):
    """Lines are NAME: why it is in several folders."""
    with open(path) as file:
        return {line.split(":")[0] for line in file if ":" in line and not line.startswith("#")}


def main():
    known = set() if sys.argv[1] == "--all" else explained(sys.argv[1])
    tags = subprocess.run(["ctags", "-R", "--languages=C++", "--langmap=C++:+.hpp.inc", "--kinds-C++=cseugt",
                           "--output-format=json", "--fields=+K", "-f", "-", *sys.argv[2:]],
                          check=True, capture_output=True, text=True).stdout
    places = collections.defaultdict(set)
    for line in tags.splitlines():
        tag = json.loads(line)
        if tag.get("kind") in KINDS and not tag["name"].startswith("__anon"):
            places[tag["name"]].add(tag["path"])
    for name, paths in sorted(places.items()):
        if len({folder(path) for path in paths}) > 1 and name not in known:
            print(f"  {name}: {', '.join(sorted(paths))}")
    for name in sorted(known - set(places)):
        print(f"  {name}: {os.path.basename(sys.argv[1])} explains it, and there is no such type")


main()
