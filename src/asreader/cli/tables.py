"""results -> tables for a person's terminal; programs take --json instead."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asreader.data.statistics import TABLE_ROWS, Statistics
from asreader.evaluation.bootstrap import DRAWS
from asreader.evaluation.comparison import Comparison, Evidence
from asreader.evaluation.ensembles import Combined
from asreader.evaluation.metrics import Scores
from asreader.evaluation.result_table import Row
from asreader.system.markup import visible

SIGNIFICANCE_LEVEL = 0.05
"""Of significance."""


def print_renderable(thing: RenderableType) -> None:
    """Print to stdout, without colour where it is not a terminal."""
    Console(highlight=False).print(thing, soft_wrap=isinstance(thing, Text))


def format_statistics(parts: Mapping[str, Statistics]) -> Table:
    """Table 1 of the paper: one column a split."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label in parts:
        table.add_column(label, justify="right")
    for name, cell in TABLE_ROWS.items():
        table.add_row(name, *map(cell, parts.values()))
    return table


def format_scores(found: Scores) -> Table:
    """What `evaluate` shows."""
    low, high = found.interval
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("questions", f"{found.questions:,}")
    table.add_row("accuracy", f"{found.accuracy:.4f}  (95% interval {low:.4f} to {high:.4f})")
    for top, share in found.accuracy_at.items():
        if top > 1:
            table.add_row(f"answer in the best {top}", f"{share:.4f}")
    table.add_row("answer not in document", f"{found.answer_not_in_document:,}")
    if found.unknown_words is not None:
        table.add_row("unknown words", f"{found.unknown_words:.2%}")
    return table


def format_ensemble(found: Combined) -> Text:
    """What `ensemble` shows."""
    lines = [
        f"{found.method} ensemble of {len(found.members)} of {found.readers} readers",
        f"best single reader on validation data: {found.single:.4f}",
    ]
    for split, one in found.scores.items():
        low, high = one.interval
        lines.append(f"{split}: {one.accuracy:.4f} (95% interval {low:.4f} to {high:.4f}), in the best 2: "
                     f"{one.accuracy_at[2]:.4f}, in the best 5: {one.accuracy_at[5]:.4f}")  # fmt: skip
    if found.cross_validated is not None:
        lines.append(f"valid, cross-validated (chosen on other questions): {found.cross_validated:.4f}")
    if len(set(found.weights)) > 1:
        lines += [f"{weight:.4f}  {visible(name)}" for name, weight in zip(found.members, found.weights, strict=True)]
    return Text("\n".join(lines))


def format_results(found: Sequence[Row], style: str = "terminal") -> RenderableType:
    """The paper's result table, for the terminal, as Markdown or as LaTeX; columns without a figure are left out."""
    columns = {"valid": "valid", "test": "test", "paper_valid": "paper valid", "paper_test": "paper test"}
    used = {key: title for key, title in columns.items() if any(getattr(row, key) is not None for row in found)}
    head = ["", *used.values()]
    body = [[visible(" ".join(row.name.split())), *(_figure(row, key) for key in used)] for row in found]
    if style == "markdown":
        lines = [head, ["---", *["---:"] * len(used)], *([_markdown(cell) for cell in line] for line in body)]
        return Text("\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", _note(found)]))
    breaks = [row.part != before.part for before, row in pairwise(found)]
    if style == "latex":
        return Text("\n".join(_latex(head, body, [False, *breaks], _note(found))))
    table = Table(box=None, pad_edge=False, caption=_note(found), caption_justify="left", caption_style="dim")
    for number, title in enumerate(head):
        table.add_column(title.replace(" ", "\n"), justify="right" if "paper" in title else "left", no_wrap=number > 0)
    for line, last in zip(body, [*breaks, True], strict=True):
        table.add_row(Text(line[0]), *(cell.rjust(4) for cell in line[1:]))
        if last:
            table.add_row()
    return table


def _figure(row: Row, key: str) -> str:
    """Per cent, with the deviation between seeds or the interval behind it."""
    value: float | None = getattr(row, key)
    deviation: float | None = getattr(row, f"{key}_deviation", None)
    interval: tuple[float, float] | None = getattr(row, f"{key}_interval", None)
    if value is None:
        return ""
    if deviation is not None:
        return f"{100 * value:.1f} ± {100 * deviation:.1f}"
    if interval is not None:
        return f"{100 * value:.1f} ({100 * interval[0]:.1f}–{100 * interval[1]:.1f})"
    return f"{100 * value:.1f}"


