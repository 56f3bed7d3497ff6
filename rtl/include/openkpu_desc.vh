// SPDX-License-Identifier: Apache-2.0
//
// Bit ranges of the decoded layer descriptor that layer_decode hands to the fetch side, the
// loaders and the compute side. Widths follow the bounds of the KPU layer argument.
`ifndef OPENKPU_DESC_VH
`define OPENKPU_DESC_VH

// How a layer uses the array (DESC_MODE).
`define MODE_TAPS 2'd0  // 3x3 convolution, or depthwise with pooling: 9 taps of one channel
`define MODE_CHAN 2'd1  // 1x1 convolution: 9 channels of one tap
`define MODE_DWROW 2'd2 // depthwise without pooling: one AI RAM row a step
`define MODE_FC 2'd3    // fully connected: 9 elements of the flattened map

// Pooling that is left for the pooling unit (DESC_POOL); picks are done by the input side.
`define POOL_NONE 3'd0
`define POOL_MAX2 3'd1
`define POOL_MEAN2 3'd2
`define POOL_MAX4 3'd3
`define POOL_MEAN4 3'd4
`define POOL_MAXS1 3'd5
`define POOL_MEANS1 3'd6

`define DESC_MODE 1:0
`define DESC_DW 2        // depthwise layer
`define DESC_K3 3        // 3x3 kernel
`define DESC_SIN 4       // signed input pixels
`define DESC_SOUT 5      // signed output
`define DESC_HELD 6      // the stripe's input stays in the tile buffer for a whole block
`define DESC_WIDE 7      // 16-bit weights
`define DESC_C 18:8      // input channels, 1..1024
`define DESC_O 29:19     // output channels, 1..1024
`define DESC_W 40:30     // input width, 1..1024
`define DESC_H 50:41     // input height, 1..512
`define DESC_OW 61:51    // output width
`define DESC_OH 71:62    // output height
`define DESC_KW 82:72    // width of the grid of pixels that are computed
`define DESC_KH 92:83    // height of that grid
`define DESC_SRC 107:93  // first AI RAM row of the input map
`define DESC_DST 122:108 // first AI RAM row of the output map
`define DESC_IP 124:123  // input pitch: 0 = 16, 1 = 32, 2 = 64 bytes
`define DESC_IRL 129:125 // rows a line of the input, 1..16
`define DESC_ICS 143:130 // rows a channel group of the input, 1..8192
`define DESC_OP 145:144  // output pitch code
`define DESC_ORL 150:146 // rows a line of the output
`define DESC_OCS 164:151 // rows a channel group of the output
`define DESC_STL 166:165 // log2 of the pick stride: 0, 1, 2
`define DESC_PH 167      // column phase of the pick (right_top)
`define DESC_SWL 170:168 // log2 of the stripe's line width: 4, 5, 6
`define DESC_POOL 173:171
`define DESC_S 191:174   // reduction steps a group, 1..233017 (fc of a 2 MiB map)
`define DESC_LASTN 195:192 // valid positions in the last step, 1..9
`define DESC_G 206:196   // output groups, 1..1024
`define DESC_B 217:207   // groups a block (kept in the weight buffer for all stripes)
`define DESC_PAD 225:218
`define DESC_ARGX 249:226
`define DESC_SHRX 253:250
`define DESC_ARGW 277:254
`define DESC_SHRW 281:278
`define DESC_ADDC 317:282 // arg_add * n, modulo 2^36
`define DESC_WADDR 349:318 // weight table, byte address
`define DESC_PSIZE 366:350 // bytes from one weight load to the next
`define DESC_LOADS 373:367 // weight loads, 1..64
`define DESC_WLEN 397:374  // bytes of a full load
`define DESC_WLAST 421:398 // bytes of the last load
`define DESC_BADDR 453:422 // batch-norm table, byte address
`define DESC_AADDR 485:454 // activation table, byte address
`define DESC_INTEN 486
`define DESC_SEND 487
`define DESC_FIRST 488     // first layer of an inference (task list)
`define DESC_LAST 489      // last layer of an inference (task list)
`define DESC_IDX 499:490   // layer index
`define DESC_INB 521:500   // bytes of the input map, dense: at most 2 MiB
`define DESC_TOUCH 522     // uses the place of the inference's input map
`define DESC_WROWS 538:523 // rows of the weight buffer for all weights, at most 65535 is said
`define DESC_W_TOTAL 539

`endif
