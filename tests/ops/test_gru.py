"""The recurrence: its reference against PyTorch's GRU, every implementation against the reference."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from asreader import ops
from asreader.ops import Workload, gru
from asreader.ops.gru import RecurrenceInputs, combine_biases, cpu, cuda, reference, run_gru
from asreader.ops.segment_sum import Positions

GPU = torch.cuda.is_available()
CPU = torch.device("cpu")
DEVICE = torch.device("cuda" if GPU else "cpu")
HAS_CLUSTERS = cuda.supports(Workload(DEVICE, torch.bfloat16, 64)) is None


def draw_inputs(
    recurrences: int,
    steps: int,
    batch: int,
    hidden: int,
    dtype: torch.dtype = torch.float32,
    *,
    seed: int = 0,
    device: torch.device = DEVICE,
) -> RecurrenceInputs:
    """At random; some rows of the table stand nowhere."""
    torch.manual_seed(seed + steps + hidden)
    readers, rows = recurrences // 2, steps * batch // 2 + 3
    table = torch.randn(readers, rows, 2, 3 * hidden, device=device).to(dtype).requires_grad_()
    # Part of something larger: kernels must not rely on how it lies.
    index = torch.randint(0, rows, (readers, steps + 2, batch), dtype=torch.int32, device=device)[:, 1:-1]
    weights = (torch.randn(recurrences, 3 * hidden, hidden, device=device) / hidden**0.5).to(dtype).requires_grad_()
    wide = torch.promote_types(dtype, torch.float32)
    biases = torch.randn(recurrences, hidden, device=device, dtype=wide).requires_grad_()
    lengths = torch.randint(1, steps + 1, (readers, batch), device=device)
    if steps % 2:  # otherwise even the longest sequence may end before the padding does
        lengths[:, -1] = steps
    return RecurrenceInputs(table, Positions(index, rows), weights, biases, lengths.int())


def run_reference(inputs: RecurrenceInputs) -> Tensor:
    looked_up = reference.look_up_inputs(inputs.table, inputs.positions.index)
    return reference.step_through(looked_up, inputs.weights, inputs.biases, inputs.lengths.repeat_interleave(2, dim=0))


def run_kernels(implementation: ModuleType, inputs: RecurrenceInputs) -> Tensor:
    """What `run_gru` does with this implementation under vmap."""
    readers, index = len(inputs.table), inputs.positions.index
    weights, biases = (tensor.unflatten(0, (readers, 2)) for tensor in (inputs.weights, inputs.biases))
    states: Tensor = gru._GRU.apply(
        implementation, True, inputs.positions.rows, inputs.table, index, weights, biases, inputs.lengths, *[None] * 4
    )[0]
    return states.flatten(0, 1)


def run_together(inputs: RecurrenceInputs) -> Tensor:
    """All readers under vmap, by whatever serves."""
    readers, rows = len(inputs.table), inputs.positions.rows
    states = torch.func.vmap(
        lambda table, index, weights, biases, lengths: run_gru(table, Positions(index, rows), weights, biases, lengths)
    )(
        inputs.table,
        inputs.positions.index,
        inputs.weights.unflatten(0, (readers, 2)),
        inputs.biases.unflatten(0, (readers, 2)),
        inputs.lengths,
    )
    return states.flatten(0, 1)


def with_gradients(states: Tensor, inputs: RecurrenceInputs) -> tuple[Tensor, ...]:
    """States, and the gradients of some weighted sum of them."""
    outer = torch.randn(states.shape, generator=torch.Generator().manual_seed(5)).to(states)
    return states, *torch.autograd.grad(states, (inputs.table, inputs.weights, inputs.biases), outer)


def assert_close(found: tuple[Tensor, ...], expected: tuple[Tensor, ...], tolerance: float) -> None:
    """Relative to the greatest number of each tensor."""
    for one, other in zip(expected, found, strict=True):
        greatest = max(one.abs().max().item(), 1e-3)
        assert (one.double() - other.double()).abs().max() <= tolerance * greatest


def assert_same(inputs: RecurrenceInputs, implementation: ModuleType, tolerance: float) -> None:
    """Values and gradients of an implementation are those of the reference."""
    found, expected = run_kernels(implementation, inputs), run_reference(inputs)
    assert found.dtype == expected.dtype
    assert_close(with_gradients(found, inputs), with_gradients(expected, inputs), tolerance)


@torch.no_grad()
def assert_scaled(inputs: RecurrenceInputs, implementation: ModuleType, tolerance: float) -> None:
    """A gradient for each sequence with a scale for each step is the same as a gradient for each step, whether both
    directions share the scales or not."""
    result = gru.run_forward(implementation, inputs, keep=True)
    recurrences, steps, batch, hidden = result.states.shape
    gradient = torch.randn(recurrences, batch, hidden).to(result.weights)
    for shared in (2, 1):
        scales = torch.randn(recurrences // shared, batch, steps, device=gradient.device)
        whole = scales.repeat_interleave(shared, dim=0).movedim(2, 1)[..., None] * gradient[:, None]
        expected, sums = gru.run_backward(result, whole.to(gradient.dtype))
        found, other_sums = gru.run_backward(result, gradient, scales)
        biases = gru.bias_gradients(expected, sums), gru.bias_gradients(found, other_sums)
        assert_close((found, biases[1]), (expected, biases[0]), tolerance)


@pytest.mark.parametrize("implementation", ["reference", "cpu"])
@pytest.mark.parametrize(("steps", "batch"), [(7, 3), (1, 1), (5, 4)])
def test_states_are_those_of_pytorchs_gru(steps: int, batch: int, implementation: str) -> None:
    torch.manual_seed(0)
    torch_gru = nn.GRU(5, 6, batch_first=True, bidirectional=True)
    vectors, lengths = torch.randn(batch, steps, 5), torch.randint(1, steps + 1, (batch,))
    lengths[0] = steps
    packed, last = torch_gru(pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    matrices, recurrent, bias, own = (torch.stack(pair) for pair in zip(*torch_gru.all_weights, strict=True))
    table_bias, product_bias = combine_biases(bias, own)
    table = torch.einsum("bte,dge->tbdg", vectors, matrices) + table_bias
    positions = Positions.identity((steps, batch), CPU)
    with ops.using(implementation, "gru"):
        states = run_gru(table.flatten(0, 1), positions, recurrent, product_bias, lengths)
    inside = (torch.arange(steps) < lengths[:, None])[..., None]
    torch.testing.assert_close(torch.cat([*states], dim=-1).transpose(0, 1) * inside, expected)
    torch.testing.assert_close(torch.stack([states[0, -1], states[1, 0]]), last)


@given(
    readers=st.integers(1, 3),
    steps=st.integers(1, 9),
    batch=st.integers(1, 5),
    hidden=st.integers(1, 7),
    cache=st.sampled_from([1, 1 << 20]),  # a few steps at a time, or all at once
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_the_cpu_computes_what_the_reference_does(
    readers: int, steps: int, batch: int, hidden: int, cache: int, seed: int
) -> None:
    inputs = draw_inputs(2 * readers, steps, batch, hidden, torch.float64, seed=seed, device=CPU)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu, "CACHE_ELEMENTS", cache)
        assert_same(inputs, cpu, 1e-10)
        with torch.no_grad():
            kept, unkept = (gru.run_forward(cpu, inputs, keep).padded for keep in (True, False))
    torch.testing.assert_close(unkept, kept, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("lengths", [[1], [1, 1], [5], [7, 7, 7], [1, 6], [130, 1, 64]])
def test_odd_lengths_in_single_precision(lengths: list[int]) -> None:
    drawn = draw_inputs(2, max(lengths), len(lengths), 16, device=CPU)
    own = torch.tensor([lengths], dtype=torch.int32)
    assert_same(RecurrenceInputs(drawn.table, drawn.positions, drawn.weights, drawn.biases, own), cpu, 1e-5)


def test_scaled_gradients_on_a_cpu() -> None:
    assert_scaled(draw_inputs(4, 5, 3, 8, torch.float64, device=CPU), cpu, 1e-6)


@pytest.mark.parametrize("implementation", ["reference", "cpu"])
def test_reading_without_gradients_gives_the_same(implementation: str) -> None:
    """Also step by step in chunks, of which the last one is shorter."""
    inputs = draw_inputs(2, 21, 3, 8, device=CPU)
    with pytest.MonkeyPatch.context() as patch, ops.using(implementation, "gru"):
        patch.setattr(cpu, "CACHE_ELEMENTS", 1)
        learning = run_together(inputs)
        with torch.no_grad():
            no_grad = run_together(inputs)
        with torch.inference_mode():
            inference = run_together(inputs)
    assert learning.requires_grad and not no_grad.requires_grad
    torch.testing.assert_close(no_grad, learning)
    torch.testing.assert_close(inference, learning)


@pytest.mark.parametrize(
    ("implementation", "hidden", "dtype"),
    [("reference", 5, torch.float64), ("cpu", 5, torch.float64), ("triton", 64, torch.float32)],
)
@pytest.mark.skipif(GPU, reason="float64 is for a CPU; all sizes are tested on a GPU anyway")
def test_readers_together_read_what_each_reads_alone(implementation: str, hidden: int, dtype: torch.dtype) -> None:
    if implementation == "triton":
        pytest.importorskip("triton")
    inputs, rows = draw_inputs(6, 4, 3, hidden, dtype), 9
    tolerance = 1e-10 if dtype == torch.float64 else 1e-5
    with ops.using(implementation, "gru", "segment_sum"):
        together = with_gradients(run_together(inputs), inputs)
        alone = [
            run_gru(
                inputs.table[n],
                Positions(inputs.positions.index[n], rows),
                inputs.weights[2 * n : 2 * n + 2],
                inputs.biases[2 * n : 2 * n + 2],
                inputs.lengths[n],
            )
            for n in range(3)
        ]
        assert_close(with_gradients(torch.cat(alone), inputs), together, tolerance)
    assert inputs.positions.rows == rows
    assert_close(with_gradients(run_reference(inputs), inputs), together, tolerance)


def test_positions_sorted_beforehand_change_nothing() -> None:
    inputs = draw_inputs(2, 5, 3, 4, torch.float64, device=CPU)
    index, order = inputs.positions.index[0], inputs.positions.by_row

    def run(positions: Positions) -> Tensor:
        return run_gru(inputs.table[0], positions, inputs.weights, inputs.biases, inputs.lengths[0])

    rows = inputs.positions.rows
    own = type(order)(*(tensor[0] for tensor in order.tensors()))
    assert_close(
        with_gradients(run(Positions(index, rows, order=own)), inputs),
        with_gradients(run(Positions(index, rows)), inputs),
        1e-12,
    )


@pytest.mark.skipif(GPU, reason="on a GPU the sizes below")
@pytest.mark.parametrize(
    ("recurrences", "steps", "batch", "hidden"),
    [(2, 5, 3, 64), (4, 3, 17, 64), (2, 1, 1, 64), (2, 4, 2, 128), (gru.FEW + 2, 3, 2, 64)],
)
def test_the_triton_kernel_by_its_interpreter(recurrences: int, steps: int, batch: int, hidden: int) -> None:
    """One program for each recurrence: programs run one after the other."""
    triton = pytest.importorskip("asreader.ops.gru.triton")
    inputs = draw_inputs(recurrences, steps, batch, hidden)
    assert_same(inputs, triton, 1e-5)
    assert_scaled(inputs, triton, 1e-5)


def test_more_sequences_than_the_chip_holds_are_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    triton = pytest.importorskip("asreader.ops.gru.triton")
    monkeypatch.setattr(triton, "_widest", lambda *_: 2)
    inputs = draw_inputs(2, 3, 5, 64)
    assert_same(inputs, triton, 1e-5)
    assert_scaled(inputs, triton, 1e-5)


COMPILE = """
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from asreader.ops.gru import triton as kernel

