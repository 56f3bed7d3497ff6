# SPDX-License-Identifier: Apache-2.0
"""The page in a headless Chromium: what it shows of a digit is what `make sim` says of it."""

import functools
import http.server
import json
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from openkpu import configs, digits
from openkpu.checkout import REPORTS
from openkpu.export.source import read_export_model
from openkpu.network.network import alignment
from openkpu_tools.command import run_command
from openkpu_tools.commands import sim
from openkpu_tools.page import build, compile, data
from scripts.tests.site import browser
from scripts.tests.site.browser import Browser

SEVEN = [(0.3, 0.15), (0.5, 0.15), (0.7, 0.15), (0.6, 0.45), (0.45, 0.85)]  # and its bar
BAR = [(0.35, 0.5), (0.5, 0.5), (0.7, 0.5)]
READY = "Number(document.body.dataset.runs) > 0 && document.querySelector('#lanes figure') !== null"
MISSING = [tool for tool in compile.DEBIAN if not shutil.which(tool)]
MISSING += [] if browser.program() else ["chromium"]
Shown = tuple[int, bytes, int, int]  # prediction, bytes, cycles, gated multiplications
tool = pytest.mark.tool("page")
needs = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} missing (apt-get install)")


# ---------------------------------------------------------------- without a browser
def test_missing_tool_names_its_package(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_command(build.main, []) == 2
    said = capfd.readouterr().err
    assert said.count("\n") == 1 and "Debian's package emscripten" in said


def test_modules_become_one_script() -> None:
    """Each module is a scope of its own, and has what it imports."""
    made = build.bundled()
    assert not re.search(r"^(import|export) ", made, re.MULTILINE)
    for name in build.SCRIPTS:
        assert made.count(f"const module_{name} = (() => {{") == 1


def test_a_module_that_is_not_listed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SCRIPTS", build.SCRIPTS[:-1])
    with pytest.raises(build.PageError, match="main"):
        build.bundled()
    monkeypatch.setattr(build, "SCRIPTS", ("main", *build.SCRIPTS[:-1]))
    monkeypatch.undo()
    monkeypatch.setattr(build, "SCRIPTS", tuple(reversed(build.SCRIPTS)))
    with pytest.raises(build.PageError, match=r"main\.js imports"):
        build.bundled()


# ---------------------------------------------------------------- in the browser
@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page in a folder of its own."""
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(build.page_text(build.LINKS), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for all tests."""
    with browser.browser() as found:
        yield found


@pytest.fixture(scope="module")
def server(page: Path) -> Iterator[str]:
    """The page's address on a local server."""
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    handler = functools.partial(quiet, directory=str(page.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/index.html"
        running.shutdown()


def opened(tab: Browser, url: str, **window: int | bool) -> None:
    """Open the page and wait for its first digit."""
    tab.messages.clear()
    tab.requests.clear()
    tab.open(url, **window)  # pyright: ignore[reportArgumentType]
    tab.until(READY)


def runs(tab: Browser) -> int:
    return int(tab.value("document.body.dataset.runs"))


def after(tab: Browser, before: int) -> None:
    """Wait until the page has shown another run."""
    tab.until(f"Number(document.body.dataset.runs) > {before}")


def click_and_wait(tab: Browser, selector: str) -> None:
    """Click on what begins a run, and wait until it is shown."""
    before = runs(tab)
    tab.click(selector)
    after(tab, before)


def choose(tab: Browser, element: str, value: int) -> None:
    """Set a control to a value as a user does, and wait for the run that this begins."""
    before = runs(tab)
    tab.value(
        f"(() => {{ const e = document.getElementById('{element}'); e.value = {value};"
        " e.dispatchEvent(new Event('input')); e.dispatchEvent(new Event('change')); })()"
    )
    after(tab, before)


def quiet(tab: Browser, url: str) -> None:
    """Nothing on the console, and nothing asked of any other host."""
    assert tab.messages == []
    assert [each for each in tab.requests if not each.startswith(("data:", "blob:"))] == [url]


def pixels(tab: Browser) -> npt.NDArray[np.uint8]:
    """Bytes (1, 8, 8) that the page put into the storage."""
    found = tab.value("Array.from(openkpu.images[0])")
    return np.array(found, dtype=np.uint8).reshape(1, 8, 8)


def shown(tab: Browser) -> Shown:
    """What a reader sees."""
    cycles, gated = (int(tab.text(name).replace(",", "")) for name in ("cycles", "gated"))
    return int(tab.text("prediction")), bytes.fromhex(tab.text("bytes")), cycles, gated


def simulated(image: npt.NDArray[np.uint8], folder: Path) -> Shown:
    """The same by `make sim SIM=icarus CONFIG=nano` with these pixels."""
    np.save(folder / "pixels.npy", image[None])
    words = [f"--network={digits.NETWORK}", f"--input={folder / 'pixels.npy'}", "--sim=icarus"]
    words += [f"--config={build.CONFIG}", f"--output={folder / 'result.npy'}"]
    assert sim.main([*words, f"--report={folder / 'report.json'}"]) == 0
    y = np.load(folder / "result.npy")[0]
    totals = json.loads((folder / "report.json").read_text())["totals"]
    assert totals["inferences"] == 1
    cycles, gated = totals["cycles_per_inference"], totals["macs_gated_per_inference"]
    return digits.classify(y), y.tobytes(), int(cycles), int(gated)


@tool
@needs
@pytest.mark.parametrize("where", ["file", "server"])
def test_drawn_digit_is_that_of_the_simulator(
    where: str, page: Path, server: str, chromium: Browser, tmp_path: Path
) -> None:
    """Strokes of the mouse: prediction, cycles and bytes are those of make sim."""
    url = page.as_uri() if where == "file" else server
    opened(chromium, url)
    for stroke in (SEVEN, BAR):
        before = runs(chromium)
        chromium.stroke("#pad", stroke)
        after(chromium, before)
    assert chromium.text("truth") == "drawn here"
    assert shown(chromium) == simulated(pixels(chromium), tmp_path)
    assert shown(chromium)[0] == 7
    chromium.picture(REPORTS / "page" / f"{where}.png")
    quiet(chromium, url)


@tool
@needs
@pytest.mark.parametrize("number", range(len(data.NETWORKS)))
def test_scans_and_maps_are_those_of_the_golden_model(
    number: int, page: Path, chromium: Browser
) -> None:
    """Scan after scan: the whole storage, results, inputs of layers that read the one before."""
    config = configs.load_config(build.CONFIG)
    network = read_export_model([*data.NETWORKS][number], config).network
    opened(chromium, page.as_uri())
    choose(chromium, "network", number)
    test = digits.load_data()[1]
    for i in range(3):
        read = pixels(chromium)
        assert sorted(read.flat) == sorted(test.pixels[i].flat)
        golden = network.run(read)
        assert shown(chromium)[1] == golden.y.tobytes()
        assert shown(chromium)[0] == test.labels[i]
        assert shown(chromium)[3] == golden.macs_gated
        assert chromium.text("truth") == f"labelled {test.labels[i]} in the test set"
        maps = chromium.value("openkpu.result.maps.map((map) => Array.from(map))")
        assert maps[0] == read.reshape(-1).tolist()
        stored = network.storage(read[None], align=alignment(config))
        found = bytes(chromium.value("Array.from(openkpu.result.store)"))
        assert found == bytes(stored.data[: stored.registers["AI_RES_ADR"]])
        compared = 0
        for before, after_, result, found in zip(
            network.layers, network.layers[1:], golden.layers, maps[1:], strict=False
        ):
            if before.out_layout == after_.in_layout:
                assert found == result.y.view(np.uint8).reshape(-1).tolist()
                compared += 1
        assert compared >= 3
        click_and_wait(chromium, "#next")
    quiet(chromium, page.as_uri())


@tool
@needs
def test_wrong_byte_of_the_storage_shows(page: Path, chromium: Browser) -> None:
    """The comparison is one: a byte of the weights is another, and so is the result."""
    text = page.read_text()
    found = re.search(r'"store": "([^"]+)"', text)
    assert found
    place = found.start(1) + 4 * (4752 + 384) // 3  # weights of the last layers
    letter = "A" if text[place] != "A" else "z"
    planted = page.parent / "planted.html"
    planted.write_text(text[:place] + letter + text[place + 1 :])
    opened(chromium, planted.as_uri())
    network, test = digits.load_network(), digits.load_data()[1]
    assert shown(chromium)[1] != network.run(test.pixels[0]).y.tobytes()


@tool
@needs
def test_touch_on_a_phone(page: Path, chromium: Browser) -> None:
    """A finger draws; nothing is wider than the screen."""
    opened(chromium, page.as_uri(), width=360, height=780, phone=True)
    assert chromium.value("document.documentElement.scrollWidth") == 360
    for stroke in (SEVEN, BAR):
        before = runs(chromium)
        chromium.stroke("#pad", stroke, finger=True)
        after(chromium, before)
    network = digits.load_network()
    assert shown(chromium)[0] == 7
    assert shown(chromium)[1] == network.run(pixels(chromium)).y.tobytes()
    chromium.picture(REPORTS / "page" / "phone.png")
    quiet(chromium, page.as_uri())


@tool
@needs
def test_keyboard_alone(page: Path, chromium: Browser) -> None:
    """Space puts the pen down and lifts it, arrows move it, delete clears."""
    opened(chromium, page.as_uri())
    chromium.value("document.getElementById('pad').focus()")
    chromium.key(" ")
    chromium.key("ArrowDown", 10)
    before = runs(chromium)
    chromium.key(" ")
    after(chromium, before)
    assert chromium.text("truth") == "drawn here"
    assert shown(chromium)[0] == digits.classify(digits.load_network().run(pixels(chromium)).y) == 1
    before = runs(chromium)
    chromium.key("Delete")
    after(chromium, before)
    assert not pixels(chromium).any()
    quiet(chromium, page.as_uri())


@tool
@needs
def test_settings(page: Path, chromium: Browser) -> None:
    """Wait states cost cycles, a stream saves them, the gate saves toggles; the bytes stay."""
    opened(chromium, page.as_uri())

    def found() -> tuple[Shown, dict[str, float]]:
        return shown(chromium), chromium.value(
            "({toggles: openkpu.result.toggles, idle: openkpu.result.idleToggles,"
            " kept: openkpu.result.counters.inf_kept})"
        )

    first, with_gate = found()
    choose(chromium, "waits", 16)
    slow = shown(chromium)
    assert slow[2] > first[2] + 1000 and slow[:2] == first[:2]
    choose(chromium, "waits", 0)
    assert shown(chromium) == first
    click_and_wait(chromium, "#gate")
    plain, without = found()
    assert plain == first
    assert without["toggles"] > 2 * with_gate["toggles"] and without["idle"] > 0
    assert with_gate["idle"] == 0
    click_and_wait(chromium, "#continuous")
    stream, kept = found()
    assert kept["kept"] == 5 and stream[2] < first[2] and stream[:2] == first[:2]
    quiet(chromium, page.as_uri())


@tool
@needs
def test_single_steps(page: Path, chromium: Browser) -> None:
    """1, 10 and 100 cycles are so many; lanes are lit; the last button reaches the result."""
    opened(chromium, page.as_uri())

    def cycle() -> int:
        return int(chromium.text("step-cycle").replace(",", ""))

    for cycles in (1, 10, 100, 100, 100):
        before = cycle()
        chromium.click(f"[data-cycles='{cycles}']")
        assert cycle() == before + cycles
    lit = "document.querySelectorAll('#lanes .on').length"
    for _ in range(20):
        chromium.click("[data-cycles='10']")
        if chromium.value(lit):
            break
    assert chromium.value(lit) > 0
    chromium.click("[data-cycles='layer']")
    assert chromium.text("step-layer") in ("0", "1") and cycle() > 400
    chromium.click("[data-cycles='end']")
    assert chromium.text("step-units") == "the result is stored"
    assert cycle() >= shown(chromium)[2]
    quiet(chromium, page.as_uri())


@tool
@needs
def test_steps_are_of_what_is_shown(page: Path, chromium: Browser) -> None:
    """A run, Clear and a recording begin the steps anew; a held key does nothing."""
    opened(chromium, page.as_uri())
    step = "document.getElementById('step-cycle').textContent"
    first = chromium.text("step-cycle")
    lanes = chromium.text("lanes")
    chromium.click("[data-cycles='end']")
    chromium.until(f"{step} !== '{first}'")
    click_and_wait(chromium, "#next")
    chromium.until(f"{step} === '{first}'")
    assert chromium.text("lanes") != lanes  # of the other scan
    chromium.click("[data-cycles='100']")
    chromium.click("#vcd")
    chromium.until(f"document.getElementById('vcd-note').textContent && {step} === '{first}'")
    chromium.click("[data-cycles='1']")
    assert chromium.text("step-cycle") == str(int(first) + 1)
    assert chromium.text("step-units") != "the result is stored"
    click_and_wait(chromium, "#clear")
    assert not pixels(chromium).any() and chromium.text("truth") == "nothing is drawn"
    before = runs(chromium)
    pressed = "new KeyboardEvent('keydown', {key: ' ', repeat: true, cancelable: true})"
    other = "new PointerEvent('pointerdown', {isPrimary: false, pointerId: 7})"
    for event in (pressed, pressed, other):
        chromium.value(f"void document.getElementById('pad').dispatchEvent({event})")
    back = "new KeyboardEvent('keydown', {key: 'ArrowLeft', altKey: true, cancelable: true})"
    assert chromium.value(f"document.getElementById('pad').dispatchEvent({back})")
    assert runs(chromium) == before
    quiet(chromium, page.as_uri())


@tool
@needs
def test_vcd_of_the_last_run(page: Path, chromium: Browser, tmp_path: Path) -> None:
    """The file has the device's signals, and the interrupt at the end."""
    opened(chromium, page.as_uri())
    chromium.send("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    chromium.click("#vcd")
    file = tmp_path / "openkpu.vcd"
    chromium.until("document.getElementById('vcd-note').textContent !== ''")
    for _ in range(100):
        if file.exists():
            break
        chromium.until("new Promise((done) => setTimeout(() => done(true), 100))")
    text = file.read_text()
    names = set(re.findall(r"\$scope module (\w+) ", text))
    assert {"dut", "u_core", "u_control", "u_storage"} <= names
    irq = re.search(r"\$var wire 1 (\S+) irq ", text)
    assert irq and f"\n1{irq[1]}\n" in text[len(text) // 2 :]
    assert len(text) < 30_000_000


@tool
@needs
def test_says_what_it_cannot(page: Path, chromium: Browser) -> None:
    """Without WebAssembly there is one sentence, and no control that does nothing."""
    without = chromium.send(
        "Page.addScriptToEvaluateOnNewDocument", source="delete window.WebAssembly"
    )
    try:
        chromium.messages.clear()
        chromium.open(page.as_uri())
        chromium.until("!document.getElementById('unsupported').hidden")
        assert "no WebAssembly" in chromium.text("unsupported")
        assert chromium.value("document.querySelectorAll('button:not(:disabled)').length") == 0
        assert chromium.messages == []
    finally:
        chromium.send("Page.removeScriptToEvaluateOnNewDocument", **without)


@tool
@needs
def test_themes_and_motion(page: Path, chromium: Browser) -> None:
    """Dark where the reader has it dark; nothing moves for whoever wants that."""
    chromium.media(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    try:
        opened(chromium, page.as_uri())
        assert (
            chromium.value("getComputedStyle(document.body).backgroundColor") == "rgb(16, 20, 29)"
        )
        moving = "[...document.querySelectorAll('*')].filter((e) =>"
        moving += " getComputedStyle(e).transitionDuration !== '0s'"
        moving += " || getComputedStyle(e).animationName !== 'none').length"
        assert chromium.value(moving) == 0
        chromium.picture(REPORTS / "page" / "dark.png")
        quiet(chromium, page.as_uri())
    finally:
        chromium.media()
    opened(chromium, page.as_uri())
    assert chromium.value(moving) > 0


@tool
@needs
def test_every_link_leads_somewhere(page: Path, chromium: Browser) -> None:
    """Documents and sections that the page links to exist, as `make page` links them."""
    opened(chromium, page.as_uri())
    links = set(chromium.value("[...document.links].map((a) => a.getAttribute('href'))"))
    found = [link for link in links if link != "#try"]
    assert len(found) > 20
    for link in found:
        path, _, anchor = link.partition("#")
        target = (build.OUT.parent / path).resolve()  # where nothing is built there is no page/..
        assert target.is_file(), link
        headings = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
        slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
        assert not anchor or anchor in slugs, link


@tool
@needs
def test_size_and_time(page: Path, chromium: Browser) -> None:
    """Under 3 MB; a digit's simulation is counted in processor time, which a busy machine keeps."""
    assert page.stat().st_size < build.MOST_BYTES
    opened(chromium, page.as_uri())
    click_and_wait(chromium, "#next")
    assert re.fullmatch(r"\d+ ms", chromium.text("took"))
    assert configs.load_config(build.CONFIG).macs == chromium.value(
        "document.querySelectorAll('#lanes .cells span').length"
    )
