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
    return sorted(path.stem for path in _folder(folder).glob("[!_]*.py"))


def load_plugin(folder: str, name: str) -> ModuleType:
    """Import one plug-in; dashes and underscores in its name are the same."""
    plain, known = name.replace("-", "_"), list_plugins(folder)
    if plain not in known:
        kind = folder.rsplit(".", 1)[-1]
        raise InputError(f"there is no {name!r} among the {kind}; {suggest_name(plain, known)}")
    return importlib.import_module(f"asreader.{folder}.{plain}")


def read_summary(folder: str, name: str) -> str:
    """What a plug-in says of itself: the first line of its docstring, read without importing what it needs."""
    tree = ast.parse((_folder(folder) / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").split("\n")[0]


def suggest_name(word: str, known: list[str]) -> str:
    """The hint behind every "unknown name" error."""
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def _folder(folder: str) -> Path:
    return _PACKAGE.joinpath(*folder.split("."))
