# SPDX-License-Identifier: Apache-2.0
"""The kit of the benches: simulators, AHB, the device and what runs on it, pyuvm environment."""
