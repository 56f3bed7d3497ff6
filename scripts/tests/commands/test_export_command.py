# SPDX-License-Identifier: Apache-2.0
"""openkpu export: the files of a network, which a C compiler takes, and what it refuses."""

import ctypes
import dataclasses
import subprocess
import zlib
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.arithmetic.words import words_of
from openkpu.checkout import ROOT
from openkpu.compiler.program import HostPart
from openkpu.compiler.source import read_program
from openkpu.export import source, texts
from openkpu.export.image import NOWHERE, ExportError, Tensor, config_word, image
from openkpu.generators.generate_products import random_product
from openkpu.network.network import Network
from openkpu_tools.command import UsageError
from openkpu_tools.commands.compiled import compile as compile_command
from openkpu_tools.commands.compiled import export
from openkpu_tools.foreign import train_networks
from scripts.tests.checkouts import ran
from scripts.tests.conftest import Refused

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
    assert head[0] == int.from_bytes(b"OKPN", "little") and head[1] == 2
    assert head[4] == len(data) and head[6] == BASE
    assert head[2] == zlib.crc32(data[12 : head[15]]) and head[3] == zlib.crc32(data[head[25] :])
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
    ran(*command)
    assert subprocess.run([tmp_path / "check"], capture_output=True, check=True).stdout == data


SECTIONS = (
    ".text : { *(.text*) }%s _etext = .; .data : { *(.data*) }%s .bss : { *(.bss*) }%s _end = .;"
)
CHIPS = {  # scripts of a chip, all with text at 0x1000
    "flat": f"SECTIONS {{ . = 0x1000; {SECTIONS % ('', '', '')} }}",
    "regions": "MEMORY { ram : ORIGIN = 0x1000, LENGTH = 64k }"
    f" SECTIONS {{ {SECTIONS % (('> ram',) * 3)} }}",
    "copied": "MEMORY { ram : ORIGIN = 0x1000, LENGTH = 64k\n"
    " rom : ORIGIN = 0x20000, LENGTH = 64k }"
    f" SECTIONS {{ {SECTIONS % ('> ram AT> rom', '> ram AT> rom', '> ram')} }}",
}
FIRMWARE = """#include "net.h"
void _start(void);
int data = 3, bss[4];
void _start(void) { data = (int)net_image[bss[1]]; }
"""


