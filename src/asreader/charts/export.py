"""Systems -> a folder of figures: of each the picture as PNG and SVG and the numbers as CSV, and index.md to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asreader import executors
from asreader.charts.catalogue import FIGURE_BUILDERS, Figure, build_figures
from asreader.charts.drawing import MAX_OVERLAID, Picture, render_picture
from asreader.evaluation.breakdowns import systems
from asreader.evaluation.breakdowns.breakdown_table import escaped
from asreader.evaluation.breakdowns.systems import Source
from asreader.system import atomic_files
from asreader.system.progress import watched

INDEX_NAME = "index.md"
SUFFIXES = (".png", ".svg", ".csv")


@dataclass(frozen=True)
class Analysis:
    """What was found and where it lies."""

    figures: tuple[Figure, ...]
    left_out: tuple[str, ...]
    folder: Path

    def files(self, figure: Figure) -> list[Path]:
        """The files of one of the figures."""
        return [self.folder / f"{figure.name}{kind}" for kind in (SUFFIXES if figure.plots else SUFFIXES[-1:])]

    def lines(self) -> list[str]:
        """What a person is told."""
        told = [f"{figure.name}: {figure.title}" for figure in self.figures]
        return [*told, *self.left_out, f"{len(self.figures)} figures -> {self.folder / INDEX_NAME}"]

    def as_json(self) -> dict[str, object]:
        """The document that `analyse --json` prints."""
        shown = [
            {
                "name": figure.name,
                "title": figure.title,
                "files": [str(path) for path in self.files(figure)],
                "header": figure.table.header,
                "rows": figure.table.rows,
            }
            for figure in self.figures
        ]
        return {"folder": str(self.folder), "figures": shown, "left_out": self.left_out}

    def index(self) -> str:
        """The page that shows every figure with its caption; a figure without a picture is a table."""
        parts = ["# Analysis"]
        for figure in self.figures:
            shown = f"![{figure.title}]({figure.name}.svg)" if figure.plots else figure.table.markdown()
            links = ", ".join(f"[{path.suffix[1:].upper()}]({path.name})" for path in self.files(figure))
            parts += [f"## {figure.title}", shown, f"{escaped(figure.caption)} {links}"]
        if self.left_out:
            parts += ["## Left out", "\n".join(f"- {escaped(line)}" for line in self.left_out)]
        return "\n\n".join(parts) + "\n"


def analyse_systems(
    sources: Sequence[Source], out: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False
) -> Analysis:
    """Read, compute, draw and write."""
    left_out: list[str] = []
    found = build_figures(systems.load(sources, split=split, format=format, skip_bad=skip_bad), left_out.append)
    made = Analysis(tuple(found), tuple(left_out), out)
    # A few figures are drawn sooner than another process is started; many small ones share the processors.
    write_analysis(made, workers=1 if len(sources) <= MAX_OVERLAID else 0)
    return made


def write_analysis(made: Analysis, workers: int = 1) -> None:
    """Write all files once everything is drawn, each as a whole; files that an earlier analysis left there go."""
    drawn = [figure for figure in made.figures if figure.plots]
    pictures = executors.ordered("local", render_picture, drawn, workers)
    by_name = dict(zip((figure.name for figure in drawn), watched(pictures, "drawing", len(drawn)), strict=True))
    for figure in made.figures:
        _write_figure(figure, by_name.get(figure.name), made.folder / figure.name)
    written = {path for figure in made.figures for path in made.files(figure)}
    for stale in {made.folder / f"{name}{kind}" for name in FIGURE_BUILDERS for kind in SUFFIXES} - written:
        stale.unlink(missing_ok=True)
    atomic_files.write_text(made.folder / INDEX_NAME, made.index())


def _write_figure(figure: Figure, drawn: Picture | None, stem: Path) -> None:
    atomic_files.write_text(stem.with_suffix(".csv"), figure.table.csv())
    if drawn is not None:
        atomic_files.write_text(stem.with_suffix(".svg"), drawn.svg)
        with atomic_files.replacing(stem.with_suffix(".png")) as scratch:
            scratch.write_bytes(drawn.png)
