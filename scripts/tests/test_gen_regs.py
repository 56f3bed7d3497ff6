# SPDX-License-Identifier: Apache-2.0
"""What the register description gives is what the repository holds."""

from openkpu_tools.documents.gen_regs import outputs


def test_generated_files_are_current() -> None:
    for path, text in outputs().items():
        assert path.read_text() == text, (
            f"{path.name}: run scripts/openkpu_tools/documents/gen_regs.py"
        )
