"""The tables of docs/results/cbt-ne.md and cbt-cn.md from reproduce/results/cbt.jsonl: python reproduce/tables.py

    python reproduce/tables.py DIR NAME     # rows of a finished `reproduce/cbt.py`, printed for that file

A document has its tables between `<!-- NAME -->` and `<!-- end -->`; a test compares them with the rows.
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
RECORDED = ROOT / "reproduce" / "results" / "cbt.jsonl"
DOCUMENTS = tuple(ROOT / "docs" / "results" / f"cbt-{kind}.md" for kind in ("ne", "cn"))
PART = re.compile(r"<!-- (cbt-[-a-z]+) (\w+) -->\n.*?<!-- end -->", re.DOTALL)

Row = dict[str, Any]


def rows(benchmark: str, kind: str) -> list[Row]:
    """What was recorded."""
    every = map(json.loads, RECORDED.read_text(encoding="utf-8").splitlines())
    return [row for row in every if (row["benchmark"], row["kind"]) == (benchmark, kind)]


def table(found: Sequence[Row]) -> list[str]:
    """`asreader table`, in per cent, with the paper's figures beside."""
    lines = ["| | validation | 95% interval | paper, validation |", "|---|---|---|---|"]
    for row in found:
        if row["valid"] is not None:
            low, high = (f"{100 * bound:.1f}" for bound in row["valid_interval"] or (0, 0))
            interval = f"{low} to {high}" if row["valid_interval"] else ""
            spread = f" ± {100 * row['valid_deviation']:.1f}" if row["valid_deviation"] else ""
            paper = f"{100 * row['paper_valid']:.1f}" if row["paper_valid"] else ""
            lines.append(f"| {row['name']} | {100 * row['valid']:.1f}{spread} | {interval} | {paper} |")
    return lines


def readers(found: Sequence[Row]) -> list[str]:
    """Every reader of the grid."""
    lines = ["| embedding | hidden | seed | after one epoch | after two |", "|---|---|---|---|---|"]
    for row in found:
        sizes = f"| {row['embedding']} | {row['hidden']} | {row['seed']} |"
        lines.append(sizes + "".join(f" {accuracy:.4f} |" for accuracy in row["accuracy"]))
    return lines


def recipes(found: Sequence[Row]) -> list[str]:
    """What each step adds."""
    lines = ["| what | trained on | epochs | seeds | mean | deviation | best |", "|---|---|---|---|---|---|---|"]
    for row in found:
        data = f"{row['books']}, {row['questions']:,} questions"
        figures = f"{row['accuracy']:.4f} | {row['deviation']:.4f} | {row['best']:.4f}"
        lines.append(f"| {row['what']} | {data} | {row['epochs']} | {row['seeds']} | {figures} |")
    return lines


def times(found: Sequence[Row]) -> list[str]:
    """From raw books to the finished table."""
    lines = ["| stage | seconds | on |", "|---|---|---|"]
    (row,) = found
    stages = {"data": "books to encoded questions", "train": f"training of {row['readers']} readers"}
    stages["show"] = "table, figures, report"
    lines += [f"| {name} | {row[stage]} | {row['device'][stage]} |" for stage, name in stages.items()]
    whole = sum(row[stage] for stage in stages)
    return [*lines, f"| all | {whole:.1f}, of it training {row['train'] / whole:.0%} | |"]


WAYS: dict[str, Callable[[Sequence[Row]], list[str]]] = {
    "table": table,
    "reader": readers,
    "recipe": recipes,
    "time": times,
}


def written(text: str) -> str:
    """A document with its tables as they are now."""

    def part(match: re.Match[str]) -> str:
        name, kind = match.groups()
        return "\n".join([f"<!-- {name} {kind} -->", *WAYS[kind](rows(name, kind)), "<!-- end -->"])

    return PART.sub(part, text)


def recorded(folder: Path, name: str) -> list[Row]:
    """The rows of a finished reproduction."""
    runs = folder / "runs"
    command = [sys.executable, "-m", "asreader", "table", str(runs), "--paper", name, "--json"]
    shown = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    found: list[Row] = [{"benchmark": name, "kind": "table", **row} for row in shown]
    for metrics in sorted(runs.glob("*/metrics.jsonl")):
        settings = (metrics.parent / "config.toml").read_text(encoding="utf-8")
        sizes = {
            key: int(re.findall(rf"^{key} = (\d+)", settings, re.MULTILINE)[0])
            for key in ("embedding", "hidden", "seed")
        }
        lines = map(json.loads, metrics.read_text(encoding="utf-8").splitlines())
        curve = [line["accuracy"] for line in lines if "accuracy" in line]
        found.append({"benchmark": name, "kind": "reader", **sizes, "accuracy": curve})
    return found


def main(arguments: Sequence[str]) -> None:
    match arguments:
        case []:
            for document in DOCUMENTS:
                document.write_text(written(document.read_text(encoding="utf-8")), encoding="utf-8")
        case [folder, name]:
            for row in recorded(Path(folder), name):
                print(json.dumps(row))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
