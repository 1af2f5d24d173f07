"""DATA -> a store that every run of a sweep maps into memory: read and encoded once, known by its content."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from asreader.data.dataset import find_store, load_examples
from asreader.data.store import Encoder, Store, is_store, open_store
from asreader.errors import InputError
from asreader.settings import DataSettings
from asreader.sweep.lock import locked
from asreader.system import atomic_files
from asreader.system.progress import print_status


@dataclass(frozen=True)
class Source:
    """A store: where it lies, what it holds."""

    path: Path
    content: str
    questions: int


def source(data: DataSettings, split: str, out: Path) -> Source:
    """The store of `data.train` or `data.valid`: the one that is named, or one made of it under `out`."""
    named = data.train if split == "train" else data.valid
    if not named:
        raise InputError(f"data.{split} is not set: name the data in [data] or with --set data.{split}=PATH")
    path = Path(named).resolve()
    store = find_store(path, split)
    return _known(store if store is not None else _prepared(path, split, data, out), split)


def _known(path: Path, split: str) -> Source:
    store = open_store(path)
    if not len(store):
        raise InputError(f"{path}: holds no {split} questions")
    return Source(path, _content(store), len(store))


def _content(store: Store) -> str:
    """A hash of all that a store says, wherever it lies and whatever it was made of."""
    digest = hashlib.sha256(json.dumps([store.lexicon, store.ids]).encode())
    for name, column in sorted(store.columns.items()):
        digest.update(name.encode())
        digest.update(column.data if len(column) else b"")
    return digest.hexdigest()


def _prepared(path: Path, split: str, data: DataSettings, out: Path) -> Path:
    """Encode data once; the same files, unchanged, are not read again."""
    home = out / "data" / _hash([str(path), split, data.format, data.skip_bad, _look(path)])
    store = home / path.name.split(".")[0]
    with locked(out, f"data-{home.name}"):
        if is_store(store) and _intact(store):
            return store
        shutil.rmtree(home, ignore_errors=True)
        with atomic_files.atomic_folder(store) as scratch:
            encoder = Encoder(scratch)
            for _, example in load_examples(path, split=split, format=data.format or None, skip_bad=data.skip_bad):
                encoder.add(example)
            encoder.close(about=split)
        print_status(f"{path.name}: {len(encoder):,} {split} questions encoded once for all runs")
    return store


def _intact(store: Path) -> bool:
    try:
        open_store(store)
    except InputError as damage:
        print_status(f"{damage}; encoded again")
        return False
    return True


def _look(path: Path) -> list[tuple[str, int, int]]:
    """What tells changed data without reading it: names, sizes and times."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    inside = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [(str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns) for file in inside]


def _hash(thing: object) -> str:
    return hashlib.sha256(json.dumps(thing, sort_keys=True).encode()).hexdigest()[:12]
