"""Train a reader with PyTorch's own GRU: PYTHONPATH=src python benchmarks/plain.py SETTINGS --seed 3 --out FOLDER

Settings, batches, initial weights and recipe are those of `asreader train`, but `nn.GRU` reads packed sequences, and
gradients, clipping and Adam are PyTorch's. Readers trained together must reach the same accuracy after an epoch
(docs/notebook/gpu.md).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from asreader.kernels.gru import BidirectionalGRU, packed
from torch import Tensor, nn

from asreader.batches.host import Words
from asreader.settings import load_settings
from asreader.training import loop


@contextmanager
def reading_by_nn_gru() -> Iterator[None]:
    """nn.GRU in the place of ours, without TF32."""

    def forward(self: BidirectionalGRU, source: nn.Embedding, words: Words) -> tuple[Tensor, Tensor]:
        (gru,) = self.layers
        assert isinstance(gru, nn.GRU)
        states, last = packed(gru, source(words.rows), words)
        return states.float(), last.float()

    ours, torch.backends.cudnn.allow_tf32 = BidirectionalGRU.forward, False
    BidirectionalGRU.forward = forward  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        BidirectionalGRU.forward = ours  # type: ignore[method-assign]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    settings = load_settings(options.settings, [*options.set, f"train.seed={options.seed}"])
    with reading_by_nn_gru():
        loop.train(settings, options.out)


if __name__ == "__main__":
    main()
