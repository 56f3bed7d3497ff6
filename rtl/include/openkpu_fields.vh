// SPDX-License-Identifier: Apache-2.0
//
// Fields of the packed vectors that travel between modules. Written by `openkpu fields` from
// fields.toml; change that.
`ifndef OPENKPU_FIELDS_VH
`define OPENKPU_FIELDS_VH

// Mode of the array for a layer (DESC_MODE), and operation of the pooling unit (DESC_POOL): the
// input side performs the picks. And a width that several modules share.
`define MODE_TAPS 2'd0  // 3x3 convolution, or depthwise with pooling: nine taps of one channel
`define MODE_CHAN 2'd1  // 1x1 convolution: nine channels of one tap
`define MODE_DWROW 2'd2  // depthwise without pooling: an AI RAM row per step
`define MODE_FC 2'd3  // fully connected: nine elements of the flattened map
`define PROW_BITS 13  // width of a parameter row counter: 2048 rows at most, two more bits for comparisons
`define POOL_NONE 3'd0  // none, or a pick
`define POOL_MAX2 3'd1  // maximum of 2x2
`define POOL_MEAN2 3'd2  // mean of 2x2
`define POOL_MAX4 3'd3  // maximum of 4x4
`define POOL_MEAN4 3'd4  // mean of 4x4
`define POOL_MAXS1 3'd5  // maximum of 2x2, stride 1
`define POOL_MEANS1 3'd6  // mean of 2x2, stride 1

// Decoded layer, from layer_decode to the fetch side, the loaders and the compute side. Widths
// follow the bounds of the KPU layer argument.
`define DESC_MODE (0)+:(2)  // MODE_*
`define DESC_DW (2)  // depthwise layer
`define DESC_K3 (3)  // 3x3 kernel
`define DESC_SIN (4)  // signed input pixels
`define DESC_SOUT (5)  // signed output
`define DESC_HELD (6)  // the stripe's input stays in the tile buffer for a whole block
`define DESC_WIDE (7)  // 16-bit weights
`define DESC_C (8)+:(14)  // input channels, 1..9216
`define DESC_O (22)+:(11)  // output channels, 1..1024
`define DESC_W (33)+:(11)  // input width, 1..1024
`define DESC_H (44)+:(10)  // input height, 1..512
`define DESC_OW (54)+:(11)  // output width
`define DESC_OH (65)+:(10)  // output height
`define DESC_KW (75)+:(11)  // width of the computed grid of pixels
`define DESC_KH (86)+:(10)  // height of the computed grid
`define DESC_SRC (96)+:(15)  // first AI RAM row of the input map
`define DESC_DST (111)+:(15)  // first AI RAM row of the output map
`define DESC_IP (126)+:(2)  // input pitch: 0 = 16, 1 = 32, 2 = 64 bytes
`define DESC_IRL (128)+:(5)  // rows per line of the input, 1..16
`define DESC_ICS (133)+:(14)  // rows per channel group of the input, 1..8192
`define DESC_OP (147)+:(2)  // output pitch code
`define DESC_ORL (149)+:(5)  // rows per line of the output
`define DESC_OCS (154)+:(14)  // rows per channel group of the output
`define DESC_STL (168)+:(2)  // log2 of the pick stride: 0, 1, 2
`define DESC_PH (170)  // column phase of the pick (right_top)
`define DESC_SWL (171)+:(3)  // log2 of the stripe's line width: 4, 5, 6
`define DESC_POOL (174)+:(3)  // POOL_*
`define DESC_S (177)+:(18)  // reduction steps per group, 1..233017 (fc of a 2 MiB map)
`define DESC_LASTN (195)+:(4)  // valid positions in the last step, 1..9
`define DESC_G (199)+:(11)  // output groups, 1..1024
// groups per block (kept in the weight buffer for all stripes): 8 at most, in a fully connected
// layer all
`define DESC_B (210)+:(11)
`define DESC_PAD (221)+:(8)  // pad value
`define DESC_ARGX (229)+:(24)  // arg_x
`define DESC_SHRX (253)+:(4)  // shr_x
`define DESC_ARGW (257)+:(24)  // arg_w
`define DESC_SHRW (281)+:(4)  // shr_w
`define DESC_ADDC (285)+:(36)  // arg_add * n, modulo 2^36
`define DESC_WADDR (321)+:(32)  // weight table, byte address
`define DESC_PSIZE (353)+:(17)  // bytes from one weight load to the next
`define DESC_LOADS (370)+:(7)  // weight loads, 1..64
`define DESC_WLEN (377)+:(24)  // bytes of a full load
`define DESC_WLAST (401)+:(24)  // bytes of the last load
`define DESC_BADDR (425)+:(32)  // batch-norm table, byte address
`define DESC_AADDR (457)+:(32)  // activation table, byte address
`define DESC_INTEN (489)  // int_en
`define DESC_SEND (490)  // send_data_out
`define DESC_FIRST (491)  // first layer of an inference (task list)
`define DESC_LAST (492)  // last layer of an inference (task list)
`define DESC_IDX (493)+:(10)  // layer index
`define DESC_INB (503)+:(22)  // bytes of the input map, dense: at most 2 MiB
`define DESC_TOUCH (525)  // overlaps the inference's input map
`define DESC_WROWS (526)+:(16)  // weight-buffer rows of all weights; saturates at 65535
`define DESC_INF (542)  // parity of the inference's number (task list)
`define DESC_EW (543)  // element-wise: two maps form the window of a depthwise layer
`define DESC_EWOP (544)+:(2)  // 0 add, 1 multiply, 2 maximum, 3 minimum
`define DESC_ONE (546)  // element-wise with one map: the second operand is the pad value
`define DESC_SRC2 (547)+:(15)  // first AI RAM row of the second map
`define DESC_INXOR (562)  // pixels are XORed with 0x80
`define DESC_WXOR (563)  // weights are XORed with 0x80
`define DESC_OUT32 (564)  // v is output as four bytes, a plane each
`define DESC_POOLS (565)  // pooling task: the array is idle
`define DESC_PTASK (566)+:(26)  // its window
`define DESC_FP16 (592)  // product of float16 matrices: the array lends its multipliers
`define DESC_FP32 (593)  // its results are float32
`define DESC_MOVES (594)+:(`MOVES_BITS)  // transfers of its maps
`define DESC_KEPT (594+`MOVES_BITS)  // the weights are in the AI RAM; waddr is an address there
`define DESC_FLAT (595+`MOVES_BITS)  // 1x1: the lines of the map are contiguous, treated as one line
`define DESC_DIL (596+`MOVES_BITS)+:(3)  // pixels between the taps of a 3x3 window, less one
`define DESC_BITS (599+`MOVES_BITS)

