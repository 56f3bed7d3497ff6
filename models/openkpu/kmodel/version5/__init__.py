# SPDX-License-Identifier: Apache-2.0
"""kmodel v5 (nncase 1.x): its container, its KPU functions and its byte code."""
