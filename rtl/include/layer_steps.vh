// SPDX-License-Identifier: Apache-2.0
//
// Names of the columns of layer_steps' table: one bit per operand, result and check; registers of the file
// have their number above the bits of the other operands.

// operands, and destination in the file: width, flag of a register of the file, its number
`define STEP_OPERAND_BITS 28
`define STEP_FILE 27
`define STEP_NUMBER 26:23
`define STEP_SOURCES 22:0
`define NO_OPERAND 28'd0

// left operands: slices of the product, fields of the layer
`define LEFT_P 28'h0000001  // the product
`define LEFT_HIGH 28'h0000002  // ... from bit 18 on
`define LEFT_NINTH 28'h0000004  // ... from bit 21 on
`define LEFT_PACKED 28'h0000008  // ... in rows of all banks
`define LEFT_C2 28'h0000010  // twice the input channels less one: shifts by multiplication
`define LEFT_O2 28'h0000020  // twice the output channels less one
`define LEFT_H 28'h0000040  // lines
`define LEFT_OH 28'h0000080  // lines of the output
`define LEFT_W 28'h0000100  // width
`define LEFT_OW 28'h0000200  // width of the output
`define LEFT_O 28'h0000400  // output channels
`define LEFT_SRC 28'h0000800  // first row of the input
`define LEFT_SRC2 28'h0001000  // ... of the second map
`define LEFT_DST 28'h0002000  // ... of the output
`define LEFT_LOADS 28'h0004000  // weight loads less one
`define LEFT_TERM 28'h0008000  // constant term, low half
`define LEFT_TERM_HIGH 28'h0010000  // ... high half
`define LEFT_BYTES 28'h0020000  // weights of an input channel, in bytes
`define LEFT_ONE 28'h0040000  // 1

// right operands
`define RIGHT_P 28'h0000001  // the product
`define RIGHT_C 28'h0000002  // input channels
`define RIGHT_ONE 28'h0000004  // 1
`define RIGHT_COEF 28'h0000008  // output channels of a load
`define RIGHT_ICS 28'h0000010  // rows from a channel group of the input to the next
`define RIGHT_OCS 28'h0000020  // ... of the output
`define RIGHT_IRL 28'h0000040  // rows of a line of the input
`define RIGHT_ORL 28'h0000080  // ... of the output
`define RIGHT_PLANES 28'h0000100  // groups of an output channel of 32 bits
`define RIGHT_IN_PITCH 28'h0000200  // 2^17 / channels in a row of the input
`define RIGHT_OUT_PITCH 28'h0000400  // ... of the output
`define RIGHT_BANKS 28'h0000800  // 2^17 / N_Z
`define RIGHT_NINTH_2 28'h0001000  // 2^17 / 9: of twice a number
`define RIGHT_NINTH 28'h0002000  // 2^18 / 9: exact below 2^15
`define RIGHT_NINTH_LONG 28'h0004000  // 2^21 / 9: exact below 2^21
`define RIGHT_S 28'h0008000  // reduction steps
`define RIGHT_EIGHT 28'h0010000  // 8
`define RIGHT_REM 28'h0020000  // remainder of the last division by nine
`define RIGHT_PART 28'h0040000  // a partial row
`define RIGHT_PAD 28'h0080000  // padding on both sides of a window's map
`define RIGHT_KERNEL 28'h0100000  // size of a window less one
`define RIGHT_STRIDE 28'h0200000  // from one window to the next
`define RIGHT_PSIZE 28'h0400000  // bytes from one load to the next

// registers of the file
`define T_INB 28'h8000000  // bytes of the input map
`define T_QUOTIENT 28'h8800000  // a quotient; groups of output channels
`define T_IN_GROUPS 28'h9000000  // channel groups of the input less one
`define T_OWN 28'h9800000  // rows of one of them
`define T_OUT_GROUPS 28'ha000000  // channel groups of the output less one
`define T_OUT_OWN 28'ha800000  // rows of one of them
`define T_ROWS 28'hb000000  // rows of a map; room for steps of a window
`define T_IN_END 28'hb800000  // row after the input
`define T_IN_END2 28'hc000000  // ... after the second map
`define T_UNIT 28'hc800000  // bytes of an output channel's weights
`define T_BLOCK 28'hd000000  // rows of the weight buffer for a block
`define T_DST 28'hd800000  // first row of the output
`define T_STOP 28'he000000  // row after the output
`define T_REST 28'he800000  // channels of the last load less one
`define T_LO 28'hf000000  // location of the pixels: first row
`define T_HI 28'hf800000  // ... row after it

// operation: product, or the left operand passed on, the right one inverted, a carry in
`define STEP_WHAT_BITS 4
`define STEP_MUL 3
`define STEP_PASS 2
`define STEP_INVERTED 1
`define STEP_CARRY 0
`define MUL 4'b1000
`define ADD 4'b0000
`define SUB 4'b0011
`define SUB_1 4'b0010  // one less; carry: left > right
`define GE 4'b0111  // left passed on; carry: left >= right
`define GT 4'b0110  // ... left > right

// results besides those of the file
`define STEP_RESULT_BITS 18
`define NO_RESULT 18'd0
`define TO_INB 18'h00001  // bytes of the input map
`define TO_REM 18'h00002  // remainder of a division by nine, of the channels
`define TO_REM_FC 18'h00004  // ... of the right operand
`define TO_S 18'h00008  // reduction steps
`define TO_G 18'h00010  // groups of output channels
`define TO_ICS 18'h00020  // rows per channel group of the input, unless word 7 gives them
`define TO_OCS 18'h00040  // ... of the output, word 8
`define TO_BELOW 18'h00080  // the left operand is below the right one
`define TO_BELOW_TOO 18'h00100  // ... and was before
`define TO_TOUCH 18'h00200  // overlap with the pixels
`define TO_BEHIND 18'h00400  // groups of the output are no farther apart than those of the input
`define TO_WLEN 18'h00800  // bytes of a load
`define TO_WLAST 18'h01000  // bytes of the last load
`define TO_ADDC 18'h02000  // constant term, low half
`define TO_ADDC_HIGH 18'h04000  // ... high half
`define TO_WROWS 18'h08000  // rows of the weight buffer for all weights
`define TO_B 18'h10000  // groups of a block: the row repeats while it grows
`define TO_SIDE 18'h20000  // columns of the windows follow

// checks: violations
`define STEP_CHECK_BITS 15
`define NO_CHECK 15'd0
`define CHECK_NEAR_IN 15'h0001  // channel groups of the input overlap
`define CHECK_NEAR_OUT 15'h0002  // ... of the output
`define CHECK_SPAN 15'h0004  // the row count overflows
`define CHECK_LIMIT 15'h0008  // a map ends beyond the AI RAM
`define CHECK_MEET 15'h0010  // the output overlaps an input
`define CHECK_FEW 15'h0020  // the last load has no channel
`define CHECK_OVER 15'h0040  // ... has more than the others
`define CHECK_HUGE 15'h0080  // a neuron has more weights than a load
`define CHECK_LONG 15'h0100  // a load is longer than para_size
`define CHECK_KEPT_END 15'h0200  // kept weights end beyond the AI RAM
`define CHECK_ROOM 15'h0400  // a group does not fit the weight buffer
`define CHECK_ROOM_DW 15'h0800  // ... the weights of a depthwise layer
`define CHECK_WINDOW 15'h1000  // a window is larger than its map
`define CHECK_NEXT 15'h2000  // one more window would fit
`define CHECK_LAST 15'h4000  // the last window does not fit
