#!/usr/bin/env python3
"""Makes one Markdown table of what peer.py measured.

  table.py RESULT.json... [--readme README.md]

Each RESULT is the output of `peer.py --json`; with --readme the table replaces
what is between the lines `<!-- bench -->` and `<!-- /bench -->` of that file.
"""

import argparse
import json
import pathlib
import platform
import sys
import time

BEGIN, END = "<!-- bench -->", "<!-- /bench -->"


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def number(value):
    if not value:
        return ""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(value):
    return f"{value:.2f}" if value else ""


def table(results, machine, date):
    """-> the lines of the table and a sentence about how it was made."""
    variants = sorted({row["variant"] for result in results for row in result["rows"]})
    rounds = sorted({result["rounds"] for result in results})
    lines = [f"{machine}, {', '.join(variants)}, {date}; medians of {' or '.join(map(str, rounds))} rounds taken in turn, "
             "tokens per second; the last column of each half is izh's share of the int8 peak and of the read speed that "
             "were measured in the same process.", "",
             "| model | threads | prompt: izh | llama.cpp | ratio | of peak | generated: izh | llama.cpp | ratio | of read speed |",
             "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |"]
    for result in results:
        name = f"{pathlib.Path(result['gguf']).stem}, {result['prompt']} + {result['generate']} tokens"
        if result["depth"]:
            name += f" after {result['depth']}"
        for row in result["rows"]:
            lines.append(f"| {name} | {row['threads']} | {number(row['izh_pp'])} | {number(row['peer_pp'])} | {ratio(row['ratio_pp'])} "
                         f"| {row['share_pp']:.0%} | {number(row['izh_tg'])} | {number(row['peer_tg'])} | {ratio(row['ratio_tg'])} "
                         f"| {row['share_tg']:.0%} |")
            name = ""
    return lines


def replace(text, lines):
    """-> `text` with `lines` between the markers, each of which must be there once and in order."""
    rows = text.splitlines()
    if rows.count(BEGIN) != 1 or rows.count(END) != 1 or rows.index(BEGIN) > rows.index(END):
        raise ValueError(f"the lines {BEGIN} and {END} have to be there once, in this order")
    return "\n".join(rows[:rows.index(BEGIN) + 1] + lines + rows[rows.index(END):]) + "\n"


def main():
    parser = argparse.ArgumentParser(description="a Markdown table of what peer.py measured")
    parser.add_argument("results", nargs="+", type=pathlib.Path)
    parser.add_argument("--readme", type=pathlib.Path)
    options = parser.parse_args()
    results = [json.loads(path.read_text()) for path in options.results]
    lines = table(results, processor(), time.strftime("%Y-%m-%d"))
    if not options.readme:
        print("\n".join(lines))
        return
    try:
        options.readme.write_text(replace(options.readme.read_text(), lines))
    except ValueError as problem:
        sys.exit(f"table.py: {options.readme}: {problem}")


if __name__ == "__main__":
    main()