// Maps of a layer that move between the AI RAM and the storage.
`define MOVES_LOAD 0  // the input map is read from the storage before the layer starts
`define MOVES_STORE 1  // the output map is written to the storage after it
`define MOVES_LOAD_ADR 33:2  // first byte of the input map
`define MOVES_STORE_ADR 65:34  // first byte of the output map
`define MOVES_BITS 66

// Input map of a layer that is read from the storage.
`define SHAPE_C 13:0  // channels
`define SHAPE_W 24:14  // width
`define SHAPE_H 34:25  // lines
`define SHAPE_SRC 49:35  // first AI RAM row
`define SHAPE_ICS 63:50  // rows per channel group
`define SHAPE_INB 85:64  // bytes
`define SHAPE_BANDS 86  // it may come in bands of lines: the layer starts once the first one has arrived
`define SHAPE_BITS 87

// Window of a pooling task.
`define PTASK_KIND 2:0  // 1 maximum, 2 minimum, 3 average with the padding, 4 average of the map's pixels
`define PTASK_ALL 3  // the whole map
`define PTASK_KH_M1 7:4  // lines - 1
`define PTASK_KW_M1 11:8  // columns - 1
`define PTASK_SY_M1 15:12  // lines from one window to the next - 1
`define PTASK_SX_M1 19:16  // columns from one window to the next - 1
`define PTASK_TOP 22:20  // lines of padding above the map
`define PTASK_LEFT 25:23  // columns of padding left of it
`define PTASK_BITS 26

// Columns of a line for the windows of a pooling task: a block of 16 or a piece of it.
`define PIECE_COUNT 4:0  // valid bytes (pixels of the map), 0..16
`define PIECE_ON_MAP 5  // a line of the map
`define PIECE_FIRST 6  // first line of a chunk: of the window, or of some lines of the whole map
`define PIECE_LAST 7  // last line of a chunk
`define PIECE_FINAL 8  // last line of the window
`define PIECE_LINE_FIRST 9  // first columns of the line
`define PIECE_LINE_LAST 10  // last columns of the line
`define PIECE_BITS 11

