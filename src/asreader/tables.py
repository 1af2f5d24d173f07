"""results -> tables for a person's terminal; programs take --json instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from asreader.data.statistics import Statistics
from asreader.evaluation.metrics import Scores
from asreader.evaluation.results import Row


def show(thing: RenderableType) -> None:
    """Print to stdout, without colour where it is not a terminal."""
    Console(highlight=False).print(thing, soft_wrap=isinstance(thing, Text))


def statistics(parts: Mapping[str, Statistics]) -> Table:
    """Table 1 of the paper: one column a split."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for label in parts:
        table.add_column(label, justify="right")
    rows = {
        "questions": lambda part: f"{part.questions:,}",
        "max candidates": lambda part: f"{part.candidates.max:,}",
        "mean candidates": lambda part: f"{part.candidates.mean:.1f}",
        "mean document words": lambda part: f"{part.document_tokens.mean:,.2f}",
        "min to max": lambda part: f"{part.document_tokens.min:,} to {part.document_tokens.max:,}",
        "mean question words": lambda part: f"{part.question_tokens.mean:.2f}",
        "vocabulary": lambda part: f"{part.vocabulary:,}",
        "vocabulary, case folded": lambda part: f"{part.vocabulary_lowercase:,}",
        "answer not in document": lambda part: f"{part.answers_not_in_document:,}",
    }
    for name, cell in rows.items():
        table.add_row(name, *map(cell, parts.values()))
    return table


def scores(found: Scores) -> Table:
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


def results(found: Sequence[Row], style: str = "terminal") -> RenderableType:
    """The paper's result table, for the terminal, as Markdown or as LaTeX; columns without a figure are left out."""
    columns = {"valid": "valid", "test": "test", "paper_valid": "paper, valid", "paper_test": "paper, test"}
    used = {key: title for key, title in columns.items() if any(getattr(row, key) is not None for row in found)}
    head = ["", *used.values()]
    body = [[row.name, *(_share(getattr(row, key)) for key in used)] for row in found]
    if style == "markdown":
        lines = [head, ["---", *["---:"] * len(used)], *body]
        return Text("\n".join(f"| {' | '.join(line)} |" for line in lines))
    if style == "latex":
        latex = [" & ".join(line).replace("%", "\\%") + r" \\" for line in (head, *body)]
        begin, end = rf"\begin{{tabular}}{{l{'r' * len(used)}}}", r"\end{tabular}"
        return Text("\n".join([begin, r"\hline", latex[0], r"\hline", *latex[1:], r"\hline", end]))
    table = Table(box=None, pad_edge=False)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left")
    for line in body:
        table.add_row(*line)
    return table


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"
