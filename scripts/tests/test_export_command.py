# SPDX-License-Identifier: Apache-2.0
"""openkpu export: the files of a network, which a C compiler takes, and what it refuses."""

import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu.compiler.program import HostPart
from openkpu.compiler.source import read_program
from openkpu.export import source, texts
from openkpu.export.image import NOWHERE, ExportError, config_word, image
from openkpu_tools.commands import export

BASE = 0x80000000
TFLITE = ROOT / "models" / "openkpu" / "digits" / "separable_int8.tflite"


def run(tmp_path: Path, *words: str) -> int:
    given = ["--model", "digits", "--base", hex(BASE), "--output", str(tmp_path / "net")]
    for name, value in zip(words[::2], words[1::2], strict=True):
        at = given.index(name) if name in given else len(given)
        given[at : at + 2] = [name, value]
    return export.main(given)


def words(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype="<u4")


def test_files_hold_the_same_image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Binary, hex of both widths and C are one image; header and words say where all of it is."""
    assert run(tmp_path, "--config", "k210", "--images", "3") == 0
    data = (tmp_path / "net.bin").read_bytes()
    for name, size in (("net.hex", 4), ("net_64.hex", 8)):
        lines = (tmp_path / name).read_text().split()
        found = b"".join(int(word, 16).to_bytes(size, "little") for word in lines)
        assert found == data and all(len(word) == 2 * size for word in lines)
    head = words(data[:128])
    assert head[0] == int.from_bytes(b"OKPN", "little") and head[1] == 1
    assert head[4] == len(data) and head[6] == BASE
    assert head[2] == zlib.crc32(data[12 : head[15]]) and head[3] == zlib.crc32(data[head[10] :])
    assert head[7] == config_word(configs.load_config("k210")) == 9 | 4 << 8 | 16 << 16 | 3 << 24
    network = digits.load_network()
    assert head[9] == len(network.layers)
    listed = words(data[head[10] : head[10] + 96 * head[9]]).view("<u8").reshape(-1, 12)
    assert np.array_equal(listed, np.stack([arg.encode() for arg in network.layers]))
    assert data[head[11] : head[11] + network.weights.size] == network.weights.tobytes()
    assert data[head[12] : head[12] + network.biases.size] == network.biases.tobytes()
    said = capsys.readouterr().out
    assert f"{BASE + head[16]:#010x}: input" in said and f"{BASE + head[19]:#010x}: result" in said
    assert head[5] >= head[19] + 3 * head[21] and head[19] >= head[16] + 3 * head[18]
    code = tmp_path / "check.c"
    code.write_text(
        '#include "net.h"\n#include <stdio.h>\nint main(void) {\n'
        "  fwrite(net_image, 1, sizeof net_image, stdout);\n"
        f"  return !(NET_INPUT == {BASE + head[16]}u && NET_RESULT == {BASE + head[19]}u);\n}}\n"
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = ["gcc", *flags, "-o", tmp_path / "check", code, tmp_path / "net.c"]
    built = subprocess.run(command, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert subprocess.run([tmp_path / "check"], capture_output=True, check=True).stdout == data


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--base", "0x80000004"), "--base=0x80000004: expected a multiple of 8"),
        (("--base", "0xfffff000"), "expected them to end below 4 GiB"),
        (
            ("--memory", "1000"),
            "--memory=1000: expected 13568 bytes or more, 13440 of them for the",
        ),
        (
            ("--output", "FOLDER"),
            "FOLDER: is a folder, expected the first part of the files' names",
        ),
        (("--config", "nano_fpga", "--model", "EMPTY"), "EMPTY"),
    ],
)
def test_bad_requests(
    given: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit status 2, and no file."""
    empty = tmp_path / "EMPTY"
    empty.write_bytes(b"")
    (tmp_path / "FOLDER").mkdir()
    made = {"EMPTY": str(empty), "FOLDER": str(tmp_path / "FOLDER")}
    given = tuple(made.get(word, word) for word in given)
    assert run(tmp_path, *given) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"EMPTY", "FOLDER"}


def test_a_host_in_the_middle_is_refused() -> None:
    """The nodes between the lists are named."""
    program = read_program(TFLITE, configs.load_config("nano"))
    (part,) = program.device_parts
    host = HostPart(program.graph.nodes[:1])
    program.parts = [part, host, part]
    with pytest.raises(ExportError, match="2 task lists, expected one; between them the host"):
        source.of_program(program, "net.tflite")


def test_tensors_reach_their_maps() -> None:
    """The table of places does what Port.map_of and tensor_of do, in the model's order of axes."""
    config = configs.load_config("nano")
    program = read_program(TFLITE, config)
    found = source.of_program(program, "digits.tflite")
    rng = np.random.default_rng(1)
    (part,) = program.device_parts
    for tensor in (t for t in found.tensors if not t.output):
        port = part.inputs[0]
        values = rng.integers(-128, 128, tensor.shape)
        flat = values.reshape(-1)
        places = np.arange(flat.size) if tensor.places is None else tensor.places
        held = np.where(places == NOWHERE, 0, flat[places % flat.size] + tensor.add)
        made = np.where(places == NOWHERE, tensor.fill, held).astype(np.uint8)
        order = values.transpose(0, 3, 1, 2) if values.ndim == 4 else values
        graph_shape = program.graph.tensors[port.tensor].shape
        assert np.array_equal(made, port.map_of(order.reshape(graph_shape)).reshape(-1))


def test_names_and_comments_are_safe() -> None:
    """A file's name becomes one of C; text of a model ends no comment."""
    assert texts.identifier("3 nets-v2") == "n3_nets_v2" and texts.identifier("--") == "network"
    network = source.of_network(digits.load_network())
    made = image(network.network, configs.load_config("nano"), BASE, network.tensors)
    made.after = ["x */ evil /*", "\u00e9"]
    text = texts.c_header(made, "net", "a*/b")
    assert text.count("/*") == text.count("*/")
