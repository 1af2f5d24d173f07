"""ops: which implementation of each operation serves on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from asreader.cli.options import AsJson, Device, print_json


def ops(
    hidden: Annotated[int, typer.Option(min=1, help="hidden units of the reader")] = 128,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """List which implementation of each operation serves here.

    Of each faster one that does not, the reason is given. On a GPU readers compute in bfloat16.
    """
    import torch

    from asreader import ops as operations
    from asreader.inference.reader import pick_device

    place = pick_device(device)
    dtype = torch.bfloat16 if place.type == "cuda" else torch.float32
    workload = operations.Workload(place, dtype, hidden)
    choices = [operations.choose(name, workload) for name in operations.IMPLEMENTATIONS]
    if as_json:
        rows = [
            {"operation": each.operation, "implementation": each.implementation, "rejected": each.rejected}
            for each in choices
        ]
        print_json(rows)
        return
    width = max(len(each.operation) for each in choices)
    for each in choices:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in each.rejected.items())
        print(f"{each.operation:<{width}}  {each.implementation:<9}  {reasons}".rstrip())
