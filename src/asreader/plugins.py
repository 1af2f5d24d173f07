"""folder + name -> plug-in: a file in a plug-in folder *is* the plug-in; there is no other registry."""

from __future__ import annotations

import ast
import difflib
import importlib
from pathlib import Path
from types import ModuleType

from asreader.errors import InputError

_PACKAGE = Path(__file__).parent


def list_plugins(folder: str) -> list[str]:
    """Names of the plug-ins in a folder of this package, such as "data.formats"; nothing is imported."""
    return sorted(path.stem for path in _folder_path(folder).glob("[!_]*.py"))


def load_plugin(folder: str, name: str) -> ModuleType:
    """Import one plug-in; dashes and underscores in its name are equivalent."""
    stem, known = name.replace("-", "_"), list_plugins(folder)
    if stem not in known:
        kind = folder.rsplit(".", 1)[-1]
        raise InputError(f"there is no {name!r} among the {kind}; {suggest_name(stem, known)}")
    return importlib.import_module(f"asreader.{folder}.{stem}")


def read_summary(folder: str, name: str) -> str:
    """The first line of a plug-in's docstring, read without importing the plug-in."""
    tree = ast.parse((_folder_path(folder) / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").split("\n")[0]


def suggest_name(word: str, known: list[str]) -> str:
    """The hint of every "unknown name" error: the closest known name, or all of them."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _folder_path(folder: str) -> Path:
    return _PACKAGE.joinpath(*folder.split("."))
