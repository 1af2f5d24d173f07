"""the processes that train one reader together: shards of batches, sums of gradients, values that all must agree on.

Of a table of vectors only those rows are sent that some rank has touched.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from asreader.errors import ExecutionError, InputError
from asreader.inference import reader as inference
from asreader.readers import Losses
from asreader.system.progress import console

PATIENCE = timedelta(hours=6)
"""How long a rank waits for the others: the main one validates and writes meanwhile."""
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun sets for each process."""


@dataclass(frozen=True)
class Ranks:
    """The processes of one training as seen from number `rank`; number 0 is the main one: it alone writes."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0  # among those of the same machine

    @property
    def is_main(self) -> bool:
        """Whether this rank writes the run, validates and prints."""
        return self.rank == 0

    def shard(self, examples: NDArray[np.intp]) -> NDArray[np.intp]:
        """This rank's part of a batch: every `count`-th example, so that each rank gets a mix of lengths."""
        return examples[self.rank :: self.count]

    def own_key(self, key: int) -> int:
        """A key of random draws that differs between ranks."""
        return (key + 0x9E3779B1 * self.rank) & 0x7FFFFFFF

    def average_losses(self, losses: Losses) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What to differentiate here, and the mean over the questions of all ranks, of which it is a part."""
        if self.count == 1:
            return losses.mean, losses.mean.detach()
        totals = torch.stack([losses.values.detach().sum(), losses.is_counted.sum().to(losses.values.dtype)])
        dist.all_reduce(totals)
        counted = totals[1].clamp(min=1)
        return losses.values.sum() / counted, totals[0] / counted

    def add_gradients(self, network: nn.Module) -> None:
        """Replace each gradient by its sum over all ranks."""
        if self.count == 1:
            return
        tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
        gradients = [_gradient(parameter) for parameter in network.parameters() if id(parameter) not in tables]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat)
        for gradient, total in zip(gradients, flat.split([one.numel() for one in gradients]), strict=True):
            gradient.copy_(total.view_as(gradient))
        for parameter in network.parameters():
            if id(parameter) in tables:
                _add_rows(_gradient(parameter))

    def any(self, flag: bool) -> bool:
        """Whether any rank has raised the flag."""
        if self.count == 1:
            return flag
        flags = torch.tensor([int(flag)])
        dist.all_reduce(flags, dist.ReduceOp.MAX)
        return bool(flags.item())

    def broadcast(self, values: Sequence[float]) -> list[float]:
        """The values of the main rank, in all ranks."""
        if self.count == 1:
            return list(values)
        message = torch.tensor(values, dtype=torch.float64)
        dist.broadcast(message, 0)
        return message.tolist()

    def pick_device(self, name: str) -> torch.device:
        """This rank's own device of a kind."""
        if self.count > 1 and name in ("auto", "cuda") and torch.cuda.is_available():
            name = f"cuda:{self.local_rank}"
        elif self.count > 1 and name not in ("auto", "cuda", "cpu"):
            raise InputError(
                f"train.device={name} is one device or none; with train.engine=ddp write auto, cuda or cpu"
            )
        return inference.pick_device(name)


@contextmanager
def join_ranks(device_name: str) -> Iterator[Ranks]:
    """All ranks that torchrun has started, as seen from this one."""
    if not set(VARIABLES) <= os.environ.keys():
        raise InputError(
            "train.engine=ddp takes one process for each device: start them by torchrun, "
            "such as `torchrun --nproc-per-node 2 -m asreader train ...`"
        )
    rank, count, local_rank = (int(os.environ[name]) for name in VARIABLES[:3])
    ranks = Ranks(rank, count, local_rank)
    device = ranks.pick_device(device_name)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not ranks.is_main:
        console.quiet, sys.stdout = True, None
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield ranks
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise ExecutionError(
                "another process of this training has ended; fix what it says and add --resume"
            ) from None
        raise
    finally:
        dist.destroy_process_group()


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Of a parameter; zero where this rank's shard did not reach it."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _add_rows(gradient: Float[Tensor, "rows E"]) -> None:
    """Sum a table's gradient over all ranks; a batch touches few of its rows."""
    touched = gradient.any(dim=1).to(torch.uint8)
    dist.all_reduce(touched, dist.ReduceOp.MAX)
    rows = touched.nonzero()[:, 0]
    part = gradient[rows]
    dist.all_reduce(part)
    gradient[rows] = part
