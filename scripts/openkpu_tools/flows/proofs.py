# SPDX-License-Identifier: Apache-2.0
"""What is to be proven: rtl/proofs.toml and the properties beside the RTL.

The properties of a module are in `<module>_props.vh` in its folder, which the module includes
where `FORMAL_<module>` is defined. Each is a labelled assert, assume or cover, with its meaning on
the lines `//: ` before it. A proof is a module with its parameters; rtl/proofs.toml has them all,
each with one-line faults that must make it fail. See docs/formal.md.
"""

import dataclasses
import hashlib
import json
import re
import tomllib
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tb.mutants import Fault
from openkpu_tools.command import UsageError

LIST = "rtl/proofs.toml"
RECORD = "rtl/proofs.json"  # digests of what was proven by the long proofs
MEANING = re.compile(r"\s*//: (.*)")
INCLUDE = r"^\s*`include \"(\w+\.vh)\""
LABEL = re.compile(r"\b(\w+)\s*:\s*(assert|assume|cover)\s*\(")
BARE = re.compile(r"\b(assert|assume|cover|restrict)\s*\(")


@dataclasses.dataclass(frozen=True)
class Property:
    """An assert, assume or cover of a module."""

    name: str
    kind: str
    meaning: str


@dataclasses.dataclass(frozen=True)
class Proof:
    """A module with its parameters; depths in clock cycles, ``seconds`` for each run."""

    module: str
    parameters: dict[str, int] = dataclasses.field(default_factory=dict)
    depth: int = 4  # steps of the induction, and of its base case
    bounded: tuple[str, ...] = ()  # properties that are tried from the reset on only
    bounded_depth: int = 20  # ... for so many cycles
    cover_depth: int = 20  # cycles for covers, and for the faults
    seconds: int = 300
    quick: bool = True  # part of the short run
    free: tuple[str, ...] = ()  # instances that are cut away: their outputs are free
    faults: tuple[Fault, ...] = ()
    # sets of properties that are proven one after the other, each set with those before it assumed;
    # the others last
    stages: tuple[tuple[str, ...], ...] = dataclasses.field(default=(), repr=False)

    @property
    def name(self) -> str:
        """Of the module and its parameters."""
        values = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.module} ({values})" if values else self.module


def load_proofs() -> list[Proof]:
    """Every proof; UsageError for a key that there is none of, or a proof of nothing."""
    found, files = [], sources()
    for entry in tomllib.loads((ROOT / LIST).read_text())["proof"]:
        faults = [
            Fault(str(files[fault.pop("module", entry["module"])].relative_to(ROOT)), **fault)
            for fault in entry.pop("faults", [])
        ]
        for key in ("bounded", "free"):
            entry[key] = tuple(entry.get(key, []))
        entry["stages"] = tuple(tuple(stage) for stage in entry.get("stages", []))
        try:
            found.append(Proof(**entry, faults=tuple(faults)))
        except TypeError as error:
            raise UsageError(f"{LIST}: {error}") from None
    return found


def sources() -> dict[str, Path]:
    """File of each module of the RTL, and of the bus checkers that properties use."""
    folders = [ROOT / "rtl", ROOT / "tb" / "openkpu_tb" / "ahb" / "checkers"]
    return {path.stem: path for folder in folders for path in sorted(folder.rglob("*.v"))}


def beside(module: str, files: dict[str, Path]) -> Path:
    """Where the properties of a module are."""
    return files[module].with_name(f"{module}_props.vh")


def needed(module: str, files: dict[str, Path]) -> list[Path]:
    """The file of a module and those of all modules inside it; UsageError when there is none."""
    if module not in files:
        raise UsageError(f"{LIST}: no RTL file of module {module}")
    found, waiting = {}, [module]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = files[name]
        text = files[name].read_text()
        if name == module:
            text += beside(name, files).read_text()
        text = re.sub(r"//.*", "", text)
        words = re.findall(r"^\s*(\w+)\s+(?:#\s*\(|\w+\s*\()", text, re.M)
        waiting += [word for word in words if word in files]
    return list(found.values())


def files_of(module: str) -> list[Path]:
    """All files of a proof: modules, the headers that they include, properties."""
    files = sources()
    modules, own = needed(module, files), beside(module, files)
    included = {n for path in [*modules, own] for n in re.findall(INCLUDE, path.read_text(), re.M)}
    headers = sorted((ROOT / "rtl").rglob("*.vh"))
    shared = [p for p in headers if p.name in included and not p.stem.endswith("_props")]
    return [*modules, *shared, own]


def proof_digest(proof: Proof) -> str:
    """Of all that a proof is about, without comments and blanks."""
    terms = dataclasses.replace(proof, seconds=0, quick=True, faults=())
    state = hashlib.sha256((repr(terms) + repr(proof.stages or "")).encode())
    for path in files_of(proof.module):
        text = re.sub(r"//.*", "", path.read_text())
        state.update("\0".join([path.name, *text.split()]).encode())
    return state.hexdigest()[:16]


def recorded() -> dict[str, str]:
    """The digest of each long proof when it was last proven and recorded."""
    path = ROOT / RECORD
    return json.loads(path.read_text()) if path.exists() else {}


def record_proofs(proven: dict[str, str]) -> None:
    """Keep the digests of these long proofs by name, and of no proof that is gone."""
    present = {proof.name for proof in load_proofs() if not proof.quick}
    digests = recorded() | proven
    kept = {name: digests[name] for name in sorted(digests) if name in present}
    (ROOT / RECORD).write_text(json.dumps(kept, indent=1) + "\n")


def properties(module: str, files: dict[str, Path]) -> list[Property]:
    """The properties of a module; UsageError for one without a label or a meaning."""
    path = beside(module, files)
    found, meaning = [], []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if said := MEANING.fullmatch(line):
            meaning.append(said[1])
            continue
        code = line.partition("//")[0]
        labelled = LABEL.search(code)
        if BARE.search(code) and not (labelled and meaning):
            lacks = "a meaning" if labelled else "a label"
            raise UsageError(f"{path.name}:{number}: a property without {lacks}")
        if labelled:
            found.append(Property(labelled[1], labelled[2], " ".join(meaning)))
            meaning = []
    if len({each.name for each in found}) < len(found):
        raise UsageError(f"{path.name}: two properties of one name")
    return found
