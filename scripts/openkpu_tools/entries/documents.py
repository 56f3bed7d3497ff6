# SPDX-License-Identifier: Apache-2.0
"""Commands that write pages and files of the checkout, set it up and clean it."""

import argparse
import re

from openkpu.checkout import ROOT
from openkpu_tools import command
from openkpu_tools.arguments import Parser
from openkpu_tools.entry import entry

PAGE = ROOT / "build" / "page"  # where `make page` leaves the device for the browser


def _compares(parser: Parser) -> None:
    parser.add_argument("--check", action="store_true", help="write nothing, compare")


def _version(text: str) -> str:
    """argparse type: the number of a release."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", text):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a version such as 0.4.0")
    return text


@entry("openkpu_tools.documents.configs")
def configs(parser: Parser) -> None:
    """Print the table of configurations."""


@entry("openkpu_tools.documents.silicon_table")
def silicon(parser: Parser) -> None:
    """Print the tables of area and clock."""


@entry("openkpu_tools.documents.claim_table", "sim icarus verilator")
def claim_table(parser: Parser) -> None:
    """Write docs/claims.md."""
    _compares(parser)


@entry("openkpu_tools.documents.page_tables", "sim registers coverage flows plots")
def page_tables(parser: Parser) -> None:
    """Write the tables of the pages from records."""
    _compares(parser)


@entry("openkpu_tools.documents.gen_regs", "registers")
def registers(parser: Parser) -> None:
    """Write what follows from the register description."""
    _compares(parser)


@entry("openkpu_tools.documents.gen_fields", bare=True)
def fields(parser: Parser) -> None:
    """Write the Verilog header of fields."""
    _compares(parser)


@entry("openkpu_tools.documents.integration_files")
def integration(parser: Parser) -> None:
    """Write the files that integrators' tools read."""
    _compares(parser)


@entry("openkpu_tools.documents.register_formats", "registers integration")
def register_formats(parser: Parser) -> None:
    """Write the registers as IP-XACT, CMSIS-SVD and pages of HTML."""
    parser.add_argument("out", type=command.folder, help="folder, which may exist")


@entry("openkpu_tools.page.build", "sim verilator models")
def page(parser: Parser) -> None:
    """Write the page that runs the RTL in a browser -> build/page/index.html."""
    parser.add_argument("--out", type=command.path, help="another file")
    parser.add_argument(
        "--links", help="address of a document, with {page} and {anchor}; default: of the checkout"
    )
    parser.add_argument("--jobs", type=command.JOBS, default=2, help="compilers at a time")


@entry("openkpu_tools.site.build", "site registers")
def site(parser: Parser) -> None:
    """Documents, sources, registers and charts as a site of HTML."""
    parser.add_argument(
        "--out", type=command.folder, default=ROOT / "build" / "site", help="where it goes"
    )
    parser.add_argument(
        "--page",
        type=command.folder,
        default=PAGE,
        help="with its front, the device in the browser",
    )


@entry("openkpu_tools.site.reports", "reports")
def reports(parser: Parser) -> None:
    """What commands left in reports as pages, with an index and the trend of the releases."""
    parser.add_argument(
        "--folder", type=command.folder, default=ROOT / "reports", help="that has the reports"
    )
    parser.add_argument("--record", type=_version, help="keep HEAD's figures as a release's")


@entry("", lambda args: " ".join(args.groups or ["all", "icarus"]))
def setup(parser: Parser) -> None:
    """Everything into .venv, and Icarus when it is missing."""
    parser.add_argument(
        "--groups", nargs="+", help='groups of pyproject.toml, for example "sim plots"'
    )


@entry("openkpu_tools.setup.clean", bare=True)
def clean(parser: Parser) -> None:
    """Remove builds and recordings (keeps .venv)."""


@entry("openkpu_tools.setup.help", bare=True)
def help_(parser: Parser) -> None:
    """This list, or the variables of one command."""
    parser.add_argument("command", nargs="?", help="whose variables are listed")
