# SPDX-License-Identifier: Apache-2.0
"""Models out of packages (.kfpkg) and with byte-swapped words; every kind of damage is one line."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel.test_kmodel_containers import CONTAINERS, network
from openkpu import files
from openkpu.kmodel import (
    KmodelError,
    load_functions,
    load_kmodel,
    loads_kmodel,
    read_model,
    run_kmodel,
)
from openkpu.kmodel import package as package_module
from openkpu.kmodel.__main__ import main

FIRMWARE = b"\x97\x02\x00\x00" + bytes(range(256)) * 4


def swapped(data: bytes) -> bytes:
    """The four bytes of every word in reverse, the last word filled up: what flash tools write."""
    data += bytes(-len(data) % 4)
    return b"".join(data[i : i + 4][::-1] for i in range(0, len(data), 4))


def flash_list(*names: str) -> str:
    entries = [
        {"address": 0xA00000 + i, "bin": name, "sha256Prefix": False, "reverse4Bytes": True}
        for i, name in enumerate(names)
    ]
    return json.dumps({"version": "0.1.0", "files": entries})


def package(
    path: Path,
    entries: dict[str, bytes],
    listed: str | None = "",
    place: str = "flash-list.json",
    method: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """A package of these entries; ``listed``: the text of its list, "" one of all, None no list."""
    with zipfile.ZipFile(path, "w", method) as archive:
        if listed is not None:
            archive.writestr(place, listed or flash_list(*entries))
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def complaint(path: Path | str) -> str:
    """The one line for a file that cannot be used."""
    with pytest.raises(KmodelError) as caught:
        load_kmodel(path)
    line = str(caught.value)
    assert line.isprintable() and len(line) < 2000
    return line


# -------------------------------------------------------------------------------- what is read
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
def test_every_version_in_a_package_and_byte_swapped(
    name: str, turned: bool, tmp_path: Path
) -> None:
    """The same result as the plain file, with tables where the addresses say."""
    data = swapped(CONTAINERS[name]) if turned else CONTAINERS[name]
    entries = {"firmware.bin": FIRMWARE, "model": data}
    x, layers = network(name != "v0_16bit")
    (tmp_path / "alone").write_bytes(data)
    for path in (tmp_path / "alone", package(tmp_path / "a.kfpkg", entries)):
        model = read_model(path)
        assert model.name == str(path) + (":model" if path.suffix else "")
        assert model.data[: len(CONTAINERS[name])] == CONTAINERS[name]
        assert model.note == ("byte-swapped words" if turned else "")
        program = load_kmodel(path)
        assert ("byte-swapped words" in program.detail) == turned and program.file == model.name
        want = run_kmodel(loads_kmodel(CONTAINERS[name]), x).output
        assert np.array_equal(run_kmodel(program, x).output, want)
        for op, layer in zip(program.kpu_layers, layers, strict=True):
            at = op.arg.para_start_addr
            assert model.data[at : at + len(op.weights)] == layer.weights.tobytes()
    assert ("byte-swapped" in loads_kmodel(data).detail) == turned
    if name == "v5":
        assert len(load_functions(tmp_path / "a.kfpkg")) == len(layers)


def test_a_name_chooses_among_several(tmp_path: Path) -> None:
    entries = {
        "m/face.kmodel": CONTAINERS["v3"],
        "m/digits.kmodel": CONTAINERS["v4"],
        "app.bin": FIRMWARE,
    }
    path = package(tmp_path / "a:b.kfpkg", entries)
    assert "m/face.kmodel, m/digits.kmodel, expected one: " in complaint(path)
    assert "app.bin" not in complaint(path)
    for name, version in (("m/face.kmodel", 3), ("digits.kmodel", 4), ("m/digits.kmodel", 4)):
        assert load_kmodel(f"{path}:{name}").version == version
    assert "no 'x' in the package, expected one of m/face.kmodel" in complaint(f"{path}:x")
    assert "app.bin: offset 0x0: magic 0x00000297" in complaint(f"{path}:app.bin")
    assert "No such file" in complaint(f"{tmp_path}/none.kfpkg:face.kmodel")


def test_a_name_with_a_colon_is_a_file_if_there_is_one(tmp_path: Path) -> None:
    (tmp_path / "a:b").write_bytes(CONTAINERS["v1"])
    assert load_kmodel(tmp_path / "a:b").version == 1
    (tmp_path / "plain").write_bytes(CONTAINERS["v1"])
    assert "no package (zip), expected no 'b' behind its name" in complaint(f"{tmp_path}/plain:b")


@pytest.mark.parametrize(
    ("place", "listed", "inside"),
    [
        ("flash-list.json", "m/n.kmodel", "m/n.kmodel"),
        ("flash-list.json", "./n.kmodel", "n.kmodel"),
        ("flash-list.json", "m\\n.kmodel", "m/n.kmodel"),
        ("pack/flash-list.json", "n.kmodel", "pack/n.kmodel"),
        ("pack/flash-list.json", "n.kmodel", "n.kmodel"),
        ("flash-list.json", "模型.kmodel", "模型.kmodel"),
    ],
)
def test_nested_names(place: str, listed: str, inside: str, tmp_path: Path) -> None:
    path = tmp_path / "a.kfpkg"
    package(path, {inside: CONTAINERS["v3"]}, flash_list(listed), place)
    assert load_kmodel(path).version == 3
    assert load_kmodel(f"{path}:{listed}").version == load_kmodel(f"{path}:{inside}").version == 3


def test_a_zip_without_a_list(tmp_path: Path) -> None:
    entries = {"readme": b"hello, reader", "n.kmodel": CONTAINERS["v4"]}
    assert load_kmodel(package(tmp_path / "a.zip", entries, None)).version == 4


# ---------------------------------------------------------------------------------------- damage
@pytest.mark.parametrize(
    ("entries", "listed", "text"),
    [
        ({}, "", "a package without a kmodel, it holds nothing"),
        ({"app.bin": FIRMWARE}, "", "a package without a kmodel, it holds app.bin"),
        ({"in.kfpkg": b"PK\3\4"}, "", "without a kmodel, it holds in.kfpkg"),
        ({"n.kmodel": b"short"}, "", "n.kmodel: offset 0x0: 5 bytes are no kmodel"),
        ({"n.kmodel": FIRMWARE}, "", "n.kmodel: offset 0x0: magic 0x00000297"),
        ({"n.kmodel": CONTAINERS["v3"]}, "{", '), expected {"files": [{"bin": NAME}]}'),
        ({"n.kmodel": CONTAINERS["v3"]}, "[]", "flash-list.json is no list of files (a part"),
        ({"n.kmodel": CONTAINERS["v3"]}, '{"files": 3}', "flash-list.json is no list"),
        ({"n.kmodel": CONTAINERS["v3"]}, '{"files": [{}]}', "(no 'bin' in it)"),
        ({"n.kmodel": CONTAINERS["v3"]}, '{"files": [{"bin": 3}]}', "names are strings"),
        ({"n.kmodel": CONTAINERS["v3"]}, "[" * 100_000, "(its parts are nested too deeply)"),
        ({"n.kmodel": CONTAINERS["v3"]}, "\x00\ud7ff", "flash-list.json is no list"),
        (
            {"n.kmodel": CONTAINERS["v3"]},
            flash_list("n.kmodel", "o.kmodel"),
            "names o.kmodel, not in the package; there are n.kmodel: ",
        ),
        ({"app.bin": FIRMWARE}, flash_list("o.kmodel"), "names o.kmodel, not in the package"),
        ({"\x1b[2J.kmodel": b"x" * 30}, "", r"\x1b[2J.kmodel: offset 0x0: magic"),
    ],
)
def test_one_line_for(entries: dict[str, bytes], listed: str, text: str, tmp_path: Path) -> None:
    path = package(tmp_path / "bad.kfpkg", entries, listed)
    line = complaint(path)
    assert line.startswith(f"{path}:") and text in line, line


def test_names_and_lists_that_are_there_twice(tmp_path: Path) -> None:
    """Of two entries of a name, or two lists in as many folders, none is taken unasked."""
    path = tmp_path / "a.kfpkg"
    for listed in ("flash-list.json", "n.kmodel"):
        with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
            warnings.simplefilter("ignore")
            archive.writestr("flash-list.json", flash_list("n.kmodel"))
            archive.writestr("n.kmodel", CONTAINERS["v3"])
            archive.writestr(listed, CONTAINERS["v4"])
        for asked in ("", ":n.kmodel"):
            assert f"{listed} twice in the package" in complaint(f"{path}{asked}")
    entries = {f"{at}/flash-list.json": flash_list("n.kmodel").encode() for at in "ab"}
    entries |= {"a/n.kmodel": CONTAINERS["v3"], "b/n.kmodel": CONTAINERS["v4"]}
    line = complaint(package(path, entries, None))
    assert "a/flash-list.json, b/flash-list.json, expected one flash-list.json" in line
    entries |= {"flash-list.json": flash_list("b/n.kmodel").encode()}
    assert load_kmodel(package(path, entries, None)).version == 4


def test_what_is_missing_does_not_hide_what_is_there(tmp_path: Path) -> None:
    path = package(
        tmp_path / "a.kfpkg", {"n.kmodel": CONTAINERS["v3"]}, flash_list("n.kmodel", "o.kmodel")
    )
    assert load_kmodel(f"{path}:n.kmodel").version == 3


def test_truncated_packages(tmp_path: Path) -> None:
    data = package(tmp_path / "a.kfpkg", {"n.kmodel": CONTAINERS["v3"]}).read_bytes()
    path = tmp_path / "short.kfpkg"
    for length in [*range(2, 60), *range(60, len(data), 97), len(data) - 1]:
        path.write_bytes(data[:length])
        assert complaint(path).startswith(str(path))


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_packages(method: int, tmp_path: Path) -> None:
    """Any bytes changed: a package that is read, or one line."""
    entries = {"n.kmodel": CONTAINERS["v3"], "app.bin": FIRMWARE}
    data = package(tmp_path / "a.kfpkg", entries, method=method).read_bytes()
    want, rng, path = (
        loads_kmodel(CONTAINERS["v3"]),
        np.random.default_rng(8),
        tmp_path / "bad.kfpkg",
    )
    hot = data.index(b"PK\1\2")  # of the directory
    read = 0
    for _ in range(600):
        changed = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(hot if rng.random() < 0.5 else 0, len(data)))
            changed[at] = int(rng.integers(0, 256))
        path.write_bytes(changed)
        try:
            program = load_kmodel(path)
        except KmodelError as err:
            assert str(err).isprintable() and "bad.kfpkg" in str(err)
        else:
            read += 1
            assert len(program.operations) == len(want.operations)
    assert 0 < read < 600


def test_encrypted_and_packed_otherwise(tmp_path: Path) -> None:
    path = package(tmp_path / "a.kfpkg", {"n.kmodel": CONTAINERS["v3"]}, method=zipfile.ZIP_BZIP2)
    assert "flash-list.json in the package: compressed by method 12" in complaint(path)
    path = package(tmp_path / "b.kfpkg", {"n.kmodel": CONTAINERS["v3"]})
    data = bytearray(path.read_bytes())
    for match in (b"PK\1\2", b"PK\3\4"):  # the flag of encryption in directory and entry
        at = data.rindex(match) + (8 if match == b"PK\1\2" else 6)
        data[at] |= 1
    path.write_bytes(data)
    assert "n.kmodel in the package: damaged" in complaint(path)


@pytest.mark.parametrize(("field", "value"), [("flags", 1), ("method", 99)])
def test_a_model_that_cannot_be_read_counts(field: str, value: int, tmp_path: Path) -> None:
    """The other one is not taken without a word."""
    entries = {"a.kmodel": CONTAINERS["v3"], "b.kmodel": CONTAINERS["v4"]}
    path = package(tmp_path / "two.kfpkg", entries)
    with zipfile.ZipFile(path) as archive:
        local = archive.getinfo("a.kmodel").header_offset
    data = bytearray(path.read_bytes())
    at = {"flags": 6, "method": 8}[field]
    data[local + at] = data[data.rindex(b"a.kmodel") - 46 + at + 2] = value
    path.write_bytes(data)
    assert "a.kmodel, b.kmodel, expected one:" in complaint(path)
    assert load_kmodel(f"{path}:b.kmodel").version == 4


def bomb(path: Path, size: int) -> Path:
    """An entry of so many zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flash-list.json", flash_list("n.kmodel"))
        with archive.open("n.kmodel", "w", force_zip64=False) as stream:
            stream.write(CONTAINERS["v3"][:64])
            for _ in range(size >> 20):
                stream.write(bytes(1 << 20))
    return path


