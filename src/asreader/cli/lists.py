"""formats, readers, taggers, executors: what plug-ins there are, one line each."""

from __future__ import annotations

from asreader.cli.options import AsJson, print_json


def formats(as_json: AsJson = False) -> None:
    """List the formats that are read."""
    _listed("data.formats", as_json)


def readers(as_json: AsJson = False) -> None:
    """List the readers that can be trained, and the baselines that learn nothing."""
    _listed("readers", as_json, "baselines")


def taggers(as_json: AsJson = False) -> None:
    """List the taggers, which say what kind of word a word is."""
    _listed("cloze.tagging", as_json)


def executors(as_json: AsJson = False) -> None:
    """List the executors, which say where work is done."""
    _listed("executors", as_json)


def _listed(folder: str, as_json: bool, *more: str) -> None:
    from asreader import plugins

    rows = [
        (name, plugins.read_summary(place, name)) for place in (folder, *more) for name in plugins.list_plugins(place)
    ]
    if as_json:
        print_json([{"name": name, "summary": text} for name, text in rows])
    else:
        width = max(len(name) for name, _ in rows)
        print("\n".join(f"{name:<{width}}  {text}" for name, text in rows))
