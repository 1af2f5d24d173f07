from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from asreader import readers
from asreader.errors import InputError
from asreader.settings import Config, load_settings, parse_settings

CONFIGS = sorted((Path(__file__).parent.parent / "configs").glob("*.toml"))


def test_overrides_win_and_keep_their_types() -> None:
    text = "[train]\nbatch = 16\nlearning_rate = 1\n[reader]\nhidden = 8\n"
    settings = parse_settings(
        text, ["train.batch=4", "reader.hidden=9", "data.train=a b.txt", "train.tensorboard=false"]
    )
    assert (settings.train.batch, settings.reader["hidden"], settings.data.train) == (4, 9, "a b.txt")
    assert settings.train.learning_rate == 1.0
    assert settings.train.tensorboard is False


def test_toml_round_trip() -> None:
    settings = parse_settings('[data]\ntrain = "a\\"b\\\\c é"\n[reader]\nname = "blending"\nhidden = 7\n')
    assert parse_settings(settings.toml()) == settings
    assert tomllib.loads(settings.toml())["reader"] == {"name": "blending", "hidden": 7}


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        ("[train]\nbatchh = 3", [], "did you mean 'batch'"),
        ("[trian]\nbatch = 3", [], "did you mean 'train'"),
        ("[train]\nbatch = '3'", [], "must be like 32"),
        ("[train]\nbatch = true", [], "must be like 32"),
        ("[train]\nbatch = 0", [], "at least 1"),
        ("[train]\nmetric = 'cost'", [], "accuracy, loss"),
        ("[train]\nlearning_rate = 0", [], "greater than 0"),
        ("[train]\ndecay = 'slow'", [], "none, linear, cosine"),
        ("[train]\nwarmup = -1", [], "at least 0"),
        ("[train]\naverage = 1", [], "below 1"),
        ("[train]\nteacher_weight = 0", [], "above 0"),
        ("[train]\nbackend = 'many'", [], "auto, ddp"),
        ("[data]\nanonymise = 1.5", [], "share"),
        ("[data]\nvocabulary = 'all'", [], "train\\+evaluation"),
        ("batch = 3", [], "section"),
        ("[train", [], "not valid TOML"),
        ("", ["batch=3"], "section.key=value"),
        ("", ["train.batch"], "section.key=value"),
        ("", ["model.size=3"], "section.key=value"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint(text: str, overrides: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_settings(text, overrides)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"hiden": 3},
        {"hidden": "3"},
        {"normalise": "words"},
        {"hidden": 3.5},
        {"hidden": 0},
        {"layers": 0},
        {"dropout": 1.5},
        {"dropout": -0.1},
        {"dropout": "0.1"},
    ],
)
def test_the_reader_checks_its_own_settings(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="reader"):
        readers.build("attention_sum", 10, options)


def test_a_share_may_be_written_as_a_whole_number() -> None:
    readers.build("attention_sum", 10, {"dropout": 0})


def test_an_unknown_reader_is_named_with_a_hint() -> None:
    with pytest.raises(InputError, match="did you mean 'attention_sum'"):
        readers.build("attention_sun", 10, {})


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_shipped_config_holds_only_differences_and_builds_its_reader(path: Path) -> None:
    settings, plain = load_settings(path), Config()
    written = tomllib.loads(path.read_text())
    readers.build(settings.reader_name, 10, settings.reader_options)
    for section in ("data", "train"):
        for key, value in written.get(section, {}).items():
            assert value != getattr(getattr(plain, section), key), f"[{section}] {key} is the default already"
    for key, value in settings.reader_options.items():
        assert value != readers.settings(settings.reader_name)[key].default, f"[reader] {key} is the default already"
