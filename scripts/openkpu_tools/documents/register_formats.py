# SPDX-License-Identifier: Apache-2.0
"""The register description as IP-XACT and HTML, by the exporters of PeakRDL, and as CMSIS-SVD.

``openkpu register-formats OUT`` writes OUT/openkpu.xml (IEEE 1685-2014), OUT/html/index.html and
OUT/openkpu.svd.
"""

import tomllib

from peakrdl_html import HTMLExporter
from peakrdl_ipxact import IPXACTExporter

from openkpu.checkout import ROOT
from openkpu.layer.regdesc import compile_map
from openkpu_tools import registry
from openkpu_tools.documents.svd import svd

MAP = "openkpu"


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("register-formats", argv)
    described = compile_map(MAP)
    node = described.node
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    args.out.mkdir(parents=True, exist_ok=True)
    exporter = IPXACTExporter(vendor="openkpu", library="ip", version=version)
    exporter.export(node, str(args.out / "openkpu.xml"), component_name="openkpu")
    HTMLExporter().export(node, str(args.out / "html"))
    (args.out / "openkpu.svd").write_text(svd(described, version), encoding="utf-8")
    return 0