// Request to a DMA channel.
`define REQ_ADDR (0)+:(32)  // first byte
`define REQ_LEN (32)+:(24)  // bytes
`define REQ_OWNER (56)+:(`OWNER_BITS)  // requester
`define REQ_BEYOND (56+`OWNER_BITS)  // the first byte lies beyond the last address
`define REQ_BITS (57+`OWNER_BITS)

// Piece of weights kept in the AI RAM.
`define KEPT_DATA 127:0  // 16 bytes
`define KEPT_OFF 131:128  // first valid byte
`define KEPT_CNT 136:132  // valid bytes
`define KEPT_BITS 137

// Layer of a transfer, reported when the transfer fails.
`define OWNER_LAYER 9:0  // layer index; list: 0
`define OWNER_INF 10  // parity of the inference's number; host mode: 0
`define OWNER_BITS 11

// Bus word of a DMA stream. Uses AHB_W, OW = log2(bytes of a bus word), CW = OW + 1.
`define BEAT_DATA (0)+:(AHB_W)  // the word
`define BEAT_OFF (AHB_W)+:(OW)  // first valid byte
`define BEAT_CNT (AHB_W+OW)+:(CW)  // valid bytes
`define BEAT_BITS (AHB_W+OW+CW)

// Bus word on its way to the FIFO of a read channel. Uses AHB_W, OW = log2(bytes of a bus word).
`define DMA_WORD_DATA (0)+:(AHB_W)  // the word
`define DMA_WORD_OFF (AHB_W)+:(OW)  // first valid byte
`define DMA_WORD_LESS (AHB_W+OW)+:(OW)  // valid bytes - 1
`define DMA_WORD_BITS (AHB_W+OW+OW)

// Tag that travels with a bus command and returns with its beats. Uses OW = log2(bytes of a bus
// word).
`define DMA_TAG_TOP (0)+:(OW)  // last valid byte in the last word of the command
`define DMA_TAG_OFF (OW)+:(OW)  // first valid byte in the first word of the command
`define DMA_TAG_LAST (OW+OW)  // the request ends with this command
`define DMA_TAG_CHAN (1+OW+OW)+:(3)  // channel: 0 list, 1 bias, 2 weight, 3 pixel, 4 store
`define DMA_TAG_OWNER (4+OW+OW)+:(`OWNER_BITS)  // requester
`define DMA_TAG_BITS (4+OW+OW+`OWNER_BITS)

// Announcement of a burst command in the cycle in which the AHB master accepts it: lets a bridge
// request the read early, and gives the length of an INCR burst.
`define AHEAD_VALID 0  // a command enters the queue of the AHB master
`define AHEAD_DROP 1  // the AHB master drops all commands whose transfers are not on the bus
`define AHEAD_WRITE 2  // direction
`define AHEAD_ADDR 34:3  // first byte
`define AHEAD_BEATS 39:35  // 1..16
`define AHEAD_SIZE 42:40  // as HSIZE
`define AHEAD_BITS 43

// Burst command to the AHB master. Uses TAG_W.
`define CMD_WRITE (0)  // direction
`define CMD_ADDR (1)+:(32)  // first byte
`define CMD_BEATS (33)+:(5)  // 1..16
`define CMD_SIZE (38)+:(3)  // as HSIZE
`define CMD_WPOP (41)  // each beat pops a word of write data
`define CMD_TAG (42)+:(TAG_W)  // returned with the beats
`define CMD_BITS (42+TAG_W)

// Burst proposed by a channel. Uses TAG_W.
`define BURST_CMD (0)+:(`CMD_BITS)  // the command
`define BURST_WRAP (`CMD_BITS)  // it begins beyond the last address
`define BURST_BITS (1+`CMD_BITS)

// Feature map in the AI RAM, sizes minus one.
`define MAP_BASE 14:0  // first row
`define MAP_CHANS_M1 28:15  // channels - 1
`define MAP_HEIGHT_M1 37:29  // lines - 1
`define MAP_WIDTH_M1 47:38  // pixels of a line - 1
`define MAP_BITS 48

// Input map loaded into the AI RAM.
`define LOAD_MAP (0)+:(`MAP_BITS)  // the map
`define LOAD_APART (`MAP_BITS)+:(14)  // rows from one channel group to the next
`define LOAD_BAND (14+`MAP_BITS)+:(4)  // lines of a band, 1, 2, 4 or 8, fewer than the map has; 0: the map is one band
`define LOAD_BITS (18+`MAP_BITS)

// Output map unloaded from the AI RAM.
`define UNLOAD_MAP (0)+:(`MAP_BITS)  // the map
`define UNLOAD_ADR (`MAP_BITS)+:(32)  // destination in the storage
`define UNLOAD_STORE (32+`MAP_BITS)  // it goes to the storage, not to the host
`define UNLOAD_OWNER (33+`MAP_BITS)+:(`OWNER_BITS)  // owner of the transfer
`define UNLOAD_WORDS (33+`MAP_BITS+`OWNER_BITS)  // four planes are combined to 32-bit words; the map counts words
`define UNLOAD_APART (34+`MAP_BITS+`OWNER_BITS)+:(14)  // rows from one channel group to the next
`define UNLOAD_WHOLE (48+`MAP_BITS+`OWNER_BITS)  // its layer is over: all of it may be read
`define UNLOAD_HELD (49+`MAP_BITS+`OWNER_BITS)  // none of it may be read yet
`define UNLOAD_BITS (50+`MAP_BITS+`OWNER_BITS)

// Parameter rows and weights that a stream keeps, for the current layer. Uses PRW.
`define KEEPING_BASE (0)+:(PRW)  // first parameter row of the layer
`define KEEPING_FREED (PRW)+:(PRW)  // parameter rows released (running count)
`define KEEPING_KEEP (PRW+PRW)  // weights and parameters stay
`define KEEPING_REUSE (1+PRW+PRW)  // the weights of the inference being decoded are in the buffer
`define KEEPING_BITS (2+PRW+PRW)

// A transfer that failed or was not permitted.
`define FAULT_ADDR (0)+:(32)  // address of the beat, or first byte of the burst that was not permitted
`define FAULT_CHAN (32)+:(3)  // channel: 0 list, 1 bias, 2 weight, 3 pixel, 4 store
`define FAULT_OWNER (35)+:(`OWNER_BITS)  // owner of the transfer
`define FAULT_REFUSED (35+`OWNER_BITS)  // not permitted (BAD_ACCESS), not an ERROR response (BUS_ERROR)
`define FAULT_BITS (36+`OWNER_BITS)

// Windows in which the master may read and write, in blocks of 1 KiB (no burst crosses one).
`define GUARD_READ_FIRST 21:0  // first block that may be read
`define GUARD_READ_LAST 43:22  // last block that may be read
`define GUARD_WRITE_FIRST 65:44  // first block that may be written
`define GUARD_WRITE_LAST 87:66  // last block that may be written
`define GUARD_BITS 88

// Stall of the master, for the watchdog. The other fields are valid while why is not 0.
`define WAITING_WHY (0)+:(2)  // reason: 0 none, 1 no grant, 2 no response (HREADY), 3 no grant after RETRY or SPLIT
`define WAITING_ADDR (2)+:(32)  // address of the oldest stalled beat
`define WAITING_CHAN (34)+:(3)  // its channel
`define WAITING_OWNER (37)+:(`OWNER_BITS)  // owner of the transfer
`define WAITING_BITS (37+`OWNER_BITS)

// Configuration of the current inference, from the registers to the controller, latched at the
// start and at each change of inference.
`define CFG_TAKEN_ADR 31:0  // AI_TAKEN_ADR: address of the pixels requested last
`define CFG_WGT_ADR 63:32  // AI_WGT_ADR
`define CFG_BIAS_ADR 95:64  // AI_BIAS_ADR
`define CFG_LIST_ADR 127:96  // AI_LIST_ADR
`define CFG_RES_ADR 159:128  // AI_RES_ADR
`define CFG_LIST_LEN 169:160  // AI_LIST_LEN
`define CFG_EIGHT_BIT 170  // weights are u8
`define CFG_MORE 171  // another inference follows; follows the registers at once
`define CFG_WATCHDOG 203:172  // AI_WATCHDOG; follows the register at once
`define CFG_SPARE 234:204  // AI_SPARE_ROWS, as [spare]; follows the register at once
`define CFG_BITS 235

// Rows of the AI RAM for weights that wait.
`define SPARE_FIRST 14:0  // first row
`define SPARE_ROWS 30:15  // number of rows; 0: none
`define SPARE_BITS 31

// Commands of the host to the controller: pulses, and one level.
`define HOST_START 0  // starts a task-list run
`define HOST_SOFT_RESET 1  // aborts everything
`define HOST_ACK 2  // acknowledges an error: AI_ERR_CODE was written
`define HOST_PENDING 3  // level: a start, a reset or words of the host are pending
`define HOST_BITS 4

// State of the controller, levels.
`define STATUS_BUSY 0  // layers or inferences are active, or words for them are pending
`define STATUS_FLUSHING 1  // active layers and inferences are being dropped
`define STATUS_HOLD 2  // words of the host are discarded until it acknowledges an error
`define STATUS_FC_LAYER 3  // AI_STATUS.fc_layer
`define STATUS_KEPT 4  // AI_STATUS.kept
`define STATUS_LAYER 14:5  // index of the current layer
`define STATUS_WAITING_DRAIN 15  // a layer runs
`define STATUS_WAITING_BUS 16  // transfers of pixels or results are in flight
`define STATUS_BITS 17

// Events of the controller, pulses.
`define EVENT_CALC_DONE 0  // a layer with int_en is done
`define EVENT_INF_DONE 1  // the result of an inference has been stored
`define EVENT_INF_KEPT 2  // with inf_done: it read no weights
`define EVENT_LAYER_DONE 3  // a layer is done
`define EVENT_INF_NEXT 4  // the next inference of a stream begins
`define EVENT_NPIX_TAKE 5  // AI_NPIX_ADR is sampled for a prefetch
`define EVENT_ERROR 6  // an error; its description is valid
`define EVENT_BITS 7

// Activity of the array in a cycle, for the counters; moves, the last field, covers side tasks
// and array.
`define WORK_ISSUED 0  // an issue was made
`define WORK_WAIT_TILE 1  // no issue: the tile buffer is empty
`define WORK_WAIT_WEIGHT 2  // no issue: weights or parameters are missing
`define WORK_WAIT_OUTPUT 3  // no issue: results are not accepted
`define WORK_MACS_ISSUED 75:4  // multiplications issued, 8 bits per column
`define WORK_MACS_GATED 147:76  // multiplications with a gated multiplier, 8 bits per column
`define WORK_MOVES 148  // an issue was made, a word of the AI RAM read or written, or weights or tables loaded
`define WORK_BITS 149

// Activity of the storage port in a cycle, for the counters, AI_STATUS and the controller.
`define TRAFFIC_WEIGHT_BIAS_FULL 0  // weight FIFO and bias FIFO are full
`define TRAFFIC_READING 1  // a read is outstanding or could be issued
`define TRAFFIC_READ_BEAT 2  // a beat of a read is finished
`define TRAFFIC_WRITE_BEAT 3  // a beat of a write is finished
`define TRAFFIC_IDLE 4  // nothing is outstanding
`define TRAFFIC_WEIGHT_QUIET 5  // all requests of the weight channel have been issued
`define TRAFFIC_BIAS_QUIET 6  // all requests of the bias channel have been issued
`define TRAFFIC_BITS 7

// Access of the host to the AI RAM.
`define WINDOW_WDATA 31:0  // word to write
`define WINDOW_WSTRB 35:32  // bytes of it to write
`define WINDOW_ADDR 56:36  // byte address
`define WINDOW_WE 57  // write
`define WINDOW_BITS 58

// Write of a word of the AI RAM. Uses PATH, its bytes, and PB = log2(PATH).
`define ROWWRITE_DATA (0)+:(8*PATH)  // the word
`define ROWWRITE_BE (8*PATH)+:(PATH)  // bytes of it to write
`define ROWWRITE_WORD (8*PATH+PATH)+:(21-PB)  // its address
`define ROWWRITE_CHANS (8*PATH+PATH+21-PB)+:(7)  // channels of the output map completed by it
`define ROWWRITE_BITS (7+8*PATH+PATH+21-PB)

// Description of an error.
`define ERR_CODE 7:0  // AI_ERR_CODE
`define ERR_LAYER 17:8  // AI_ERR_INFO.layer
`define ERR_STREAM 20:18  // AI_ERR_INFO.stream
`define ERR_WAITS 23:21  // AI_ERR_INFO.waits
`define ERR_ADDR 55:24  // AI_ERR_ADDR
`define ERR_BITS 56

// Next position of the loop nest after an issue, and resources released by it, from a walker to
// loop_nest.
`define MOVE_POS_ON 0  // the next pixels of the stripe, after the last ones the first
`define MOVE_STEP_ON 1  // the next reduction step
`define MOVE_STEP_CLEAR 2  // the first reduction step
`define MOVE_BACK 3  // the first of the alternating steps, for the next pixels: with its entry and row
`define MOVE_UNIT_ON 4  // the next group or channels
`define MOVE_UNIT_BACK 5  // the first group of the block
`define MOVE_GROUP_END 6  // a group of a convolution has seen the stripe
`define MOVE_PASS_END 7  // all groups of a block have seen it: the next stripe
`define MOVE_ENTRY_ON 8  // the next tile entry
`define MOVE_ENTRY_BACK 9  // the first entry of the stripe
`define MOVE_ROW_ON 10  // the next weight row
`define MOVE_ROW_BACK 11  // the first weight row of the block
`define MOVE_ROW_KEEP 12  // the next weight row is the first of the next block
`define MOVE_FREE_ENTRY 13  // the last use of the entry
`define MOVE_FREE_ROWS 15:14  // number of weight rows used for the last time
`define MOVE_AGAIN 16  // the same sums are output again, another byte of them
`define MOVE_WHOLE 17  // this sweep completes all pixels of its channels
`define MOVE_OVER 18  // the last issue of the layer
`define MOVE_BITS 19

// The next issue of the array, from loop_nest to issue_credits and issue_stage. Uses TW, WW
// (widths of counters of tile entries and weight rows) and ZW.
`define ISSUE_ENTRY (0)+:(TW)  // tile entry it reads, a running count
`define ISSUE_WROW (TW)+:(WW)  // weight row it reads, a running count
`define ISSUE_PROW (TW+WW)+:(11)  // row of its parameters, relative to the layer's first one
`define ISSUE_BANK (11+TW+WW)+:(ZW)  // bank of its weights and parameters (depthwise), of its weights (fully connected)
`define ISSUE_OPENS (11+TW+WW+ZW)  // first issue of a sweep over the pixels of a stripe
`define ISSUE_ENDS (12+TW+WW+ZW)  // last issue of the sweep
`define ISSUE_FIRST (13+TW+WW+ZW)  // first reduction step
`define ISSUE_LAST (14+TW+WW+ZW)  // last reduction step: its sums are output
`define ISSUE_PLANE (15+TW+WW+ZW)+:(2)  // out32: index of the byte of the sums
`define ISSUE_IDX (17+TW+WW+ZW)+:(6)  // index in the accumulators
`define ISSUE_POS (23+TW+WW+ZW)+:(6)  // position of the first pixel in the stripe
`define ISSUE_WIDTH (29+TW+WW+ZW)+:(7)  // pixels of a line of the stripe
`define ISSUE_LINES (36+TW+WW+ZW)+:(3)  // lines of the stripe; depthwise rows: channels of the row
`define ISSUE_GX (39+TW+WW+ZW)+:(10)  // first column of the stripe in the computed grid
`define ISSUE_GY (49+TW+WW+ZW)+:(9)  // first line of the stripe in the computed grid
`define ISSUE_END_X (58+TW+WW+ZW)  // depthwise rows: the last row of a line
`define ISSUE_END_Y (59+TW+WW+ZW)  // depthwise rows: the last line
`define ISSUE_CHAN (60+TW+WW+ZW)+:(10)  // first output channel
`define ISSUE_NZ (70+TW+WW+ZW)+:(ZW+1)  // kernel modules in use; depthwise: lines
`define ISSUE_TWO (70+TW+WW+ZW+ZW+1)  // also covers the depthwise line below
`define ISSUE_TWO_END (71+TW+WW+ZW+ZW+1)  // the line below is the last one
`define ISSUE_WHOLE (72+TW+WW+ZW+ZW+1)  // see move
`define ISSUE_FREE_ENTRIES (73+TW+WW+ZW+ZW+1)+:(2)  // tile entries released by it
`define ISSUE_FREE_ROWS (75+TW+WW+ZW+ZW+1)+:(2)  // weight rows released by it
`define ISSUE_ENTRY_ON (77+TW+WW+ZW+ZW+1)  // the next issue reads the tile entry behind
`define ISSUE_WROW_ON (78+TW+WW+ZW+ZW+1)  // the next issue reads the weight row behind
`define ISSUE_PROW_ON (79+TW+WW+ZW+ZW+1)  // the next issue uses the parameter row behind
`define ISSUE_BITS (80+TW+WW+ZW+ZW+1)

// An issue in registers, for lane_ctrl and column_skew. Uses TE and WA (bits of a tile entry, of
// a weight row) and ZW.
`define STAGED_ENTRY (0)+:(TE)  // tile entry
`define STAGED_WROW (TE)+:(WA)  // weight row
`define STAGED_WSEL (TE+WA)+:(ZW)  // bank of its weights (depthwise, fully connected)
`define STAGED_TAPS (TE+WA+ZW)+:(9)  // taps in use, one bit per column
`define STAGED_POS (9+TE+WA+ZW)+:(6)  // position of the first pixel in the stripe
`define STAGED_WIDTH (15+TE+WA+ZW)+:(7)  // pixels of a line of the stripe
`define STAGED_LINES (22+TE+WA+ZW)+:(3)  // lines of the stripe; depthwise rows: channels of the row
`define STAGED_LEFT (25+TE+WA+ZW)  // the stripe begins at the left edge of the map
`define STAGED_RIGHT (26+TE+WA+ZW)  // it touches the right edge
`define STAGED_RIGHT_AT (27+TE+WA+ZW)+:(6)  // its first column at the right edge
`define STAGED_TOP (33+TE+WA+ZW)  // it touches the upper edge
`define STAGED_TOP_AT (34+TE+WA+ZW)+:(2)  // its last line at the upper edge
`define STAGED_BOT (36+TE+WA+ZW)  // it touches the lower edge
`define STAGED_BOT_AT (37+TE+WA+ZW)+:(2)  // its first line at the lower edge
`define STAGED_NZ (39+TE+WA+ZW)+:(ZW+1)  // kernel modules in use
`define STAGED_TWO (39+TE+WA+ZW+ZW+1)  // lanes from 64 on are the line below
`define STAGED_TWO_END (40+TE+WA+ZW+ZW+1)  // the line below is at the lower edge
`define STAGED_AGAIN (41+TE+WA+ZW+ZW+1)  // a repeated last step, which does not count
`define STAGED_BITS (42+TE+WA+ZW+ZW+1)

// Description of a group (depthwise: a row) for the write-back. Uses ZW = log2(N_Z).
`define JOB_LINES (0)+:(3)  // lines of the stripe
`define JOB_WIDTH (3)+:(7)  // pixels of a line of the stripe
`define JOB_GY (10)+:(9)  // first line of the stripe in the computed grid
`define JOB_GX (19)+:(10)  // first column of the stripe in the computed grid
`define JOB_NZ (29)+:(ZW+1)  // output channels of the group
`define JOB_CHAN (29+ZW+1)+:(10)  // first output channel of the group
`define JOB_PLANE (39+ZW+1)+:(2)  // out32: index of the byte of the sums
`define JOB_WHOLE (41+ZW+1)  // completes its channels
`define JOB_BITS (42+ZW+1)

// Metadata of a group until its sums are drained. Uses ZW and PRW.
`define META_JOB (0)+:(`JOB_BITS)  // for the write-back
`define META_PBANK (`JOB_BITS)+:(ZW)  // bank of the parameters (depthwise, fully connected)
`define META_PROW (`JOB_BITS+ZW)+:(PRW)  // row of the parameters
`define META_BITS (`JOB_BITS+ZW+PRW)

// Tag that travels with an issue to the accumulators. Uses ZW and PRW.
`define TAG_META (0)+:(`META_BITS)  // metadata of the group
`define TAG_POS (`META_BITS)+:(6)  // position of the first pixel in the stripe
`define TAG_END (6+`META_BITS)  // last issue of a group or row
`define TAG_LAST (7+`META_BITS)  // last reduction step
`define TAG_FIRST (8+`META_BITS)  // first reduction step
`define TAG_IDX (9+`META_BITS)+:(6)  // index in the accumulators
`define TAG_BITS (15+`META_BITS)

