# SPDX-License-Identifier: Apache-2.0
"""What a person runs: command line, flows, verification, benchmarks, documents."""
