# SPDX-License-Identifier: Apache-2.0
"""A compiled network as a page: the graph drawn, and a table of its nodes; one file, no scripts."""

from __future__ import annotations

import html

from openkpu.compiler.program import Program
from openkpu.configs import Config
from openkpu_tools.commands.compiled.compiled_table import Line, node_table

WIDTH, HEIGHT, GAP, LANE = 320, 34, 18, 22  # of a node's box, between boxes, between side lines
SHORT = 40  # letters of a node's name
COLOURS = {"device": "#d5e8d4", "host": "#ffe6cc", "index": "#eeeeee"}
STYLE = """
body { font: 14px sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse; margin-top: 1em }
td, th { border: 1px solid #bbb; padding: 3px 8px; text-align: right }
td.text, th.text { text-align: left }
svg text { font: 12px sans-serif }
"""
COLUMNS = ("runs", "layers", "MACs", "AI RAM rows", "weights", "cycles", "efficiency", "result")


def program_page(program: Program, config: Config) -> str:
    """The page as text."""
    lines = node_table(program, config)
    title = html.escape(f"{program.graph.name} on {config.name}")
    cycles = sum(line.cycles for line in lines)
    head = (
        f"{program.layers} layers in {len(program.device_parts)} task lists,"
        f" {sum(line.runs == 'host' for line in lines)} nodes on the host,"
        f" {cycles} cycles predicted in the layers"
    )
    colours = " ".join(
        f'<span style="background:{colour};padding:2px 8px">{name}</span>'
        for name, colour in COLOURS.items()
    )
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f"<title>{title}</title><style>{STYLE}</style></head><body>",
            f"<h1>{title}</h1><p>{html.escape(head)}</p><p>{colours}</p>",
            drawing(program, lines),
            *rows(lines),
            "</body></html>\n",
        ]
    )


def rows(lines: list[Line]) -> list[str]:
    """The table."""
    found = ['<table><tr><th class="text">node</th><th class="text">operator</th>']
    found[0] += '<th class="text">shape</th>' + "".join(f"<th>{c}</th>" for c in COLUMNS) + "</tr>"
    for line in lines:
        efficiency = f"{100 * line.least / line.cycles:.1f} %" if line.cycles else ""
        texts = (line.row.name, line.row.operator, "x".join(map(str, line.row.shape)))
        numbers = (
            *(line.runs, line.layers or "", line.row.macs or "", line.rows or ""),
            *(line.weights or "", line.cycles or "", efficiency, line.exact),
        )
        cells = [f'<td class="text">{html.escape(t)}</td>' for t in texts]
        cells += [f"<td>{html.escape(str(n))}</td>" for n in numbers]
        found.append(f'<tr style="background:{COLOURS[line.runs]}">{"".join(cells)}</tr>')
    return [*found, "</table>"]


def drawing(program: Program, lines: list[Line]) -> str:
    """Nodes one below the other; tensors that skip some run beside them."""
    places = dict.fromkeys(program.graph.inputs, -1)
    for number, line in enumerate(lines):
        places |= dict.fromkeys(line.row.outputs, number)
    edges = [
        (places[name], number)
        for number, line in enumerate(lines)
        for name in line.row.inputs
        if name in places
    ]
    shapes, lanes = [], _lanes([e for e in edges if e[1] - e[0] > 1])
    side = WIDTH + 20
    for first, last in edges:
        top, bottom = _y(first) + HEIGHT, _y(last)
        if (first, last) not in lanes:
            path = f"M {WIDTH / 2} {top} V {bottom}"
        else:
            x = side + LANE * lanes[first, last]
            path = f"M {WIDTH} {top - HEIGHT / 2} H {x} V {bottom + HEIGHT / 2} H {WIDTH}"
        shapes.append(f'<path d="{path}" fill="none" stroke="#555"/>')
    boxes = [("input", "#ffffff", -1)]
    for number, line in enumerate(lines):
        name = line.row.name if len(line.row.name) <= SHORT else f"...{line.row.name[3 - SHORT :]}"
        boxes.append((f"{name} ({line.row.operator})", COLOURS[line.runs], number))
    for text, colour, number in boxes:
        y = _y(number)
        long = min(WIDTH - 16, 6.4 * len(text))
        shapes.append(
            f'<rect x="0" y="{y}" width="{WIDTH}" height="{HEIGHT}" fill="{colour}" stroke="#555"/>'
            f'<text x="8" y="{y + HEIGHT / 2 + 4}" textLength="{long:.0f}"'
            f' lengthAdjust="spacingAndGlyphs">{html.escape(text)}</text>'
        )
    width = side + LANE * (1 + max(lanes.values(), default=0))
    height = _y(len(lines))
    size = f'width="{width}" height="{height}" viewBox="-1 -1 {width} {height}"'
    return f"<svg {size}>{''.join(shapes)}</svg>"


def _y(number: int) -> int:
    return (number + 1) * (HEIGHT + GAP)


def _lanes(edges: list[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """A side line for each, so that none lies on another."""
    found: dict[tuple[int, int], int] = {}
    for first, last in sorted(set(edges), key=lambda e: e[1] - e[0]):
        taken = {n for (a, b), n in found.items() if a < last and first < b}
        found[first, last] = next(n for n in range(len(taken) + 1) if n not in taken)
    return found