// Control of a column of the array, a cycle after its memories are read. Uses L = N_Y * N_Z and
// ZW.
`define COLUMN_TAPS (0)+:(9)  // taps in use, one bit per column
`define COLUMN_WSEL (9)+:(ZW)  // weight bank (depthwise, fully connected)
`define COLUMN_POS (9+ZW)+:(6)  // position of the first pixel in the stripe
`define COLUMN_COUNT (15+ZW)+:(8)  // number of valid lanes
`define COLUMN_BOT (23+ZW)+:(L)  // lanes at the lower edge of the map
`define COLUMN_TOP (23+ZW+L)+:(L)  // lanes at the upper edge
`define COLUMN_RIGHT (23+ZW+L+L)+:(L)  // lanes at the right edge
`define COLUMN_LEFT (23+ZW+L+L+L)+:(L)  // lanes at the left edge
`define COLUMN_VALID (23+ZW+L+L+L+L)+:(L)  // valid lanes
`define COLUMN_BITS (23+ZW+L+L+L+L+L)

// Entry of the activation table in the post lanes. Entry 0: its start; entries 1 to 15: the
// minimum start from there on, which is the entry's own start whenever the entry is selected.
`define SEGMENT_START 35:0  // start, signed
`define SEGMENT_MUL 53:36  // magnitude of the multiplier, shifted left by 3 minus the lowest two bits of the shift
`define SEGMENT_NEG 54  // the multiplier is negative
`define SEGMENT_SHIFT 58:55  // shift in steps of four bits, 13 at most; three more bits are dropped
`define SEGMENT_ADD 66:59  // addend
`define SEGMENT_BITS 67

