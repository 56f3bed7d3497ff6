// SPDX-License-Identifier: Apache-2.0
//
// mac_stage: operands, the sign-gated MAC array and its accumulators.
//
// How it works: each of nine instances of operand_column selects the operands of its units from a tile word
// and a weight row; mac_array adds up the products along the columns. The tag of an issue is delayed in
// mac_tags until its sums arrive, which are added up in the accumulators; those of a group's last step leave,
// with SUM_PLANES again for each of the other bytes of 32-bit sums. With FP16_LANES units are lent to
// fp16_task, through fp16_share, during its layers.
// Handshake: a fixed pipeline, a cycle after the memories' read enables. Parameters are read (param_re) a
// cycle before out_valid.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module mac_stage #(
    // array: pixels and output channels; bits of a weight, bytes of a tile word, channels whose parameters
    // fit, 1: operands of gated products do not toggle
    parameter N_Y         = 4,
    parameter N_Z         = 4,
    parameter WEIGHT_BITS = 16,
    parameter TILE_W      = 64,
    parameter PARAM_CHANS = 2048,
    parameter GATE        = 1,
    // lanes for products of float16 matrices, columns and rows of a group of them
    parameter FP16_LANES  = 0,
    parameter FP16_COLS   = 1,
    parameter FP16_ROWS   = 1,
    // 1: finished sums can leave again
    parameter SUM_PLANES  = 0,
    // width of a parameter row counter
    parameter PRW         = `PROW_BITS,
    // derived, not to be set: lanes, widths of a bank index, a parameter row, the sum of pixels
    parameter L           = N_Y * N_Z,
    parameter ZW          = $clog2(N_Z),
    parameter PAW         = $clog2(PARAM_CHANS / N_Z),
    parameter XW          = 29
) (
    // clock and synchronous reset
    input  wire                         clk,
    input  wire                         rst,
    // layer
    input  wire [       `DESC_BITS-1:0] desc,
    // columns: control, tile words, weights
    input  wire [   9*`COLUMN_BITS-1:0] control,
    input  wire [         8*TILE_W-1:0] row_0,
    input  wire [         8*TILE_W-1:0] row_1,
    input  wire [         8*TILE_W-1:0] row_2,
    input  wire [         8*TILE_W-1:0] row_3,
    input  wire [         8*TILE_W-1:0] row_4,
    input  wire [         8*TILE_W-1:0] row_5,
    input  wire [         8*TILE_W-1:0] row_6,
    input  wire [         8*TILE_W-1:0] row_7,
    input  wire [         8*TILE_W-1:0] row_8,
    input  wire [9*N_Z*WEIGHT_BITS-1:0] weights,
    // mantissas of a product of float16 matrices, and their products
    input  wire                         lend_valid,
    input  wire [     11*FP16_ROWS-1:0] lend_a,
    input  wire [     11*FP16_COLS-1:0] lend_b,
    output wire [    33*FP16_LANES+0:0] products,
    // an issue was made, with its tag; bit 1: the next kept sums leave again
    input  wire [                  1:0] issued,
    input  wire [        `TAG_BITS-1:0] issue_tag,
    // parameters of the group that leaves
    output wire                         param_re,
    output wire [              PAW-1:0] param_row,
    // to the post lanes: sums, sums of pixels, position in the stripe, end of the group, its bank and job
    output wire                         out_valid,
    output wire [             L*36-1:0] out_sum,
    output wire [             L*XW-1:0] out_xsum,
    output wire [                  5:0] out_pos,
    output wire                         out_end,
    output wire [               ZW-1:0] out_bank,
    output wire [        `JOB_BITS-1:0] out_job,
    // no sums in flight
    output wire                         idle,
    // multiplications of each column in this cycle: issued, gated
    output wire [                 71:0] macs_issued,
    output wire [                 71:0] macs_gated
);

  localparam N_X = 9;  // columns: nine taps, or nine channels
  localparam PW = WEIGHT_BITS + 12;  // 9 * 255 * (2^WEIGHT_BITS - 1) and a sign

  // fields of the layer, registered because they reach every operand; stable from the cycle before the
  // layer's first operand on
  wire [1:0] mode = desc[`DESC_MODE];
  wire [1:0] operation = desc[`DESC_EWOP];
  wire dwrow_mode = mode == `MODE_DWROW;
  reg sgn, dw, taps_on, by_chan, one_bank;
  reg best, least, multiply;  // element-wise layers: maximum or minimum, product
  reg [2:0] swl;
  reg [7:0] pad;
  always @(posedge clk) begin
    sgn      <= desc[`DESC_SIN];
    dw       <= desc[`DESC_DW];
    taps_on  <= mode == `MODE_TAPS || dwrow_mode;
    by_chan  <= dwrow_mode;
    one_bank <= mode == `MODE_FC || (mode == `MODE_TAPS && desc[`DESC_DW]);
    best     <= desc[`DESC_EW] && operation[1];
    least    <= operation[0];
    multiply <= desc[`DESC_EW] && operation == 2'd1;
    swl      <= dwrow_mode ? 3'd4 + {1'b0, desc[`DESC_IP]} : desc[`DESC_SWL];
    pad      <= desc[`DESC_PAD];
  end

  // ---- operands
  wire [8*TILE_W-1:0] rows[0:8];
  assign rows[0] = row_0;
  assign rows[1] = row_1;
  assign rows[2] = row_2;
  assign rows[3] = row_3;
  assign rows[4] = row_4;
  assign rows[5] = row_5;
  assign rows[6] = row_6;
  assign rows[7] = row_7;
  assign rows[8] = row_8;

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_col
      localparam integer KY = t / 3;
      localparam integer KX = t % 3;
      wire [`COLUMN_BITS-1:0] now = control[t*`COLUMN_BITS+:`COLUMN_BITS];
      wire [8:0] taps = now[`COLUMN_TAPS];
      wire [L-1:0] valid;
      wire [8*L-1:0] pixel;
      wire [N_Z*WEIGHT_BITS-1:0] weight;
      wire [7:0] issued_t;
      wire [7:0] gated_t;
      wire unused_taps = &{1'b0, taps};
      // the choice of an element-wise layer uses the pixel of the last column twice
      wire twice = t == 7 && best && taps[8];
      operand_column #(
          .N_Y        (N_Y),
          .N_Z        (N_Z),
          .WEIGHT_BITS(WEIGHT_BITS),
          .TILE_W     (TILE_W)
      ) u_operand (
          .clk(clk),
          .rst(rst),
          .ky(KY[1:0]),
          .kx(KX[1:0]),
          .dw(dw),
          .one_bank(one_bank),
          .by_chan(by_chan),
          .taps(taps_on),
          .sgn(sgn),
          .pad(pad),
          .swl(swl),
          .tap_on(taps[t] || twice),
          .counts(!twice),
          .mute(t == 6 && multiply),
          .pos(now[`COLUMN_POS]),
          .wsel(now[`COLUMN_WSEL]),
          .lane_valid(now[`COLUMN_VALID]),
          .lane_left(now[`COLUMN_LEFT]),
          .lane_right(now[`COLUMN_RIGHT]),
          .lane_top(now[`COLUMN_TOP]),
          .lane_bot(now[`COLUMN_BOT]),
          .lane_count(now[`COLUMN_COUNT]),
          .row(rows[t]),
          .wrow(weights[t*N_Z*WEIGHT_BITS+:N_Z*WEIGHT_BITS]),
          .valid(valid),
          .pixel(pixel),
          .weight(weight),
          .macs_issued(issued_t),
          .macs_gated(gated_t)
      );
    end
  endgenerate

  // each vector in a single assignment
  wire [9*L-1:0] op_valid;
  wire [9*L*8-1:0] op_pixel;
  wire [9*N_Z*WEIGHT_BITS-1:0] op_weight;
  assign op_valid = {
    g_col[8].valid,
    g_col[7].valid,
    g_col[6].valid,
    g_col[5].valid,
    g_col[4].valid,
    g_col[3].valid,
    g_col[2].valid,
    g_col[1].valid,
    g_col[0].valid
  };
  assign op_pixel = {
    g_col[8].pixel,
    g_col[7].pixel,
    g_col[6].pixel,
    g_col[5].pixel,
    g_col[4].pixel,
    g_col[3].pixel,
    g_col[2].pixel,
    g_col[1].pixel,
    g_col[0].pixel
  };
  assign op_weight = {
    g_col[8].weight,
    g_col[7].weight,
    g_col[6].weight,
    g_col[5].weight,
    g_col[4].weight,
    g_col[3].weight,
    g_col[2].weight,
    g_col[1].weight,
    g_col[0].weight
  };
  assign macs_issued = {
    g_col[8].issued_t,
    g_col[7].issued_t,
    g_col[6].issued_t,
    g_col[5].issued_t,
    g_col[4].issued_t,
    g_col[3].issued_t,
    g_col[2].issued_t,
    g_col[1].issued_t,
    g_col[0].issued_t
  };
  assign macs_gated = {
    g_col[8].gated_t,
    g_col[7].gated_t,
    g_col[6].gated_t,
    g_col[5].gated_t,
    g_col[4].gated_t,
    g_col[3].gated_t,
    g_col[2].gated_t,
    g_col[1].gated_t,
    g_col[0].gated_t
  };

  // ---- element-wise products: the pixels of column 5 wait for those of column 6, a cycle later
  reg [8*L-1:0] other;
  genvar p;
  generate
    for (p = 0; p < L; p = p + 1) begin : g_other
      wire [7:0] pixel = g_col[5].pixel[8*p+:8];
      always @(posedge clk) begin
        if (!multiply || sgn && pixel[7]) other[8*p+:8] <= 8'd0;
        else other[8*p+:8] <= pixel;
      end
    end
  endgenerate

  // ---- lent units
  wire [9*L-1:0] use_valid;
  wire [9*L*8-1:0] use_pixel;
  wire use_sgn;
  wire [9*N_Z*WEIGHT_BITS-1:0] use_weight;
  wire [9*L*19-1:0] unit_products;
  generate
    if (FP16_LANES != 0) begin : g_fp16
      assign use_sgn = sgn && !desc[`DESC_FP16];  // mantissas are unsigned
      fp16_share #(
          .LANES(FP16_LANES),
          .COLS (FP16_COLS),
          .ROWS (FP16_ROWS),
          .N_Y  (N_Y),
          .N_Z  (N_Z)
      ) u_share (
          .lends(desc[`DESC_FP16]),
          .lend_valid(lend_valid),
          .lend_a(lend_a),
          .lend_b(lend_b),
          .own_valid(op_valid),
          .own_pixel(op_pixel),
          .own_weight(op_weight),
          .valid(use_valid),
          .pixel(use_pixel),
          .weight(use_weight),
          .unit_products(unit_products),
          .products(products[33*FP16_LANES-1:0])
      );
    end else begin : g_own
      assign use_valid  = op_valid;
      assign use_pixel  = op_pixel;
      assign use_sgn    = sgn;
      assign use_weight = op_weight;
      wire unused_lends = &{1'b0, lend_valid, lend_a, lend_b, unit_products};
    end
  endgenerate
  assign products[33*FP16_LANES] = 1'b0;  // the vector is never empty

  // ---- array
  wire [L*PW-1:0] psum;
  wire [L*12-1:0] xsum;
  mac_array #(
      .N_Y        (N_Y),
      .N_Z        (N_Z),
      .WEIGHT_BITS(WEIGHT_BITS),
      .GATE       (GATE),
      .TAP        ((FP16_LANES != 0) ? 1 : 0)
  ) u_array (
      .clk(clk),
      .rst(rst),
      .valid(use_valid),
      .pixel(use_pixel),
      .sgn(use_sgn),
      .weight(use_weight),
      .best(best),
      .least(least),
      .own(other),
      .psum(psum),
      .xsum(xsum),
      .product(unit_products)
  );

  // ---- tag of the sums: 1 cycle memory, N_X + 2 cycles array
  wire sums_valid, again_now, tags_idle;
  wire [`TAG_BITS-1:0] tag, tag_next;
  mac_tags #(
      .TW        (`TAG_BITS),
      .DELAY     (N_X + 3),
      .SUM_PLANES(SUM_PLANES)
  ) u_tags (
      .clk      (clk),
      .rst      (rst),
      .issued   (issued),
      .issue_tag(issue_tag),
      .valid    (sums_valid),
      .tag      (tag),
      .tag_next (tag_next),
      .again    (again_now),
      .idle     (tags_idle)
  );

  // ---- accumulators
  wire [`META_BITS-1:0] tag_meta = tag[`TAG_META];
  wire [`META_BITS-1:0] rd_meta, out_meta;
  wire [PRW-1:0] rd_prow = rd_meta[`META_PROW];
  wire keeps = SUM_PLANES != 0 && desc[`DESC_OUT32];
  wire [1:0] out_plane;
  reg [`JOB_BITS-1:0] job;
  // the last byte of its last sums completes a map
  always @* begin
    job = out_meta[`META_JOB];
    job[`JOB_PLANE] = job[`JOB_PLANE] | out_plane;
    job[`JOB_WHOLE] = job[`JOB_WHOLE] && !(keeps && out_plane != 2'd3);
  end
  assign param_row = rd_prow[PAW-1:0];
  assign out_bank  = out_meta[`META_PBANK];
  assign out_job   = job;
  assign idle      = tags_idle && !out_valid;

  accumulator #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .PW(PW),
      .MW(`META_BITS),
      .XW(XW),
      .SUM_PLANES(SUM_PLANES)
  ) u_acc (
      .clk(clk),
      .rst(rst),
      .by_lane(dw),
      .keeps(keeps),
      .in_again(again_now),
      .in_valid(sums_valid),
      .in_psum(psum),
      .in_xsum(xsum),
      .in_idx(tag[`TAG_IDX]),
      .next_first(tag_next[`TAG_FIRST]),
      .in_last(tag[`TAG_LAST]),
      .in_end(tag[`TAG_END]),
      .in_pos(tag[`TAG_POS]),
      .in_meta(tag_meta),
      .out_valid(out_valid),
      .out_sum(out_sum),
      .out_xsum(out_xsum),
      .out_pos(out_pos),
      .out_end(out_end),
      .out_meta(out_meta),
      .out_plane(out_plane),
      .rd_valid(param_re),
      .rd_meta(rd_meta)
  );

  generate
    if (WEIGHT_BITS != 8 && WEIGHT_BITS != 16) begin : g_illegal_bits
      ILLEGAL_WEIGHT_BITS_8_OR_16 u_illegal_bits ();
    end
    if (FP16_LANES != 0 && WEIGHT_BITS != 16) begin : g_illegal_lanes
      ILLEGAL_FP16_LANES_WITHOUT_16_BITS u_illegal_lanes ();
    end
    if (N_Y > TILE_W) begin : g_illegal_word
      ILLEGAL_N_Y_BEYOND_A_TILE_WORD u_illegal_word ();
    end
  endgenerate

  wire unused = &{1'b0, desc, out_meta, rd_meta, rd_prow, tag, tag_next};

endmodule

`resetall
