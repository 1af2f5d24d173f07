"""The command line. One file a command, named X_command.py (`report` and `sweep` alone are names of other modules).

A command parses its arguments, calls one function of the library and prints the result: stdout is for people, or with
--json for programs; stderr is progress. torch and other heavy packages are imported inside the functions, so that
`asreader --help` is fast. `options` holds shared options, `tables` formats results for the terminal.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import asreader
from asreader.cli import (
    analyse_command,
    answer_command,
    baseline_command,
    benchmark_command,
    calibrate_command,
    compare_command,
    convert_command,
    demo_command,
    ensemble_command,
    evaluate_command,
    gallery_command,
    make_command,
    ops_command,
    plugin_list_command,
    prepare_command,
    report_command,
    stats_command,
    sweep_command,
    table_command,
    train_command,
)
from asreader.errors import ExecutionError, InputError

USE = "Use"
DATA = "Data"
TRAIN = "Train"
COMPARE = "Compare"


class CommandGroup(TyperGroup):
    """A group of commands whose help lists them by panel, as plain text; without arguments it shows its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; none is --help."""
        return super().parse_args(ctx, args or ["--help"])

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one section for each help panel, all with the same column widths."""
        names = self.list_commands(ctx)
        width = max(map(len, names))
        panels: dict[str, list[tuple[str, str]]] = {}
        for name in names:
            command = self.commands[name]
            panel = getattr(command, "rich_help_panel", None)
            row = f"{name:<{width}}", command.get_short_help_str(formatter.width - 4 - width)
            panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(row)
        for panel, rows in panels.items():
            with formatter.section(panel):
                formatter.write_dl(rows)


def _build_group(**options: Any) -> typer.Typer:
    return typer.Typer(cls=CommandGroup, rich_markup_mode=None, **options)


app = _build_group(
    name="asreader",
    help="Attention Sum Reader: answer questions on any text, train readers, evaluate and compare them.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
PANELS = {
    USE: (answer_command.answer, demo_command.demo, report_command.report, gallery_command.gallery),
    DATA: (
        stats_command.stats,
        convert_command.convert,
        prepare_command.prepare,
        plugin_list_command.formats,
        plugin_list_command.taggers,
    ),
    TRAIN: (
        train_command.train,
        sweep_command.sweep,
        evaluate_command.evaluate,
        calibrate_command.calibrate,
        ensemble_command.ensemble,
        plugin_list_command.readers,
        plugin_list_command.executors,
        plugin_list_command.engines,
        ops_command.ops,
    ),
    COMPARE: (
        table_command.table,
        compare_command.compare,
        analyse_command.analyse,
        baseline_command.baseline,
    ),
}
for panel, commands in PANELS.items():
    for command in commands:
        many_values = ensemble_command.ManyValuesCommand if command is ensemble_command.ensemble else None
        app.command(rich_help_panel=panel, cls=many_values)(command)
make_group = _build_group(help="Make questions from your own books or news articles.")
make_group.command()(make_command.books)
make_group.command()(make_command.news)
app.add_typer(make_group, name="make", rich_help_panel=DATA)
benchmark_group = _build_group(help="Compare the speed with a plain PyTorch implementation.")
benchmark_group.command()(benchmark_command.train)
benchmark_group.command()(benchmark_command.answer)
app.add_typer(benchmark_group, name="benchmark", rich_help_panel=COMPARE)


def main() -> None:
    """Run a command; a user's mistake is one line on stderr and exit code 2, never a traceback."""
    # Threads that wait by spinning slow training down thirtyfold when another program uses the same core. With a core
    # of its own each, they are what plain PyTorch is fastest with, so benchmarks keep the default.
    if sys.argv[1:2] != ["benchmark"]:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        _exit_with_message(str(error), 2)
    except ExecutionError as error:
        _exit_with_message(str(error), 1)
    except typer.Abort:
        _exit_with_message("stopped", 1)
    except KeyboardInterrupt:
        _exit_with_message("stopped; no file is half-written, and `asreader train ... --resume` continues a run", 1)
    except BrokenPipeError:  # the reader of stdout has closed it
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:
        sys.stdout = None  # what is still buffered cannot be written at exit either
        _exit_with_message(f"{error.filename or 'output'}: {error.strerror or error}", 1)
    except Exception as error:
        if hasattr(error, "format_message"):  # errors of the option parser
            _exit_with_message(f"{error.format_message()} (see asreader --help)", 2)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _exit_with_message(message: str, code: int) -> None:
    print("asreader: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"asreader {asreader.__version__}")
        raise typer.Exit


@app.callback()
def _parse_global_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
