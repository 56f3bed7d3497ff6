# SPDX-License-Identifier: Apache-2.0
"""Charts as SVG text: bars and lines whose words keep their size on a narrow page.

Lengths are shares of the width, heights are pixels, and colours come from the page's style: the
classes c0, c1 ... are series, and ``STYLE`` has colours for light and dark pages.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape

ROW, HEAD = 22, 20  # pixels: a bar with its figure, the name above a group
COLOURS = ("#3b6fd4", "#d9822b", "#3a9d5d", "#a4509f", "#7a7f87", "#c23b4b")
STYLE = (
    ".chart svg{width:100%;font:13px sans-serif;overflow:visible}"
    ".chart text{fill:currentColor}.chart figcaption{font-style:normal;margin:.4em 0}"
    ".chart .axis{stroke:currentColor;opacity:.35}.chart .name{font-weight:bold}"
    ".chart .key{display:inline-block;margin:0 1em .3em 0;white-space:nowrap}"
    ".chart .key i{display:inline-block;width:.8em;height:.8em;margin-right:.4em}"
    + "".join(f".chart .c{n}{{fill:{c};background:{c}}}" for n, c in enumerate(COLOURS))
)
Groups = Mapping[str, Mapping[str, float | None]]  # name of a group -> series -> value


def _shown(value: float) -> str:
    return f"{value:,.10g}"


def _share(value: float, most: float, least: float) -> float:
    """Percent of the width; ``least`` above 0 makes the scale logarithmic."""
    if least:
        return 62 * math.log(max(value, least) / least) / math.log(most / least)
    return 62 * value / most


def _figure(title: str, series: Sequence[str], svg: str, note: str) -> str:
    keys = "".join(
        f'<span class="key"><i class="c{n % len(COLOURS)}"></i>{escape(name)}</span>'
        for n, name in enumerate(series)
        if len(series) > 1
    )
    small = f" <small>{escape(note)}</small>" if note else ""
    return (
        f'<figure class="chart"><figcaption><b>{escape(title)}</b>{small}</figcaption>'
        f"<div>{keys}</div>{svg}</figure>"
    )


def bars(title: str, groups: Groups, unit: str = "", note: str = "", least: float = 0) -> str:
    """Horizontal bars, a group of series each; a value of None is left out.

    ``least``: where a logarithmic scale begins. ValueError when there is nothing to draw.
    """
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    every = [v for values in groups.values() for v in values.values() if v is not None]
    if not every:
        raise ValueError(f"{title}: no values, expected some")
    most, y, parts = max(every), 0, []
    for group, values in groups.items():
        parts.append(f'<text class="name" x="0" y="{y + HEAD - 5}">{escape(group)}</text>')
        y += HEAD
        for name, value in values.items():
            if value is None:
                continue
            colour, width = series.index(name) % len(COLOURS), _share(value, most, least)
            text = f"{_shown(value)}{unit}"
            label = f"{escape(group)}, {escape(name)}: {text}" if name else f"{group}: {text}"
            parts.append(
                f'<g><title>{label}</title><rect class="c{colour}" x="0" y="{y}"'
                f' width="{max(width, 0.3):.2f}%" height="{ROW - 6}" rx="2"/>'
                f'<text x="{width + 1:.2f}%" y="{y + ROW - 10}">{text}</text></g>'
            )
            y += ROW
        y += 6
    svg = f'<svg role="img" height="{y}" aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return _figure(title, series, svg, note or ("logarithmic scale" if least else ""))