@pytest.mark.parametrize("suffix", texts.SUFFIXES)
def test_files_of_others_stay(suffix: str, tmp_path: Path) -> None:
    """A second export replaces the first one; files that it did not write are left alone."""
    theirs = tmp_path / f"net{suffix}"
    theirs.write_bytes(b"int answer = 42;\n")
    with pytest.raises(UsageError, match=rf"net{suffix}: exists, and no `openkpu export` wrote it"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [theirs.name]
    assert theirs.read_bytes() == b"int answer = 42;\n"
    theirs.write_bytes(b"")
    assert run(tmp_path) == run(tmp_path, "--images", "2") == 0


@pytest.mark.parametrize("base", [0x80000000, 0x90000008, 0xA0000010])
@pytest.mark.parametrize("chip", CHIPS)
def test_linker_places_the_image(chip: str, base: int, tmp_path: Path) -> None:
    """At its base, with the room behind it, loaded there; what is the chip's stays together."""
    words = ["--base", hex(base), "--config", "nano", "--images", "3"]
    assert run(tmp_path, *words) == 0
    (tmp_path / "chip.ld").write_text(CHIPS[chip])
    (tmp_path / "main.c").write_text(FIRMWARE)
    flags = ["-Os", "-mcmodel=large", "-fno-pie", "-fno-asynchronous-unwind-tables", "-c"]
    elf = tmp_path / "elf"
    link = ["ld", "--gc-sections", "-static", "-e", "_start", "-T", "net.ld", "-T", "chip.ld"]
    for command in (["gcc", *flags, "main.c", "net.c"], [*link, "-o", elf, "main.o", "net.o"]):
        ran(*command, cwd=tmp_path)
    symbols = {line.split()[-1]: int(line[:16], 16) for line in ran("nm", elf).stdout.splitlines()}
    assert symbols["net_image"] == base
    assert 0x1000 < symbols["_etext"] <= symbols["data"] < symbols["bss"] < symbols["_end"] < 0x2000
    found = {
        w[1]: [int(n, 16) for n in w[2:5]]
        for w in map(str.split, ran("objdump", "-h", elf).stdout.splitlines())
        if w[2:] and w[0].isdigit()
    }  # size, address, address of loading
    size = (tmp_path / "net.bin").stat().st_size
    memory = int(words_of_header(tmp_path)["NET_MEMORY_BYTES"], 0)
    assert found[".openkpu.net"] == [size, base, base]
    assert found[".openkpu_room.net"] == [memory - size, base + size, base + size]


def words_of_header(folder: Path) -> dict[str, str]:
    """The macros of net.h."""
    lines = (folder / "net.h").read_text().splitlines()
    return {w[1]: w[2].rstrip("u") for w in map(str.split, lines) if w[:1] == ["#define"] and w[2:]}


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


def test_elements_that_the_map_leaves_out() -> None:
    """Pixels that the first layer steps over are in no byte of its map."""
    program = read_program(TFLITE, configs.load_config("nano"))
    port = program.device_parts[0].inputs[0]
    port.where = port.where.copy()
    port.where.reshape(-1)[[0, 9, 63]] = -1
    (tensor,) = (t for t in source.of_program(program, "digits.tflite").tensors if not t.output)
    values = np.arange(tensor.elements) - 60
    stored = np.append(values + tensor.add, tensor.fill)
    assert tensor.places is not None
    made = stored[np.where(tensor.places == NOWHERE, -1, tensor.places.astype(np.int64))]
    shape = program.graph.tensors[port.tensor].shape
    assert np.array_equal(made, port.map_of(values.reshape(shape)).reshape(-1))


def test_parts_of_the_maps_inside() -> None:
    """Given, stored and constant maps lie in parts of their own; only the constant ones are under
    the checksum, and an image that a run writes is no constant of C."""
    network = digits.load_network()
    network.layers[1] = network.layers[1].replace(load_map=1, store_map=1)
    network.layers[2] = network.layers[2].replace(load_map=1)
    for i in (1, 2):
        network.loaded[i] = np.full(network.layers[i].in_shape, i, np.uint8)
    tensors = source.of_network(network).tensors
    given = Tensor("second", False, network.layers[1].in_shape, "uint8", 1)
    made = image(network, configs.load_config("nano"), BASE + 16, [*tensors, given])
    head = words(made.data.tobytes())
    at, stored, constant, listed = (int(head[i]) for i in (15, 24, 25, 10))
    assert not (BASE + 16 + stored) % 64 and not (BASE + 16 + constant) % 64
    size = network.loaded[1].size
    first = made.network.layers[1].map_load_addr - BASE - 16
    assert at <= first and first + size <= stored < constant < listed
    assert (made.data[first : first + size] == 1).all()
    assert made.network.layers[1].map_store_addr == BASE + 16 + stored
    assert made.network.layers[2].map_load_addr == BASE + 16 + constant
    assert (made.data[constant : constant + network.loaded[2].size] == 2).all()
    assert head[3] == zlib.crc32(made.data[constant:].tobytes())
    assert "const uint32_t" not in texts.source(made, "n") + texts.c_header(made, "n", "x")
    plain = image(digits.load_network(), configs.load_config("nano"), BASE, tensors)
    assert "const uint32_t n_image" in texts.source(plain, "n")


def test_names_and_comments_are_safe() -> None:
    """A file's name becomes one of C; text of a model ends no comment."""
    assert texts.identifier("3 nets-v2") == "n3_nets_v2" and texts.identifier("--") == "network"
    network = source.of_network(digits.load_network())
    made = image(network.network, configs.load_config("nano"), BASE, network.tensors)
    made.after = ["x */ evil /*", "\u00e9"]
    text = texts.c_header(made, "net", "a*/b")
    assert text.count("/*") == text.count("*/")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The driver's image functions as a library of this machine."""
    made = tmp_path_factory.mktemp("driver") / "image.so"
    files = [ROOT / "sw" / f"openkpu{part}.c" for part in ("", "_image")]
    flags = ["-std=c99", "-shared", "-fPIC", f"-I{ROOT / 'sw'}", f"-I{ROOT / 'include'}"]
    ran("gcc", *flags, "-o", made, *files)
    return ctypes.CDLL(str(made))


DAMAGED = 34  # OPENKPU_DAMAGED
MODELS = [TFLITE, TFLITE.with_name("residual_int8.tflite"), TFLITE.with_name("separable_qdq.onnx")]


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.name)
def test_driver_packs_and_unpacks_tensors(model: Path, driver: ctypes.CDLL) -> None:
    """openkpu_pack fills a map as Port.map_of does, with padding; openkpu_unpack brings it back."""
    config = configs.load_config("nano")
    program = read_program(str(model), config)
    found = source.of_program(program, model.name)
    made = image(found.network, config, BASE, found.tensors)
    data = made.data.tobytes()
    rng = np.random.default_rng(2)
    (part,) = program.device_parts
    assert any(t.places is not None for t in made.tensors)
    for number, tensor in enumerate(made.tensors):
        values = rng.integers(0, 256, tensor.elements, dtype=np.uint8)
        filled, back = np.full(tensor.size + 8, 0xEE, np.uint8), np.zeros(tensor.elements, np.uint8)
        assert driver.openkpu_pack(data, number, values.ctypes, filled.ctypes) == 0
        assert (filled[tensor.size :] == 0xEE).all()
        assert driver.openkpu_unpack(data, number, filled.ctypes, back.ctypes) == 0
        assert np.array_equal(back, values)
        if not tensor.output and not found.before:
            port = next(p for p in part.inputs if p.layer == tensor.layer)
            x = values.view(tensor.dtype).astype(np.int64).reshape(tensor.shape)
            if program.graph.tensors[tensor.name].layout == "NHWC" and x.ndim == 4:
                x = x.transpose(0, 3, 1, 2)
            wanted = port.map_of(x.reshape(program.graph.tensors[port.tensor].shape))
            assert np.array_equal(filled[: tensor.size], wanted.reshape(-1))