def _note(found: Sequence[Row]) -> str:
    parts = [f"In per cent; in brackets 95% intervals (bootstrap over questions, {DRAWS:,} draws)."]
    if any(row.valid_deviation is not None for row in found):
        parts.append("± is the standard deviation between seeds.")
    if any("cross-validated" in row.name for row in found):
        parts.append("Members and weights are chosen on validation data; cross-validated: on other questions.")
    return " ".join(parts)


def _markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


_LATEX = {ord(character): f"\\{character}" for character in "&%$#_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("~"): r"\textasciitilde{}",
    ord("^"): r"\textasciicircum{}",
    ord("±"): r"$\pm$",
    ord("–"): "--",
}


def _latex(head: list[str], body: list[list[str]], rules: list[bool], note: str) -> Iterator[str]:
    """For \\usepackage{booktabs}."""
    yield f"% {note}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
    yield r"\toprule"
    yield " & ".join(head) + r" \\"
    yield r"\midrule"
    for line, rule in zip(body, rules, strict=True):
        if rule:
            yield r"\midrule"
        yield " & ".join(cell.translate(_LATEX) for cell in line) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def format_comparison(found: Comparison, show: int) -> RenderableType:
    """What `compare` shows: both systems, who answers what, the difference with its test, and what flipped."""
    sides = Table(box=None, pad_edge=False, show_header=False)
    for letter, side in (("A", found.first), ("B", found.second)):
        several = "" if side.deviation is None else f"mean of {side.runs} runs, deviation {100 * side.deviation:.2f}"
        sides.add_row(letter, Text(visible(side.name)), f"{100 * side.accuracy:.2f}", several)
    counts = Table(box=None, pad_edge=False)
    for title in ("questions" + (", by vote of the runs" if found.first.runs + found.second.runs > 2 else ""),
                  "B right", "B wrong"):  # fmt: skip
        counts.add_column(title, justify="right" if title[0] == "B" else "left")
    counts.add_row("A right", f"{found.both:,}", f"{found.only_first:,}")
    counts.add_row("A wrong", f"{found.only_second:,}", f"{found.neither:,}")
    return Group(sides, "", counts, "", Text(_difference(found)), *_flips(found, show))


def _difference(found: Comparison) -> str:
    low, high = found.interval
    evidence = found.evidence
    several = found.first.runs + found.second.runs > 2
    return (
        f"A minus B: {100 * found.difference:+.2f} points, 95% interval {100 * low:+.2f} to {100 * high:+.2f} "
        f"(paired bootstrap over {'runs and questions' if several else 'questions'}, {DRAWS:,} draws)\n"
        f"{evidence.test}, two-sided: p = {evidence.p:.2g}, {_verdict(evidence)} at the {SIGNIFICANCE_LEVEL:.0%} level by this test"
        f"; it speaks of {'other seeds on these questions' if several else 'these two alone, not of other seeds'}"
    )


def _verdict(evidence: Evidence) -> str:
    if evidence.least >= SIGNIFICANCE_LEVEL:
        return f"which cannot be below {evidence.least:.2g} here, so that nothing is significant"
    return "significant" if evidence.p < SIGNIFICANCE_LEVEL else "not significant"


def _flips(found: Comparison, show: int) -> Iterator[RenderableType]:
    for title, flips in (
        ("Only A is right", [flip for flip in found.flips if flip.first == flip.answer]),
        ("Only B is right", [flip for flip in found.flips if flip.second == flip.answer]),
    ):
        if flips and show:
            shown = f", the clearest {show}" if len(flips) > show else ""
            yield Text(f"\n{title} ({len(flips):,}{shown}); in brackets the probability of the right answer:")
        for flip in flips[:show]:
            told = (
                f"  {flip.id}: A {flip.first} ({flip.first_probability:.2f}), "
                f"B {flip.second} ({flip.second_probability:.2f})"
            )
            yield Text(visible(told))
            if flip.question is not None:
                yield Padding(Text(visible(flip.question), style="dim"), (0, 0, 0, 6))
