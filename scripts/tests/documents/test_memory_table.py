# SPDX-License-Identifier: Apache-2.0
"""The table of memories in docs/integration.md has the sizes that the device is elaborated with."""

import math
import re
from collections import Counter
from pathlib import Path

import pytest

from scripts.tests.checkouts import ran
from scripts.tests.documents.test_docs import DOCS, RTL, header, section, table

# first words of a row, and the instances that it is of
MEMORIES = {
    "AI RAM": r"\.u_ai_ram",
    "tile buffer": r"\.u_tile\.",
    "weight buffer": r"\.u_weights\.g_column",
    "batch-norm words": r"\.u_bn",
    "zero-point constants": r"\.u_kc",
    "activation tables": r"\.u_table\.",
    "`collector`": r"\.u_collect\.g_bank",
    "stripes of": r"\.u_banks\.g_bank",
    "signatures": r"\.u_signatures",
    "layer argument FIFO": r"\.u_layers\.",
    "FIFOs of pixels": r"\.g_block\.u_fifo",
    "words that are stored": r"\.u_write\.u_words",
    "accumulators": r"\.u_acc\.u_sums",
    "sums whose": r"\.u_planes\.",
}
SIZES = {"ram_1r1w": ("DEPTH", "WIDTH"), "ram_1r1w_async": ("DEPTH", "WIDTH")}
SIZES["ai_ram"] = ("WORDS", "8 * PATH")
SHOW = 'initial $display("MEMORY %m %0d %0d", {}, {});\nendmodule'
NANO = {"N_Y": 2, "N_Z": 2, "PATH": 16, "PARAM_CHANS": 1024, "AI_RAM_ROWS": 18}
EIGHT = {"N_Y": 4, "N_Z": 2, "PATH": 16, "PARAM_CHANS": 1024, "AI_RAM_ROWS": 18}
K210 = {"N_Y": 4, "N_Z": 16, "PATH": 64, "AHB_W": 64, "SUM_PLANES": 1, "AI_RAM_ROWS": 18}
TALL = {"N_Y": 2, "N_Z": 32, "PATH": 128, "TILE_ROWS": 64, "AI_RAM_ROWS": 17}


def elaborated(given: dict[str, int], folder: Path) -> list[tuple[str, int, int]]:
    """Path, words and bits of every memory, printed by the wrappers themselves."""
    sources = []
    for file in RTL:
        if file.stem in SIZES:
            text, show = file.read_text(), SHOW.format(*SIZES[file.stem])
            file = folder / file.name
            file.write_text(re.sub(r"^endmodule", show, text, count=1, flags=re.MULTILINE))
        sources.append(str(file))
    built = folder / "sizes.vvp"
    command = ["iverilog", "-g2005", "-Irtl/include", "-o", str(built), "-s", "openkpu_top"]
    command += [f"-Popenkpu_top.{name}={value}" for name, value in given.items()]
    ran(*command, *sources)
    said = ran("vvp", "-n", built)
    lines = [line.split()[1:] for line in said.stdout.splitlines() if line.startswith("MEMORY")]
    return [(path, int(words), int(bits)) for path, words, bits in lines]


def value(text: str, known: dict[str, int]) -> int:
    """A formula of the table; whatever follows a comma explains it."""
    text = text.partition(",")[0].replace("log2(AHB_W / 8)", "OW")
    total = 0
    for term in text.split(" + "):
        first, *rest = re.split(r" ([*/]) ", term.replace("(", "").replace(")", ""))
        amount = float(known.get(first, first))
        divides = False
        for sign, factor in zip(rest[::2], rest[1::2], strict=True):
            number = known.get(factor) or int(factor)
            divides |= sign == "/"  # a product in parentheses behind it
            amount = amount / number if divides else amount * number
        total += math.ceil(amount)
    return total


@pytest.mark.check
@pytest.mark.parametrize(
    "given", [NANO, EIGHT, K210, TALL], ids=["nano", "compact", "k210", "tall"]
)
def test_memory_sizes(given: dict[str, int], tmp_path: Path) -> None:
    """Number, words and bits."""
    known = {n: int(v) for n, v in re.findall(r"parameter\s+(\w+)\s*=\s*(\d+)", header())} | given
    lanes, path = known["N_Y"] * known["N_Z"], min(known["PATH"], 64)
    known["OW"] = (known["AHB_W"] // 8).bit_length() - 1
    known["TILE_WORD"] = min(max(lanes, 8), path)
    known["B"] = max(known["N_Z"], path // known["N_Y"])
    known["their depth"] = known["PIX_FIFO_DEPTH"]
    found = elaborated(given, tmp_path)
    text = section(DOCS / "integration.md", "7 Memories")
    said = r"E is (\d+), (\d+) with fewer than (\d+) lanes, or (\d+) \* N_Z"
    entries = re.search(said.replace(" ", r"\s+"), text)
    assert entries, "how many stripes the collector holds"
    usual, small, few, times = map(int, entries.groups())
    known["E"] = max(small if lanes < few else usual, times * known["N_Z"])
    most = re.search(r"stripes of fewer than (\d+) lanes", text)
    assert most, "arrays whose stripes are narrow"
    narrow = lanes < int(most[1]) and path == 16
    absent = {"`collector`" if narrow else "stripes of"}
    absent |= set() if known["SUM_PLANES"] else {"sums whose"}
    rows = table(text[text.index("| memory |") :])
    seen = Counter()
    for title, _, count, words, bits, _ in rows:
        for name, instance in MEMORIES.items():
            if title.strip("`").startswith(name.strip("`")):
                mine = [sizes for at, *sizes in found if re.search(instance, at)]
                if name in absent:
                    assert not mine
                    continue
                want = [[value(words, known), value(bits, known)]] * value(count, known)
                assert mine == want, title
                seen[name] += 1
    assert len(seen) == len(MEMORIES) - len(absent) and set(seen.values()) == {1}
