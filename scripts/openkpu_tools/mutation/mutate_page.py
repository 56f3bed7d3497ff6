# SPDX-License-Identifier: Apache-2.0
"""What became of the mutants, as a page and as data."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from openkpu_tools.mutation.mutate_places import Mutation

KILLED = ("block", "sizes", "device")


@dataclass(frozen=True)
class MutantVerdict:
    """A mutant, and what became of it."""

    number: int
    mutation: Mutation
    status: str  # one of KILLED, survived, equivalent
    by: str = ""  # the test that failed, or the reason of an equivalent one
    hang: bool = False
    seconds: float = 0.0

    @property
    def folder(self) -> str:
        """The folder of its file."""
        return str(Path(self.mutation.file).parent)


def score(verdicts: Sequence[MutantVerdict]) -> float:
    """Percent of the mutants that are not equivalent and were killed; 100 without any."""
    asked = [v for v in verdicts if v.status != "equivalent"]
    return 100 * sum(v.status in KILLED for v in asked) / len(asked) if asked else 100.0


def failures(verdicts: Sequence[MutantVerdict], strict: Sequence[str], goal: float) -> list[str]:
    """Why the run has failed, a line each."""
    lines = []
    for folder in strict:
        alive = [v for v in verdicts if v.status == "survived" and v.folder == folder]
        if alive:
            lines.append(f"{len(alive)} survived in {folder}, where none may")
    if score(verdicts) < goal:
        lines.append(f"score {score(verdicts):.1f} %, the goal is {goal:g} %")
    return lines


def verdict_line(verdict: MutantVerdict) -> str:
    """A verdict as one line of text."""
    m = verdict.mutation
    end = f"{verdict.status}{' (hang)' if verdict.hang else ''}"
    return f"{verdict.number:>5} {m.file}:{m.line} {m.kind}: {m.shown}: {end}"


def _cell(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"


def _counts(verdicts: Sequence[MutantVerdict]) -> str:
    counted = Counter(v.status for v in verdicts)
    columns = [counted[status] for status in (*KILLED, "survived", "equivalent")]
    return " | ".join([str(len(verdicts)), *map(str, columns), f"{score(verdicts):.1f} %"])


def mutation_markdown(verdicts: Sequence[MutantVerdict], title: str, failed: Sequence[str]) -> str:
    """The page: result, survivors, modules, kinds, equivalents, all mutants."""
    out = ["# Mutation", "", title, "", f"**{'FAIL' if failed else 'PASS'}**"]
    out += [f"- {reason}" for reason in failed]
    alive = [v for v in verdicts if v.status == "survived"]
    out += ["", f"## Survivors: {len(alive)}", ""]
    for v in alive:
        m = v.mutation
        out += [f"{v.number}. {m.file}:{m.line}, {m.kind}, {_cell(m.shown)}", ""]
        out += ["   ```verilog", f"   {m.text}", "   ```", ""]
    head = "| {} | mutants | block | sizes | device | survived | equivalent | score |"
    for what, groups in (
        ("module", sorted({(v.mutation.file, v.mutation.module) for v in verdicts})),
        ("kind", sorted({("", v.mutation.kind) for v in verdicts})),
    ):
        out += ["", f"## By {what}", "", head.format(what), "|---" * 8 + "|"]
        for file, name in groups:
            own = [v for v in verdicts if name == (v.mutation.module if file else v.mutation.kind)]
            out.append(f"| {file or name} | {_counts(own)} |")
        out.append(f"| all | {_counts(verdicts)} |")
    out += ["", "## Equivalent", "", "| number | place | mutation | reason |", "|---|---|---|---|"]
    for v in verdicts:
        if v.status == "equivalent":
            m = v.mutation
            out.append(f"| {v.number} | {m.file}:{m.line} | {_cell(m.shown)} | {v.by} |")
    out += ["", "## All", "", "| number | place | kind | mutation | end | by |", "|---" * 6 + "|"]
    for v in verdicts:
        m, end = v.mutation, f"{v.status}{' (hang)' if v.hang else ''}"
        by = "" if v.status == "equivalent" else v.by
        out.append(
            f"| {v.number} | {m.file}:{m.line} | {m.kind} | {_cell(m.shown)} | {end} | {by} |"
        )
    return "\n".join(out) + "\n"


def data(verdicts: Sequence[MutantVerdict], failed: Sequence[str], **more: object) -> str:
    """The same as JSON."""
    rows = [{**asdict(v.mutation), **asdict(v), "mutation": v.mutation.shown} for v in verdicts]
    return json.dumps(
        {**more, "score": score(verdicts), "failed": failed, "mutants": rows}, indent=1
    )


def write_mutation_page(folder: Path, page: str, content: str) -> None:
    """Both files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mutation.md").write_text(page, encoding="utf-8")
    (folder / "mutation.json").write_text(content, encoding="utf-8")
