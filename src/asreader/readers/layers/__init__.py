"""Layers of readers: embedding, bidirectional GRU, attention. They own the tricks, so that readers stay equations.

A layer is written for one reader. Its hot operations (`ops/`) run for N readers under `torch.func.vmap`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from asreader import ops
from asreader.batches.batch import Words
from asreader.ops import Workload
from asreader.ops.attention_scores import score_positions
from asreader.ops.gru import combine_biases, run_gru
from asreader.ops.keyed_dropout import drop
from asreader.ops.segment_sum import Positions


@dataclass(frozen=True)
class EmbeddedWords:
    """Vectors of padded sequences: a table of the unique ones and which of them stands where."""

    table: Float[Tensor, "U E"]
    positions: Positions
    words: Words
    rows: Int[Tensor, " U"] | None = None  # of the embedding table, if the vectors come from there

    @classmethod
    def from_vectors(
        cls, vectors: Float[Tensor, "B T E"], words: Words, rows: Int[Tensor, "B T"] | None = None
    ) -> EmbeddedWords:
        """Every position has a vector of its own."""
        batch, steps = vectors.shape[:2]
        positions = Positions.identity((steps, batch), vectors.device)
        own_rows = None if rows is None else rows.transpose(0, 1).flatten()
        return cls(vectors.transpose(0, 1).flatten(0, 1), positions, words, own_rows)

    @property
    def vectors(self) -> Float[Tensor, "B T E"]:
        """The vector at each position."""
        return functional.embedding(self.positions.index.transpose(0, 1).long(), self.table)


class Embedding(nn.Embedding):
    """The look-up table of words."""

    def __init__(self, vocabulary: int, size: int) -> None:
        super().__init__(vocabulary, size)
        nn.init.uniform_(self.weight, -0.1, 0.1)

    def embed(self, words: Words) -> EmbeddedWords:
        """Vectors of words, unique where that saves work: six of seven words of a batch occur in it before."""
        if words.is_compact:
            return self._embed_compact(words)
        if words.rows.device.type != "cpu":  # finding unique rows would wait for the device
            return EmbeddedWords.from_vectors(self(words.rows), words, words.rows)
        rows, index = words.rows.unique(return_inverse=True)
        return EmbeddedWords(self(rows), Positions(index.T.int(), len(rows)), words, rows)

    def _embed_compact(self, words: Words) -> EmbeddedWords:
        assert words.table_rows is not None
        if words.rows.numel() < len(self.weight):  # fewer positions than rows: questions
            rows = words.rows.long()
            return EmbeddedWords.from_vectors(self(rows), words, words.table_rows[rows])
        index = words.rows.transpose(0, 1).int()
        positions = Positions(index, len(self.weight), order=words.order)
        return EmbeddedWords(self.weight, positions, words, words.table_rows)


class Dropout(nn.Module):
    """Dropout as a pure function of the step's key; a word loses the same numbers wherever it stands in a batch."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        if not 0 <= probability < 1:
            raise ValueError(f"dropout is a probability from 0 to below 1, not {probability}")
        self.probability = probability

    def forward(self, values: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Unchanged unless in training."""
        return drop(values, self.probability) if self.training else values

    def drop_words(self, words: EmbeddedWords) -> EmbeddedWords:
        """The same for embedded words."""
        if not self.training or not self.probability:
            return words
        return replace(words, table=drop(words.table, self.probability, words.rows))


@dataclass(frozen=True)
class EncodedWords:
    """States of a bidirectional GRU at every word; behind a sequence's end a state is handed on."""

    states: Float[Tensor, "D T B H"]
    words: Words

    @cached_property
    def vectors(self) -> Float[Tensor, "B T two_H"]:
        """Forward || backward at each position, zero at padding."""
        return torch.cat([*self.states], dim=-1).transpose(0, 1) * self.words.mask[..., None]

    @property
    def last(self) -> Float[Tensor, "B two_H"]:
        """The last state of either direction, which has read everything."""
        return torch.cat([self.states[0, -1], self.states[1, 0]], dim=-1)


class BidirectionalGRU(nn.Module):
    """Layers of GRUs read in both directions. Weights are those of nn.GRU, the equations those of `ops/gru`."""

    def __init__(self, inputs: int, hidden: int, layers: int = 1) -> None:
        super().__init__()
        widths = [inputs] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(nn.GRU(width, hidden, batch_first=True, bidirectional=True) for width in widths)
        for name, parameter in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:  # one orthogonal matrix for each of the three gates
                for gate in parameter.data.chunk(3):
                    nn.init.orthogonal_(gate)

    def forward(self, words: EmbeddedWords) -> EncodedWords:
        """The states of the last layer."""
        first, *others = cast("list[nn.GRU]", list(self.layers))
        encoded = EncodedWords(_run_layer(first, words), words.words)
        for gru in others:
            inputs = EmbeddedWords.from_vectors(encoded.vectors, words.words)
            encoded = EncodedWords(_run_layer(gru, inputs), words.words)
        return encoded


def _run_layer(gru: nn.GRU, words: EmbeddedWords) -> Float[Tensor, "D T B H"]:
    """Multiply each unique vector with the input weights once, then step through the sequences."""
    device = words.table.device
    inputs, recurrent, input_bias, recurrent_bias = (torch.stack(pair) for pair in zip(*gru.all_weights, strict=True))
    is_half = device.type == "cuda" and torch.is_autocast_enabled("cuda")
    dtype = torch.get_autocast_dtype("cuda") if is_half else recurrent.dtype
    table_bias, product_bias = combine_biases(input_bias, recurrent_bias)
    with torch.autocast(device.type, enabled=False):  # the small products of a CPU gain nothing from bfloat16
        table = functional.linear(words.table.to(dtype), inputs.flatten(0, 1).to(dtype), table_bias.flatten().to(dtype))
        return run_gru(
            table.unflatten(1, (2, -1)), words.positions, recurrent.to(dtype), product_bias, words.words.lengths
        )


def attend(
    document: EncodedWords, question: Float[Tensor, "B two_H"], mask: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """Equation 1 of the paper: log attention, a softmax over the positions of the document."""
    by_direction = torch.stack(question.chunk(2, dim=-1))
    scores = score_positions(document.states, by_direction.to(document.states.dtype))
    return scores.masked_fill(~mask, -torch.inf).log_softmax(dim=-1)


def slow_sizes(network: nn.Module, device: torch.device, dtype: torch.dtype) -> list[int]:
    """Hidden sizes of a network's GRUs that a GPU has no kernel for: steps are launched one by one there."""
    sizes = sorted({module.hidden_size for module in network.modules() if isinstance(module, nn.GRU)})
    workloads = [(size, Workload(device, dtype, size)) for size in sizes]
    return [
        size
        for size, workload in workloads
        if device.type == "cuda" and ops.choose("gru", workload).implementation == "reference"
    ]
