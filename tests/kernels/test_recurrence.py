"""The recurrence of many GRUs: its definition against PyTorch's GRU, every kernel against the definition."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import pytest
import torch
from asreader.kernels import recurrence
from asreader.kernels.recurrence import Given
from asreader.kernels.words import Places
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader.ops.gru import cuda

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")


def stepwise(own: Given) -> Tensor:
    inputs = recurrence.looked_up(own.table, own.places.index)
    return recurrence.stepwise(inputs, own.weights, own.biases, own.lengths.repeat_interleave(2, dim=0))


def by(way: ModuleType, own: Given) -> Tensor:
    """What `recurrence.run` does if `way` is the fastest."""
    states: Tensor = recurrence._Recurrence.apply(  # type: ignore[no-untyped-call]
        way, own.places, own.lengths, own.table, own.weights, own.biases
    )
    return states


def given(recurrences: int, steps: int, batch: int, hidden: int, dtype: torch.dtype = torch.float32) -> Given:
    """At random; one sequence has the full length, some words of the table stand nowhere."""
    torch.manual_seed(steps + hidden)
    rows = steps * batch // 2 + 3
    table = torch.randn(recurrences // 2, rows, 2, 3 * hidden, device=DEVICE).to(dtype).requires_grad_()
    # Part of something larger, as `distinct` cuts it out of a batch's documents and questions.
    index = torch.randint(0, rows, (recurrences // 2, steps + 2, batch), dtype=torch.int32, device=DEVICE)[:, 1:-1]
    weights = (torch.randn(recurrences, 3 * hidden, hidden, device=DEVICE) / hidden**0.5).to(dtype).requires_grad_()
    biases = torch.randn(recurrences, hidden, device=DEVICE).requires_grad_()
    lengths = torch.randint(1, steps + 1, (recurrences // 2, batch), device=DEVICE)
    if steps % 2:  # otherwise even the longest sequence may end before the padding does
        lengths[:, -1] = steps
    return Given(table, Places(index, rows), weights, biases, lengths.int())


@pytest.mark.parametrize(("steps", "batch"), [(7, 3), (1, 1), (5, 4)])
def test_the_definition_is_pytorchs_gru(steps: int, batch: int) -> None:
    torch.manual_seed(0)
    hidden = 6
    gru = nn.GRU(5, hidden, batch_first=True, bidirectional=True)
    vectors, lengths = torch.randn(batch, steps, 5), torch.randint(1, steps + 1, (batch,))
    lengths[0] = steps
    packed, last = gru(pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False))
    states, _ = pad_packed_sequence(packed, batch_first=True)
    inputs, weights, biases = [], [], []
    for direction in ("", "_reverse"):
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weight, recurrent, bias, own = (getattr(gru, f"{name}_l0{direction}") for name in names)
        of_inputs, of_products = recurrence.biases(bias[None], own[None])
        inputs.append((vectors @ weight.T + of_inputs).transpose(0, 1))
        weights.append(recurrent)
        biases.append(of_products)
    places = Places(torch.arange(steps * batch, dtype=torch.int32).view(1, steps, batch), steps * batch)
    table = torch.stack(inputs, dim=2).flatten(0, 1)[None]
    found = recurrence.run(Given(table, places, torch.stack(weights), torch.cat(biases), lengths[None]))
    real = (torch.arange(steps)[None] < lengths[:, None])[..., None]
    whole = torch.cat([found[0], found[1]], dim=-1).transpose(0, 1) * real
    torch.testing.assert_close(whole, states)
    torch.testing.assert_close(torch.stack([found[0, -1], found[1, 0]]), last)


def assert_same(arguments: Given, way: ModuleType, tolerance: float) -> None:
    """Values and gradients of a way are those of the definition, relative to the greatest of each."""
    expected, found = stepwise(arguments), by(way, arguments)
    outer = torch.randn_like(expected)
    leaves = (arguments.table, arguments.weights, arguments.biases)
    pairs = zip(
        (expected, *torch.autograd.grad(expected, leaves, outer)),
        (found, *torch.autograd.grad(found, leaves, outer)),
        strict=True,
    )
    for one, other in pairs:
        assert (one.float() - other.float()).abs().max() <= tolerance * max(one.float().abs().max().item(), 1e-3)


def assert_scaled(arguments: Given, way: ModuleType, tolerance: float) -> None:
    """A gradient for each sequence with a scale for each step is the same as a gradient for each step, whether both
    directions share the scales or not."""
    passed = recurrence.forward(way, arguments, keep=True)
    recurrences, steps, batch, hidden = passed.states.shape
    gradient = torch.randn(recurrences, batch, hidden, device=DEVICE).to(passed.weights.dtype)
    for shared in (2, 1):
        scales = torch.randn(recurrences // shared, batch, steps, device=DEVICE)
        whole = scales.repeat_interleave(shared, dim=0).movedim(2, 1)[..., None] * gradient[:, None]
        expected, sums = recurrence.backward(passed, whole.to(gradient.dtype))
        found, other_sums = recurrence.backward(passed, gradient, scales)
        pairs = [(expected, found), (recurrence.to_biases(expected, sums), recurrence.to_biases(found, other_sums))]
        for one, other in pairs:
            assert (one.float() - other.float()).abs().max() <= tolerance * one.float().abs().max()


@pytest.mark.parametrize(
    ("recurrences", "steps", "batch", "hidden"),
    [(2, 5, 3, 64), (4, 3, 17, 64), (2, 1, 1, 64), (2, 4, 2, 128), (recurrence.FEW + 2, 3, 2, 64)],
)
def test_the_triton_kernel(recurrences: int, steps: int, batch: int, hidden: int) -> None:
    """On a CPU by Triton's interpreter, one program for each recurrence."""
    persistent = pytest.importorskip("asreader.ops.gru.triton")
    assert_same(given(recurrences, steps, batch, hidden), persistent, 1e-5)
    assert_scaled(given(recurrences, steps, batch, hidden), persistent, 1e-5)


