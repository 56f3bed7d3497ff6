# SPDX-License-Identifier: Apache-2.0
"""A graph becomes a program: nodes are lowered; the host computes those the device cannot.

One device part after the other: every node whose inputs are there is lowered, until only nodes are
left that wait for the host.  So a network without a host node in its middle is one task list.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections import Counter
from collections.abc import Callable

import numpy as np

from openkpu.arithmetic.integers import ceil_div, largest_divisor
from openkpu.compiler.bands import fit, ports
from openkpu.compiler.bands.plan import tall
from openkpu.compiler.errors import CompileError, RoomError
from openkpu.compiler.form.check import check_graph
from openkpu.compiler.form.graph import (
    LONGEST,
    MOST_LINES,
    Conv,
    Dense,
    Elementwise,
    Graph,
    Host,
    Move,
    Node,
    Pool,
    Table,
    Tensor,
)
from openkpu.compiler.form.rarer import Prelu, Product
from openkpu.compiler.lowering import costs, overlap, place, requant, turn
from openkpu.compiler.lowering.device import Held, indices
from openkpu.compiler.lowering.lower import (
    MOST,
    Disordered,
    Report,
    State,
    Unable,
    offset,
)
from openkpu.compiler.lowering.nodes import (
    lower_conv,
    lower_dense,
    lower_elementwise,
    lower_move,
    lower_pool,
    lower_prelu,
    lower_product,
    lower_table,
)
from openkpu.compiler.passes import lying
from openkpu.compiler.passes import rewrites as passes
from openkpu.compiler.program import DevicePart, HostPart, NodeRow, Port, Program
from openkpu.configs import Config
from openkpu.layer.layout import AI_RAM_ROWS
from openkpu.network.network import NetworkError

LOWERINGS: dict[type[Node], Callable[..., None]] = {
    Conv: lower_conv.lower_conv_node,
    Dense: lower_dense.lower_dense_node,
    Pool: lower_pool.lower_pool_node,
    Elementwise: lower_elementwise.lower_elementwise_node,
    Table: lower_table.lower_table_node,
    Move: lower_move.lower_move_node,
    Prelu: lower_prelu.lower_prelu_node,
    Product: lower_product.lower_product_node,
}
MOST_RETRIES = 64
MOST_CHANNELS, LINE = 9216, 64  # of a map; pixels of a line that fills a row


def build_program(graph: Graph, config: Config, one_list: bool = False) -> Program:
    """The program of a graph; CompileError for a node that neither device nor host computes,
    RoomError for maps that do not fit.

    Layers with weights of 16 bits are in lists of their own, or make all weights of their list as
    wide: the choice with fewer cycles, or, for ``one_list``, the latter.  So is the choice whether
    tall maps lie down, unless the host then has more turns.
    """
    check_graph(graph)
    wide = [n for n in graph.nodes if isinstance(n, (Conv, Dense)) and n.weight_bits > 8]
    if wide and config.weight_bits < 16:
        what = f"weights of 16 bits, configuration {config.name} has weight_bits = 8"
        raise CompileError(what, node=wide[0].name, operator=wide[0].operator, where=graph.name)
    found: list[Program] = []
    failures: list[CompileError] = []
    for form in passes.variants(graph):
        programs: list[Program] = []
        for apart in (False, True) if wide and not one_list else (False,):
            own = dataclasses.replace(form, tensors=dict(form.tensors), nodes=list(form.nodes))
            try:
                programs.append(Builder(own, config, apart).run())
            except CompileError as error:
                failures.append(error)
        found += [_cheapest(programs, config)] if programs else []
    if not found:
        raise failures[0]
    least = min(len(program.parts) for program in found)  # the host's turns are not predicted
    return _cheapest([program for program in found if len(program.parts) == least], config)


def _cheapest(programs: list[Program], config: Config) -> Program:
    """The one with the fewest predicted cycles, the first of several."""
    if len(programs) == 1:
        return programs[0]
    return min(
        programs, key=lambda p: costs.lists_cycles(config, [d.network for d in p.device_parts])
    )


class Builder:
    """A program in the making; ``apart``: a list has weights of 8 bits, or of 16 bits."""

    def __init__(self, graph: Graph, config: Config, apart: bool = False) -> None:
        self.graph, self.config, self.apart = graph, config, apart
        self.turned = turn.choose_turned(graph)
        constants = {t.name for t in graph.tensors.values() if t.data is not None}
        self.there = {*graph.inputs, *constants}  # on the host
        self.constants = constants
        self.left = list(graph.nodes)
        self.hosted = {n.name for n in self.left if isinstance(n, Host)}
        self.ordered: set[str] = set()  # tensors that the host has put in order for one node
        self.parts: list[DevicePart | HostPart] = []
        self.reports: dict[str, Report] = {}
        self.lists: list[set[str]] = []  # nodes of the next lists, where one cannot hold all

    def run(self) -> Program:
        """All parts, in their order."""
        while self.left:
            before = len(self.left), len(self.hosted)
            self._host()
            if self.left:
                self._device()
            if (len(self.left), len(self.hosted)) == before:
                node = self.left[0]
                raise self._refuse(node, "it waits for a tensor that nothing computes")
        if not any(isinstance(part, DevicePart) for part in self.parts):
            what = "no node for the device, expected a convolution or another operator of maps"
            raise CompileError(what, where=self.graph.name)
        rows = [self._row(node) for node in self.graph.nodes]
        return Program(self.graph, self.parts, self.reports, self.config.name, rows=rows)

    def _row(self, node: Node) -> NodeRow:
        y = self.graph.tensors[node.outputs[0]]
        macs = 0
        if isinstance(node, (Conv, Dense)):
            macs = node.weights[0].size * math.prod(y.shape)
        if isinstance(node, Product):
            macs = self.graph.tensors[node.inputs[0]].shape[-1] * math.prod(y.shape)
        what = " ".join(filter(None, (node.kind, node.describe())))
        ends = list(node.inputs), list(node.outputs)
        return NodeRow(node.name, node.operator, what, *ends, list(y.shape), macs)

    def _refuse(self, node: Node, text: str) -> CompileError:
        return CompileError(text, node=node.name, operator=node.operator, where=self.graph.name)

    # --------------------------------------------------------------------- host
    def _host(self) -> None:
        """Every node of the host whose inputs are there; moves of what is there as well."""
        done: list[Node] = []
        more = True
        while more:
            more = False
            for node in list(self.left):
                move = isinstance(node, Move) and not lying.lies(self.graph, node)
                mine = node.name in self.hosted or move
                if mine and set(node.inputs) <= self.there:
                    done.append(node)
                    self.left.remove(node)
                    self.there |= set(node.outputs)
                    self.reports[node.name] = Report("host")
                    more = True
        if done:
            self.parts.append(HostPart(done))

    # ------------------------------------------------------------------- device
    def _device(self) -> None:
        """One task list of all nodes that can be lowered now, or of as many as one holds."""
        while True:
            waiting = {node.name for node in self.left} - self.hosted
            while self.lists and not self.lists[0] & waiting:
                del self.lists[0]
            nodes = [n for n in self.left if not self.lists or n.name in self.lists[0]]
            state, lowered = self._lowered(nodes)
            if not state.specs:  # what moves no byte for any layer is the host's
                self.hosted |= {node.name for node in lowered}
                return
            left = [n for n in self.left if all(n is not m for m in lowered)]
            made = {n for node in lowered for n in node.outputs}
            needed = {n for node in left for n in node.inputs} | set(self.graph.outputs)
            wanted = [n for n in state.tensors if n in made & needed]
            try:
                part = self._part(state, wanted)
            except fit.TooLong as error:
                self._cut(lowered, error)
                continue
            self.left = left
            self.reports |= state.reports
            self.parts.append(part)
            self.there |= set(wanted)
            return

    def _lowered(self, nodes: list[Node]) -> tuple[State, list[Node]]:
        """The layers of those of the nodes that can be lowered now."""
        state = State(self.graph, self.config, bits=self._bits(nodes))
        for node in nodes:
            if isinstance(node, Move) and node.how == "concat":
                lower_move.plan_concat(self.graph, node, state)
        lowered: list[Node] = []
        for node in nodes:
            ready = all(n in state.tensors or n in self.there for n in node.inputs)
            ready = ready and not lower_product.waits(node, self.there)
            if node.name in self.hosted or not ready:
                continue
            if self.apart and self._width(node, state.bits) != state.bits:
                continue
            if self._lower(state, node):
                lowered.append(node)
        return state, lowered

    def _cut(self, lowered: list[Node], error: fit.TooLong) -> None:
        """Several lists for these nodes, each behind what makes its inputs."""
        found: dict[str, int] = {}  # by node and by tensor
        for node in lowered:
            before = [found.get(name, 0) for name in node.inputs]
            number = max(error.lists.get(node.name, 0), *before)
            found |= dict.fromkeys((node.name, *node.outputs), number)
        # A view costs no layer in the list that reads it, and a copy for the host in one before.
        last = dict.fromkeys(self.graph.outputs, 0)
        for node in self.left:
            last |= dict.fromkeys(node.inputs, 0) if node.name not in found else {}
        for node in reversed(lowered):
            if node.name not in error.lists and len(node.inputs) == 1:  # joined: where it is made
                first = found.get(node.inputs[0], 0)
                reads = [last.get(name, first) for name in node.outputs]
                found |= dict.fromkeys((node.name, *node.outputs), max(first, min(reads)))
            for name in node.inputs:
                last[name] = min(last.get(name, found[node.name]), found[node.name])
        numbers = sorted({found[node.name] for node in lowered})
        if len(numbers) < 2:
            node = next(n for n in lowered if n.name == error.node)
            raise self._refuse(node, str(error))
        self.lists[:1] = [{n.name for n in lowered if found[n.name] == i} for i in numbers]

    def _bits(self, nodes: list[Node]) -> int:
        """Of the weights of the next list: 16 where a layer in it, or the first one, has them."""
        there, found = set(self.there), []
        for node in nodes:
            ready = set(node.inputs) <= there and not lower_product.waits(node, self.there)
            if ready and node.name not in self.hosted:
                there |= set(node.outputs)
                found += [self._width(node, 0)]
        found = [bits for bits in found if bits] or [8]
        return found[0] if self.apart else max(found)

    @staticmethod
    def _width(node: Node, default: int) -> int:
        """Bits of a node's weights, or the default of one without."""
        return node.weight_bits if isinstance(node, (Conv, Dense)) else default

    def _lower(self, state: State, node: Node) -> bool:
        """Lower a node; False when it must wait for the host."""
        mark = state.mark()
        try:
            for name in lower_product.maps(node):
                if name not in state.tensors and name not in self.constants:
                    state.stage(name, self._staged(state, node, name))
            LOWERINGS[type(node)](state, node)
        except Disordered as error:
            state.back(mark)
            self._order(node, error)
            return False
        except Unable as error:
            state.back(mark)
            if not isinstance(node, (Move, Table)):
                raise self._refuse(node, str(error)) from None
            self.hosted.add(node.name)
            return False
        except (requant.Apart, requant.Beyond, NetworkError) as error:
            raise self._refuse(node, str(error)) from None
        state.report(node)
        return True

    def _order(self, node: Node, error: Disordered) -> None:
        """Have the host put a tensor in order, under another name, for one node."""
        name = error.tensor
        if name in self.ordered or len(self.ordered) >= MOST_RETRIES:
            raise self._refuse(node, str(error)) from None
        if isinstance(node, Move):  # which the host does itself
            self.hosted.add(node.name)
            return
        like = self.graph.tensors[name]
        made = dataclasses.replace(like, name=self.graph.fresh(name), data=None)
        self.graph.add_tensor(made)
        self.ordered.add(made.name)
        label = f"{node.name}/order"
        move = Move(label, "order of a map", (name,), (made.name,), how="reshape")
        inputs = tuple(made.name if n == name else n for n in node.inputs)
        new = dataclasses.replace(node, inputs=inputs)
        for nodes in (self.graph.nodes, self.left):
            at = next(i for i, n in enumerate(nodes) if n is node)
            nodes[at : at + 1] = [move, new]
        self.hosted.add(move.name)
        self.turned[made.name] = self.turned.get(name, (False, False))

    def _staged(self, state: State, node: Node, name: str) -> Held:
        """Where the host writes the elements of a tensor, for the node that reads it first."""
        if isinstance(node, Product):
            return lower_product.staged(state, self.graph, name)
        tensor = self.graph.tensors[name]
        zero = tensor.zero + offset(tensor)
        shape = tensor.shape
        if len(shape) == 4 and shape[0] == 1 and not isinstance(node, Dense):
            extra = self._margin(tensor)
            h, w = shape[2] + extra[0], shape[3] + extra[1]
            if lying.lies(self.graph, self.graph.readers(name)[0]):
                made = state.new((shape[1], w, h))
                where = np.arange(math.prod(made.shape)).reshape(made.shape)
                return Held(made, where.transpose(0, 2, 1)[None], zero)
            made = state.new((shape[1], h, w))
            turned = self.turned.get(name, (False, False))
            where = indices(made, np.arange(shape[1]), (0, 0), shape[2:], turned)
            return Held(made, where, zero, margin=True)
        last, pixels = (shape[-1], math.prod(shape[:-1])) if shape else (1, 1)
        if pixels == 1 and last > MOST_CHANNELS:  # a vector that a fully connected layer reads
            made = state.new((ceil_div(last, LINE), 1, LINE))
            return Held(made, np.arange(last).reshape(shape), zero)
        wide = largest_divisor(pixels, LONGEST)
        if pixels // wide > MOST_LINES:  # the last line is not full
            wide = LONGEST
        made = state.new((last, ceil_div(pixels, wide), wide))
        pixels_there = made.shape[1] * wide
        where = (np.arange(last) * pixels_there + np.arange(pixels)[:, None]).reshape(shape)
        return Held(made, where, zero)

    def _margin(self, tensor: Tensor) -> tuple[int, int]:
        """Lines and columns behind the tensor that its convolutions need to have room."""
        readers = self.graph.readers(tensor.name)
        if not all(isinstance(r, Conv) for r in readers):
            return 0, 0
        extra = [0, 0]
        for reader in readers:
            assert isinstance(reader, Conv)
            outputs = self.graph.tensors[reader.outputs[0]].shape[2:]
            for i in (0, 1):
                stride, size = reader.strides[i], tensor.shape[2 + i]
                need = outputs[i] * stride if stride > 1 else outputs[i]
                if need - size < size or need - size < 8:
                    extra[i] = max(extra[i], need - size)
        return extra[0], extra[1]

    def _part(self, state: State, wanted: list[str]) -> DevicePart:
        """The task list: outputs are stored, addresses given."""
        node = next(n for n in self.graph.nodes if n.name == state.specs[-1].node)
        state.specs = overlap.moved_apart(state.specs, self.config)
        outputs = [(n, state.tensors[n], self._writers(state, n)) for n in wanted]
        last = len(state.specs) - 1
        if not any(last in writers for _, _, writers in outputs):
            # the list ends with a map that is wanted
            name, held, _ = outputs.pop()
            outputs.append((name, held, []))
        final = []
        copied = Counter(held.place.buffer for _, held, writers in outputs if not writers)
        for name, held, writers in outputs:
            if not writers:
                if held.place.shape[0] > MOST:
                    raise self._refuse(node, f"{name!r} has over {MOST} channels, as a result")
                source = held.place
                if copied[source.buffer] > 1:  # a part over itself: the next copy reads the map
                    held = dataclasses.replace(held, place=state.new(source.shape))
                state.copy(node, source, held.place)
                writers = [len(state.specs) - 1]
            final.append((name, held, writers))
        writers = {w for _, _, found in final for w in found}
        try:
            banded = fit.fitted(state.specs, writers, self.config)
            specs, last = banded.specs, len(banded.specs) - 1
            for number in (piece.layer for pieces in banded.results.values() for piece in pieces):
                specs[number].stores = specs[number].stores or "result"
            specs[last].stores = ""
            network = place.network_of(specs, [], self.config.ai_ram_rows)
        except fit.TooLong:
            raise
        except fit.TooLarge as error:
            node = next(n for n in self.graph.nodes if n.name == error.node)
            where = {"node": node.name, "operator": node.operator, "where": self.graph.name}
            size = self.config.name, self.config.ai_ram_rows, error.need
            raise RoomError(*size, str(error), **where) from None
        except Unable as error:
            raise self._refuse(node, str(error)) from None
        staged = [self._port(name, held) for name, held in state.staged.items()]
        inputs = ports.given_room(network, specs, staged)
        results = []
        for name, held, found in final:
            made = [(state.specs[w].dst.shape, banded.results[w]) for w in found]
            results.append(ports.results(self._port(name, held), made, last))
        try:
            network.validate(self.config.ai_ram_rows)
        except NetworkError as error:
            raise self._refuse(node, str(error)) from None
        taps = []
        for name, held in state.tensors.items() if banded.plan is None else ():
            made_by = self._writers(state, name)
            if made_by and name in self.graph.tensors:
                taps.append(dataclasses.replace(self._port(name, held), layers=made_by))
        whole = None
        if banded.plan is not None and not any(map(tall, state.specs)):
            with contextlib.suppress(Unable):
                whole = place.network_of(state.specs, [], AI_RAM_ROWS)
                ports.given_room(whole, state.specs, staged)
        nodes = [s.node for s in specs]
        given = enumerate(s.given for s in specs)
        weights = [dataclasses.replace(g, layer=i) for i, g in given if g]
        return DevicePart(network, inputs, results, nodes, weights, taps, whole)

    def _port(self, name: str, held: Held) -> Port:
        tensor = self.graph.tensors[name]
        return Port(name, held.place.shape, held.where, offset(tensor), held.zero)

    @staticmethod
    def _writers(state: State, name: str) -> list[int]:
        """The layers whose output maps make up the tensor's map, channel after channel; none when
        they do not, or another one wrote there afterwards."""
        wanted = state.tensors[name].place
        end = wanted.row + wanted.rows
        there = [
            (spec.dst.row, i)
            for i, spec in enumerate(state.specs)
            if spec.dst.buffer == wanted.buffer
            and spec.dst.row < end
            and wanted.row < spec.dst.row + spec.dst.rows
        ]
        found, first, whole = [], 0, wanted.shape
        for row, i in sorted(there):
            dst = state.specs[i].dst
            full = first % wanted.groups == 0 and first < whole[0]
            if not full or dst.shape[1:] != whole[1:] or row != wanted.part(first, 1).row:
                return []
            found.append(i)
            first += dst.shape[0]
        return found if first == whole[0] else []
