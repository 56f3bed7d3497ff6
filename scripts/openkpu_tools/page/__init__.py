# SPDX-License-Identifier: Apache-2.0
"""The device in the browser: its RTL as WebAssembly, and a page around it (docs/page.md)."""
