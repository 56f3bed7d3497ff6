// SPDX-License-Identifier: Apache-2.0
// Written by `openkpu integration`, which `make lint` compares.
`define FIRST_LAYER_WRITES 124
`define FIRST_LAYER_READS 73
`define FIRST_LAYER_STORAGE 144
