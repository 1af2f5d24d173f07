"""Running a maker: the output does not depend on the executor, a stopped job resumes, files appear complete."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from asreader import plugins
from asreader.cloze.checkpoint import PieceOutput, PieceResult
from asreader.cloze.making_job import MakingJob, MakingSummary, run_maker
from asreader.cloze.stories.generator import generate_stories
from asreader.errors import InputError

SETTINGS = {"seed": 1}


@dataclass(frozen=True)
class Number:
    name: str
    size: int = 3


@dataclass(frozen=True)
class Count:
    """Piece -> lines; fails at the piece `bad`, stops at the piece `stop`, and logs every call."""

    log: Path
    bad: str = ""
    stop: str = ""

    def __call__(self, piece: Number) -> tuple[PieceResult, PieceOutput]:
        with self.log.open("a") as file:
            file.write(piece.name + "\n")
        if piece.name == self.stop:
            raise KeyboardInterrupt
        if piece.name == self.bad:
            return PieceResult(piece.name, piece.size, bad=f"{piece.name}: nothing in it"), PieceOutput()
        return PieceResult(piece.name, piece.size, 2, {"windows": 5}, note=f"note {piece.name}"), PieceOutput(
            f"{piece.name}\n" * 2
        )


PIECES = [Number(str(number)) for number in range(8)]
WHOLE = "".join(f"{number}\n" * 2 for number in range(8))


def run_numbers(
    folder: Path, executor: str = "local", workers: int = 1, skip_bad: bool = False, **how: str
) -> MakingSummary:
    (folder / "calls").unlink(missing_ok=True)
    job = MakingJob(folder / "out.txt", executor, workers, skip_bad)
    return run_maker(PIECES, Count(folder / "calls", **how), job, SETTINGS, "numbers")


def read_calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"calls", "out.txt"}


@pytest.mark.parametrize("executor", plugins.list_plugins("executors"))
@pytest.mark.parametrize("workers", [1, 2])
def test_output_does_not_depend_on_executor_and_workers(tmp_path: Path, executor: str, workers: int) -> None:
    summary = run_numbers(tmp_path, executor, workers)
    assert (tmp_path / "out.txt").read_text() == WHOLE
    assert summary.as_json() | {"notes": len(summary.notes)} == {"questions": 16, "windows": 40, "bad": 0, "notes": 8}
    assert not leftovers(tmp_path)


@pytest.mark.parametrize("stop", ["1", "4", "7"])
def test_a_stopped_job_resumes(tmp_path: Path, stop: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_numbers(tmp_path, stop=stop)
    assert leftovers(tmp_path) == {"out.txt.unfinished"}
    assert "run the same command again to resume" in capsys.readouterr().err.replace("\n", " ")
    summary = run_numbers(tmp_path)
    assert read_calls(tmp_path) == [piece.name for piece in PIECES[int(stop) :]]
    assert (tmp_path / "out.txt").read_text() == WHOLE
    assert summary.questions == 16 and summary.counts["windows"] == 40
    assert not leftovers(tmp_path)


def test_incomplete_lines_after_a_kill_are_made_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_numbers(tmp_path, stop="4")
    unfinished = tmp_path / "out.txt.unfinished"
    with (unfinished / "questions").open("a") as questions, (unfinished / "journal.jsonl").open("a") as journal:
        questions.write("4\nhalf a li")
        journal.write('{"made": {"name": "4", "si')
    run_numbers(tmp_path)
    assert read_calls(tmp_path) == ["4", "5", "6", "7"]
    assert (tmp_path / "out.txt").read_text() == WHOLE


def test_a_job_with_other_settings_does_not_resume(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_numbers(tmp_path, stop="4")
    job = MakingJob(tmp_path / "out.txt", workers=1)
    run_maker(PIECES[:2], Count(tmp_path / "calls"), job, {"seed": 2}, "numbers")
    assert (tmp_path / "out.txt").read_text() == "0\n0\n1\n1\n"


def test_pieces_that_have_changed_are_made_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_numbers(tmp_path, stop="4")
    (tmp_path / "calls").unlink()
    pieces = [PIECES[0], Number("1", size=99), *PIECES[2:5]]
    run_maker(pieces, Count(tmp_path / "calls"), MakingJob(tmp_path / "out.txt", workers=1), SETTINGS, "numbers")
    assert read_calls(tmp_path) == ["1", "2", "3", "4"]
    assert (tmp_path / "out.txt").read_text() == WHOLE[:20]


def test_a_bad_piece_ends_the_job_and_keeps_finished_pieces(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3: nothing in it; or skip it with --skip-bad"):
        run_numbers(tmp_path, bad="3")
    assert not (tmp_path / "out.txt").exists()
    summary = run_numbers(tmp_path, bad="3", skip_bad=True)
    assert (tmp_path / "out.txt").read_text() == WHOLE.replace("3\n", "")
    assert read_calls(tmp_path) == ["4", "5", "6", "7"]
    assert (summary.bad, summary.first_bad) == (1, ["3: nothing in it"])


def test_a_job_that_fails_at_once_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run_numbers(tmp_path, bad="0")
    assert not leftovers(tmp_path)
    job = MakingJob(tmp_path / "out.txt", workers=1, skip_bad=True)
    with pytest.raises(InputError, match="none of the numbers could be read; the first: 0: nothing in it"):
        run_maker(PIECES[:1], Count(tmp_path / "calls", bad="0"), job, SETTINGS, "numbers")
    assert not leftovers(tmp_path)


def test_an_old_file_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("old")
    with pytest.raises(KeyboardInterrupt):
        run_numbers(tmp_path, stop="4")
    assert (tmp_path / "out.txt").read_text() == "old"
    run_numbers(tmp_path)
    assert (tmp_path / "out.txt").read_text() == WHOLE


def in_files(piece: Number) -> tuple[PieceResult, PieceOutput]:
    return PieceResult(piece.name, piece.size, 1), PieceOutput(
        files=((f"{piece.name}.question", f"text {piece.name}"),)
    )


def test_a_folder_of_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_maker(PIECES, in_files, MakingJob(out, workers=2), SETTINGS, "numbers", as_folder=True)
    assert {path.name: path.read_text() for path in out.iterdir()} == {f"{n}.question": f"text {n}" for n in range(8)}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    with pytest.raises(InputError, match="exists already"):
        run_maker(PIECES, in_files, MakingJob(out, workers=1), SETTINGS, "numbers", as_folder=True)


def command(folder: Path, out: Path) -> list[str]:
    options = ["--type", "cn", "--workers", "2", "--only", "book*", "--json"]
    return [sys.executable, "-m", "asreader", "make", "books", str(folder), *options, "--out", str(out)]


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_job_resumes_with_the_same_output(tmp_path: Path, signal_number: int) -> None:
    for number in range(24):
        text = "\n".join(" ".join(sentence) for story in generate_stories(60, number) for sentence in story.document)
        (tmp_path / f"book{number:02}.txt").write_text(f"_BOOK_TITLE_ : book{number:02}\n{text}\n")
    whole, out = tmp_path / "whole.txt", tmp_path / "out.txt"
    subprocess.run(command(tmp_path, whole), check=True, capture_output=True)
    process = subprocess.Popen(
        command(tmp_path, out), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    journal = tmp_path / "out.txt.unfinished" / "journal.jsonl"
    deadline = time.monotonic() + 60
    while not (journal.exists() and journal.read_text().count("\n") >= 3):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.002)
    os.killpg(process.pid, signal_number)
    _, errors = process.communicate()
    assert not out.exists()
    if signal_number == signal.SIGINT:
        assert process.returncode in (1, 130)
        assert "run the same command again to resume" in errors and "Traceback" not in errors
    done = subprocess.run(command(tmp_path, out), check=True, capture_output=True, text=True)
    assert "resuming from" in done.stderr
    assert json.loads(done.stdout)["books"] == 24
    assert out.read_bytes() == whole.read_bytes()
