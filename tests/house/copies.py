#!/usr/bin/env python3
"""copies.py EXPLAINED FOLDER...: runs of six or more lines that stand in two places, but for those that are explained.

White space does not count; blank lines, comments, includes and lines without a letter or digit are passed over.
EXPLAINED has a line for each that may stay: LINES FILE FILE REASON. One that is no longer needed is listed, too.
"""
import os
import re
import sys
from collections import defaultdict

LEAST = 6
SOURCES = ('.c', '.cpp', '.h', '.hpp', '.inc')


def lines_of(path):
    """(number, text) of the lines that count."""
    with open(path, encoding='utf-8') as source:
        text = source.read()
    text = re.sub(r'/\*.*?\*/', lambda comment: '\n' * comment.group().count('\n'), text, flags=re.S)
    found = []
    for number, line in enumerate(text.split('\n'), 1):
        line = ' '.join(re.sub(r'(^|\s)//.*', '', line).split())
        if re.search(r'\w', line) and not line.startswith('#include'):
            found.append((number, line))
    return found


def copies(files):
    """(lines, (file, first, last), (file, first, last)) for each pair of places, the longest run of each."""
    places = defaultdict(list)
    for file, lines in files.items():
        for at in range(len(lines) - LEAST + 1):
            places[tuple(text for _, text in lines[at:at + LEAST])].append((file, at))
    for stands in places.values():
        for i, (one, a) in enumerate(stands):
            for other, b in stands[i + 1:]:
                first, second = files[one], files[other]
                if a > 0 and b > 0 and first[a - 1][1] == second[b - 1][1]:
                    continue  # not where the run begins
                length = LEAST
                while (a + length < len(first) and b + length < len(second)
                       and first[a + length][1] == second[b + length][1]):
                    length += 1
                if one == other and a + length > b:
                    continue  # a table whose rows are equal
                yield (length, (one, first[a][0], first[a + length - 1][0]), (other, second[b][0], second[b + length - 1][0]))


def main(explained_in, folders):
    files = {}
    for folder in folders:
        for directory, _, names in os.walk(folder):
            for name in names:
                if name.endswith(SOURCES):
                    path = os.path.join(directory, name)
                    files[path] = lines_of(path)
    explained = {}
    with open(explained_in, encoding='utf-8') as rows:
        for row in rows:
            if row.strip() and not row.startswith('#'):
                most, one, other, _ = row.split(maxsplit=3)
                explained[frozenset((one, other))] = int(most)
    needed = set()
    for length, one, other in sorted(copies(dict(sorted(files.items()))), reverse=True):
        pair = frozenset((one[0], other[0]))
        if length <= explained.get(pair, 0):
            needed.add(pair)
        else:
            print('  %d %s:%d-%d = %s:%d-%d' % ((length,) + one + other))
    for pair in explained.keys() - needed:
        print('  no longer equal, and still in %s: %s' % (explained_in, ' '.join(sorted(pair))))


main(sys.argv[1], sys.argv[2:])
