"""one reader, many processes -> the training of one: each takes its share of every batch, gradients are added up.

Every process has all weights and takes the same steps with the same sums, so the weights stay equal without being sent.
Of a table of vectors only those rows are sent that some process has touched. Processes are started by torchrun.
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
from asreader.inference.reader import pick_device
from asreader.settings import TrainSettings
from asreader.system.progress import console

PATIENCE = timedelta(hours=6)
"""How long a process waits for the others: the first validates and writes while they do."""
VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun tells a process."""


@dataclass(frozen=True)
class Processes:
    """Those that train one reader together, as seen from number `rank`; the first, number 0, leads: it alone writes."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0  # among those of the same machine

    @property
    def leads(self) -> bool:
        """Whether this process writes the run, validates and talks to people."""
        return self.rank == 0

    def share(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """This process's part of a batch: every so manieth, so that documents of all lengths come to everybody."""
        return numbers[self.rank :: self.count]

    def mean(self, losses: Float[Tensor, " N"]) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """What to differentiate here, and the mean over the questions of all processes, of which it is a part."""
        if self.count == 1:
            mean = losses.mean()
            return mean, mean.detach()
        totals = torch.stack([losses.detach().sum(), losses.new_tensor(len(losses))])
        dist.all_reduce(totals)
        return losses.sum() / totals[1], totals[0] / totals[1]

    def add_gradients(self, network: nn.Module) -> None:
        """Replace each gradient by its sum over all processes."""
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

    def agreed(self, wish: bool) -> bool:
        """Whether any process wishes it."""
        if self.count == 1:
            return wish
        wishes = torch.tensor([int(wish)])
        dist.all_reduce(wishes, dist.ReduceOp.MAX)
        return bool(wishes.item())

    def told(self, numbers: Sequence[float]) -> list[float]:
        """The numbers of the process that leads, in all processes."""
        if self.count == 1:
            return list(numbers)
        message = torch.tensor(numbers, dtype=torch.float64)
        dist.broadcast(message, 0)
        return message.tolist()

    def wait(self) -> None:
        """Go on when all processes have come here."""
        self.agreed(False)

    def device(self, name: str) -> torch.device:
        """This process's own device of a kind."""
        if self.count > 1 and name in ("auto", "cuda") and torch.cuda.is_available():
            name = f"cuda:{self.local_rank}"
        elif self.count > 1 and name not in ("auto", "cuda", "cpu"):
            raise InputError(
                f"train.device={name} is one device or none; with train.backend=ddp write auto, cuda or cpu"
            )
        return pick_device(name)


@contextmanager
def joined(options: TrainSettings) -> Iterator[Processes]:
    """The processes that train with these settings: this one alone, or all that torchrun has started."""
    if options.backend != "ddp":
        yield Processes()
        return
    if not set(VARIABLES) <= os.environ.keys():
        raise InputError(
            "train.backend=ddp takes one process for each device: start them by torchrun, "
            "such as `torchrun --nproc-per-node 2 -m asreader train ...`"
        )
    rank, count, local_rank = (int(os.environ[name]) for name in VARIABLES[:3])
    processes = Processes(rank, count, local_rank)
    device = processes.device(options.device)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not processes.leads:
        console.quiet, sys.stdout = True, None
    dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
    try:
        yield processes
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            raise ExecutionError(
                "another process of this training has ended; mend what it says and add --resume"
            ) from None
        raise
    finally:
        dist.destroy_process_group()


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Of a parameter; nothing where this process's share of the batch did not reach it."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


def _add_rows(gradient: Float[Tensor, "rows E"]) -> None:
    """Add up a table's gradient, of which a batch touches few rows."""
    touched = gradient.any(dim=1).to(torch.uint8)
    dist.all_reduce(touched, dist.ReduceOp.MAX)
    rows = touched.nonzero()[:, 0]
    part = gradient[rows]
    dist.all_reduce(part)
    gradient[rows] = part
