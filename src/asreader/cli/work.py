"""demo, train, evaluate, baseline, answer: readers at work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from asreader.cli.options import AsJson, Data, Device, Format, Only, SkipBad, print_json
from asreader.errors import InputError


def demo(out: Annotated[Path, typer.Option(help="new folder for data and run")] = Path("runs/demo")) -> None:
    """Make stories, train a small reader on them, evaluate it, answer, explain: under three minutes on two cores."""
    from asreader.cli.demo import demo

    demo(out)


def train(
    config: Annotated[Path, typer.Argument(help="settings", metavar="CONFIG.toml")],
    out: Annotated[Path, typer.Option(help="folder of the run", metavar="RUN")],
    settings: Annotated[list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="override a setting")] = [],  # noqa: B006
    readers: Annotated[int, typer.Option(min=1, help="so many, with seeds in a row, in RUN/seed-N")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="go on with a run that was stopped")] = False,
) -> None:
    """Train a reader, or several: on a GPU side by side."""
    from asreader.settings import load_settings
    from asreader.training import together

    for run in together.train(load_settings(config, settings), out, count=readers, resume=resume):
        print(f"{run.folder}: done; try `asreader evaluate {run.folder} DATA` or `asreader answer {run.folder} ...`")


def evaluate(
    run: Annotated[str, typer.Argument(help="run folder, or 'bundled'")],
    data: Data,
    predictions: Annotated[Path | None, typer.Option(help="write the prediction file here")] = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test, where the data holds several")] = None,
    answerable: Annotated[
        bool, typer.Option("--answerable", help="leave out questions whose answer is not in the document")
    ] = False,
    format: Format = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Accuracy of a reader on any data."""
    from asreader.data.loading import load_store
    from asreader.evaluation import predictions as files
    from asreader.inference.reader import Reader

    store = load_store(data, split=split, format=format, skip_bad=skip_bad)
    evaluation = Reader.load(run, device).evaluate(store)
    if answerable:
        evaluation = evaluation.answerable(store)
    if predictions is not None:
        files.write(predictions, evaluation.predictions)
    _show_scores(evaluation.scores, as_json)


def calibrate(
    run: Annotated[Path, typer.Argument(help="run folder", metavar="RUN")],
    data: Data,
    wanted: Annotated[
        float, typer.Option(min=0, max=1, help="how often answers above the threshold should be right")
    ] = 0.9,
    format: Format = None,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Make a run's confidence deserved, and find from where on its answers can be relied on; use data it never saw."""
    from dataclasses import asdict

    from asreader.inference.run_calibration import calibrate

    found = calibrate(run, data, wanted=wanted, format=format, device=device)
    if as_json:
        print_json(asdict(found))
        return
    known = found.calibration
    print(f"temperature {known.temperature:.3f}: expected calibration error {found.error_before:.4f} -> "
          f"{found.error_after:.4f} on {found.questions:,} questions")  # fmt: skip
    if found.accuracy is None or found.accuracy < wanted:
        print(f"no confidence from which on {wanted:.0%} of the answers are right: none is called sure")
    else:
        print(f"sure from a confidence of {known.threshold:.3f} on: {found.coverage:.1%} of the questions, "
              f"{found.accuracy:.1%} of them right; kept in {run}/calibration.json")  # fmt: skip


def baseline(
    name: Annotated[str, typer.Argument(help="maximum-frequency, exclusive-frequency, word-distance or uniform")],
    data: Data,
    predictions: Annotated[Path | None, typer.Option(help="write the prediction file here")] = None,
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
) -> None:
    """Accuracy of a rule that learns nothing; ties between candidates are shared equally."""
    from asreader import baselines
    from asreader.data.loading import examples
    from asreader.evaluation import predictions as files

    found = baselines.evaluate(
        name, (example for _, example in examples(data, format=format, only=only, skip_bad=skip_bad))
    )
    if predictions is not None:
        files.write(predictions, found.predictions)
    _show_scores(found.scores, as_json)


def answer(
    question: Annotated[str, typer.Option(help="a sentence with a gap: XXXXX, @placeholder or ___")],
    document: Annotated[str, typer.Option(help="a text file, or - for standard input", metavar="FILE|-")],
    run: Annotated[str, typer.Argument(help="run folder; without it the bundled reader", metavar="RUN")] = "bundled",
    candidates: Annotated[
        str | None, typer.Option(help="comma-separated; without it every word of the document")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="how many candidates to show")] = 5,
    html: Annotated[Path | None, typer.Option(help="write a page that shows the attention", metavar="FILE")] = None,
    picture: Annotated[
        Path | None, typer.Option(help="draw the attention as in the paper's figures", metavar="FILE.svg|FILE.png")
    ] = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Answer a question about a text and show where the reader looked."""
    from asreader.attention import html_view, terminal_view
    from asreader.inference.reader import Reader
    from asreader.system import atomic_files

    choices = [part.strip() for part in candidates.split(",") if part.strip()] if candidates else None
    found = Reader.load(run, device).answer(_text(document), question, choices)
    if html is not None:
        atomic_files.write_text(html, html_view.render_answer_page(found))
    if picture is not None:
        from asreader.attention import figure_file

        figure_file.write_figure(found, picture)
    if as_json:
        print_json(found.as_json(top))
    else:
        from asreader.cli import tables

        tables.show(terminal_view.render_terminal(found, top))


def _text(document: str) -> str:
    """The text of --document."""
    try:
        raw = sys.stdin.buffer.read() if document == "-" else Path(document).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{document}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{document}: not UTF-8 text (byte {error.start}); convert it, e.g. with iconv") from None


def _show_scores(scores: object, as_json: bool) -> None:
    from asreader.cli import tables
    from asreader.evaluation.metrics import Scores

    assert isinstance(scores, Scores)
    if as_json:
        print_json(scores.as_json())
    else:
        tables.show(tables.scores(scores))
