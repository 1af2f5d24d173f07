"""The definition of the stacked Adam: dense updates of everything, in plain PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from asreader.ops import Workload
from asreader.ops.grad_norm import find_clip_divisors
from asreader.ops.row_adam import BETAS, EPSILON, AdamRecipe, StackedParameter
from asreader.ops.unique_rows import UniqueRows


def supports(workload: Workload) -> str | None:
    """Everything."""
    return None


class Adam:
    """The contract of `ops/row_adam`; nothing is ever deferred."""

    def __init__(
        self,
        parameters: Mapping[str, StackedParameter],
        tables: Sequence[str],
        steps: Float[Tensor, " N"],
        recipe: AdamRecipe,
    ) -> None:
        self._parameters, self._tables, self._steps, self._recipe = parameters, tables, steps, recipe
        self._rates = torch.tensor(recipe.rates, device=steps.device)
        self._factors = torch.tensor(recipe.factors, device=steps.device)

    def read_rows(self, name: str, unique: UniqueRows) -> Float[Tensor, "N U E"]:
        """The vectors of a batch's unique rows."""
        return gather_rows(self._parameters[name].weights.detach(), unique)

    def step(self, gradients: Mapping[str, Tensor], unique: UniqueRows) -> None:
        """Change the weights by gradients; those of tables are of the unique rows."""
        divisors = find_clip_divisors([*gradients.values()], self._recipe.clip)
        self._steps.add_(1)
        for name, gradient in gradients.items():
            parameter = self._parameters[name]
            if name in self._tables:
                gradient = scatter_rows(gradient, unique, parameter.weights)
            self._update(parameter, gradient / _spread(divisors, gradient))

    def _update(self, parameter: StackedParameter, gradient: Tensor) -> None:
        (beta1, beta2), steps = BETAS, self._steps.double()
        factors = self._factors[(self._steps.long() - 1).clamp(max=len(self._factors) - 1)]
        size = (self._rates * factors / (1 - beta1**steps)).to(gradient.dtype)
        root = (1 - beta2**steps).sqrt().to(gradient.dtype)
        weights, first, second = (tensor.detach() for tensor in (parameter.weights, parameter.first, parameter.second))
        first.lerp_(gradient, 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        denominator = (second.sqrt() / _spread(root, second)).add_(EPSILON)
        weights.sub_(_spread(size, first) * first / denominator)
        if parameter.average is not None:
            decay = self._recipe.ema_decay
            newest = (1 - decay) / (1 - decay**self._steps)
            parameter.average.lerp_(weights, _spread(newest, weights))

    def synchronize(self) -> None:
        """No-op: updates are applied immediately."""


def gather_rows(table: Float[Tensor, "N V E"], unique: UniqueRows) -> Float[Tensor, "N U E"]:
    """The vectors of unique rows."""
    first = torch.arange(len(table), dtype=unique.rows.dtype, device=table.device) * table.shape[1]
    return functional.embedding(unique.rows + first[:, None], table.flatten(0, 1))


def scatter_rows(
    gradient: Float[Tensor, "N U E"], unique: UniqueRows, like: Float[Tensor, "N V E"]
) -> Float[Tensor, "N V E"]:
    """The gradient of whole tables; entries beyond the unique rows have none and add nothing to the row they name."""
    target = unique.rows.long()[..., None].expand_as(gradient)
    return torch.zeros_like(like).scatter_add_(1, target, gradient.to(like.dtype))


def _spread(values: Float[Tensor, " N"], like: Float[Tensor, "N ..."]) -> Float[Tensor, "N ..."]:
    return values.view(-1, *[1] * (like.dim() - 1))
