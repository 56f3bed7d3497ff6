# SPDX-License-Identifier: Apache-2.0
"""The commands that pages show run, on files of the names that the pages give.

What takes minutes has a step of `make nightly`, `.ci/run`, or tests of its own; ELSEWHERE says
which, so that a command that a page names is in one of the two.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from models.tests.quantised import exported
from models.tests.readers.single_operators import SHAPE
from openkpu import digits
from openkpu.checkout import ROOT
from openkpu_tools import registry
from openkpu_tools.verification import nightly
from scripts.tests.conftest import VECTOR
from scripts.tests.documents.test_page_commands import PAGES, shown

SHARED = Path(os.environ.get("OPENKPU_SHARED", ROOT.parent / "shared")) / "real"
RUN = {"compile", "export", "judge", "predict", "quantise", "sim"}
RUN |= {"stalls", "stream", "configs", "silicon", "help"}
STEPS = {words.split()[0] for _, words, _ in nightly.steps()} | {"test", "check"}
ELSEWHERE = {
    "asic": "test_asic.py",
    "bench": "test_bench.py",
    "bench-continuous": "test_stream_models.py",
    "bench-kept": "test_stream_models.py",
    "bench-peer": "test_bench_peer.py",
    "board": "test_board.py",
    "claim-table": "test_page_tables.py",
    "claims": "tb/claims",
    "coverage": "test_coverage_command.py",
    "cycles": "tb/device/test_cycles.py",
    "features": "test_features.py",
    "fields": "test_page_commands.py",
    "gates": "test_gates.py",
    "integration": "test_integration_files.py",
    "kmodel": "models/tests/k210/test_kmodel_results.py",
    "lint": "test_lint.py",
    "nightly": "test_nightly.py",
    "page": "test_page.py",
    "page-tables": "test_page_tables.py",
    "power": "test_gates.py",
    "register-formats": "test_integration_files.py",
    "registers": "test_page_commands.py",
    "reports": "test_reports_command.py",
    "setup": "test_setup.py",
    "site": "test_site.py",
    "soc": "test_soc.py",
    "synth": "test_eda.py",
    "synth-check": "test_comb_paths.py",
    "testplan": "test_testplan.py",
    "timings": "test_timings.py",
    "vectors": "test_make_vectors.py",
}
# published models beside the checkout, and the picture that a page uses with one
PUBLISHED = {"yolox_nano_224_v5.kmodel", "face_detect_v3_8bit.kmodel"}
# words of lines that only the whole tests run: large builds, many images, many published models
SLOW = {"k210", "1000", "nano_fpga", "file.json", "--table", "--floats"}


def shown_commands() -> list[tuple[bool, tuple[str, ...]]]:
    """Each command line of the pages once: by make, words."""
    found = [
        (by_make, tuple(words)) for page in PAGES for by_make, words in shown(page.read_text())
    ]
    return list(dict.fromkeys(found))


def whole(by_make: bool, words: tuple[str, ...]) -> bool:
    """A line to be run as it is: no placeholder, and more than a name where that stands for all."""
    name, *rest = words
    open_ended = any(word.endswith("=") or word.isalpha() & word.isupper() for word in rest)
    needs = name not in ("configs", "silicon", "help") and not rest
    # MediaPipe's model is not among the published ones; test_face_command.py has one like it
    foreign = "MODEL=face_detection_front.tflite" in rest
    return name in RUN and not (open_ended or needs or foreign)


LINES = [line for line in shown_commands() if whole(*line)]


def values(words: tuple[str, ...]) -> set[str]:
    """The words, and what is behind their =."""
    return {part for word in words for part in (word, word.partition("=")[2])}


def cases() -> list[object]:
    """The lines, those of minutes in the last tier."""
    return [
        pytest.param(
            *line,
            id=" ".join(line[1]),
            marks=[pytest.mark.nightly] if values(line[1]) & SLOW else [pytest.mark.check],
        )
        for line in LINES
    ]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A folder with what the pages name: models, maps, pictures."""
    from PIL import Image

    rng = np.random.default_rng(3)
    words = values(request.node.callspec.params["words"])
    floats = exported.classifier(exported.OLD, "relu")
    quantised = digits.FOLDER / "residual_qdq.onnx"
    shutil.copy(digits.FOLDER / "residual_int8.tflite", tmp_path / "net.tflite")
    calibrated = words & {"--calibration", "photos/", "photos", "x.npz"} or "10%" in words
    (tmp_path / "net.onnx").write_bytes(floats if calibrated else quantised.read_bytes())
    (tmp_path / "float.onnx").write_bytes(floats)
    if "net.okpu" in words and "compile" not in words:
        made = ["compile", str(tmp_path / "net.tflite"), "--config", "small"]
        assert registry.dispatch([*made, "-o", str(tmp_path / "net.okpu")]) == 0
    shape = (6, 3, 16, 16) if calibrated else (2, 8, 8, 1)
    if "quantise" in words:
        from models.tests.quantised.test_float_tflite import model  # needs onnxruntime

        (tmp_path / "net.tflite").write_bytes(model("conv3x3", "float32"))
        shape = (6, *SHAPE[2:], SHAPE[1])  # TFLite has the channels last
    array = rng.normal(0, 1, shape).astype(np.float32)
    np.save(tmp_path / "x.npy", array)
    np.save(tmp_path / "y.npy", array)
    np.savez(tmp_path / "x.npz", x=array)
    (tmp_path / "photos").mkdir()
    for number in range(4):
        pixels = rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.jpg")
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)).save(tmp_path / "dog.bmp")
    kind = np.float16 if "TYPE=fp16" in words else np.int8
    np.save(tmp_path / "a.npy", np.ones((3, 5), kind))
    np.save(tmp_path / "b.npy", np.ones((5, 4), kind))
    digits.load_network().save(tmp_path / "net.npz")
    np.save(tmp_path / "maps.npy", digits.load_data()[1].pixels[: 20 if "stream" in words else 1])
    shutil.copy(VECTOR, tmp_path / "file.npz")
    (tmp_path / "folder").mkdir()
    shutil.copy(VECTOR, tmp_path / "folder")
    for name in words & PUBLISHED:
        if not (SHARED / name).exists():
            pytest.skip(f"{SHARED / name} is not there; OPENKPU_SHARED names another place")
        shutil.copy(SHARED / name, tmp_path)
    if "report.json" in words and "stalls" in words:
        report = ["sim", "--sim", "icarus", "--config", "nano", "--vectors", "file.npz"]
        monkeypatch.chdir(tmp_path)
        assert registry.dispatch([*report, "--report", "report.json"]) == 0
    (tmp_path / "models").symlink_to(ROOT / "models")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("by_make", "words"), cases())
def test_line_runs(by_make: bool, words: tuple[str, ...]) -> None:
    name, *rest = words
    if by_make:
        given = dict(word.split("=", 1) for word in rest)
        rest = registry.words_of(name, [name], given)
    assert registry.dispatch([name, *rest]) == 0


def test_every_command_of_the_pages_is_run() -> None:
    """By this file, a nightly step, or the tests that ELSEWHERE names, which call it."""
    names = {words[0] for _, words in shown_commands()}
    assert names <= RUN | STEPS | set(ELSEWHERE), names - RUN - STEPS - set(ELSEWHERE)
    assert {words[0] for _, words in LINES} == RUN
    there = {path.name for path in (ROOT / "scripts/tests").glob("*/test_*.py")}
    lacking = [f for f in ELSEWHERE.values() if f not in there and not (ROOT / f).exists()]
    assert not lacking and not RUN & set(ELSEWHERE)
