# SPDX-License-Identifier: Apache-2.0
"""Writers and checks of documents and of generated files."""
