"""asreader: the Attention Sum Reader, from files to answers. `from asreader import Reader` is the way in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asreader.inference.reader import Reader as Reader

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    # Reader pulls in torch; `asreader --help` must not wait for it.
    if name == "Reader":
        from asreader.inference.reader import Reader

        return Reader
    raise AttributeError(f"module 'asreader' has no attribute {name!r}")