pointers = dict.fromkeys(("inputs", "weights", "biases", "lengths", "states", "kept"), "*fp32")
pointers |= {"lengths": "*i32", "states": "*i32"}
for dtype, hidden, width in ((torch.float32, 448, 16), (torch.bfloat16, 384, 64)):
    like = torch.empty(1, 1, width, 1, dtype=dtype)
    options = kernel._sizes(like, hidden, kernel._units(dtype, hidden))
    launch = {key: options.pop(key) for key in ("num_warps", "num_stages")}
    if dtype == torch.bfloat16:
        kinds = {key: {"*fp32": "*bf16", "*i32": "*i16"}[kind] for key, kind in pointers.items()}
        kinds |= {"biases": "*fp32", "lengths": "*i32"}
    else:
        kinds = pointers
    constants = {**options, "KEEP": True}
    signature = {**kinds, "T": "i32", "B": "i32"} | dict.fromkeys(constants, "constexpr")
    source = ASTSource(kernel._forward, signature=signature, constexprs=constants)
    found = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=launch)
    print(found.metadata.shared, kernel.count_shared_bytes(dtype, hidden, width))
"""


def test_what_the_triton_kernel_needs_of_the_chip_is_known() -> None:
    """By Triton's compiler, which needs no GPU."""
    pytest.importorskip("triton")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True)
    sizes = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    assert len(sizes) == 2
    for compiled, expected in sizes:
        assert compiled == expected


