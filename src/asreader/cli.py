"""the command line: a command parses, calls one library function, prints. torch is imported only where it is needed."""

from __future__ import annotations

import json
import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import asreader
from asreader.errors import InputError

app = typer.Typer(
    name="asreader",
    help="Attention Sum Reader: read cloze data, train readers, evaluate them, answer questions on any text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Data = Annotated[
    Path, typer.Argument(help="a file, folder or archive of questions, or a prepared store", metavar="DATA")
]
Format = Annotated[str | None, typer.Option("--format", help="format of the data; detected without it")]
Only = Annotated[str | None, typer.Option(help="only files inside a folder or archive whose name fits, as '*NE*'")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="count and skip questions that cannot be read")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON document")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps")]


class Kind(StrEnum):
    """What `convert` writes."""

    jsonl = "jsonl"
    cbt = "cbt"


def main() -> None:
    """Run a command; a user's mistake is one line on stderr and exit code 2, never a traceback."""
    # Threads that wait by spinning slow training thirtyfold when another program wants the same core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _fail(str(error), 2)
    except typer.Abort:
        _fail("stopped", 1)
    except KeyboardInterrupt:
        _fail("stopped; nothing half-written is left, and `asreader train ... --resume` goes on with a run", 1)
    except BrokenPipeError:  # whoever read stdout has had enough
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.stdout = None  # what stdout still holds cannot be written at exit either
        _fail(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):  # the option parser's own errors
            _fail(f"{error.format_message()} (see asreader --help)", 2)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int) -> None:
    print("asreader: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"asreader {asreader.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="show the version")
    ] = False,
) -> None:
    pass


@app.command()
def demo(out: Annotated[Path, typer.Option(help="new folder for data and run")] = Path("runs/demo")) -> None:
    """Make stories, train a small reader on them, evaluate it, answer, explain: under three minutes on two cores."""
    from asreader.demo import demo

    demo(out)


@app.command()
def formats(as_json: AsJson = False) -> None:
    """List the formats that are read."""
    _list_plugins("data.formats", as_json)


@app.command()
def readers(as_json: AsJson = False) -> None:
    """List the readers that can be trained, and the baselines that learn nothing."""
    _list_plugins("readers", as_json, "baselines")


def _list_plugins(folder: str, as_json: bool, *more: str) -> None:
    from asreader import plugins

    rows = [(name, plugins.summary(place, name)) for place in (folder, *more) for name in plugins.names(place)]
    if as_json:
        _print_json([{"name": name, "summary": text} for name, text in rows])
    else:
        width = max(len(name) for name, _ in rows)
        print("\n".join(f"{name:<{width}}  {text}" for name, text in rows))


@app.command()
def stats(
    data: Data, format: Format = None, only: Only = None, skip_bad: SkipBad = False, as_json: AsJson = False
) -> None:
    """Statistics of any data, split by split: Table 1 of the paper."""
    from asreader.data.loading import statistics

    found = statistics(data, format=format, only=only, skip_bad=skip_bad)
    if as_json:
        _print_json({label: part.as_json() for label, part in found.items()})
    else:
        from asreader import tables

        tables.show(tables.statistics(found))


@app.command()
def convert(
    data: Data,
    out: Annotated[Path, typer.Option(help="file to write")],
    to: Annotated[Kind, typer.Option("--to", help="what to write")] = Kind.jsonl,
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Turn any known format into JSONL or CBT."""
    from asreader import files, plugins
    from asreader.data.loading import examples

    line = plugins.load("data.formats", to.value).line
    count = 0
    with files.replacing(out) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        for _, example in examples(data, format=format, only=only, skip_bad=skip_bad):
            file.write(line(example))
            count += 1
    print(f"{count:,} questions -> {out}")


@app.command()
def prepare(
    data: Annotated[list[Path], typer.Argument(help="files, folders or archives of questions", metavar="DATA...")],
    out: Annotated[Path, typer.Option(help="new folder to write")],
    format: Format = None,
    only: Only = None,
    skip_bad: SkipBad = False,
) -> None:
    """Read data once and encode it into memory-mapped stores, one a split: what training reads."""
    from asreader.data import loading

    for label, questions in loading.prepare(data, out, format=format, only=only, skip_bad=skip_bad).items():
        print(f"{questions:,} questions -> {out / label}")


@app.command()
def train(
    config: Annotated[Path, typer.Argument(help="settings", metavar="CONFIG.toml")],
    out: Annotated[Path, typer.Option(help="folder of the run", metavar="RUN")],
    settings: Annotated[list[str], typer.Option("--set", metavar="SECTION.KEY=VALUE", help="override a setting")] = [],  # noqa: B006
    resume: Annotated[bool, typer.Option("--resume", help="go on with a run that was stopped")] = False,
) -> None:
    """Train a reader."""
    from asreader import config as configs
    from asreader.training import loop

    run = loop.train(configs.load(config, settings), out, resume=resume)
    print(f"{run.folder}: done; try `asreader evaluate {run.folder} DATA` or `asreader answer {run.folder} ...`")


@app.command()
def evaluate(
    run: Annotated[str, typer.Argument(help="run folder, or 'bundled'")],
    data: Data,
    predictions: Annotated[Path | None, typer.Option(help="write the prediction file here")] = None,
    split: Annotated[str | None, typer.Option(help="train, valid or test, where the data holds several")] = None,
    format: Format = None,
    skip_bad: SkipBad = False,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Accuracy of a reader on any data."""
    from asreader.data.loading import load_store
    from asreader.evaluation import predictions as files
    from asreader.predictor import Reader

    reader = Reader.load(run, device)
    evaluation = reader.evaluate(load_store(data, split=split, format=format, skip_bad=skip_bad))
    if predictions is not None:
        files.write(predictions, evaluation.predictions)
    _show_scores(evaluation.scores, as_json)


@app.command()
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


@app.command()
def answer(
    question: Annotated[str, typer.Option(help="a sentence with a gap: XXXXX, @placeholder or ___")],
    document: Annotated[str, typer.Option(help="a text file, or - for standard input", metavar="FILE|-")],
    run: Annotated[str, typer.Argument(help="run folder; without it the bundled reader", metavar="RUN")] = "bundled",
    candidates: Annotated[
        str | None, typer.Option(help="comma-separated; without it every word of the document")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="how many candidates to show")] = 5,
    html: Annotated[Path | None, typer.Option(help="write a page that shows the attention", metavar="FILE")] = None,
    device: Device = "cpu",
    as_json: AsJson = False,
) -> None:
    """Answer a question about a text and show where the reader looked."""
    from asreader import files, highlight
    from asreader.predictor import Reader

    choices = [part.strip() for part in candidates.split(",") if part.strip()] if candidates else None
    found = Reader.load(run, device).answer(_text(document), question, choices)
    if html is not None:
        files.write_text(html, highlight.page(found))
    if as_json:
        _print_json(found.as_json(top))
    else:
        from asreader import tables

        tables.show(highlight.terminal(found, top))


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
    from asreader import tables
    from asreader.evaluation.metrics import Scores

    assert isinstance(scores, Scores)
    if as_json:
        _print_json(scores.as_json())
    else:
        tables.show(tables.scores(scores))


def _print_json(document: object) -> None:
    print(json.dumps(document, ensure_ascii=False))
