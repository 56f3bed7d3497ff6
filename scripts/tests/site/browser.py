# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium with one tab, driven by its DevTools protocol over a pipe."""

import base64
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu"]
FLAGS += ["--no-first-run", "--disable-background-networking", "--hide-scrollbars"]
FLAGS += ["--disable-dev-shm-usage", "--disable-component-update"]
SECONDS = 240.0  # for an answer: a busy machine
Point = tuple[float, float]


def program() -> str | None:
    """Path of the browser, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class BrowserError(AssertionError):
    """The browser refused a command or did not answer."""


class Browser:
    """A running browser; ``messages`` has what the page wrote to the console, and its errors."""

    def __init__(self, process: subprocess.Popen, to: int, of: int) -> None:
        self.process, self.to, self.of = process, to, of
        self.number, self.rest = 0, b""
        self.session: str | None = None
        self.messages: list[str] = []
        self.requests: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        found = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    # ------------------------------------------------------------------ protocol
    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; BrowserError when there is none."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(method)
            if answer.get("id") != self.number:
                self._note(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def _receive(self, what: str) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.of], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.of, 1 << 20) if ready else b""
            if not data:
                raise BrowserError(f"{what}: no answer")
            self.rest += data
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def _note(self, event: dict[str, Any]) -> None:
        name, params = event.get("method"), event.get("params", {})
        if name == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            thrown = details.get("exception", {}).get("description", details["text"])
            self.messages.append(f"exception: {thrown}")
        elif name == "Runtime.consoleAPICalled":
            words = [str(arg.get("value", arg.get("description"))) for arg in params["args"]]
            self.messages.append(f"{params['type']}: {' '.join(words)}")
        elif name == "Log.entryAdded":
            entry = params["entry"]
            self.messages.append(f"{entry['level']}: {entry['text']} {entry.get('url', '')}")
        elif name == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    # ------------------------------------------------------------------ the page
    def open(self, url: str, width: int = 1280, height: int = 900, *, phone: bool = False) -> None:
        """Load a page in a window of this size; of a phone with twice the pixels and touch."""
        scale = 2 if phone else 1
        self.send(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": scale, "mobile": phone},
        )
        self.send("Emulation.setTouchEmulationEnabled", enabled=phone)
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def media(self, **features: str) -> None:
        """Set media features: ``prefers_color_scheme="dark"``."""
        pairs = [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]
        self.send("Emulation.setEmulatedMedia", features=pairs)

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression, a promise's when it is one."""
        found = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise BrowserError(f"{expression}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def until(self, expression: str, seconds: float = SECONDS) -> None:
        """Wait until an expression is true; BrowserError with the console when it never is."""
        end = time.monotonic() + seconds
        while not self.value(expression):
            if time.monotonic() > end:
                raise BrowserError(f"never {expression}; console: {self.messages}")
            time.sleep(0.05)

    def text(self, element: str) -> str:
        """The text of the element of this id, its spaces as one."""
        return " ".join(self.value(f"document.getElementById('{element}').textContent").split())

    # ------------------------------------------------------------------ the user
    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element that is scrolled into view."""
        found = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()"
        )
        left, top, width, height = found
        return left, top, width, height

    def click(self, selector: str) -> None:
        """Press and release the mouse in the middle of an element."""
        left, top, width, height = self.box(selector)
        at = {"x": left + width / 2, "y": top + height / 2, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, **at)

    def stroke(self, selector: str, points: Sequence[Point], *, finger: bool = False) -> None:
        """Draw a line over an element; points are shares of its width and height."""
        left, top, width, height = self.box(selector)
        places = [(left + x * width, top + y * height) for x, y in points]
        for i, (x, y) in enumerate([*places, places[-1]]):
            first, last = i == 0, i == len(places)
            if finger:
                kind = "touchStart" if first else "touchEnd" if last else "touchMove"
                touches = [] if last else [{"x": x, "y": y}]
                self.send("Input.dispatchTouchEvent", type=kind, touchPoints=touches)
            else:
                kind = "mousePressed" if first else "mouseReleased" if last else "mouseMoved"
                pen = {"button": "left", "buttons": 0 if last else 1, "clickCount": 1}
                self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pen)

    def key(self, name: str, times: int = 1) -> None:
        """Press a key so many times."""
        text = {"text": name} if len(name) == 1 else {}
        for _ in range(times):
            self.send("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=name)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """A screenshot of the window, or of the whole page, as PNG."""
        shot = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextlib.contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, ended at the end."""
    with tempfile.TemporaryDirectory(prefix="openkpu_browser_") as tmp:
        commands, answers = os.pipe(), os.pipe()
        words = [str(program()), *FLAGS, f"--user-data-dir={tmp}", "about:blank"]

        def places() -> None:  # the browser reads file 3 and writes file 4
            os.dup2(os.dup(commands[0]), 3)
            os.dup2(os.dup(answers[1]), 4)

        process = subprocess.Popen(
            words,
            preexec_fn=places,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(commands[0])
        os.close(answers[1])
        try:
            yield Browser(process, commands[1], answers[0])
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            os.close(commands[1])
            os.close(answers[0])
