"""formats, readers, taggers, executors, engines: the available plug-ins, one line each."""

from __future__ import annotations

from asreader.cli.options import AsJson, print_json


def formats(as_json: AsJson = False) -> None:
    """List the data formats that can be read."""
    _print_plugins(["data.formats"], as_json)


def readers(as_json: AsJson = False) -> None:
    """List the readers that can be trained, and the baselines."""
    _print_plugins(["readers", "baselines"], as_json)


def taggers(as_json: AsJson = False) -> None:
    """List the taggers, which classify words for `make books`."""
    _print_plugins(["cloze.tagging"], as_json)


def executors(as_json: AsJson = False) -> None:
    """List the executors, which run work here or on a cluster."""
    _print_plugins(["executors"], as_json)


def engines(as_json: AsJson = False) -> None:
    """List the engines, which take training steps."""
    _print_plugins(["training.engines"], as_json)


def _print_plugins(folders: list[str], as_json: bool) -> None:
    from asreader import plugins

    rows = [(name, plugins.read_summary(folder, name)) for folder in folders for name in plugins.list_plugins(folder)]
    if as_json:
        print_json([{"name": name, "summary": summary} for name, summary in rows])
    else:
        width = max(len(name) for name, _ in rows)
        print("\n".join(f"{name:<{width}}  {summary}" for name, summary in rows))
