# SPDX-License-Identifier: Apache-2.0
"""make sim MATMUL=: products on the golden model, files, tiles, refusals in one line."""

import json
from pathlib import Path

import numpy as np
import pytest
from openkpu.models import fp16
from openkpu.scripts import sim


def test_files_of_both_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-128, 128, (5, 40)).astype(np.int8)
    b = rng.integers(0, 256, (40, 7)).astype(np.uint8)
    names = [str(tmp_path / f"{name}.npy") for name in "abc"]
    np.save(names[0], a)
    np.save(names[1], b)
    report = tmp_path / "report.json"
    words = ["--golden", "--matmul", *names[:2], f"--output={names[2]}", f"--report={report}"]
    assert sim.main(words) == 0
    assert "C: as numpy's A @ B" in capsys.readouterr().out
    c = np.load(names[2])
    assert c.dtype == np.int32 and (c == a.astype(int) @ b.astype(int)).all()
    (layer,) = json.loads(report.read_text())["layers"]
    assert layer["macs"] == 5 * 40 * 7


@pytest.mark.parametrize(("kind", "dtype"), [("fp16", np.float32), ("fp16to16", np.float16)])
def test_float16(
    kind: str, dtype: type, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Files of float16, and random ones, with results of either kind; no TYPE gives float32."""
    rng = np.random.default_rng(4)
    a, b = (rng.normal(0, 1, s).astype(np.float16) for s in ((5, 40), (40, 7)))
    names = [str(tmp_path / f"{name}.npy") for name in "abc"]
    np.save(names[0], a)
    np.save(names[1], b)
    for more in (["--type", kind], [] if dtype == np.float32 else ["--type", kind]):
        words = ["--golden", "--config=nano_fp16", "--matmul", *names[:2], *more]
        assert sim.main([*words, f"--output={names[2]}"]) == 0
        assert "C: as the exact sums, rounded once" in capsys.readouterr().out
        c = np.load(names[2])
        want = fp16.multiply(a, b, dtype == np.float32)
        assert c.dtype == dtype and c.tobytes() == want.tobytes()
    words = ["--golden", "--config=nano_fp16", "--matmul", "3x10x250", "--type", kind]
    assert sim.main(words) == 0 and "PASS" in capsys.readouterr().out


def test_tiles(capsys: pytest.CaptureFixture[str]) -> None:
    """1009 columns are no map, so they are cut; every tile has its line."""
    assert sim.main(["--golden", "--matmul", "3x10x1009", "--type=uint8"]) == 0
    said = capsys.readouterr().out
    assert "2 layers" in said and said.count("rows 0-2") == 2 and "PASS" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--matmul", "4x5"], "MATMUL=4x5: expected MxKxN, for example 4x36x16"),
        (["--matmul", "4x9217x3"], "expected sizes of 1 to 16384, K to 9216"),
        (["--matmul", "4x1025x3", "--type=fp16"], "expected sizes of 1 to 16384, K to 1024"),
        (["--matmul", "no.npy", "b.npy"], "no.npy: No such file or directory"),
        (["--matmul", "a.npy", "a.npy"], "a.npy is (2, 3), a.npy is (2, 3)"),
        (["--matmul", "a.npy", "w.npy"], "w.npy: int16(3, 2), expected a matrix of int8"),
        (["--matmul", "a.npy", "a.npy", "--type=int8"], "TYPE is for random matrices"),
        (["--matmul", "a.npy", "a.npy", "--type=fp16"], "a.npy is int8, expected float16"),
        (["--matmul", "h.npy", "h.npy", "--type=uint8"], "TYPE is for random matrices"),
        (["--matmul", "a.npy", "h.npy"], "a.npy is int8, h.npy is float16"),
        (["--matmul", "e.npy", "h.npy"], "e.npy: float16(0, 2), expected a matrix of int8"),
        (["--matmul", "k.npy", "l.npy"], "K = 1025, a layer has at most 1024 input channels"),
        (["--matmul", "3x9x5", "--type=fp16"], "configuration small has fp16_lanes = 0"),
        (["--type=int8"], "TYPE without MATMUL"),
        (["--matmul", "1x1x1", "--images=3"], "a product has two matrices"),
        (["--matmul", "1x1x1", "--vectors=x"], "VECTORS and MATMUL together"),
    ],
)
def test_refused(
    words: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", np.zeros((2, 3), np.int8))
    np.save("w.npy", np.zeros((3, 2), np.int16))
    np.save("h.npy", np.zeros((2, 2), np.float16))
    np.save("e.npy", np.zeros((0, 2), np.float16))
    np.save("k.npy", np.zeros((1, 1025), np.float16))
    np.save("l.npy", np.zeros((1025, 1), np.float16))
    assert sim.main(["--golden", *words]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1
