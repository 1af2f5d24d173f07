"""DATA -> encoded stores: a prepared one is opened, anything else is read and encoded, in memory or into a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from asreader.data.example import Example
from asreader.data.reading import Part, Report, read
from asreader.data.statistics import Statistics, by_part
from asreader.data.store import Encoder, Store, is_store, open_store
from asreader.errors import InputError
from asreader.system import atomic_files
from asreader.system.progress import say, watched

SPLITS = ("train", "valid", "test")
UNNAMED = "questions"
"""The store of data that name no split."""


def examples(
    path: Path,
    *,
    split: str | None = None,
    format: str | None = None,
    only: str | None = None,
    skip_bad: bool = False,
) -> Iterator[tuple[Part, Example]]:
    """The Examples of any DATA, under a bar; then a line for what was skipped or ignored. `split` keeps one split.

    Stores are DATA too, though they do not know the names of entities any more.
    """
    report = Report()
    stores = [path] if is_store(path) else _inside(path)
    found = _stored(stores) if stores else read(path, format=format, only=only, skip_bad=skip_bad, report=report)
    for part, example in watched(found, f"reading {path.name}"):
        if split is None or part.split in ("", split):
            yield part, example
    for note in report.lines():
        say(note)


def _inside(path: Path) -> list[Path]:
    return sorted(folder for folder in path.iterdir() if is_store(folder)) if path.is_dir() else []


def _stored(stores: Iterable[Path]) -> Iterator[tuple[Part, Example]]:
    for place in stores:
        group, _, split = place.name.rpartition("-")
        part = Part(group, split) if split in SPLITS else Part("" if place.name == UNNAMED else place.name)
        store = open_store(place)
        yield from ((part, store.example(number)) for number in range(len(store)))


def labels(parts: Iterable[Part]) -> dict[Part, str]:
    """A short name for each part: its split, with the group before it only where there are several groups."""
    kinds = list(parts)
    alone = len({part.group for part in kinds}) == 1
    return {
        part: "-".join(filter(None, ("" if alone else part.group, part.split))) or part.group or UNNAMED
        for part in kinds
    }


def load_store(path: Path, *, split: str | None = None, format: str | None = None, skip_bad: bool = False) -> Store:
    """A store of one split, from a prepared folder or straight from the data."""
    if (store := find_store(path, split)) is not None:
        return open_store(store)
    encoder = Encoder()
    parts = set()
    for part, example in examples(path, split=split, format=format, skip_bad=skip_bad):
        parts.add(part.split)
        encoder.add(example)
    if not len(encoder):
        raise InputError(f"{path}: holds no {split} questions")
    if split is None and len(parts) > 1:
        raise InputError(f"{path}: holds several splits ({', '.join(sorted(parts))}); choose one with --split")
    return encoder.store()


def find_store(path: Path, split: str | None = None) -> Path | None:
    """The store that a path names: itself, the one of that split in it, or the only one in it; None without any.

    Several of which none is meant are an InputError.
    """
    for place in (path / split, path) if split else (path,):
        if is_store(place):
            return place
    inside = _inside(path)
    if len(inside) > 1:
        names = ", ".join(folder.name for folder in inside)
        raise InputError(f"{path}: holds several stores; name one of them: {names}")
    return inside[0] if inside else None


def prepare(
    paths: Iterable[Path], out: Path, *, format: str | None, only: str | None, skip_bad: bool
) -> dict[str, int]:
    """Encode DATA into one store for each part (split, or group and split); returns the questions of each.

    Nothing appears under `out` before everything is read, encoded and on the disk.
    """
    encoders: dict[Part, Encoder] = {}
    with atomic_files.new_folder(out) as scratch:
        for path in paths:
            for part, example in examples(path, format=format, only=only, skip_bad=skip_bad):
                if part not in encoders:
                    (scratch / str(len(encoders))).mkdir()
                    encoders[part] = Encoder(scratch / str(len(encoders)))
                encoders[part].add(example)
        names = labels(encoders)
        for number, (part, encoder) in enumerate(encoders.items()):
            encoder.close(about=names[part])
            (scratch / str(number)).rename(scratch / names[part])
    return {names[part]: len(encoder) for part, encoder in encoders.items()}


def statistics(path: Path, *, format: str | None, only: str | None, skip_bad: bool) -> dict[str, Statistics]:
    """Table 1 of the paper for any DATA: the figures of each part under its label."""
    found = by_part(examples(path, format=format, only=only, skip_bad=skip_bad))
    names = labels(found)
    return {names[part]: figures for part, figures in found.items()}
