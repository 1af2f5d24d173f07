"""The CUDA kernels of the recurrence on a CPU, with a C++ compiler and emulated.hpp in the place of hopper.cuh.

What a GPU may do in any order is drawn by lot (see there), so this also finds what a GPU does wrong once in a while.
Small sizes; test_gru.py runs all of them where there is a GPU.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import torch
from torch import Tensor

from asreader.ops import attention_loss
from asreader.ops.gru import cuda
from asreader.ops.gru.cuda import ClusterLayout
from tests.ops import test_attention_loss
from tests.ops.test_gru import assert_same, assert_scaled, draw_inputs
from tests.ops.test_segment_sum import draw_values

COMPILER = shutil.which("g++")
EMULATED = Path(__file__).parent / "emulated.hpp"
LAUNCH = """
extern "C" const char* launch_{0}(void** given, int blocks, int size, int bytes, int seed) {{
    return launch({0}, given, blocks, size, bytes, seed);
}}
"""

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="needs g++"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the kernels themselves"),
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[ClusterLayout], ctypes.CDLL]:
    """Both kernels of a layout, compiled once."""
    return cache(lambda layout: compile_layout(layout, tmp_path_factory.mktemp("kernels")))


def compile_layout(layout: ClusterLayout, folder: Path) -> ctypes.CDLL:
    text, options = cuda.kernel_source(layout, EMULATED.read_text(encoding="utf-8"))
    return compile_source(text, options, ["gru_forward", "gru_backward"], folder)


def compile_source(text: str, options: list[str], kernels: list[str], folder: Path) -> ctypes.CDLL:
    source, built = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text + "".join(map(LAUNCH.format, kernels)), encoding="utf-8")
    command = [str(COMPILER), "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *options, str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


Kernel = Callable[[tuple[int, int, int], tuple[int, int, int], list[Tensor | int], int], None]


def load_kernel(kernels: ctypes.CDLL, name: str, seed: int) -> Kernel:
    """What `torch.cuda._compile_kernel` would give."""
    launch = kernels[f"launch_{name}"]
    launch.restype = ctypes.c_char_p

    def run(grid: tuple[int, int, int], block: tuple[int, int, int], arguments: list[Tensor | int], room: int) -> None:
        slots = [ctypes.c_int64(each.data_ptr() if isinstance(each, Tensor) else each) for each in arguments]
        places = (ctypes.c_void_p * len(slots))(*(ctypes.addressof(slot) for slot in slots))
        wrong = launch(places, grid[0], block[0], room, seed)
        assert wrong is None, wrong.decode()

    return run


@pytest.mark.parametrize(
    ("hidden", "blocks", "width", "many", "steps", "batch"),
    [
        (64, 4, 8, False, 3, 5),
        (128, 8, 8, False, 4, 9),
        (384, 6, 8, False, 2, 3),
        (64, 1, 32, True, 3, 33),
        (128, 1, 8, True, 4, 7),
        (192, 3, 16, True, 4, 17),
        (256, 2, 16, True, 2, 9),
        (320, 5, 8, True, 2, 3),
        (384, 3, 32, True, 3, 19),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_cluster_kernels(
    hidden: int, blocks: int, width: int, many: bool, steps: int, batch: int, seed: int,
    library: Callable[[ClusterLayout], ctypes.CDLL], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    layout = ClusterLayout(hidden, blocks, width, -(-batch // width), many)
    monkeypatch.setattr(cuda, "_choose_layout", lambda *_: layout)
    monkeypatch.setattr(cuda, "_compile_kernel", lambda name, wanted, *_: load_kernel(library(wanted), name, seed))
    inputs = draw_inputs(2, steps, batch, hidden, torch.bfloat16)
    assert_same(inputs, cuda, 0.05)
    if not many or hidden in (64, 192, 320):  # each width; two kernels more to compile
        assert_scaled(inputs, cuda, 0.05)


@pytest.fixture(scope="module")
def compile_alone(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, list[str]], Kernel]:
    """A kernel that needs no cluster, compiled once."""

    @cache
    def compile_once(name: str, text: str, options: tuple[str, ...]) -> ctypes.CDLL:
        sizes = ["-DCS=1", "-DNB=8", "-DH=64", "-DU=64"]
        chip = EMULATED.read_text(encoding="utf-8")
        return compile_source(chip + text, [*options, *sizes], [name], tmp_path_factory.mktemp("kernels"))

    return lambda name, text, options: load_kernel(compile_once(name, text, tuple(options)), name, 1)


@pytest.mark.parametrize(
    ("readers", "steps", "batch", "hidden"),
    [(1, 1, 1, 8), (2, 9, 3, 64), (1, 200, 2, 136), (1, 20, 1, 704), (1, 17, 1, 1024)],
)
def test_the_loss_of_the_attention_sum(
    readers: int, steps: int, batch: int, hidden: int,
    compile_alone: Callable[[str, str, list[str]], Kernel], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    triton = pytest.importorskip("asreader.ops.attention_loss.triton")

    def compile_kernel(hidden: int, _: int) -> Kernel:
        return compile_alone("point_partly", *triton.kernel_source(hidden))

    monkeypatch.setattr(triton, "_compile_kernel", compile_kernel)
    states, question, *masks, weights = test_attention_loss.draw_inputs(readers, steps, batch, hidden)
    states, question = states.bfloat16(), question.bfloat16()
    expected = attention_loss.compute_loss_gradients(states.float(), question.float(), *masks, weights)
    monkeypatch.setattr(triton, "_sum_parts", None)  # nobody else may do it
    as_bytes = triton._as_bytes(masks[0]), triton._as_bytes(masks[1])
    # The rest in float32: Triton's interpreter does not know bfloat16.
    found = triton._reduce(triton._sum(states, question, as_bytes), as_bytes, weights, question.float())
    torch.testing.assert_close(vars(found), vars(expected), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("positions", "rows", "columns"), [(1, 1, 8), (64, 3, 16), (150, 7, 136), (130, 4, 1288)])
@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_sums_by_row(
    positions: int, rows: int, columns: int, empty: float,
    compile_alone: Callable[[str, str, list[str]], Kernel], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    triton = pytest.importorskip("asreader.ops.segment_sum.triton")

    def compile_kernel(threads: int, _: int) -> Kernel:
        return compile_alone("sums_in_chunks", *triton.kernel_source(threads))

    class SumEdges:
        """Triton's interpreter does not know bfloat16."""

        def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
            def run(numbers: Tensor, ends: Tensor, empty: Tensor, sums: Tensor, *others: object, **sizes: int) -> None:
                whole = sums.float()
                sum_edges[grid](numbers, ends, empty, whole, *others, **sizes)
                sums.copy_(whole)

            return run

    sum_edges = triton._sum_edges
    monkeypatch.setattr(triton, "_compile_kernel", compile_kernel)
    monkeypatch.setattr(triton, "_sum_edges", SumEdges())
    monkeypatch.setattr(triton, "_sum_chunks", None)  # nobody else may do it
    values, where, expected = draw_values(positions, rows, columns, empty, torch.bfloat16)
    found = triton.start_sum(where, expected.bfloat16())(values)()
    torch.testing.assert_close(found.float(), expected, rtol=8e-3, atol=1e-5)


