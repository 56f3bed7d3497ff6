# SPDX-License-Identifier: Apache-2.0
"""A test that returns early counts as passed: what does not apply is skipped."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.fixed  # the same with every seed

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = "tb", "models", "scripts"
RUN_BY = "cocotb.", "block_test", "checked", "pytest.mark."  # decorators of what a framework runs
METHODS = "scenario", "run_phase"  # of classes that pyuvm runs
Function = ast.FunctionDef | ast.AsyncFunctionDef

EARLY = """
@cocotb.test()
async def first(dut):
    if not dut.A.value:
        return
    assert dut.B.value

@block_test(Bench)
async def also_first(bench):
    return

@checked(limit=3)
async def second(tb):
    for n in range(3):
        with open(n):
            return 1

def test_third(sim):
    want = 3
    if sim == "icarus":
        assert want == 4

@pyuvm.test()
class Fourth(Base):
    async def scenario(self):
        if self.slow:
            return
"""
FINE = """
@cocotb.skipif(not parameter("A"), reason="built without")
@cocotb.test()
async def first(dut):
    def inner():
        return 1
    assert inner() == 1

@pytest.fixture
def test_data():
    return 3

async def helper(dut):
    if not dut:
        return

class Driver(uvm_driver):
    async def run_phase(self):
        return
"""


def run_as_tests(tree: ast.Module) -> Iterator[Function]:
    """Functions that a framework runs as tests."""
    for node in ast.walk(tree):
        decorators = [ast.unparse(d) for d in getattr(node, "decorator_list", ())]
        if isinstance(node, ast.ClassDef) and "pyuvm.test()" in decorators:
            functions = [item for item in node.body if isinstance(item, Function)]
            yield from (f for f in functions if f.name in METHODS)
        if not isinstance(node, Function):
            continue
        by_name = node.name.startswith("test_")
        decorated = any(d.startswith(RUN_BY) for d in decorators)
        if (by_name or decorated) and not any("fixture" in d for d in decorators):
            yield node


def own(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a function without those of functions inside."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda):
            yield child
            yield from own(child)


def early(text: str) -> list[str]:
    """Tests that return, or that do nothing but under a condition."""
    found = []
    for test in run_as_tests(ast.parse(text)):
        body = test.body[1:] if ast.get_docstring(test) else test.body
        deeds = [s for s in body if not isinstance(s, ast.Assign | ast.AnnAssign)]
        only_if = len(deeds) == 1 and isinstance(deeds[0], ast.If) and not deeds[0].orelse
        if only_if or any(isinstance(node, ast.Return) for node in own(test)):
            found.append(test.name)
    return found


def test_what_is_early() -> None:
    assert early(EARLY) == ["first", "also_first", "second", "test_third", "scenario"]
    assert early(FINE) == []


def test_no_test_returns_early() -> None:
    files = [path for name in FOLDERS for path in sorted((ROOT / name).rglob("*.py"))]
    assert len(files) > 300
    found = {str(path.relative_to(ROOT)): early(path.read_text("utf-8")) for path in files}
    assert not {name: tests for name, tests in found.items() if tests}
