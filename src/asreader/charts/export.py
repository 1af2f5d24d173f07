"""Systems -> folder of figures: each as PNG, SVG and CSV, and index.md with all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asreader import executors
from asreader.charts.catalogue import FIGURE_BUILDERS, build_figures
from asreader.charts.drawing import MAX_OVERLAID, Picture, render_picture
from asreader.charts.figure_spec import Figure
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.breakdown_table import escape_markdown
from asreader.evaluation.breakdowns.systems import SystemSource
from asreader.system import atomic_files
from asreader.system.progress import track_progress

INDEX_NAME = "index.md"
SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True)
class Analysis:
    """The figures of an analysis, the reasons for missing ones, and the folder they are written to."""

    figures: tuple[Figure, ...]
    left_out: tuple[str, ...]
    folder: Path

    def files(self, figure: Figure) -> list[Path]:
        """The files of a figure; only CSV if it has no plots."""
        return [self.folder / f"{figure.name}{suffix}" for suffix in (SUFFIXES if figure.plots else SUFFIXES[-1:])]

    def lines(self) -> list[str]:
        """The lines that `analyse` prints."""
        titles = [f"{figure.name}: {figure.title}" for figure in self.figures]
        return [*titles, *self.left_out, f"{len(self.figures)} figures -> {self.folder / INDEX_NAME}"]

    def as_json(self) -> dict[str, object]:
        """The document that `analyse --json` prints."""
        figures = [
            {
                "name": figure.name,
                "title": figure.title,
                "files": [str(path) for path in self.files(figure)],
                "header": figure.table.header,
                "rows": figure.table.rows,
            }
            for figure in self.figures
        ]
        return {"folder": str(self.folder), "figures": figures, "left_out": self.left_out}

    def index(self) -> str:
        """The Markdown index: each figure with its caption, as a picture or else as a table."""
        parts = ["# Analysis"]
        for figure in self.figures:
            body = f"![{figure.title}]({figure.name}.svg)" if figure.plots else figure.table.to_markdown()
            links = ", ".join(f"[{path.suffix[1:].upper()}]({path.name})" for path in self.files(figure))
            parts += [f"## {figure.title}", body, f"{escape_markdown(figure.caption)} {links}"]
        if self.left_out:
            parts += ["## Left out", "\n".join(f"- {escape_markdown(line)}" for line in self.left_out)]
        return "\n\n".join(parts) + "\n"


def analyse_systems(
    sources: Sequence[SystemSource],
    out: Path,
    *,
    split: str | None = None,
    format: str | None = None,
    skip_bad: bool = False,
) -> Analysis:
    """Read the predictions and data, compute and draw the figures, and write them to `out`."""
    left_out: list[str] = []
    figures = build_figures(
        systems.load_systems(sources, split=split, format=format, skip_bad=skip_bad), left_out.append
    )
    analysis = Analysis(tuple(figures), tuple(left_out), out)
    # Overlaid figures are drawn faster than a worker process starts; small multiples use all cores.
    write_analysis(analysis, workers=1 if len(sources) <= MAX_OVERLAID else 0)
    return analysis


def write_analysis(analysis: Analysis, workers: int = 1) -> None:
    """Draw all figures, then write each file atomically and delete stale files of an earlier analysis."""
    plotted = [figure for figure in analysis.figures if figure.plots]
    pictures = executors.map_ordered("local", render_picture, plotted, workers)
    by_name = dict(
        zip((figure.name for figure in plotted), track_progress(pictures, "drawing", len(plotted)), strict=True)
    )
    for figure in analysis.figures:
        _write_figure(figure, by_name.get(figure.name), analysis.folder / figure.name)
    written = {path for figure in analysis.figures for path in analysis.files(figure)}
    for stale in {analysis.folder / f"{name}{suffix}" for name in FIGURE_BUILDERS for suffix in SUFFIXES} - written:
        stale.unlink(missing_ok=True)
    atomic_files.write_text(analysis.folder / INDEX_NAME, analysis.index())


def _write_figure(figure: Figure, picture: Picture | None, stem: Path) -> None:
    atomic_files.write_text(stem.with_suffix(".csv"), figure.table.to_csv())
    if picture is not None:
        atomic_files.write_text(stem.with_suffix(".svg"), picture.svg)
        with atomic_files.atomic_write(stem.with_suffix(".png")) as scratch:
            scratch.write_bytes(picture.png)
