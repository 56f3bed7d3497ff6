# SPDX-License-Identifier: Apache-2.0
"""What a command asks of the simulated device, on both sides of the simulator."""