def test_more_sequences_than_the_chip_holds_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    persistent = pytest.importorskip("asreader.ops.gru.triton")
    monkeypatch.setattr(persistent, "_widest", lambda *_: 2)
    assert_same(given(2, 3, 5, 64), persistent, 1e-5)
    assert_scaled(given(2, 3, 5, 64), persistent, 1e-5)


COMPILED = """
import sys, torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from asreader.kernels import persistent

pointers = dict.fromkeys(("inputs", "weights", "biases", "lengths", "states", "kept"), "*fp32")
pointers |= {"lengths": "*i32", "states": "*i32"}
for dtype, hidden, width in ((torch.float32, 448, 16), (torch.bfloat16, 384, 64)):
    like = torch.empty(1, 1, width, 1, dtype=dtype)
    options = persistent._sizes(like, hidden, persistent._units(dtype, hidden))
    launch = {key: options.pop(key) for key in ("num_warps", "num_stages")}
    if dtype == torch.bfloat16:
        kinds = {key: {"*fp32": "*bf16", "*i32": "*i16"}[kind] for key, kind in pointers.items()}
        kinds |= {"biases": "*fp32", "lengths": "*i32"}
    else:
        kinds = pointers
    constants = {**options, "KEEP": True}
    signature = {**kinds, "T": "i32", "B": "i32"} | dict.fromkeys(constants, "constexpr")
    source = ASTSource(persistent._forward, signature=signature, constexprs=constants)
    found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=launch)
    print(found.metadata.shared, persistent.needed(dtype, hidden, width))
"""


def test_what_the_triton_kernel_needs_of_the_chip_is_known() -> None:
    """By Triton's compiler, which needs no GPU."""
    pytest.importorskip("triton")
    settings = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILED], env=settings, capture_output=True, text=True, check=True)
    rooms = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(rooms) == 2
    for compiled, expected in rooms:
        assert compiled == expected


def test_every_place_may_have_a_word_of_its_own() -> None:
    persistent = pytest.importorskip("asreader.ops.gru.triton")
    drawn = given(2, 3, 2, 64)
    table = drawn.table[:, :6].detach().requires_grad_()
    own = Given(table, Places.one_each((1, 3, 2), DEVICE), drawn.weights, drawn.biases, drawn.lengths)
    assert_same(own, persistent, 1e-5)


@pytest.mark.skipif(not GPU, reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("hidden", range(64, 1025, 192))
def test_the_triton_kernel_on_a_gpu(hidden: int, dtype: torch.dtype) -> None:
    from asreader.ops.gru import triton

    if not triton.serves(DEVICE, dtype, hidden):
        pytest.skip("too large for float32")
    assert_same(given(4, 9, 5, hidden, dtype), triton, 1e-4 if dtype == torch.float32 else 0.05)


CLUSTERED = cuda.serves(DEVICE, torch.bfloat16, 64)


@pytest.mark.skipif(not CLUSTERED, reason="needs a GPU with thread block clusters")
@pytest.mark.parametrize("hidden", cuda.FEW)
@pytest.mark.parametrize(
    ("recurrences", "steps", "batch"), [(2, 1, 1), (2, 20, 32), (4, 13, 7), (8, 9, 33), (20, 6, 32), (34, 5, 32)]
)
def test_the_cluster_kernel(hidden: int, recurrences: int, steps: int, batch: int) -> None:
    assert_same(given(recurrences, steps, batch, hidden, torch.bfloat16), cuda, 0.05)
    assert_scaled(given(recurrences, steps, batch, hidden, torch.bfloat16), cuda, 0.05)


@pytest.mark.skipif(not CLUSTERED, reason="needs a GPU with thread block clusters")
def test_the_cluster_kernel_gives_the_same_bits_again() -> None:
    arguments = given(16, 200, 32, 384, torch.bfloat16)
    first = by(cuda, arguments)
    gradient = torch.autograd.grad(first.sum(), arguments.table)[0]
    for _ in range(5):
        again = by(cuda, arguments)
        assert torch.equal(first, again)
        assert torch.equal(gradient, torch.autograd.grad(again.sum(), arguments.table)[0])


def test_what_no_kernel_serves_goes_step_by_step() -> None:
    assert recurrence.fastest(torch.device("cpu"), torch.float32, 64) is None
    if GPU:
        assert recurrence.fastest(DEVICE, torch.bfloat16, 100) is None
