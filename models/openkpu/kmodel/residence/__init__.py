# SPDX-License-Identifier: Apache-2.0
"""Maps that stay in the AI RAM between layers."""
