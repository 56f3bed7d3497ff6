# SPDX-License-Identifier: Apache-2.0
"""Maps that do not fit the AI RAM, or a layer, and are computed in bands."""
