// SPDX-License-Identifier: Apache-2.0
//
// weight_loader: converts the weight stream to words of the weight buffer, and sums the weights.
//
// How it works: weights come in the KPU's order, channel by channel. A word holds nine of them (a 3x3 kernel
// of one input channel, or nine input channels of a 1x1 kernel), the last word of a channel the rest; a
// depthwise 1x1 kernel is one weight on the middle tap. Word s of channel o goes to bank o mod N_Z; fully
// connected layers, which use every weight once, deal their words over the banks in turn. weight_group cuts a
// bus of 32 bits into words, weight_window a wider one, and the 16-byte pieces of weights kept in the AI RAM.
// After the last word of a channel weight_sum computes its constant ((arg_w * sw) >> shr_w) + arg_add * n,
// which is stored with the parameters at most 13 cycles after that word. For the maximum of an element-wise
// layer column 7 gets the last weight too, because its product is used twice. A product of float16 matrices
// has no constants, and uses no parameter rows. Rows form a ring: a word waits until its row has been
// released. Room for a word is computed a cycle ahead, from the rows with or without this word. wrow_filled
// counts rows whose words are complete.
// Handshake: start loads a descriptor while busy is low, and the layer begins a cycle later; the stream waits
// for room, which is available from the second cycle after a release on.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_loader #(
    // bus width, banks, bits of a weight
    parameter AHB_W        = 32,
    parameter N_Z          = 4,
    parameter WEIGHT_BITS  = 16,
    // weights may be kept in the AI RAM
    parameter KEEP_WEIGHTS = 0,
    // rows of the weight buffer and of the parameter buffer
    parameter WBUF_ROWS    = 1024,
    parameter PAR_ROWS     = 2048 / N_Z,
    // widths of the row counters, of addresses, of a bank index
    parameter WW           = $clog2(WBUF_ROWS) + 2,
    parameter PRW          = `PROW_BITS,
    parameter AW           = $clog2(WBUF_ROWS),
    parameter PAW          = $clog2(PAR_ROWS),
    parameter ZW           = $clog2(N_Z),
    parameter OW           = $clog2(AHB_W / 8),
    parameter CW           = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // next layer
    input  wire                     start,
    input  wire [   `DESC_BITS-1:0] desc,
    output reg                      busy,
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
    // rows released, rows filled (running counts); parameter rows released
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
  reg            begins;
  reg            run;
  reg            primed;  // position and size of the first word are valid
  reg  [    1:0] mode;
  reg            dw;
  reg            k3;
  reg            middle;  // one weight per word, on the middle tap
  reg            wide;
  reg            w_xor;
  reg            bare;
  reg            twice;
  reg            from_kept;
  reg  [   17:0] words;  // words per channel
  reg  [    3:0] lastn;
  reg  [   10:0] n_o;
  reg  [   35:0] addc;
  wire           fc_mode = mode == `MODE_FC;
  wire           chan_mode = mode == `MODE_CHAN;
  wire           words_1 = words == 18'd1;
  wire           words_2 = words == 18'd2;

  // ---- position: words of the channel up to this one plus two, channels up to this one plus one
  reg  [   17:0] s;
  reg  [   10:0] o;
  reg            first;
  reg  [    3:0] count;  // weights in the word
  reg  [    4:0] bytes;
  reg  [ ZW-1:0] bank;
  reg  [ WW-1:0] base;  // first row of the group
  reg  [ WW-1:0] row;
  reg  [PRW-1:0] prow;
  reg  [ ZW-1:0] pbank;

  // last word of a channel: this one, the next one; last channel
  reg s_last, next_last, o_last;
  wire       all_last = s_last && o_last;
  wire [3:0] count_last = middle ? 4'd1 : !dw && (chan_mode || fc_mode) ? lastn : 4'd9;
  wire [3:0] count_next = (primed ? next_last : words_1) ? count_last : 4'd9;
  wire [4:0] bytes_n = wide ? {count_next, 1'b0} : {1'b0, count_next};
  wire [4:0] bytes_next = all_last ? 5'd0 : bytes_n;
  reg        room;
  wire       constant_free;
  wire       ready = room && (constant_free || !s_last);
  wire       bus_go;
  wire       kept_go;
  wire       go = bus_go || kept_go;
  assign starved = run && primed && ready && !go;

  // a row is complete with the word of its last bank
  wire bank_last = bank == {ZW{1'b1}};
  wire group_last = bank_last || o_last;
  wire row_done = bank_last || (fc_mode ? all_last : o_last);
  wire [WW-1:0] row_next = row + {{(WW - 1) {1'b0}}, 1'b1};
  wire prow_last = s_last && !bare && (o_last || pbank == {ZW{1'b1}});

  // rows after this word: the next one, or the group's first one again for the next channel; the words of a
  // fully connected layer are dealt over the banks in turn
  wire [WW-1:0] row_after = fc_mode ? (row_done ? row_next : row) : (s_last && !group_last) ? base : row_next;
  wire [PRW-1:0] prow_after = prow + {{(PRW - 1) {1'b0}}, prow_last};

  // in a full ring the counts differ only in the bit above the address
  function row_free(input [AW:0] used, input [AW:0] freed);
    row_free = (used ^ freed) != {1'b1, {AW{1'b0}}};
  endfunction
  function prow_free(input [PAW:0] used, input [PAW:0] freed);
    prow_free = (used ^ freed) != {1'b1, {PAW{1'b0}}};
  endfunction
  wire room_stays = row_free(
      row[AW:0], wrow_freed[AW:0]
  ) && prow_free(
      prow[PAW:0], prow_freed[PAW:0]
  );
  wire room_after = row_free(
      row_after[AW:0], wrow_freed[AW:0]
  ) && prow_free(
      prow_after[PAW:0], prow_freed[PAW:0]
  );
  always @(posedge clk) room <= go ? room_after : room_stays;

  always @(posedge clk) begin
    if (rst) begin
      run    <= 1'b0;
      primed <= 1'b0;
      bank   <= {ZW{1'b0}};
      base   <= {WW{1'b0}};
      row    <= {WW{1'b0}};
      prow   <= {PRW{1'b0}};
      pbank  <= {ZW{1'b0}};
    end else if (begins) begin
      run    <= 1'b1;
      primed <= 1'b0;
      bank   <= {ZW{1'b0}};
      pbank  <= {ZW{1'b0}};
    end else if (run && !primed) begin
      primed <= 1'b1;
    end else if (go) begin
      run <= !all_last;
      if (s_last && !bare) begin
        pbank <= o_last ? {ZW{1'b0}} : pbank + {{(ZW - 1) {1'b0}}, 1'b1};
      end
      prow <= prow_after;
      row  <= row_after;
      if (fc_mode) begin
        bank <= all_last ? {ZW{1'b0}} : bank + {{(ZW - 1) {1'b0}}, 1'b1};
        base <= row_done ? row_next : base;
      end else begin
        bank <= !s_last ? bank : group_last ? {ZW{1'b0}} : bank + {{(ZW - 1) {1'b0}}, 1'b1};
        base <= (s_last && group_last) ? row_next : base;
      end
    end
  end

  always @(posedge clk) begin
    if (run && !primed) begin
      s         <= 18'd3;
      o         <= 11'd2;
      count     <= count_next;
      bytes     <= bytes_n;
      first     <= 1'b1;
      s_last    <= words_1;
      next_last <= words_1 || words_2;
      o_last    <= n_o == 11'd1;
    end else if (go) begin
      s         <= s_last ? 18'd3 : s + 18'd1;
      o         <= s_last ? o + 11'd1 : o;
      count     <= count_next;
      bytes     <= bytes_n;
      first     <= s_last;
      s_last    <= next_last;
      next_last <= next_last ? words_1 : s_last ? words_2 : s == words;
      o_last    <= s_last ? o == n_o : o_last;
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
      twice <= desc[`DESC_EW] && desc[`DESC_EWOP] >= 2'd2;
      from_kept <= desc[`DESC_KEPT];
      words <= desc[`DESC_DW] ? 18'd1 : desc[`DESC_S];
      lastn <= desc[`DESC_LASTN];
      n_o   <= desc[`DESC_O];
      addc  <= desc[`DESC_ADDC];
    end
  end

  always @(posedge clk) middle <= dw && !k3;

  // ---- its weights, in the cycle after go
  wire [8:0] on = ~(9'h1ff << count) & {9{!middle}};  // weights in use, except a single one in the middle
  wire active = run && primed;
  wire [143:0] weights, group_weights, window_weights;
  generate
    if (AHB_W == 32) begin : g_group
      weight_group u_group (
          .clk      (clk),
          .rst      (rst),
          .in_valid (weight_valid),
          .in_ready (weight_ready),
          .in_data  (weight_data),
          .in_off   (weight_off),
          .in_cnt   (weight_cnt),
          .wide     (wide),
          .middle   (middle),
          .invert   (w_xor && !wide),
          .run      (active && !from_kept),
          .want     (bytes),
          .want_next(bytes_next),
          .ready    (ready),
          .done     (bus_go),
          .weights  (group_weights)
      );
    end else begin : g_no_group
      assign group_weights = 144'd0;
      wire unused_next = &{1'b0, bytes_next};
    end
    if (AHB_W != 32 || KEEP_WEIGHTS != 0) begin : g_window
      wire window_go, window_ready;
      weight_window #(
          .AHB_W(AHB_W),
          .BUS((AHB_W == 32) ? 0 : 1),
          .KEEP_WEIGHTS(KEEP_WEIGHTS)
      ) u_window (
          .clk         (clk),
          .rst         (rst),
          .weight_valid(weight_valid),
          .weight_ready(window_ready),
          .weight_data (weight_data),
          .weight_off  (weight_off),
          .weight_cnt  (weight_cnt),
          .kept_valid  (kept_valid),
          .kept_ready  (kept_ready),
          .kept        (kept),
          .from_kept   (from_kept),
          .wide        (wide),
          .middle      (middle),
          .invert      (w_xor && !wide),
          .run         (active),
          .bytes       (bytes),
          .on          (on),
          .ready       (ready),
          .bus_go      (window_go),
          .kept_go     (kept_go),
          .weights     (window_weights)
      );
      if (AHB_W != 32) begin : g_bus
        assign {bus_go, weight_ready} = {window_go, window_ready};
      end else begin : g_no_bus
        wire unused_bus = &{1'b0, window_go, window_ready};
      end
    end else begin : g_no_window
      assign {kept_go, kept_ready} = 2'b00;
      assign window_weights = 144'd0;
      wire unused_kept = &{1'b0, kept_valid, kept, on};
    end
    if (AHB_W != 32) begin : g_of_window
      assign weights = window_weights;
    end else if (KEEP_WEIGHTS == 0) begin : g_of_group
      assign weights = group_weights;
    end else begin : g_of_both
      assign weights = from_kept ? window_weights : group_weights;
    end
  endgenerate

  reg [9*WB-1:0] nine;
  integer i;
  always @* begin
    for (i = 0; i < 9; i = i + 1) nine[i*WB+:WB] = weights[16*i+:WB];
  end
  assign w_data = {nine[8*WB+:WB], twice ? nine[8*WB+:WB] : nine[7*WB+:WB], nine[7*WB-1:0]};

  reg row_done_q;
  always @(posedge clk) begin
    if (rst) begin
      w_we        <= 1'b0;
      row_done_q  <= 1'b0;
      wrow_filled <= {WW{1'b0}};
    end else begin
      w_we        <= go;
      row_done_q  <= go && row_done;
      // the next row
      wrow_filled <= row_done_q ? row : wrow_filled;
    end
  end

  always @(posedge clk) begin
    if (go) begin
      w_row  <= row[AW-1:0];
      w_bank <= bank;
    end
  end

  wire sum_busy;
  weight_sum #(
      .WEIGHT_BITS(WEIGHT_BITS),
      .SERIAL     (AHB_W == 32 ? 1 : 0),
      .PAW        (PAW),
      .ZW         (ZW)
  ) u_sum (
      .clk     (clk),
      .rst     (rst),
      .start   (start),
      .desc    (desc),
      .addc    (addc),
      // 57 words of nine bytes fit 17 bits, 29127 words of nine 16-bit weights 34
      .above_17(wide || words[17:5] != 13'd0),
      .above_34(wide && words[17:14] != 4'd0),
      .bare    (bare),
      .go      (go),
      .first   (first),
      .last    (s_last),
      .row     (prow[PAW-1:0]),
      .bank    (pbank),
      .weights (nine),
      .free    (constant_free),
      .kc_we   (kc_we),
      .kc_row  (kc_row),
      .kc_bank (kc_bank),
      .kc_data (kc_data),
      .busy    (sum_busy)
  );

  // the layer's arguments are held until its last constant has been written
  always @(posedge clk) begin
    if (rst) begin
      begins <= 1'b0;
      busy   <= 1'b0;
    end else begin
      begins <= start;
      busy   <= start || begins || run || sum_busy;
    end
  end

  wire unused = &{1'b0, desc, weights, group_weights, window_weights, wrow_freed, prow_freed, row, prow};

endmodule

`resetall
