# SPDX-License-Identifier: Apache-2.0
"""Operations that run on the CPU."""
