# SPDX-License-Identifier: Apache-2.0
"""The site: documents, sources, registers, charts and Python pages as HTML."""
