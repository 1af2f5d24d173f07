"""parameters -> what is made of them, made again only when they have changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

Made = TypeVar("Made")


@dataclass(frozen=True)
class _Known(Generic[Made]):
    sources: list[Tensor]  # they hold the memory, so that nothing else can come to lie at its address
    state: list[tuple[int, int]]
    made: Made


class Kept(Generic[Made]):
    """Keeps the last thing made. A change is seen as autograd sees it: by PyTorch's count of changes in place, and by
    where the numbers lie. It cannot see what is written through `.data`, nor what NumPy writes into shared memory."""

    def __init__(self) -> None:
        self._known: _Known[Made] | None = None

    def __reduce__(self) -> tuple[type[Kept[Made]], tuple[()]]:
        return Kept, ()  # a copy of a network has other parameters

    def of(self, sources: Sequence[Tensor], make: Callable[[], Made]) -> Made:
        """What `make` makes of these tensors, as they are now."""
        if any(source.is_inference() for source in sources):  # whose changes nobody counts
            return make()
        state, known = [(source.data_ptr(), source._version) for source in sources], self._known
        if known is None or known.state != state:
            known = self._known = _Known([source.detach() for source in sources], state, make())
        return known.made