// Part of the input map that a stripe needs. Uses TB = log2 of the bytes of a word.
`define STRIPE_LAST (0)  // last stripe of the map
`define STRIPE_INDEX (1)+:(3)  // index of the first line, see fill_taps
`define STRIPE_LINES (4)+:(3)  // lines of the stripe
`define STRIPE_REACH (7)+:(10)  // lines read, less one
`define STRIPE_FIRST (17)+:(10-TB)  // first word read of a line
`define STRIPE_FINAL (17+10-TB)+:(10-TB)  // last word read of a line
`define STRIPE_PRE (17+10-TB+10-TB)  // the first word provides only the byte before the stripe
`define STRIPE_POST (18+10-TB+10-TB)  // the last word provides only bytes after those of the previous word
`define STRIPE_SHIFT (19+10-TB+10-TB)+:(TB)  // first byte used of a word
`define STRIPE_ROW (19+10-TB+10-TB+TB)+:(15)  // AI RAM row of the first line
// dilation: AI RAM rows from the last line of a tap row to the first one of the next
`define STRIPE_HOP (34+10-TB+10-TB+TB)+:(15)
`define STRIPE_FLAT_X (49+10-TB+10-TB+TB)+:(4)  // flat: first column of the stripe
`define STRIPE_FLAT_PIXELS (53+10-TB+10-TB+TB)+:(7)  // flat: pixels of the stripe
`define STRIPE_BITS (60+10-TB+10-TB+TB)