def test_what_comes_out_of_a_package_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert files.LIMIT == 256 << 20
    monkeypatch.setattr(files, "LIMIT", 4 << 20)
    path = bomb(tmp_path / "bomb.kfpkg", 64 << 20)
    tracemalloc.start()
    line = complaint(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "n.kmodel in the package: more than 4194304 bytes" in line
    assert peak < 16 << 20
    path.write_bytes(bytes(5 << 20))
    assert "larger than 4 MiB" in complaint(path)


def test_a_list_that_is_a_bomb(tmp_path: Path) -> None:
    path = package(tmp_path / "a.kfpkg", {"n": FIRMWARE}, "[" + " " * (40 << 20) + "]")
    assert "flash-list.json in the package: more than 1048576 bytes" in complaint(path)


def test_a_directory_of_very_many_entries(tmp_path: Path) -> None:
    """Its size is looked at before zipfile makes an object of each."""
    entry = struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, *[0] * 4, *[0] * 3, 1, *[0] * 4, 0, 0)
    entries = (entry + b"n") * 200_000
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(entries), 4, 0)
    path = tmp_path / "a.kfpkg"
    path.write_bytes(b"PK\3\4" + entries + end)
    line = complaint(path)
    assert f"a directory of {len(entries)} bytes, at most" in line
    assert len(entries) > package_module.DIRECTORY_MAX
    with zipfile.ZipFile(io.BytesIO(), "w") as archive:  # what would be read otherwise
        assert archive.namelist() == []
    path.write_bytes(b"PK\3\4" + b"PK\6\7" + bytes(16) + end[:12] + bytes(10))
    assert "64-bit kind" in complaint(path)


