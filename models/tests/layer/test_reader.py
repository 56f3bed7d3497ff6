# SPDX-License-Identifier: Apache-2.0
"""The vector reader on damaged and foreign files: one clear line, never another exception."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from openkpu.files import save_arrays
from openkpu.generators.generate import random_layer
from openkpu.layer.vectors import VectorError, load_cases, load_file, save_file

LAYER = random_layer(np.random.default_rng(4), c=3, h=4, w=5, o=2, kernel=3, pool=0, fc=False)
Arrays = dict[str, np.ndarray]


@pytest.fixture()
def arrays(tmp_path: Path) -> Arrays:
    """A good file's arrays."""
    save_file(tmp_path / "good.npz", [LAYER])
    with np.load(tmp_path / "good.npz") as data:
        return dict(data)


def load_line(path: Path) -> str:
    """The reader's complaint: a single line that names the file."""
    with pytest.raises(VectorError) as caught:
        load_file(path)
    line = str(caught.value)
    assert "\n" not in line and str(path) in line
    return line


def test_good_file_round_trips(tmp_path: Path) -> None:
    save_file(tmp_path / "two.npz", [LAYER, LAYER])
    first, second = load_file(tmp_path / "two.npz")
    assert (first.case, first.name, second.title) == ("two", "L00", "two/L01")
    for name in ("words", "weights", "bn", "act", "x", "y"):
        assert (getattr(second, name) == getattr(LAYER, name)).all()
    assert first.arg == LAYER.arg and first.eight_bit == LAYER.eight_bit


@pytest.mark.parametrize("key", ["words", "weights", "bn", "act", "x", "y"])
def test_missing_key(tmp_path: Path, arrays: Arrays, key: str) -> None:
    del arrays[f"L00_{key}"]
    save_arrays(tmp_path / "bad.npz", arrays)
    assert f"L00_{key}: expected in the file, but missing" in load_line(tmp_path / "bad.npz")


@pytest.mark.parametrize("key", ["words", "weights", "bn", "act", "x", "y"])
def test_wrong_type(tmp_path: Path, arrays: Arrays, key: str) -> None:
    arrays[f"L00_{key}"] = arrays[f"L00_{key}"].astype(np.int32)
    save_arrays(tmp_path / "bad.npz", arrays)
    line = load_line(tmp_path / "bad.npz")
    assert f"L00_{key}: expected uint" in line and "found int32" in line


@pytest.mark.parametrize("key", ["words", "weights", "bn", "act", "x", "y"])
def test_wrong_shape(tmp_path: Path, arrays: Arrays, key: str) -> None:
    arrays[f"L00_{key}"] = arrays[f"L00_{key}"].reshape(-1)[:-1]
    save_arrays(tmp_path / "bad.npz", arrays)
    assert f"L00_{key}: expected" in load_line(tmp_path / "bad.npz")


def test_illegal_words(tmp_path: Path, arrays: Arrays) -> None:
    arrays["L00_words"] = LAYER.arg.replace(pool_type=12).encode()
    save_arrays(tmp_path / "bad.npz", arrays)
    assert "L00_words: expected a legal layer argument, found BAD_POOL" in load_line(
        tmp_path / "bad.npz"
    )


def test_pickles_are_never_opened(tmp_path: Path, arrays: Arrays) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Callable, tuple]:
            return pytest.fail, ("a pickle was opened",)

    arrays["L00_x"] = np.array([Bomb()], dtype=object)
    np.savez(tmp_path / "bad.npz", allow_pickle=True, **arrays)
    assert "L00_x: expected numbers, found Python objects" in load_line(tmp_path / "bad.npz")


def test_header_that_promises_too_much(tmp_path: Path, arrays: Arrays) -> None:
    """A huge shape is noticed before memory is taken for it."""
    save_arrays(tmp_path / "good.npz", arrays)
    with (
        zipfile.ZipFile(tmp_path / "good.npz") as old,
        zipfile.ZipFile(tmp_path / "bad.npz", "w") as new,
    ):
        for name in old.namelist():
            raw = old.read(name)
            if name == "L00_y.npy":
                raw = raw.replace(b"'shape': (2, 4, 5)", b"'shape': (2, 4, 9999999999999)", 1)
                raw = raw[:8] + (len(raw) - 40 - 10).to_bytes(2, "little") + raw[10:]
            new.writestr(name, raw)
    assert "L00_y: expected 79999999999992 bytes of data" in load_line(tmp_path / "bad.npz")


def test_truncated_anywhere(tmp_path: Path) -> None:
    save_file(tmp_path / "good.npz", [LAYER])
    raw = (tmp_path / "good.npz").read_bytes()
    for length in range(0, len(raw) - 1, 37):
        (tmp_path / "bad.npz").write_bytes(raw[:length])
        load_line(tmp_path / "bad.npz")


@settings(
    max_examples=300,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_flipped_bytes(tmp_path: Path, data: st.DataObject) -> None:
    """Damage anywhere either is caught with one line or leaves a complete set of layers."""
    save_file(tmp_path / "good.npz", [LAYER])
    raw = bytearray((tmp_path / "good.npz").read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    (tmp_path / "bad.npz").write_bytes(raw)
    try:
        layers = load_file(tmp_path / "bad.npz")
    except VectorError as err:
        assert "\n" not in str(err)
    else:
        assert all(layer.y.shape == layer.arg.out_shape for layer in layers)


def test_folders_skip_what_holds_no_layers(tmp_path: Path) -> None:
    save_file(tmp_path / "b.npz", [LAYER])
    np.savez(tmp_path / "a.npz", product=np.zeros(3))
    (tmp_path / "manifest.json").write_text("{}")
    (tmp_path / "images").mkdir()
    said: list[str] = []
    assert [layer.case for layer in load_cases([tmp_path], say=said.append)] == ["b"]
    assert len(said) == 3 and all(line.startswith("skipped ") for line in said)
    assert any("a.npz: no layers in it" in line for line in said)


def test_nothing_to_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VectorError, match="no such file or folder"):
        load_cases([tmp_path / "absent.npz"])
    with pytest.raises(VectorError, match="no layer found"):
        load_cases([tmp_path])
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(VectorError, match=r"text\.npz: not a complete"):
        load_cases([tmp_path])