// Description of a word of the AI RAM by fill_seq: destination of its bytes in the tile buffer.
// Uses TB = log2 of the bytes of a word, TW, the width of an entry counter.
`define NOTE_VECTOR_END (0)  // fully connected: last word of the vector
`define NOTE_BYTES (1)+:(TB+1)  // fully connected: valid bytes; flat: pixels
`define NOTE_LINE_END (1+TB+1)  // last word of its line: it waits for no other
`define NOTE_CHANS (2+TB+1)+:(3)  // 1x1: channels in the word
`define NOTE_CHMOD (5+TB+1)+:(4)  // 1x1: channels already in the entry
// line of the stripe for each of the three tap rows, 2 bits each; flat: the first pixel
`define NOTE_SLOTS (9+TB+1)+:(6)
`define NOTE_KY_ON (15+TB+1)+:(3)  // tap rows that the line feeds
`define NOTE_PLACE (18+TB+1)+:(8-TB)  // position of the bytes in a line of the stripe, in quarters of a word
`define NOTE_BASE (18+TB+1+8-TB)+:(TB)  // first of these bytes in the word
`define NOTE_EMIT (18+TB+1+8-TB+TB)  // the word provides bytes for the entry
`define NOTE_DONE (19+TB+1+8-TB+TB)+:(5)  // entries completed by this word
`define NOTE_ENTRY (24+TB+1+8-TB+TB)+:(TW)  // entry that the word belongs to
`define NOTE_KY_BELOW (24+TB+1+8-TB+TB+TW)+:(3)  // tap rows that the line below feeds, if it is in the word
`define NOTE_BITS (27+TB+1+8-TB+TB+TW)

`endif
