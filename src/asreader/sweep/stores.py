"""DATA -> a store that every run of a sweep maps into memory: encoded once, identified by its content."""

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
from asreader.sweep.lock import hold_lock
from asreader.system import atomic_files
from asreader.system.progress import print_status


@dataclass(frozen=True)
class SweepStore:
    """A store: its folder, the hash of its content, its number of questions."""

    path: Path
    content_hash: str
    questions: int


def find_or_encode_store(data: DataSettings, split: str, out: Path) -> SweepStore:
    """The store of `data.train` or `data.valid`: the one that is named, or one encoded from it under `out`."""
    setting = data.train if split == "train" else data.valid
    if not setting:
        raise InputError(f"data.{split} is not set: name the data in [data] or with --set data.{split}=PATH")
    path = Path(setting).resolve()
    return _describe_store(find_store(path, split) or _encode_once(path, split, data, out), split)


def _describe_store(path: Path, split: str) -> SweepStore:
    store = open_store(path)
    if not len(store):
        raise InputError(f"{path}: holds no {split} questions")
    return SweepStore(path, _hash_content(store), len(store))


def _hash_content(store: Store) -> str:
    """A hash of the content of a store; its path and its source files do not count."""
    digest = hashlib.sha256(json.dumps([store.lexicon, store.ids]).encode())
    for name, column in sorted(store.columns.items()):
        digest.update(name.encode())
        digest.update(column.data if len(column) else b"")
    return digest.hexdigest()


def _encode_once(path: Path, split: str, data: DataSettings, out: Path) -> Path:
    """Encode data into a store; unchanged files are not read again."""
    folder = out / "data" / _hash_json([str(path), split, data.format, data.skip_bad, _fingerprint_files(path)])
    store = folder / path.name.split(".")[0]
    with hold_lock(out, f"data-{folder.name}"):
        if is_store(store) and _is_intact(store):
            return store
        shutil.rmtree(folder, ignore_errors=True)
        with atomic_files.atomic_folder(store) as scratch:
            encoder = Encoder(scratch)
            for _, example in load_examples(path, split=split, format=data.format or None, skip_bad=data.skip_bad):
                encoder.add(example)
            encoder.close(about=split)
        print_status(f"{path.name}: {len(encoder):,} {split} questions encoded once for all runs")
    return store


def _is_intact(store: Path) -> bool:
    try:
        open_store(store)
    except InputError as damage:
        print_status(f"{damage}; encoding it again")
        return False
    return True


def _fingerprint_files(path: Path) -> list[tuple[str, int, int]]:
    """Names, sizes and modification times, which reveal changed data without reading it."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [(str(file.relative_to(path)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def _hash_json(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
