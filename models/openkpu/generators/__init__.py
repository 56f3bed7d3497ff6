# SPDX-License-Identifier: Apache-2.0
"""Random legal layers, tasks and lists with results worth comparing."""
