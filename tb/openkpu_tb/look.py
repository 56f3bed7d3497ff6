# SPDX-License-Identifier: Apache-2.0
"""How pages of reports look: like the site, light or dark as the reader's system, on any width."""

from collections.abc import Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #222; --faint: #e1e4e8; --bar: #4051b5;
  --link: #4051b5; --hit: #dff3df; --miss: #f8c9c9; --part: #fdeeba; --code: #f5f5f5 }
@media (prefers-color-scheme: dark) { :root { --back: #1e2129; --text: #dcdfe4; --faint: #363b47;
  --bar: #2e3c8f; --link: #8c9eff; --hit: #1e4023; --miss: #5c2328; --part: #54471a;
  --code: #272a35 } }
body { font: 15px/1.5 -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; margin: 0;
  background: var(--back); color: var(--text) }
header { background: var(--bar); padding: .7em 1.2em; font-weight: bold }
header a { color: #fff; text-decoration: none; margin-right: 1.2em }
main { padding: .5em 1.2em 2em; max-width: 90rem; margin: auto; overflow-x: auto }
h1 { font-weight: 300; font-size: 1.9em } h2 { font-weight: 400; margin-top: 1.6em }
a { color: var(--link) }
table { border-collapse: collapse; margin: 0 0 1.5em; font-size: .88em }
th, td { padding: .3em .8em; text-align: left; border-bottom: 1px solid var(--faint);
  vertical-align: top }
th { border-bottom-width: 2px }
code, pre { background: var(--code); font-size: .92em; border-radius: 3px; padding: .1em .3em }
pre { overflow-x: auto; padding: .6em } img { max-width: 100% }
.source td { font: 12px monospace; white-space: pre; border: 0; padding: 0 8px }
.source .n { text-align: right; opacity: .6 }
.hit { background: var(--hit) } .miss { background: var(--miss) } .part { background: var(--part) }
.fail { color: #d33; font-weight: bold }
"""


def html_page(title: str, body: Iterable[str], home: str = "../index.html", style: str = "") -> str:
    """A whole HTML page; ``body`` is HTML, ``home`` the index of all reports."""
    inner, name = "\n".join(body), escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head><body>\n"
        f'<header><a href="{home}">OpenKPU reports</a></header>\n'
        f"<main><h1>{name}</h1>\n{inner}\n</main></body></html>\n"
    )
