"""results -> tables and text for the terminal, Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from asreader.cli.options import print_json
from asreader.data.statistics import TABLE_ROWS, Statistics
from asreader.evaluation.bootstrap import DRAWS
from asreader.evaluation.comparison import Comparison, Evidence
from asreader.evaluation.ensembles import EnsembleResult
from asreader.evaluation.metrics import Scores
from asreader.evaluation.result_table import ResultRow
from asreader.system.markup import escape_controls

SIGNIFICANCE_LEVEL = 0.05


def print_renderable(renderable: RenderableType) -> None:
    """Print to stdout, without colour if it is not a terminal."""
    Console(highlight=False).print(renderable, soft_wrap=isinstance(renderable, Text))


def print_scores(scores: Scores, as_json: bool) -> None:
    """Print scores as a table or as JSON."""
    if as_json:
        print_json(scores.as_json())
    else:
        print_renderable(format_scores(scores))


def format_statistics(parts: Mapping[str, Statistics]) -> Table:
    """Table 1 of the paper, one column for each split."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label in parts:
        table.add_column(label, justify="right")
    for name, cell in TABLE_ROWS.items():
        table.add_row(name, *map(cell, parts.values()))
    return table


def format_scores(scores: Scores) -> Table:
    """The table of `evaluate` and `baseline`."""
    low, high = scores.interval
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("questions", f"{scores.questions:,}")
    table.add_row("accuracy", f"{scores.accuracy:.4f}  (95% interval {low:.4f} to {high:.4f})")
    for top, accuracy in scores.accuracy_at.items():
        if top > 1:
            table.add_row(f"answer in the best {top}", f"{accuracy:.4f}")
    table.add_row("answer not in document", f"{scores.answer_not_in_document:,}")
    if scores.unknown_words is not None:
        table.add_row("unknown words", f"{scores.unknown_words:.2%}")
    return table


def format_ensemble(ensemble: EnsembleResult) -> Text:
    """The text of `ensemble`."""
    lines = [
        f"{ensemble.method} ensemble of {len(ensemble.members)} of {ensemble.readers} readers",
        f"best single reader on validation data: {ensemble.best_single:.4f}",
    ]
    for split, scores in ensemble.scores.items():
        low, high = scores.interval
        lines.append(
            f"{split}: {scores.accuracy:.4f} (95% interval {low:.4f} to {high:.4f}), in the best 2: "
            f"{scores.accuracy_at[2]:.4f}, in the best 5: {scores.accuracy_at[5]:.4f}"
        )
    if ensemble.cross_validated is not None:
        lines.append(f"valid, cross-validated (chosen on other questions): {ensemble.cross_validated:.4f}")
    if len(set(ensemble.weights)) > 1:
        lines += [
            f"{weight:.4f}  {escape_controls(name)}"
            for name, weight in zip(ensemble.members, ensemble.weights, strict=True)
        ]
    return Text("\n".join(lines))


def format_results(rows: Sequence[ResultRow], style: str = "terminal") -> RenderableType:
    """The paper's result table for the terminal, as Markdown or as LaTeX; empty columns are left out."""
    columns = {"valid": "valid", "test": "test", "paper_valid": "paper valid", "paper_test": "paper test"}
    shown = {key: title for key, title in columns.items() if any(getattr(row, key) is not None for row in rows)}
    head = ["", *shown.values()]
    body = [[escape_controls(" ".join(row.name.split())), *(_format_number(row, key) for key in shown)] for row in rows]
    if style == "markdown":
        lines = [head, ["---", *["---:"] * len(shown)], *([_escape_markdown(cell) for cell in line] for line in body)]
        return Text("\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", _format_note(rows)]))
    breaks = [row.part != previous.part for previous, row in pairwise(rows)]
    if style == "latex":
        return Text("\n".join(_list_latex_lines(head, body, [False, *breaks], _format_note(rows))))
    table = Table(box=None, pad_edge=False, caption=_format_note(rows), caption_justify="left", caption_style="dim")
    for column, title in enumerate(head):
        table.add_column(title.replace(" ", "\n"), justify="right" if "paper" in title else "left", no_wrap=column > 0)
    for line, ends_part in zip(body, [*breaks, True], strict=True):
        table.add_row(Text(line[0]), *(cell.rjust(4) for cell in line[1:]))
        if ends_part:
            table.add_row()
    return table


def _format_number(row: ResultRow, key: str) -> str:
    """A value in per cent, followed by its deviation between seeds or its interval."""
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


