# SPDX-License-Identifier: Apache-2.0
"""Coverage: instrumented builds, functional bins and their sampler, merge, report, baseline."""
