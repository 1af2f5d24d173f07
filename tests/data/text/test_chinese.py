from __future__ import annotations

import builtins
import subprocess
import sys
from pathlib import Path

import pytest

from asreader.data.text import chinese
from asreader.data.text.tokenizer import tokenize, tokenize_sentences
from asreader.errors import InputError

pytest.importorskip("jieba")


def test_chinese_text_is_segmented() -> None:
    assert tokenize("小猫喜欢北京。") == ("小猫", "喜欢", "北京", "。")


def test_chinese_text_keeps_its_punctuation() -> None:
    assert [" ".join(sentence) for sentence in tokenize_sentences("小猫说：“我在北京！”狐狸笑了……谁来了？")] == [
        "小猫 说 ： “ 我 在 北京 ！ ”",
        "狐狸 笑 了 ……",
        "谁 来 了 ？",
    ]
    assert [" ".join(sentence) for sentence in tokenize_sentences("「我在北京。」小猫说")] == [
        "「 我 在 北京 。 」",
        "小猫 说",
    ]


def test_line_ends_inside_a_chinese_paragraph_separate_no_words() -> None:
    assert tokenize("我在北\n京") == tokenize("我在北京")


def test_tokenised_text_keeps_its_words() -> None:
    text = "小 花猫 对 老 狐狸 说 ： “ XXXXX 今天 不 在家 ， 你 走 吧 ！ ”"
    assert tokenize(text) == tuple(text.split())
    assert tokenize_sentences(f"{text} 狐狸 走 了 。") == (tuple(text.split()), ("狐狸", "走", "了", "。"))


def test_an_english_text_may_quote_chinese() -> None:
    assert tokenize('She wrote "北京" (Beijing), didn\'t she?') == tuple(
        "She wrote `` 北京 '' -LRB- Beijing -RRB- , did n't she ?".split()
    )


def test_tags_come_from_the_dictionary_or_are_guessed() -> None:
    assert chinese.tag_words(["北京", "狐狸", "喜欢", "。", "Ana"]) == ["ns", "n", "v", "x", "x"]
    assert chinese.tag_words(["李明", "张三", "王大锤"]) == ["nr", "nr", "nr"]


def test_jieba_prints_nothing_and_leaves_no_files(tmp_path: Path) -> None:
    code = "from asreader.data.text import chinese; chinese.segment_words('我在北京'); chinese.tag_words(['北京'])"
    place = {"TMPDIR": str(tmp_path), "PATH": ""}
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], env=place, capture_output=True, check=True)
    assert done.stdout + done.stderr == b""
    assert not list(tmp_path.iterdir())


def test_without_jieba_there_is_a_one_line_error(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name == "jieba":
            raise ImportError(name)
        return importing(name, *rest)  # type: ignore[arg-type]

    chinese._load_segmenter.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'asreader\[chinese\]'"):
        tokenize("我在北京")
