# SPDX-License-Identifier: Apache-2.0
"""Write the table of host writes into docs/programming.md (--check: only look).

The table says what a write to each register does in each state of the device. It is made from
openkpu_tb/device/write_rules.py, from which the sweeps take what they expect. Exit status 1 when
--check finds another text.
"""

import sys

from openkpu.checkout import ROOT
from openkpu_tb.device import write_rules
from openkpu_tools import command, registry

PAGE = ROOT / "docs" / "programming.md"
BEGIN = "<!-- written by `openkpu write-table` from openkpu_tb/device/write_rules.py -->\n"
END = "<!-- end of the written table -->\n"


def page_filled(page: str) -> str:
    """The page with the table in its place."""
    if page.count(BEGIN) != 1 or page.count(END) != 1:
        raise command.UsageError(f"{PAGE.name}: expected the two lines that enclose the table once")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{write_rules.write_rules_table()}\n{END}{after}"


def current() -> bool:
    """docs/programming.md holds the table that the rules give."""
    page = PAGE.read_text(encoding="utf-8")
    return page == page_filled(page)


def main(argv: list[str] | None = None) -> int:
    """See above."""
    if not registry.parse_command("write-table", argv).check:
        PAGE.write_text(page_filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    elif not current():
        print("docs/programming.md is not what `openkpu write-table` writes")
        return command.MISMATCH
    return 0


if __name__ == "__main__":
    sys.exit(command.run_command(main))
