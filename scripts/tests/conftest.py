# SPDX-License-Identifier: Apache-2.0
"""What tests of commands share: a folder of files to work on, and what a refusal looks like."""

import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, X
from openkpu import digits
from openkpu.checkout import ROOT
from openkpu_tools import command, registry

VECTOR = ROOT / "models" / "tests" / "data" / "vectors" / "raw_pool0.npz"
Refused = Callable[..., str]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Refused:
    """Runs a command, or a main, that must end with status 2: nothing printed (unless ``printed``)
    and one line of error with all the texts, which is returned.

    A checkout whose path has a space says beside it that it builds elsewhere.
    """

    def check(
        words: Sequence[str],
        *texts: str,
        main: command.Main = registry.dispatch,
        printed: bool = False,
    ) -> str:
        capsys.readouterr()
        status = command.run_command(main, list(words))
        out, err = capsys.readouterr()
        lines = [line for line in err.splitlines() if "builds go to" not in line]
        assert status == 2 and (printed or not out), out + err
        assert len(lines) == 1 and lines[0].startswith(("error: ", "kmodel: ")), err
        assert all(text in lines[0] for text in texts), f"{lines[0]}: expected {texts}"
        return lines[0]

    return check


def contents(place: Path) -> dict[Path, bytes]:
    """All files of a folder."""
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Models, pictures, networks, maps and matrices; who writes works on a copy."""
    from PIL import Image

    from models.tests.quantised import exported  # needs onnx

    place = tmp_path_factory.mktemp("samples")
    (place / "m.kmodel").write_bytes(CONTAINERS["v3"])
    with zipfile.ZipFile(place / "two.kfpkg", "w") as archive:
        archive.writestr("five.kmodel", CONTAINERS["v5"])
        archive.writestr("three.kmodel", CONTAINERS["v3"])
    Image.fromarray(np.ascontiguousarray(X.transpose(1, 2, 0))).save(place / "p.png")
    for name, model in (("q.onnx", "residual_qdq.onnx"), ("q.tflite", "residual_int8.tflite")):
        shutil.copy(digits.FOLDER / model, place / name)
    words = ["compile", str(place / "q.tflite"), "-o", str(place / "net.okpu")]
    assert registry.dispatch(words) == 0
    (place / "cut.tflite").write_bytes((place / "q.tflite").read_bytes()[:300])
    (place / "f.onnx").write_bytes(exported.classifier(exported.OLD, "relu"))
    digits.load_network().save(place / "n.npz")
    shutil.copy(VECTOR, place / "v.npz")
    np.save(place / "i.npy", digits.load_data()[1].pixels[:2])
    np.save(place / "eye.npy", np.eye(4, dtype=np.int8))
    normal = np.random.default_rng(5).normal(0, 1, (4, 3, 16, 16))
    np.save(place / "x.npy", normal.astype(np.float32))
    for name in ("d.json", "empty"):
        (place / name).touch()
    (place / "l.txt").write_text("digit\n")
    for folder, name in (("folder", ""), ("none", "labels.txt"), ("broken", "x.png")):
        (place / folder).mkdir()
        if name:
            (place / folder / name).write_text("no picture")
    before = contents(place)
    yield place
    assert contents(place) == before, "a test wrote into the samples that others read"
