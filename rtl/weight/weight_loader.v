// SPDX-License-Identifier: Apache-2.0
//
// weight_loader: turns the weight stream into words of the weight buffer, and sums the weights.
//
// How it works: weights come in the KPU's order, channel by channel. A word takes nine of them (a
// 3x3 kernel of one input channel, or nine input channels of a 1x1 kernel), the last word of a
// channel what is left; a depthwise 1x1 kernel is one weight on the middle tap. Word s of channel o
// goes to bank o mod N_Z; fully connected layers, which use every weight once, deal their words
// over the banks in turn. Once the last word of a channel is in, weight_constant makes its constant
// ((arg_w * sw) >> shr_w) + arg_add * n, which is stored with the parameters 14 cycles after that word
// came at the latest; the sums of an issue that its row allows meet it in the cycle after that.
// A layer with kept weights takes them from the AI RAM, in pieces of 16 bytes, instead of the bus.
// A product of float16 matrices has no constants, and takes no parameter rows.
// Rows are a ring: a word waits until its row was released. wrow_filled counts rows whose words
// are all there.
// Handshake: start takes a descriptor when busy is low; the stream waits for room.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_loader #(
    // bus width, banks, bits of a weight
    parameter AHB_W       = 32,
    parameter N_Z         = 4,
    parameter WEIGHT_BITS = 16,
    // weights may be kept in the AI RAM
    parameter KEEP        = 0,
    // rows of the weight buffer and of the parameter buffer
    parameter WBUF_ROWS   = 1024,
    parameter PAR_ROWS    = 2048 / N_Z,
    // widths of the row counters, of addresses, of a bank number
    parameter WW          = $clog2(WBUF_ROWS) + 2,
    parameter PRW         = `PROW_BITS,
    parameter AW          = $clog2(WBUF_ROWS),
    parameter PAW         = $clog2(PAR_ROWS),
    parameter ZW          = $clog2(N_Z),
    parameter OW          = $clog2(AHB_W / 8),
    parameter CW          = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // next layer
    input  wire                     start,
    input  wire [   `DESC_BITS-1:0] desc,
    output wire                     busy,
    // weight stream of the DMAC
    input  wire                     weight_valid,
    output wire                     weight_ready,
    input  wire [        AHB_W-1:0] weight_data,
    input  wire [           OW-1:0] weight_off,
    input  wire [           CW-1:0] weight_cnt,
    // kept weights
    input  wire                     kept_valid,
    output wire                     kept_ready,
    input  wire [   `KEPT_BITS-1:0] kept,
    // rows released, rows complete (running counts); parameter rows released
    input  wire [           WW-1:0] wrow_freed,
    output reg  [           WW-1:0] wrow_filled,
    input  wire [          PRW-1:0] prow_freed,
    // word to the weight buffer
    output reg                      w_we,
    output reg  [           AW-1:0] w_row,
    output reg  [           ZW-1:0] w_bank,
    output wire [9*WEIGHT_BITS-1:0] w_data,
    // constant to the parameter buffer
    output wire                     kc_we,
    output wire [          PAW-1:0] kc_row,
    output wire [           ZW-1:0] kc_bank,
    output wire [             35:0] kc_data,
    // waiting for bytes of the bus (not for room)
    output wire                     starved
);

  localparam WB = WEIGHT_BITS;

  // ---- layer
  reg            run;
  reg  [    1:0] mode;
  reg            dw;
  reg            k3;
  reg            wide;
  reg            w_xor;
  reg            bare;
  reg            from_kept;
  reg  [   17:0] words;  // words of a channel
  reg  [    3:0] lastn;
  reg  [   10:0] n_o;
  reg  [   35:0] addc;
  wire           fc_mode = mode == `MODE_FC;
  wire           chan_mode = mode == `MODE_CHAN;

  // ---- position; words of the channel and channels behind this one
  reg            primed;  // position and size of the first word are there
  reg  [   10:0] o;
  reg  [   17:0] s;
  reg  [   17:0] s_top;
  reg            first;
  reg  [    3:0] count;  // weights of the word
  reg  [ ZW-1:0] bank;
  reg  [ WW-1:0] base;  // first row of the group
  reg  [ WW-1:0] row;
  reg  [PRW-1:0] prow;
  reg  [ ZW-1:0] pbank;

  // the last word of a channel: this one, the next one; the last channel; channels of one word
  reg s_last, next_last, o_last, single;
  wire           all_last = s_last && o_last;
  wire [    3:0] count_last = dw ? (k3 ? 4'd9 : 4'd1) : (chan_mode || fc_mode) ? lastn : 4'd9;
  wire [    3:0] count_next = next_last ? count_last : 4'd9;
  reg  [    4:0] bytes;
  wire [    4:0] bytes_n = wide ? {count_next, 1'b0} : {1'b0, count_next};
  wire [    4:0] bytes_next = all_last ? 5'd0 : bytes_n;
  wire [    3:0] count_first = (words == 18'd1) ? count_last : 4'd9;
  wire [ WW-1:0] row_used = row - wrow_freed;
  wire [PRW-1:0] prow_used = prow - prow_freed;
  wire           room = row_used < WBUF_ROWS[WW-1:0] && prow_used < PAR_ROWS[PRW-1:0];
  wire           constant_free;
  wire           ready = room && (constant_free || !s_last);
  wire           bus_go;
  wire           kept_go;
  wire           go = bus_go || kept_go;
  assign starved = run && primed && ready && !go;

  // a row is complete with the word of its last bank
  wire bank_last = bank == {ZW{1'b1}};
  wire       row_done = (dw || fc_mode) ? bank_last || (fc_mode ? all_last : o_last) : bank_last || o_last;

  wire [WW-1:0] one_row = {{(WW - 1) {1'b0}}, 1'b1};

  always @(posedge clk) begin
    if (rst) begin
      run    <= 1'b0;
      primed <= 1'b0;
      bank  <= {ZW{1'b0}};
      base  <= {WW{1'b0}};
      row   <= {WW{1'b0}};
      prow  <= {PRW{1'b0}};
      pbank <= {ZW{1'b0}};
    end else if (start) begin
      run    <= 1'b1;
      primed <= 1'b0;
      bank  <= {ZW{1'b0}};
      pbank <= {ZW{1'b0}};
    end else if (run && !primed) begin
      primed <= 1'b1;
    end else if (go) begin
      run <= !all_last;
      if (s_last && !bare) begin
        pbank <= o_last ? {ZW{1'b0}} : pbank + {{(ZW - 1) {1'b0}}, 1'b1};
        prow  <= (o_last || pbank == {ZW{1'b1}}) ? prow + {{(PRW - 1) {1'b0}}, 1'b1} : prow;
      end
      if (fc_mode) begin
        // words are dealt over the banks in turn
        bank <= all_last ? {ZW{1'b0}} : bank + {{(ZW - 1) {1'b0}}, 1'b1};
        row  <= row_done ? row + one_row : row;
        base <= row_done ? row + one_row : base;
      end else if (!s_last) begin
        row <= row + one_row;
      end else if (bank_last || o_last) begin
        // next group
        bank <= {ZW{1'b0}};
        row  <= row + one_row;
        base <= row + one_row;
      end else begin
        bank <= bank + {{(ZW - 1) {1'b0}}, 1'b1};
        row  <= base;
      end
    end
  end

  always @(posedge clk) begin
    if (run && !primed) begin
      s         <= words - 18'd1;
      s_top     <= words - 18'd1;
      o         <= n_o - 11'd1;
      count     <= count_first;
      bytes     <= wide ? {count_first, 1'b0} : {1'b0, count_first};
      first     <= 1'b1;
      s_last    <= words == 18'd1;
      next_last <= words == 18'd1 || words == 18'd2;
      o_last    <= n_o == 11'd1;
      single    <= words == 18'd1;
    end else if (go) begin
      s         <= s_last ? s_top : s - 18'd1;
      o         <= s_last ? o - 11'd1 : o;
      count     <= count_next;
      bytes     <= bytes_n;
      first     <= s_last;
      s_last    <= next_last;
      next_last <= next_last ? single : (s_last ? s_top == 18'd1 : s == 18'd2);
      o_last    <= s_last ? o == 11'd1 : o_last;
    end
  end

  always @(posedge clk) begin
    if (start) begin
      mode  <= desc[`DESC_MODE];
      dw    <= desc[`DESC_DW];
      k3    <= desc[`DESC_K3];
      wide  <= desc[`DESC_WIDE];
      w_xor <= desc[`DESC_WXOR];
      bare  <= desc[`DESC_FP16];
      from_kept <= desc[`DESC_KEPT];
      words <= desc[`DESC_DW] ? 18'd1 : desc[`DESC_S];
      lastn <= desc[`DESC_LASTN];
      n_o   <= desc[`DESC_O];
      addc  <= desc[`DESC_ADDC];
    end
  end

  // ---- the nine weights, of a window of bytes; a depthwise 1x1 kernel lies on the middle one
  wire one = dw && !k3;
  wire [8:0] on = one ? 9'h010 : ~(9'h1ff << count);  // weights that there are
  wire [143:0] win, bus_win, kept_win;
  wire [8:0] win_on;
  reg [9*WB-1:0] nine;
  genvar i;
  generate
    for (i = 0; i < 9; i = i + 1) begin : g_slot
      wire [15:0] two = win[16*i+:16];
      // with w_xor the upper bit of a byte is the other one
      wire [15:0] weight = (i == 4 && one) ? {wide ? win[15:8] : 8'd0, win[7] ^ w_xor, win[6:0]} :
          wide ? two : {8'd0, win[8*i+7] ^ w_xor, win[8*i+:7]};
      always @* nine[i*WB+:WB] = win_on[i] ? weight[WB-1:0] : {WB{1'b0}};
      if (WB == 8) begin : g_narrow
        wire unused_high = &{1'b0, weight[15:8]};
      end
    end

    if (AHB_W == 32) begin : g_group
      // bytes of the word in the cycle after go
      reg [8:0] on_q;
      always @(posedge clk) if (go) on_q <= on;
      assign win_on = on_q;
      assign w_data = nine;
      // as the other bytes, in the cycle after go
      if (KEEP != 0) begin : g_keep
        reg [143:0] kept_q;
        always @(posedge clk) if (kept_go) kept_q <= kept_win;
        assign win = from_kept ? kept_q : bus_win;
      end else begin : g_bus
        assign win = bus_win;
        wire unused_win = &{1'b0, kept_win};
      end
      byte_group #(
          .BYTES(18)
      ) u_group (
          .clk      (clk),
          .rst      (rst),
          .in_valid (weight_valid),
          .in_ready (weight_ready),
          .in_data  (weight_data),
          .in_off   (weight_off),
          .in_cnt   (weight_cnt),
          .run      (run && primed && !from_kept),
          .want     (bytes),
          .want_next(bytes_next),
          .ready    (ready),
          .done     (bus_go),
          .data     (bus_win)
      );
    end else begin : g_window
      localparam LVL_W = $clog2(18 + 2 * (AHB_W / 8) + 1);
      wire [LVL_W-1:0] level;
      reg  [ 9*WB-1:0] nine_q;
      assign bus_go = run && primed && !from_kept && ready && level >= {{(LVL_W - 5) {1'b0}}, bytes};
      always @(posedge clk) if (go) nine_q <= nine;
      assign win_on = on;
      assign win = from_kept ? kept_win : bus_win;
      assign w_data = nine_q;
      byte_gearbox #(
          .IN_BYTES (AHB_W / 8),
          .OUT_BYTES(18)
      ) u_gear (
          .clk     (clk),
          .rst     (rst),
          .flush   (1'b0),
          .in_valid(weight_valid),
          .in_ready(weight_ready),
          .in_data (weight_data),
          .in_off  (weight_off),
          .in_cnt  (weight_cnt),
          .avail   (level),
          .out_data(bus_win),
          .take    (bus_go ? bytes : 5'd0)
      );
      wire unused_next = &{1'b0, bytes_next};
    end

    if (KEEP != 0) begin : g_kept
      localparam KEPT_W = $clog2(18 + 2 * 16 + 1);
      wire [KEPT_W-1:0] kept_level;
      assign kept_go = run && primed && from_kept && ready && kept_level >= {{(KEPT_W - 5) {1'b0}}, bytes};
      byte_gearbox #(
          .IN_BYTES (16),
          .OUT_BYTES(18)
      ) u_kept (
          .clk     (clk),
          .rst     (rst),
          .flush   (1'b0),
          .in_valid(kept_valid),
          .in_ready(kept_ready),
          .in_data (kept[`KEPT_DATA]),
          .in_off  (kept[`KEPT_OFF]),
          .in_cnt  (kept[`KEPT_CNT]),
          .avail   (kept_level),
          .out_data(kept_win),
          .take    (kept_go ? bytes : 5'd0)
      );
    end else begin : g_no_kept
      assign kept_go = 1'b0;
      assign kept_win = 144'd0;
      assign kept_ready = 1'b0;
      wire unused_kept = &{1'b0, kept_valid, kept};
    end
  endgenerate

  reg q_valid, q_first, q_last, q_row_done;
  reg [PAW-1:0] q_prow;
  reg [ ZW-1:0] q_pbank;
  always @(posedge clk) begin
    if (rst) begin
      w_we        <= 1'b0;
      q_valid     <= 1'b0;
      q_row_done  <= 1'b0;
      wrow_filled <= {WW{1'b0}};
    end else begin
      w_we        <= go;
      q_valid     <= go;
      q_row_done  <= go && row_done;
      wrow_filled <= wrow_filled + {{(WW - 1) {1'b0}}, q_row_done};
    end
  end

  always @(posedge clk) begin
    if (go) begin
      w_row   <= row[AW-1:0];
      w_bank  <= bank;
      q_first <= first;
      q_last  <= s_last;
      q_prow  <= prow[PAW-1:0];
      q_pbank <= pbank;
    end
  end

  // ---- sum of the weights (30 bits: 1024 * 9 * 65535; a vector of 2 MiB: 37 bits) and constant
  // (kept apart: of several terms in one sum synthesis makes something larger)
  (* keep *)wire [  WB:0] pair_0;
  (* keep *)wire [  WB:0] pair_1;
  (* keep *)wire [  WB:0] pair_2;
  (* keep *)wire [  WB:0] pair_3;
  (* keep *)wire [WB+1:0] four_0;
  (* keep *)wire [WB+1:0] four_1;
  (* keep *)wire [WB+2:0] eight;
  assign pair_0 = {1'b0, w_data[0+:WB]} + {1'b0, w_data[WB+:WB]};
  assign pair_1 = {1'b0, w_data[2*WB+:WB]} + {1'b0, w_data[3*WB+:WB]};
  assign pair_2 = {1'b0, w_data[4*WB+:WB]} + {1'b0, w_data[5*WB+:WB]};
  assign pair_3 = {1'b0, w_data[6*WB+:WB]} + {1'b0, w_data[7*WB+:WB]};
  assign four_0 = {1'b0, pair_0} + {1'b0, pair_1};
  assign four_1 = {1'b0, pair_2} + {1'b0, pair_3};
  assign eight  = {1'b0, four_0} + {1'b0, four_1};

  reg r_valid, r_first, r_last, p_valid;
  reg [PAW-1:0] r_prow, p_prow;
  reg [ZW-1:0] r_pbank, p_pbank;
  reg  [WB+2:0] eight_q;
  reg  [WB-1:0] ninth_q;
  (* keep *)wire [WB+3:0] word_sum;
  assign word_sum = {1'b0, eight_q} + {4'd0, ninth_q};
  reg [36:0] sum;

  always @(posedge clk) begin
    if (rst) begin
      r_valid <= 1'b0;
      p_valid <= 1'b0;
    end else begin
      r_valid <= q_valid;
      p_valid <= r_valid && r_last && !bare;
    end
  end

  always @(posedge clk) begin
    if (q_valid) begin
      eight_q <= eight;
      ninth_q <= w_data[8*WB+:WB];
      r_first <= q_first;
      r_last  <= q_last;
      r_prow  <= q_prow;
      r_pbank <= q_pbank;
    end
    if (r_valid) begin
      sum     <= (r_first ? 37'd0 : sum) + {{(33 - WB) {1'b0}}, word_sum};
      p_prow  <= r_prow;
      p_pbank <= r_pbank;
    end
  end

  // a channel's last word waits until its sum can be multiplied
  wire scaling, constant_busy;
  wire [2:0] cycles;
  reg  [2:0] hold;
  assign constant_free = hold == 3'd0 && !scaling;
  always @(posedge clk) begin
    if (rst) hold <= 3'd0;
    else if (go && s_last && !bare) hold <= cycles - 3'd1;
    else if (hold != 3'd0) hold <= hold - 3'd1;
  end

  weight_constant #(
      .SERIAL(AHB_W == 32 ? 1 : 0),
      .PAW   (PAW),
      .ZW    (ZW)
  ) u_constant (
      .clk     (clk),
      .rst     (rst),
      .start   (start),
      .arg_w   (desc[`DESC_ARGW]),
      .shr_w   (desc[`DESC_SHRW]),
      .addc    (addc),
      // 57 words of nine bytes fit 17 bits, 29127 words of nine 16-bit weights 34
      .above_17(wide || s_top[17:5] != 13'd0),
      .above_34(wide && s_top[17:14] != 4'd0),
      .scaling (scaling),
      .cycles  (cycles),
      .valid   (p_valid),
      .sum     (sum),
      .row     (p_prow),
      .bank    (p_pbank),
      .kc_we   (kc_we),
      .kc_row  (kc_row),
      .kc_bank (kc_bank),
      .kc_data (kc_data),
      .busy    (constant_busy)
  );

  // the layer's arguments stay until its last constant is written
  assign busy = run || q_valid || r_valid || p_valid || constant_busy;

  wire unused = &{1'b0, desc};

endmodule

`resetall
