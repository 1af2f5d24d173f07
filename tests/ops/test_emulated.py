"""The CUDA kernels of the recurrence on a CPU, with a C++ compiler and emulated.hpp in the place of hopper.cuh.

What a GPU may do in any order is drawn by lot (see there), so this also finds what a GPU does wrong once in a while.
Small sizes; test_recurrence.py runs all of them where there is a GPU.
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

from asreader.ops.gru import cuda
from asreader.ops.gru.cuda import Shape
from tests.kernels.test_pointing import given as to_point
from tests.kernels.test_recurrence import assert_same, assert_scaled, given
from tests.kernels.test_words import places_with_values

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
def library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Shape], ctypes.CDLL]:
    """Both kernels of a shape, compiled once."""
    return cache(lambda shape: compiled(shape, tmp_path_factory.mktemp("kernels")))


def compiled(shape: Shape, folder: Path) -> ctypes.CDLL:
    text, options = cuda.program(shape, EMULATED.read_text(encoding="utf-8"))
    return built_from(text, options, ["gru_forward", "gru_backward"], folder)


def built_from(text: str, options: list[str], kernels: list[str], folder: Path) -> ctypes.CDLL:
    source, built = folder / "kernels.cpp", folder / "kernels.so"
    source.write_text(text + "".join(map(LAUNCH.format, kernels)), encoding="utf-8")
    command = [str(COMPILER), "-std=c++17", "-O1", "-w", "-shared", "-fPIC", *options, str(source), "-o", str(built)]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(built))


Kernel = Callable[[tuple[int, int, int], tuple[int, int, int], list[Tensor | int], int], None]


def kernel_of(kernels: ctypes.CDLL, name: str, seed: int) -> Kernel:
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
    library: Callable[[Shape], ctypes.CDLL], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shape = Shape(hidden, blocks, width, -(-batch // width), many)
    monkeypatch.setattr(cuda, "_shape", lambda *_: shape)
    monkeypatch.setattr(cuda, "_kernel", lambda name, wanted, *_: kernel_of(library(wanted), name, seed))
    assert_same(given(2, steps, batch, hidden, torch.bfloat16), cuda, 0.05)
    assert_scaled(given(2, steps, batch, hidden, torch.bfloat16), cuda, 0.05)


def alone(name: str, text: str, options: list[str], folder: Path) -> Kernel:
    """A kernel that needs no cluster."""
    chip, sizes = EMULATED.read_text(encoding="utf-8"), ["-DCS=1", "-DNB=8", "-DH=64", "-DU=64"]
    return kernel_of(built_from(chip + text, options + sizes, [name], folder), name, 1)


@pytest.mark.parametrize(
    ("readers", "steps", "batch", "hidden"),
    [(1, 1, 1, 8), (2, 9, 3, 64), (1, 200, 2, 136), (1, 20, 1, 704), (1, 17, 1, 1024)],
)
def test_pointing(
    readers: int, steps: int, batch: int, hidden: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pointing = pytest.importorskip("asreader.ops.attention_loss.triton")
    monkeypatch.setattr(
        pointing, "_kernel", lambda hidden, _: alone("point_partly", *pointing.program(hidden), tmp_path)
    )
    *factors, readable, answer_at, shares = to_point(readers, steps, batch, hidden)
    rounded, masks = [factor.bfloat16() for factor in factors], tuple(map(pointing._bytes, (readable, answer_at)))
    expected = pointing.learnt(*(factor.float() for factor in rounded), readable, answer_at, shares)
    monkeypatch.setattr(pointing, "_partly", None)  # nobody else may do it
    # The rest in float32: Triton's interpreter does not know bfloat16.
    found = pointing._wholly_of(pointing._partly_of(*rounded, masks), masks, shares, rounded[1].float())
    for one, other in zip(vars(found).values(), vars(expected).values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("places", "words", "columns"), [(1, 1, 8), (64, 3, 16), (150, 7, 136), (300, 4, 1288)])
@pytest.mark.parametrize("empty", [0.0, 0.5, 1.0])
def test_sums_of_places(
    places: int, words: int, columns: int, empty: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kernel(threads: int, _: int) -> Kernel:
        return alone("sums_in_chunks", *segments.program(threads), tmp_path)

    class OverEdges:
        """Triton's interpreter does not know bfloat16."""

        def __getitem__(self, grid: tuple[int, int, int]) -> Callable[..., None]:
            def run(numbers: Tensor, ends: Tensor, empty: Tensor, sums: Tensor, *others: object, **sizes: int) -> None:
                whole = sums.float()
                over_edges[grid](numbers, ends, empty, whole, *others, **sizes)
                sums.copy_(whole)

            return run

    segments = pytest.importorskip("asreader.ops.segment_sum.triton")
    over_edges = segments._over_edges
    monkeypatch.setattr(segments, "_kernel", kernel)
    monkeypatch.setattr(segments, "_over_edges", OverEdges())
    values, where, expected = places_with_values(places, words, columns, empty, torch.bfloat16)
    found = segments.summing(values, where.by_word, segments.begun(where.by_word, expected.bfloat16()))()
    torch.testing.assert_close(found.float(), expected, rtol=8e-3, atol=1e-5)


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


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these a GPU would forgive most of the time."""
    shape, right, (place, instead) = Shape(384, 3, 32, 1, True), cuda._text("many_gru.cu"), FAULTS[fault]
    assert right.count(place) == 1, "the kernel has changed"
    parts = {"cluster.cuh": cuda._text("cluster.cuh"), "many_gru.cu": right.replace(place, instead)}
    monkeypatch.setattr(cuda, "_text", parts.__getitem__)
    library = cache(lambda wanted: compiled(wanted, Path(tempfile.mkdtemp(dir=tmp_path))))
    monkeypatch.setattr(cuda, "_shape", lambda *_: shape)
    found = 0
    for seed in range(4):
        monkeypatch.setattr(cuda, "_kernel", lambda name, own, *_, seed=seed: kernel_of(library(own), name, seed))
        arguments = given(2, 4, 32 if seed % 2 else 19, 384, torch.bfloat16)
        try:
            assert_same(arguments, cuda, 0.05)
            assert_scaled(arguments, cuda, 0.05)
        except AssertionError:
            found += 1
    assert found
