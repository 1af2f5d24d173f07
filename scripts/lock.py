"""Writes constraints.txt, the exact version of every package that `make demo` and `make test` install.

`make lock` takes the newest versions that go together, in a virtual environment of its own, and writes them down; the
build back end in pyproject.toml follows. `--lowest` writes nothing: it prints the lower bounds of pyproject.toml as
constraints, for `make test-lowest`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "constraints.txt"
PROJECT = ROOT / "pyproject.toml"

BUILD = ("hatchling", "editables", "setuptools")
"""What builds asreader, what that asks for to install in place, and what builds jieba, which has no wheel."""
TORCH = "torch>=2.11,<2.14"
CAPS = (TORCH, "triton<3.8")
"""All that is fixed beforehand. The GPU build of torch asks for one triton alone, 2.13 for 3.7: raise both together."""
UNLOCKED = {"asreader", "pip"}

HEADER = """\
# Written by `make lock`: every package of `make demo` and `make test`, with the build back end, at an exact version.
# Run `make docs` and `make test` after it: docs/cli.md shows the help texts of this typer, letter by letter.
# torch is a range, so that the CPU build is taken where there is one: an exact version may name a build that a machine
# does not have. It stays below 2.14. triton is the one that the GPU build of torch asks for.
"""


def name_of(requirement: str) -> str:
    """The package that a requirement is about, spelled as package indexes compare it."""
    (name,) = re.findall(r"^[\w.-]*\w", requirement.strip())
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(installed: Iterable[dict[str, Any]]) -> list[str]:
    """The lock's lines for what `pip list --format json` names; a local version such as +cpu is left out."""
    versions = {name_of(package["name"]): package["version"].partition("+")[0] for package in installed}
    exact = {name: f"{name}=={version}" for name, version in versions.items() if name not in UNLOCKED}
    return [line for _, line in sorted((exact | {"torch": TORCH}).items())]


def requirements(project: dict[str, Any]) -> Iterator[str]:
    """Every requirement of a pyproject.toml on another package."""
    described = project["project"]
    for group in (described["dependencies"], *described["optional-dependencies"].values()):
        yield from (requirement for requirement in group if name_of(requirement) != described["name"])


def lowest(project: dict[str, Any]) -> list[str]:
    """Each direct requirement at exactly its lower bound; torch stays a range: old CPU builds are not everywhere."""
    lines = {"torch": TORCH}
    for requirement in requirements(project):
        bound = re.search(r">=\s*([\w.]+)", requirement)
        if bound is None:
            sys.exit(f"pyproject.toml: {requirement} has no lower bound")
        lines.setdefault(name_of(requirement), f"{name_of(requirement)}=={bound[1]}")
    return [line for _, line in sorted(lines.items())]


def resolve() -> list[dict[str, Any]]:
    """What pip installs today for the project, its tools and its build back end, in an environment made for it."""
    with tempfile.TemporaryDirectory() as folder:
        environment, caps = Path(folder, "environment"), Path(folder, "caps.txt")
        venv.create(environment, with_pip=True)
        caps.write_text("\n".join(CAPS) + "\n", encoding="utf-8")
        pip = [str(environment / "bin" / "python"), "-m", "pip"]
        newest = ["install", "--quiet", "--upgrade", "--upgrade-strategy", "eager", "--constraint", str(caps)]
        subprocess.run([*pip, *newest, *BUILD, f"{ROOT}[dev]"], check=True)
        listed = subprocess.run([*pip, "list", "--format", "json"], check=True, stdout=subprocess.PIPE, text=True)
        return list(json.loads(listed.stdout))


def replace(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lowest", action="store_true", help="print the lower bounds as constraints, write nothing")
    text = PROJECT.read_text(encoding="utf-8")
    project = tomllib.loads(text)
    if parser.parse_args().lowest:
        print(*lowest(project), sep="\n")
        return
    oldest = project["project"]["requires-python"].removeprefix(">=")
    if sys.platform != "linux" or "{}.{}".format(*sys.version_info) != oldest:
        sys.exit(f"newer Pythons can use what is locked for the oldest: make lock PYTHON=python{oldest}, on Linux")
    lines = pins(resolve())
    (hatchling,) = (line for line in lines if name_of(line) == "hatchling")
    replace(LOCK, HEADER + "\n".join(lines) + "\n")
    replace(PROJECT, re.sub(r'"hatchling==[^"]*"', f'"{hatchling}"', text))


if __name__ == "__main__":
    main()