def test_driver_refuses_a_damaged_table(driver: ctypes.CDLL) -> None:
    """An entry beyond the tensor is an error and reaches no memory outside of it."""
    config = configs.load_config("nano")
    found = source.of_program(read_program(str(TFLITE), config), "digits.tflite")
    data = image(found.network, config, BASE, found.tensors).data.copy()
    head = data.view("<u4")
    table = int(head[32 + 9])
    assert table and table % 4 == 0
    head[table // 4 + 3] = 1 << 30
    values, filled = np.zeros(4096, np.uint8), np.zeros(4096, np.uint8)
    assert driver.openkpu_pack(data.ctypes, 0, values.ctypes, filled.ctypes) == DAMAGED
    assert driver.openkpu_unpack(data.ctypes, 0, filled.ctypes, values.ctypes) == DAMAGED


def test_driver_uses_both_kinds_of_table(driver: ctypes.CDLL) -> None:
    """Of an input, the element of each byte, some of them fillers; of an output, the byte of each
    element (docs/driver.md, section 5)."""
    network = source.of_network(digits.load_network())
    rng = np.random.default_rng(3)
    places = np.full(64, NOWHERE, dtype=np.uint32)
    places[rng.permutation(64)[:60]] = rng.permutation(60)
    outs = rng.permutation(10)[:7].astype(np.uint32)
    first, last = network.tensors
    tensors = [
        dataclasses.replace(first, shape=(60,), places=places, add=128, fill=7),
        dataclasses.replace(last, shape=(7,), places=outs, add=3),
    ]
    data = image(network.network, configs.load_config("nano"), BASE, tensors).data
    values, filled = rng.integers(0, 256, 60, dtype=np.uint8), np.zeros(64, np.uint8)
    assert driver.openkpu_pack(data.ctypes, 0, values.ctypes, filled.ctypes) == 0
    wanted = [7 if at == NOWHERE else (int(values[at]) + 128) % 256 for at in places]
    assert filled.tolist() == wanted
    result, back = rng.integers(0, 256, 10, dtype=np.uint8), np.zeros(7, np.uint8)
    assert driver.openkpu_unpack(data.ctypes, 1, result.ctypes, back.ctypes) == 0
    assert back.tolist() == [(int(result[at]) - 3) % 256 for at in outs]


def test_results_of_words(driver: ctypes.CDLL) -> None:
    """A last layer with out32 gives int32 in the model's order, which the driver copies whole."""
    layer = random_product(np.random.default_rng(4), c=3, h=2, w=5, o=4)
    network = Network.single(layer)
    found = source.of_network(network)
    made = image(network, configs.load_config("nano"), BASE, found.tensors)
    result = made.tensors[-1]
    assert (result.dtype, result.shape, result.size) == ("int32", (4, 2, 5), 160)
    stored = network.run(layer.x).stored
    back = np.zeros(44, np.int32)
    assert driver.openkpu_unpack(made.data.ctypes, 1, stored.ctypes, back.ctypes) == 0
    assert np.array_equal(
        back[:40].reshape(4, 2, 5), words_of(network.run(layer.x).y.view(np.uint8))
    )
    assert not back[40:].any()


def test_a_float_model_is_compiled_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    """One line says how to get an .okpu file; that file is exported."""
    pytest.importorskip("onnxruntime", reason="make setup GROUPS=quantise brings onnxruntime")
    params = train_networks.own_params(train_networks.load_params(), "separable")
    made = train_networks.float_onnx(train_networks.NETWORKS["separable"], params)
    model, samples, program = (tmp_path / n for n in ("float.onnx", "x.npy", "net.okpu"))
    model.write_bytes(made.SerializeToString())
    np.save(samples, digits.load_data()[0].images[:8].astype(np.float32) / 16)
    text = "float.onnx: a float model, expected a quantised one, or the .okpu file"
    refused(["export", "--model", str(model), "--output", str(tmp_path / "net")], text)
    words = [str(model), "--calibration", str(samples), "-o", str(program), "--config", "nano"]
    assert compile_command.main(words) == 0
    assert run(tmp_path, "--model", str(program), "--config", "nano") == 0
    said = capsys.readouterr().out
    assert "before it the processor computes" in said and (tmp_path / "net.bin").stat().st_size
