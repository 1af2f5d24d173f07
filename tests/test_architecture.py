"""The shape of the code: imports point downwards, heavy third parties have one home, files stay readable."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "asreader"
MODULES = sorted(SOURCE.rglob("*.py"))

# From the ground up; a module may import its own level and those below it.
LEVELS = (
    ("errors", "__init__"),
    ("plugins", "settings", "system", "executors"),
    ("data",),
    ("cloze", "batches", "ops"),
    ("runs", "evaluation"),
    ("readers", "baselines"),
    ("inference", "attention"),
    ("charts", "pages"),
    ("training",),
    ("benchmark", "sweep"),
    ("cli",),
    ("__main__",),
)
LEVEL = {name: level for level, names in enumerate(LEVELS) for name in names}

HOMES = {
    "typer": ["cli"],
    "jieba": ["data/text/chinese.py"],
    "ray": ["executors/ray.py"],
    "spacy": ["cloze/tagging/spacy.py"],
    "matplotlib": ["attention/figure_file.py", "charts"],
    "pyarrow": ["data/formats/huggingface_cbt.py"],
    "safetensors": ["runs/folder.py"],
    "tomllib": ["settings.py"],
}


RUN_FILES = {
    "config.toml",
    "weights.safetensors",
    "state.safetensors",
    "metrics.jsonl",
    "vocabulary.txt",
    "card.md",
    "calibration.json",
    "environment.json",
}


def top(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imported(path: Path) -> set[str]:
    """Dotted names a module imports anywhere, also inside functions; what only a type checker sees does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked = [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    skipped = {id(inner) for node in checked for inner in ast.walk(node)}
    names: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_every_module_has_a_level() -> None:
    assert {top(path) for path in MODULES} - {"pretrained"} <= LEVEL.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_downwards(path: Path) -> None:
    if path == SOURCE / "__init__.py":
        return
    for name in imported(path):
        parts = name.split(".")
        if parts[0] == "asreader" and len(parts) > 1 and parts[1] in LEVEL:
            assert LEVEL[parts[1]] <= LEVEL[top(path)], f"{path.relative_to(SOURCE)} imports {name} from above it"


@pytest.mark.parametrize("library", HOMES)
def test_a_third_party_has_one_home(library: str) -> None:
    users = [p.relative_to(SOURCE) for p in MODULES if any(n.split(".")[0] == library for n in imported(p))]
    homes = {user.parts[0] if user.parts[0] in HOMES[library] else str(user) for user in users}
    assert homes == set(HOMES[library])


def spelled_paths(path: Path) -> set[str]:
    """Last path components of the string literals of a module; docstrings and sentences do not match a file name."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {
        node.value.rpartition("/")[2]
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_only_runs_spells_the_file_names_of_a_run() -> None:
    elsewhere = [path for path in MODULES if top(path) != "runs"]
    offenders = {str(path.relative_to(SOURCE)) for path in elsewhere if RUN_FILES & spelled_paths(path)}
    assert not offenders


def test_what_runs_without_torch_imports_no_torch() -> None:
    code = (
        "import sys, asreader.cli, asreader.data.dataset, asreader.baselines, asreader.cli.tables;"
        "import asreader.runs.seed_groups;"
        "sys.exit('torch' in sys.modules or 'nltk' in sys.modules or 'pyarrow' in sys.modules"
        " or 'matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nothing_unpickles_or_evaluates() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib"}
    for path in MODULES:
        assert not forbidden & {name.split(".")[0] for name in imported(path)}, path
        assert not re.search(r"(?<![\w.])(eval|exec)\(|torch\.load\(|extractall\(", path.read_text(encoding="utf-8")), (
            path
        )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_stay_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= 50, f"{node.name} is longer than 50 lines"
    if text.strip():
        assert ast.get_docstring(ast.parse(text)) or path.name == "__init__.py"


def test_names_explain_themselves() -> None:
    assert not [path for path in MODULES if path.stem in {"utils", "helpers", "common", "base", "core", "manager"}]
    getters = [path for path in MODULES if re.search(r"def _?get_", path.read_text(encoding="utf-8"))]
    assert not getters


def public_classes() -> list[tuple[str, Path]]:
    """Name and module of every public class; the implementations of one operation share their names."""
    nodes = [(node, path) for path in MODULES for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    return [
        (node.name, path.parent if top(path) == "ops" else path)
        for node, path in nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]


def test_public_class_names_are_unique() -> None:
    homes: dict[str, set[Path]] = {}
    for name, home in public_classes():
        homes.setdefault(name, set()).add(home)
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_module_names_are_unique() -> None:
    """Except the implementations of operations, which have the same names in every folder."""
    stems = [path.stem for path in MODULES if path.stem != "__init__" and top(path) != "ops"]
    assert sorted(stems) == sorted(set(stems))


def test_every_folder_of_the_package_is_explained() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    folders = {path.name for path in SOURCE.iterdir() if path.is_dir() and (path / "__init__.py").is_file()}
    assert not [name for name in sorted(folders - {"pretrained"}) if f"`{name}/" not in text]


def test_operations_have_a_reference_and_are_listed() -> None:
    from asreader import ops

    folders = {path.name for path in (SOURCE / "ops").iterdir() if (path / "reference.py").is_file()}
    assert folders == set(ops.IMPLEMENTATIONS)
    for name, implementations in ops.IMPLEMENTATIONS.items():
        assert implementations[-1] == "reference"
        assert all((SOURCE / "ops" / name / f"{each}.py").is_file() for each in implementations)
        assert f"`{name}`" in (SOURCE / "ops" / "README.md").read_text(encoding="utf-8")


def test_the_model_is_on_one_screen() -> None:
    assert len((SOURCE / "readers" / "attention_sum.py").read_text().splitlines()) <= 60


def test_repository_names_no_machine() -> None:
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in filter(None, files):
        path = ROOT / name
        if path.suffix not in {".safetensors", ".png"} and path.is_file():
            found = re.search(r"(?<![\w.])/(?:work|farm|root|home/\w+)/", path.read_text(encoding="utf-8"))
            assert not found or path == Path(__file__), f"{name} names a machine's path"
