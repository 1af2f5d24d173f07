"""reproduce/results/cbt.jsonl -> tables of docs/results/cbt-ne.md and cbt-cn.md: python reproduce/tables.py

    python reproduce/tables.py DIR NAME     # prints the rows of a finished reproduce/cbt.py

Tables are between `<!-- NAME KIND -->` and `<!-- end -->`; a test compares them with the rows.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ROWS_FILE = ROOT / "reproduce" / "results" / "cbt.jsonl"
DOCUMENTS = tuple(ROOT / "docs" / "results" / f"cbt-{kind}.md" for kind in ("ne", "cn"))
TABLE_BLOCK = re.compile(r"<!-- (cbt-[-a-z]+) (\w+) -->\n.*?<!-- end -->", re.DOTALL)

Row = dict[str, Any]


def read_rows(benchmark: str, kind: str) -> list[Row]:
    """Recorded rows of one benchmark and kind."""
    all_rows = map(json.loads, ROWS_FILE.read_text(encoding="utf-8").splitlines())
    return [row for row in all_rows if (row["benchmark"], row["kind"]) == (benchmark, kind)]


def format_results(rows: Sequence[Row]) -> list[str]:
    """The result table of `asreader table`, in per cent, with a column of the paper's figures."""
    lines = ["| | validation | 95% interval | paper, validation |", "|---|---|---|---|"]
    for row in rows:
        if row["valid"] is not None:
            low, high = (f"{100 * bound:.1f}" for bound in row["valid_interval"] or (0, 0))
            interval = f"{low} to {high}" if row["valid_interval"] else ""
            spread = f" ± {100 * row['valid_deviation']:.1f}" if row["valid_deviation"] else ""
            paper = f"{100 * row['paper_valid']:.1f}" if row["paper_valid"] else ""
            lines.append(f"| {row['name']} | {100 * row['valid']:.1f}{spread} | {interval} | {paper} |")
    return lines


def format_readers(rows: Sequence[Row]) -> list[str]:
    """One line for each reader of the grid."""
    lines = ["| embedding | hidden | seed | after one epoch | after two |", "|---|---|---|---|---|"]
    for row in rows:
        sizes = f"| {row['embedding']} | {row['hidden']} | {row['seed']} |"
        lines.append(sizes + "".join(f" {accuracy:.4f} |" for accuracy in row["accuracy"]))
    return lines


def format_recipes(rows: Sequence[Row]) -> list[str]:
    """One line for each recipe."""
    lines = ["| what | trained on | epochs | seeds | mean | deviation | best |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        data = f"{row['books']}, {row['questions']:,} questions"
        figures = f"{row['accuracy']:.4f} | {row['deviation']:.4f} | {row['best']:.4f}"
        lines.append(f"| {row['what']} | {data} | {row['epochs']} | {row['seeds']} | {figures} |")
    return lines


def format_times(rows: Sequence[Row]) -> list[str]:
    """Seconds of each stage, from raw books to the finished table."""
    lines = ["| stage | seconds | on |", "|---|---|---|"]
    (row,) = rows
    stages = {"data": "books to encoded questions", "train": f"training of {row['readers']} readers"}
    stages["show"] = "table, figures, report"
    lines += [f"| {name} | {row[stage]} | {row['device'][stage]} |" for stage, name in stages.items()]
    total = sum(row[stage] for stage in stages)
    return [*lines, f"| all | {total:.1f}, of it training {row['train'] / total:.0%} | |"]


FORMATTERS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    "table": format_results,
    "reader": format_readers,
    "recipe": format_recipes,
    "time": format_times,
}


def update_tables(text: str) -> str:
    """Replace the tables of a document by those of the recorded rows."""

    def format_block(match: re.Match[str]) -> str:
        name, kind = match.groups()
        return "\n".join([f"<!-- {name} {kind} -->", *FORMATTERS[kind](read_rows(name, kind)), "<!-- end -->"])

    return TABLE_BLOCK.sub(format_block, text)


def collect_rows(folder: Path, name: str) -> list[Row]:
    """Rows of a finished reproduction."""
    runs = folder / "runs"
    command = [sys.executable, "-m", "asreader", "table", str(runs), "--paper", name, "--json"]
    results = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    rows: list[Row] = [{"benchmark": name, "kind": "table", **row} for row in results]
    for metrics in sorted(runs.glob("*/metrics.jsonl")):
        settings = (metrics.parent / "config.toml").read_text(encoding="utf-8")
        sizes = {
            key: int(re.findall(rf"^{key} = (\d+)", settings, re.MULTILINE)[0])
            for key in ("embedding", "hidden", "seed")
        }
        lines = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        curve = [line["accuracy"] for line in lines if "accuracy" in line]
        rows.append({"benchmark": name, "kind": "reader", **sizes, "accuracy": curve})
    return rows


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case []:
            for document in DOCUMENTS:
                document.write_text(update_tables(document.read_text(encoding="utf-8")), encoding="utf-8")
        case [folder, name]:
            for row in collect_rows(Path(folder), name):
                print(json.dumps(row))
        case ["-h" | "--help"]:
            print(__doc__)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
