# SPDX-License-Identifier: Apache-2.0
"""The AHB fabric of the whole-device bench: arbiter, decoder, storage, default slave."""
