"""evaluation/ works on saved predictions with numpy alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import asreader
from asreader.data.vocabulary import Vocabulary

PACKAGE = Path(asreader.__file__).parent


def test_no_module_of_evaluation_imports_torch() -> None:
    files = [path.relative_to(PACKAGE.parent) for path in sorted((PACKAGE / "evaluation").rglob("*.py"))]
    modules = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files]
    assert "asreader.evaluation.breakdowns.systems" in modules
    code = f"import sys, {', '.join([*modules, 'asreader.runs.run_search'])}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_run_with_a_vocabulary_loads_without_torch(invented: Path, tmp_path: Path) -> None:
    shutil.copytree(invented / "runs" / "hidden-128" / "seed-1", tmp_path / "run")
    Vocabulary(("lamp",), unknown=1).save(tmp_path / "run" / "vocabulary.txt")
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from asreader.evaluation.breakdowns.systems import SystemSource, load_systems\n"
        "(system,) = load_systems([SystemSource(Path(sys.argv[1]), Path(sys.argv[2]))])\n"
        "assert system.vocabulary is not None\n"
        "sys.exit('torch' in sys.modules)\n"
    )
    paths = [str(tmp_path / "run"), str(invented / "valid.jsonl")]
    subprocess.run([sys.executable, "-c", code, *paths], check=True)