def test_names_that_a_terminal_would_obey(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    path = package(tmp_path / "a.kfpkg", {"\x1b[2J模.kmodel": CONTAINERS["v3"]})
    assert read_model(path).name == f"{path}:\\x1b[2J模.kmodel"
    assert main([str(path)]) == 0
    assert capsys.readouterr().out.startswith(f"{path}:\\x1b[2J模.kmodel: kmodel v3, ")


def test_byte_swapped_words_must_be_whole(tmp_path: Path) -> None:
    data = swapped(CONTAINERS["v3"])
    with pytest.raises(KmodelError, match=r"byte-swapped words, but .* bytes are no whole words"):
        loads_kmodel(data + b"x", "m")
    with pytest.raises(KmodelError, match="magic"):
        loads_kmodel(bytes(range(64)), "m")


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    entries = {"a.kmodel": swapped(CONTAINERS["v3"]), "b.kmodel": CONTAINERS["v5"]}
    path = package(tmp_path / "two.kfpkg", entries)
    assert main([f"{path}:a.kmodel"]) == 0
    assert f"{path}:a.kmodel: kmodel v3, byte-swapped words, " in capsys.readouterr().out
    assert main([f"{path}:b.kmodel", "--functions"]) == 0
    assert "function 3" in capsys.readouterr().out
    assert main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1 and "a.kmodel, b.kmodel, expected one" in err
