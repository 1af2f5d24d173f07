"""A headless Chromium, spoken to through a pipe; tests that want one are skipped where there is none."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-extensions --remote-debugging-pipe"


@dataclass
class Visit:
    """What happened while a page was open."""

    complaints: list[str] = field(default_factory=list)  # console messages, errors, refusals of the page's policy
    requests: list[str] = field(default_factory=list)  # addresses asked for, the page's own file among them


class Browser:
    """One page of a browser: open a file, run a script in it, press keys, take a picture."""

    def __init__(self, program: str, folder: Path) -> None:
        ours, theirs = os.pipe(), os.pipe()
        shell = f'exec "$0" {OPTIONS} --user-data-dir="$1" about:blank 3<&{ours[0]} 4>&{theirs[1]}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, program, str(folder)], pass_fds=(ours[0], theirs[1]), stderr=subprocess.DEVNULL
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._writing, self._reading = os.fdopen(ours[1], "wb"), os.fdopen(theirs[0], "rb")
        self._numbers, self._rest = itertools.count(1), b""
        self._session = ""
        self.visit = Visit()
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """One command and its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        self._writing.write(
            json.dumps(message | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        self._writing.flush()
        while True:
            heard = self._heard()
            if heard.get("id") == number:
                assert "error" not in heard, heard
                result: dict[str, Any] = heard["result"]
                return result

    def _heard(self) -> dict[str, Any]:
        """The next message; events that matter are noted."""
        while b"\0" not in self._rest:
            more = os.read(self._reading.fileno(), 1 << 20)
            assert more, "the browser has gone"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(line)
        match heard.get("method"):
            case "Network.requestWillBeSent":
                self.visit.requests.append(heard["params"]["request"]["url"])
            case "Log.entryAdded" | "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.visit.complaints.append(json.dumps(heard["params"]))
        return heard

    def open(self, path: Path, width: int = 1280, height: int = 900, dark: bool = False) -> Visit:
        """Load a page and wait for it."""
        self.visit = Visit()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._heard().get("method") != "Page.loadEventFired":
            pass
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.visit

    def value(self, script: str) -> Any:
        """What a script gives; promises are waited for."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """A key, down and up."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}.get(key, ord(key[0].upper()))
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **text)

    def screenshot(self, path: Path, whole: bool = True) -> None:
        """The page as a PNG."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(taken["data"]))

    def close(self) -> None:
        """End the browser."""
        self._writing.close()
        self._reading.close()
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium here")
    opened = Browser(program, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


class Page(HTMLParser):
    """Elements with attributes and text; refuses whatever could run, load or leave the page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self._raw = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED, tag
        own = {name: value or "" for name, value in attributes}
        self.elements.append((tag, own))
        assert not [name for name in own if name.startswith("on") or name in ("style", "action", "formaction")], own
        assert own.get("href", "#").startswith("#"), own
        assert own.get("src", "data:image/svg+xml;base64,").startswith("data:image/svg+xml;base64,"), tag
        self._raw = tag if tag in ("style", "script") else self._raw

    def handle_endtag(self, tag: str) -> None:
        self._raw = "" if tag == self._raw else self._raw

    def handle_data(self, data: str) -> None:
        self.text += "" if self._raw else data

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of this name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def check(self, scripts: int = 1) -> None:
        """What holds for every page of ours."""
        ids = [own["id"] for _, own in self.elements if "id" in own]
        assert len(ids) == len(set(ids))
        assert {own["href"].removeprefix("#") for own in self.all("a")} <= set(ids)
        assert {own["aria-labelledby"] for _, own in self.elements if "aria-labelledby" in own} <= set(ids)
        assert len(self.all("script")) == scripts and len(self.all("h1")) == 1
        assert all(own.get("alt") for own in self.all("img"))
        assert all(own.get("scope") for own in self.all("th"))
        assert "default-src 'none'" in next(own["content"] for own in self.all("meta") if "http-equiv" in own)
        levels = [int(tag[1]) for tag, _ in self.elements if tag in ("h1", "h2", "h3", "h4")]
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


ALLOWED = set(
    "a article b bdi body br caption circle code details div dl dt dd figcaption figure footer h1 h2 h3 h4 head header "
    "html img input kbd label li line main mark meta nav option output p polyline pre rect script section select small "
    "span strong style summary sup svg table tbody td text th thead title tr ul".split()
)


@pytest.fixture(scope="session")
def parsed() -> type[Page]:
    return Page