THROUGHPUT = cuda._read_source("throughput.cu")
SCALES = "        if (SCALED && threadIdx.x < NB) scale[(turn ^ 1) * NB + threadIdx.x] = next_scale;\n"
FAULTS = {
    "own units are not waited for": ("        for (int group = 0; group < GROUPS; group++) came(rooms.made", "//"),
    "others' units are not waited for": ("            came(rooms.far);\n", ""),
    "inputs come while notes are on their way": ("        movers_meet(group, MOVERS);\n", "        __syncwarp();\n"),
    "inputs come where notes are": ("        if (keep && storing) all_read();", "        if (0) all_read();"),
    "inputs are said to have come": (
        "        fetched();\n        __syncwarp();\n        if (lane == 0) arrive(rooms.full",
        "        __syncwarp();\n        if (lane == 0) arrive(rooms.full",
    ),
    "inputs are not waited for": ("        await(rooms.full + 8 * at.group, step & 1);\n", ""),
    "units are sent before they are made": (
        "        await(rooms.made + 16 * group + 8 * turned, step >> 1 & 1);\n",
        "",
    ),
    "units are said to be made": (
        "        __syncwarp();\n        if (lane == 0) arrive(rooms.made",
        "        if (lane == 0) arrive(rooms.made",
    ),
    "a state is written over": (
        "fresh_tile = shared_address(rooms.before) + (turn ^ 1) * TILE(H)",
        "fresh_tile = shared_address(rooms.before) + turn * TILE(H)",
    ),
    "the last notes are not waited for": ("    if (keep && storing) all_stored();\n", ""),
    "what belongs to no sequence stays": ("else if (sequence + AT_A_TIME * move < NB)", "else if (0)"),
    "shares are not waited for": (
        "        if (step) await(barriers + 8 * turn, ((step - 1) >> 1) & 1);\n#pragma",
        "#pragma",
    ),
    "gates are written over": (
        f"        products_done<0, 1, 0>(sum);\n{SCALES}        __syncwarp();\n        if (lane == 0) arrive(barrier,",
        f"        if (lane == 0) arrive(barrier, (CS - 1) * SHARE / WARPS);\n        products_done<0, 1, 0>(sum);\n"
        f"{SCALES}        __syncwarp();\n        if (0) arrive(barrier,",
    ),
    "gates are multiplied before they are made": (
        "        show_tensor_cores();\n        __syncthreads();\n        if (step + 1",
        "        show_tensor_cores();\n        __syncwarp();\n        if (step + 1",
    ),
    "scales are written over": (
        "scale[(turn ^ 1) * NB + threadIdx.x] = next_scale",
        "scale[turn * NB + threadIdx.x] = next_scale",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_places_of_faults_are_in_the_kernel(fault: str) -> None:
    assert THROUGHPUT.count(FAULTS[fault][0]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these a GPU would forgive most of the time."""
    layout, right, (place, instead) = ClusterLayout(384, 3, 32, 1, True), THROUGHPUT, FAULTS[fault]
    assert right.count(place) == 1, "the kernel has changed"
    parts = {"cluster.cuh": cuda._read_source("cluster.cuh"), "throughput.cu": right.replace(place, instead)}
    monkeypatch.setattr(cuda, "_read_source", parts.__getitem__)
    library = cache(lambda wanted: compile_layout(wanted, Path(tempfile.mkdtemp(dir=tmp_path))))
    monkeypatch.setattr(cuda, "_choose_layout", lambda *_: layout)
    found = 0
    for seed in range(4):
        monkeypatch.setattr(
            cuda, "_compile_kernel", lambda name, own, *_, seed=seed: load_kernel(library(own), name, seed)
        )
        inputs = draw_inputs(2, 4, 32 if seed % 2 else 19, 384, torch.bfloat16)
        try:
            assert_same(inputs, cuda, 0.05)
            assert_scaled(inputs, cuda, 0.05)
        except AssertionError:
            found += 1
    assert found
