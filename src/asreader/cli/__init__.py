"""the command line: a command parses, calls one library function, prints. torch is imported only where it is needed."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import asreader
from asreader.cli import analysis, benchmark, combine, data, lists, make, report, sweep, work
from asreader.errors import ExecutionError, InputError

app = typer.Typer(
    name="asreader",
    help="Attention Sum Reader: read cloze data, train readers, evaluate them, answer questions on any text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    work.demo,
    lists.formats,
    lists.readers,
    lists.taggers,
    lists.executors,
    data.stats,
    data.convert,
    data.prepare,
    work.train,
    sweep.sweep,
    work.evaluate,
    work.calibrate,
    work.baseline,
    work.answer,
):
    app.command()(command)
app.command(cls=combine.ManyValues)(combine.ensemble)
app.command()(combine.table)
app.command()(combine.compare)
app.command()(analysis.analyse)
app.command()(report.gallery)
app.command()(report.report)
making = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
making.command()(make.books)
making.command()(make.news)
app.add_typer(making, name="make", help="Make questions from your own texts: books, or news articles with highlights.")
measuring = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
measuring.command()(benchmark.train)
measuring.command()(benchmark.answer)
app.add_typer(measuring, name="benchmark", help="Measure this product against the plain PyTorch way, in one run.")


def main() -> None:
    """Run a command; a user's mistake is one line on stderr and exit code 2, never a traceback."""
    # Threads that wait by spinning slow training thirtyfold when another program wants the same core. With a core for
    # each they are what plain PyTorch is fastest with, so a benchmark leaves them alone.
    if sys.argv[1:2] != ["benchmark"]:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _fail(str(error), 2)
    except ExecutionError as error:
        _fail(str(error), 1)
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