def _format_note(rows: Sequence[ResultRow]) -> str:
    parts = [f"In per cent; in brackets 95% intervals (bootstrap over questions, {DRAWS:,} draws)."]
    if any(row.valid_deviation is not None for row in rows):
        parts.append("± is the standard deviation between seeds.")
    if any("cross-validated" in row.name for row in rows):
        parts.append("Members and weights are chosen on validation data; cross-validated: on other questions.")
    return " ".join(parts)


def _escape_markdown(text: str) -> str:
    return re.sub(r"([\\`*_|<>\[\]])", r"\\\1", text)


_LATEX_ESCAPES = {ord(character): f"\\{character}" for character in "&%$#_{}"} | {
    ord("\\"): r"\textbackslash{}",
    ord("~"): r"\textasciitilde{}",
    ord("^"): r"\textasciicircum{}",
    ord("±"): r"$\pm$",
    ord("–"): "--",
}


def _list_latex_lines(head: list[str], body: list[list[str]], rules: list[bool], note: str) -> Iterator[str]:
    """The lines of a LaTeX table for \\usepackage{booktabs}."""
    yield f"% {note}"
    yield rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}"
    yield r"\toprule"
    yield " & ".join(head) + r" \\"
    yield r"\midrule"
    for line, rule in zip(body, rules, strict=True):
        if rule:
            yield r"\midrule"
        yield " & ".join(cell.translate(_LATEX_ESCAPES) for cell in line) + r" \\"
    yield r"\bottomrule"
    yield r"\end{tabular}"


def format_comparison(comparison: Comparison, show: int) -> RenderableType:
    """The text of `compare`: both systems, counts, the difference with its test, and questions that flip."""
    sides = Table(box=None, pad_edge=False, show_header=False)
    for letter, side in (("A", comparison.first), ("B", comparison.second)):
        several = "" if side.deviation is None else f"mean of {side.runs} runs, deviation {100 * side.deviation:.2f}"
        sides.add_row(letter, Text(escape_controls(side.name)), f"{100 * side.accuracy:.2f}", several)
    counts = Table(box=None, pad_edge=False)
    has_votes = comparison.first.runs + comparison.second.runs > 2
    counts.add_column("questions, by vote of the runs" if has_votes else "questions")
    for title in ("B right", "B wrong"):
        counts.add_column(title, justify="right")
    counts.add_row("A right", f"{comparison.both:,}", f"{comparison.only_first:,}")
    counts.add_row("A wrong", f"{comparison.only_second:,}", f"{comparison.neither:,}")
    return Group(sides, "", counts, "", Text(_format_difference(comparison)), *_list_flips(comparison, show))


def _format_difference(comparison: Comparison) -> str:
    low, high = comparison.interval
    evidence = comparison.evidence
    has_several_runs = comparison.first.runs + comparison.second.runs > 2
    units = "runs and questions" if has_several_runs else "questions"
    scope = "other seeds on these questions" if has_several_runs else "these two alone, not of other seeds"
    return (
        f"A minus B: {100 * comparison.difference:+.2f} points, 95% interval {100 * low:+.2f} to {100 * high:+.2f} "
        f"(paired bootstrap over {units}, {DRAWS:,} draws)\n"
        f"{evidence.test}, two-sided: p = {evidence.p:.2g}, {_format_verdict(evidence)} "
        f"at the {SIGNIFICANCE_LEVEL:.0%} level by this test; it speaks of {scope}"
    )


def _format_verdict(evidence: Evidence) -> str:
    if evidence.least >= SIGNIFICANCE_LEVEL:
        return f"which cannot be below {evidence.least:.2g} here, so that nothing is significant"
    return "significant" if evidence.p < SIGNIFICANCE_LEVEL else "not significant"


def _list_flips(comparison: Comparison, show: int) -> Iterator[RenderableType]:
    for title, flips in (
        ("Only A is right", [flip for flip in comparison.flips if flip.first == flip.answer]),
        ("Only B is right", [flip for flip in comparison.flips if flip.second == flip.answer]),
    ):
        if flips and show:
            shown = f", the clearest {show}" if len(flips) > show else ""
            yield Text(f"\n{title} ({len(flips):,}{shown}); in brackets the probability of the right answer:")
        for flip in flips[:show]:
            line = (
                f"  {flip.id}: A {flip.first} ({flip.first_probability:.2f}), "
                f"B {flip.second} ({flip.second_probability:.2f})"
            )
            yield Text(escape_controls(line))
            if flip.question is not None:
                yield Padding(Text(escape_controls(flip.question), style="dim"), (0, 0, 0, 6))