def test_every_position_may_have_a_row_of_its_own() -> None:
    triton = pytest.importorskip("asreader.ops.gru.triton")
    drawn = draw_inputs(2, 3, 2, 64)
    table = drawn.table[:, :6].detach().requires_grad_()
    positions = Positions.identity((1, 3, 2), DEVICE)
    assert_same(RecurrenceInputs(table, positions, drawn.weights, drawn.biases, drawn.lengths), triton, 1e-5)


@pytest.mark.skipif(not GPU, reason="needs a GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("hidden", range(64, 1025, 192))
def test_the_triton_kernel_on_a_gpu(hidden: int, dtype: torch.dtype) -> None:
    from asreader.ops.gru import triton

    reason = triton.supports(Workload(DEVICE, dtype, hidden))
    if reason is not None:
        pytest.skip(reason)
    assert_same(draw_inputs(4, 9, 5, hidden, dtype), triton, 1e-4 if dtype == torch.float32 else 0.05)


@pytest.mark.skipif(not HAS_CLUSTERS, reason="needs a GPU with thread block clusters")
@pytest.mark.parametrize("hidden", cuda.BLOCKS_FOR_LATENCY)
@pytest.mark.parametrize(
    ("recurrences", "steps", "batch"), [(2, 1, 1), (2, 20, 32), (4, 13, 7), (8, 9, 33), (20, 6, 32), (34, 5, 32)]
)
def test_the_cluster_kernel(hidden: int, recurrences: int, steps: int, batch: int) -> None:
    inputs = draw_inputs(recurrences, steps, batch, hidden, torch.bfloat16)
    assert_same(inputs, cuda, 0.05)
    assert_scaled(inputs, cuda, 0.05)


@pytest.mark.skipif(not HAS_CLUSTERS, reason="needs a GPU with thread block clusters")
def test_the_cluster_kernel_gives_the_same_bits_again() -> None:
    inputs = draw_inputs(16, 200, 32, 384, torch.bfloat16)
    first = run_kernels(cuda, inputs)
    gradient = torch.autograd.grad(first.sum(), inputs.table)[0]
    for _ in range(5):
        again = run_kernels(cuda, inputs)
        assert torch.equal(first, again)
        assert torch.equal(gradient, torch.autograd.grad(again.sum(), inputs.table)[0])


@pytest.mark.skipif(not HAS_CLUSTERS, reason="needs a GPU with thread block clusters")
def test_readers_together_read_what_each_reads_alone_on_a_gpu() -> None:
    inputs = draw_inputs(6, 9, 5, 128, torch.bfloat16)
    expected = with_gradients(run_reference(inputs), inputs)
    assert_close(with_gradients(run_together(inputs), inputs), expected, 0.05)


def test_what_no_kernel_supports_is_served_by_the_reference() -> None:
    assert ops.choose("gru", Workload(CPU, torch.bfloat16, 64)).implementation == "reference"
    if GPU:
        assert ops.choose("gru", Workload(DEVICE, torch.bfloat16, 100)).implementation == "reference"
