"""What is installed is what is locked, and what pyproject.toml asks for has been tried."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = ROOT / "constraints.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lock", ROOT / "scripts" / "lock.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


lock = script()


def locked() -> dict[str, Requirement]:
    lines = [line.strip() for line in LOCK.read_text(encoding="utf-8").splitlines()]
    found = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(requirement.name): requirement for requirement in found}


def needed(roots: Iterable[str]) -> dict[str, str]:
    """The installed versions of some requirements and of everything that these need here, directly or indirectly."""
    versions: dict[str, str] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        versions[name] = importlib.metadata.version(name)
        for text in importlib.metadata.requires(name) or ():
            further = Requirement(text)
            if not further.marker or any(further.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append(further)
    return versions


def differences(installed: Mapping[str, str], lines: Mapping[str, Requirement]) -> list[str]:
    """What is installed otherwise than a lock says, or without its saying anything."""
    return [
        f"{name} {version} is installed, the lock says {lines.get(name, 'nothing')}"
        for name, version in sorted(installed.items())
        if name not in lines or not lines[name].specifier.contains(version, prereleases=True)
    ]


def test_what_is_installed_is_what_is_locked() -> None:
    if os.environ.get("ASREADER_LOWEST"):
        pytest.skip("`make test-lowest` installs the lowest versions, not the locked ones")
    if not Path(sys.prefix, ".ready-to-develop").exists():
        pytest.skip("this environment was not made by `make test`: no .ready-to-develop in it")
    installed = needed(["asreader[dev]", *lock.BUILD])
    del installed["asreader"]
    for name in [name for name in installed if name.startswith(("nvidia-", "cuda-"))]:
        del installed[name]  # these come with the GPU build of torch, which pins them itself
    assert len(installed) > 50
    assert not differences(installed, locked()), "run `make lock`"


def test_a_difference_is_found() -> None:
    lines = {"torch": Requirement("torch>=2.11,<2.14"), "rich": Requirement("rich==15.0.0")}
    assert not differences({"torch": "2.13.0+cpu", "rich": "15.0.0"}, lines)
    assert differences({"torch": "2.14.0", "rich": "15.0.1", "typer": "0.29.1"}, lines) == [
        "rich 15.0.1 is installed, the lock says rich==15.0.0",
        "torch 2.14.0 is installed, the lock says torch<2.14,>=2.11",
        "typer 0.29.1 is installed, the lock says nothing",
    ]


def test_extras_and_indirect_requirements_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "one": ["Two_x>=1", "four; extra == 'more'", "five; extra == 'other'", "five; os_name == 'no such system'"],
        "two-x": ["three"],
        "three": ["one[more]"],
    }
    monkeypatch.setattr(importlib.metadata, "requires", asked.get)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"version of {name}")
    assert needed(["one"]) == {name: f"version of {name}" for name in ("one", "two-x", "three", "four")}
    assert needed(["one[other]"]).keys() == {"one", "two-x", "three", "four", "five"}
    assert needed(["four"]).keys() == {"four"}


def test_the_lock_is_exact_sorted_and_names_no_place() -> None:
    lines = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines == sorted(lines, key=lock.name_of)
    assert lines.count(lock.TORCH) == 1
    for line in lines:
        assert line == lock.TORCH or re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line), line
    assert LOCK.read_text(encoding="utf-8").startswith(lock.HEADER)


def test_the_build_back_end_is_the_locked_one() -> None:
    assert PROJECT["build-system"]["requires"] == [str(locked()["hatchling"])]


def test_every_direct_requirement_is_locked_within_its_bounds() -> None:
    lines = locked()
    for text in lock.requirements(PROJECT):
        requirement = Requirement(text)
        assert any(bound.operator == ">=" for bound in requirement.specifier), f"{text} has no lower bound"
        if requirement.name == "torch":
            assert lock.TORCH.startswith(text)
        else:
            (exact,) = lines[canonicalize_name(requirement.name)].specifier
            assert requirement.specifier.contains(exact.version), f"{text} excludes {exact.version}"


def test_lines_of_a_lock() -> None:
    listed = [
        {"name": "Zope_Dot.Name", "version": "1.0+local.1"},
        {"name": "asreader", "version": "0.1.0", "editable_project_location": "somewhere/asreader"},
        {"name": "pip", "version": "23.2.1"},
        {"name": "torch", "version": "2.13.0+cpu"},
        {"name": "absl-py", "version": "2.0"},
    ]
    assert lock.pins(listed) == ["absl-py==2.0", lock.TORCH, "zope-dot-name==1.0"]


def test_lowest_versions() -> None:
    project = {
        "project": {
            "name": "asreader",
            "dependencies": ["torch>=2.11", "numpy>=1.26"],
            "optional-dependencies": {
                "ray": ["ray[data]>=2.40"],
                "dev": ["asreader[ray]", "triton>=3.6; os_name == 'x'"],
            },
        }
    }
    assert lock.lowest(project) == ["numpy==1.26", "ray==2.40", lock.TORCH, "triton==3.6"]
    project["project"]["dependencies"] = ["numpy"]
    with pytest.raises(SystemExit, match="numpy has no lower bound"):
        lock.lowest(project)
