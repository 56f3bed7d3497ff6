# SPDX-License-Identifier: Apache-2.0
"""Setting up the environment before there is any package."""
