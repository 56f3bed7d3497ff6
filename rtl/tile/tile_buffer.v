// SPDX-License-Identifier: Apache-2.0
//
// tile_buffer: fetches the operands of the array from the AI RAM and holds them, nine banks wide.
//
// How it works: fill_seq reads AI RAM words in the order in which the array needs them;
// tile_scatter, or fc_flatten for fully connected layers, lays their bytes out in the banks, where
// tile_place says. An
// entry is one reduction step, bank t the 64 operands of column t. Entries form a ring. The tile
// buffer works in words of TILE_W bytes, of which a word of the memory path has one or more.
// Handshake: start with a stable descriptor. The fill waits for room (tile_freed) and for the AI
// RAM (fill_req until fill_gnt); tile_filled and tile_freed are running counts of entries. Each
// bank has a read port of its own; row_t follows re[t] by two cycles.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_buffer #(
    // entries
    parameter TILE_ROWS = 32,
    // bytes of the memory path (16, 32, 64, 128), bytes that a bank gives at once (8 to PATH): 128 are
    // two entries, for depthwise lines by twos
    parameter PATH      = 64,
    parameter TILE_W    = (PATH > 64) ? 64 : PATH,
    // 1: maps of 1x1 layers may be one line
    parameter FLAT      = 0,
    // derived, not to be set: bytes of a word, log2 of it and of the path, widths of a word's place in
    // an entry, of an entry counter, of an entry number, of an address in a bank
    parameter WORD      = (TILE_W > 64) ? 64 : TILE_W,
    parameter PB        = $clog2(PATH),
    parameter TB        = $clog2(WORD),
    parameter QB        = 8 - TB,
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter TA        = $clog2(TILE_ROWS),
    parameter AW        = TA + 6 - TB
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; words are still to be read
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    output wire                  busy,
    // lines of the map that are in the AI RAM
    input  wire [           9:0] lines_there,
    // entries: complete, released by the sequencer (running counts)
    output reg  [        TW-1:0] tile_filled,
    input  wire [        TW-1:0] tile_freed,
    // AI RAM read port, data a cycle after the grant
    output wire                  fill_req,
    output wire [       20-PB:0] fill_word,
    input  wire                  fill_gnt,
    input  wire [    8*PATH-1:0] fill_data,
    // read ports of the nine banks: enables, words
    input  wire [           8:0] re,
    input  wire [      9*AW-1:0] entry,
    // the words read, a bank a port: whole vectors of nine would cost an event-driven simulator a
    // conversion of 72 * TILE_W bits for every change of a bank
    output wire [  8*TILE_W-1:0] row_0,
    output wire [  8*TILE_W-1:0] row_1,
    output wire [  8*TILE_W-1:0] row_2,
    output wire [  8*TILE_W-1:0] row_3,
    output wire [  8*TILE_W-1:0] row_4,
    output wire [  8*TILE_W-1:0] row_5,
    output wire [  8*TILE_W-1:0] row_6,
    output wire [  8*TILE_W-1:0] row_7,
    output wire [  8*TILE_W-1:0] row_8
);

  localparam PAIR = (TILE_W > 64) ? 1 : 0;

  // the mode from registers from the cycle after start on, before the first word
  reg [1:0] mode;
  reg fc_mode;
  always @(posedge clk) begin
    if (rst) begin
      mode    <= 2'd0;
      fc_mode <= 1'b0;
    end else if (start) begin
      mode    <= desc[`DESC_MODE];
      fc_mode <= desc[`DESC_MODE] == `MODE_FC;
    end
  end

  wire flat = FLAT != 0 && desc[`DESC_FLAT];
  // their rows stay as they are; flat: the 16 bytes that come may go to any place
  wire [2:0] swl = (mode == `MODE_DWROW) ? 3'd6 : flat ? 3'd4 : desc[`DESC_SWL];

  // width of the note of a word, see fill_seq
  localparam NOTE = TW + TB + QB + TB + 28;
  wire note_valid;
  wire [NOTE-1:0] note;
  wire fc_ready, taken;
  wire [20-TB:0] tile_word;

  fill_seq #(
      .TILE_ROWS(TILE_ROWS),
      .TILE_W   (WORD),
      .PAIR     (PAIR),
      .FLAT     (FLAT)
  ) u_fill (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .busy       (busy),
      .lines_there(lines_there),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .fill_req   (fill_req),
      .fill_word  (tile_word),
      .fill_gnt   (fill_gnt),
      .fc_ready   (fc_ready),
      .taken      (taken),
      .note_valid (note_valid),
      .note       (note)
  );
  assign fill_word = tile_word[20-TB:PB-TB];

  // ---- stage D: the word of the tile in the word that was read, and its note
  reg d_valid;
  reg [8*WORD-1:0] d_word;
  reg [NOTE-1:0] d_note;
  wire [2:0] d_on_b;
  wire [TW-1:0] d_entry;
  wire [4:0] d_done;
  wire d_emit;
  wire [TB-1:0] d_base;
  wire [QB-1:0] d_place;
  wire [2:0] d_ky_on;
  wire [5:0] d_ky_slot;
  wire [3:0] d_chmod;
  wire [2:0] d_chans;
  wire d_last;
  wire [TB:0] d_bytes;
  wire [7:0] d_count = {{(7 - TB) {1'b0}}, d_bytes};
  wire d_end;
  wire [8*WORD-1:0] fetched;

  // pixels with an offset of 128: the upper bit of each byte is the other one
  wire [8*PATH-1:0] offset_data = fill_data ^ {PATH{desc[`DESC_INXOR], 7'd0}};

  generate
    if (PB == TB) begin : g_word
      assign fetched = offset_data;
    end else begin : g_part
      reg [PB-TB-1:0] part;
      always @(posedge clk) begin
        if (fill_req && fill_gnt) part <= tile_word[PB-TB-1:0];
      end
      assign fetched = offset_data[part*8*WORD+:8*WORD];
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) d_valid <= 1'b0;
    else d_valid <= note_valid;
  end
  always @(posedge clk) begin
    if (note_valid) begin
      d_word <= fetched;
      d_note <= note;
    end
  end
  // the row above the word in the path's, of which the line below the word's may be
  wire [8*WORD-1:0] d_word_b;
  generate
    if (PAIR != 0) begin : g_pair
      reg [8*WORD-1:0] word_b;
      always @(posedge clk) if (note_valid) word_b <= offset_data[8*PATH-1-:8*WORD];
      assign d_word_b = word_b;
    end else begin : g_single
      assign d_word_b = {8 * WORD{1'b0}};
    end
  endgenerate
  assign {d_on_b, d_entry, d_done, d_emit, d_base, d_place, d_ky_on, d_ky_slot, d_chmod, d_chans, d_last,
          d_bytes, d_end} = d_note;

  // ---- where its bytes go
  localparam WW = 9 + 9 + 18 + 3 * AW + 12;
  wire [8:0] d_on, d_zero;
  wire [17:0] d_pick;
  wire [3*AW-1:0] d_addr;
  wire [11:0] d_quarters;
  tile_place #(
      .TILE_ROWS(TILE_ROWS),
      .TILE_W   (WORD)
  ) u_place (
      .mode    (mode),
      .ew      (desc[`DESC_EW]),
      .flat    (flat),
      .swl     (swl),
      .stl     (desc[`DESC_STL]),
      .irl     (desc[`DESC_IRL]),
      .entry   (d_entry[TA-1:0]),
      .first   (d_place),
      .ky_on   (d_ky_on),
      .ky_slot (d_ky_slot),
      .chmod   (d_chmod),
      .chans   (d_chans),
      .on      (d_on),
      .zero    (d_zero),
      .pick    (d_pick),
      .addr    (d_addr),
      .quarters(d_quarters)
  );

  wire [4:0] sc_done, fc_done;
  wire f_valid;
  wire [8*WORD-1:0] view0, view1, view2, view3, f_word_b;
  wire [2:0] f_on_b;
  wire [8:0] f_on, f_zero;
  wire [17:0] f_pick;
  wire [3*AW-1:0] f_addr;
  wire [11:0] f_quarters;
  wire [6:0] f_upto;  // flat: bytes that are written
  wire [8:0] fc_we, fc_zero;
  wire [71:0] fc_bytes;
  wire [AW-1:0] fc_addr_0, fc_addr_1;
  wire [WORD-1:0] fc_lanes_0, fc_lanes_1;

  tile_scatter #(
      .TILE_W(WORD),
      .PAIR  (PAIR),
      .FLAT  (FLAT),
      .WW    (WW)
  ) u_scatter (
      .clk       (clk),
      .rst       (rst),
      .chan      (mode == `MODE_CHAN),
      .ew        (desc[`DESC_EW]),
      .flat      (flat),
      .ip        (desc[`DESC_IP]),
      .stl       (desc[`DESC_STL]),
      .swl       (swl),
      .note_valid(d_valid && !fc_mode),
      .word      (d_word),
      .note_done (d_done),
      .note_emit (d_emit),
      .note_base (d_base),
      .note_where({d_on, d_zero, d_pick, d_addr, d_quarters}),
      .note_last (d_last),
      .note_first(d_ky_slot),
      .note_count(d_count[4:0]),
      .word_b    (d_word_b),
      .note_on_b (d_on_b),
      .f_valid   (f_valid),
      .view0     (view0),
      .view1     (view1),
      .view2     (view2),
      .view3     (view3),
      .f_where   ({f_on, f_zero, f_pick, f_addr, f_quarters}),
      .f_upto    (f_upto),
      .f_word_b  (f_word_b),
      .f_on_b    (f_on_b),
      .done      (sc_done)
  );

  fc_flatten #(
      .TILE_ROWS(TILE_ROWS),
      .TILE_W   (WORD)
  ) u_flatten (
      .clk        (clk),
      .rst        (rst),
      .restart    (start),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .ready      (fc_ready),
      .sent       (taken && fc_mode),
      .valid      (d_valid && fc_mode),
      .word       (d_word),
      .base       (d_base),
      .bytes      (d_bytes),
      .lastword   (d_end),
      .we         (fc_we),
      .bytes_out  (fc_bytes),
      .zero       (fc_zero),
      .addr_0     (fc_addr_0),
      .addr_1     (fc_addr_1),
      .lanes_0    (fc_lanes_0),
      .lanes_1    (fc_lanes_1),
      .done       (fc_done)
  );

  // ---- the three places in the banks
  wire [3*AW-1:0] addr = fc_mode ? {fc_addr_1, fc_addr_1, fc_addr_0} : f_addr;
  wire [3*WORD-1:0] lanes;
  wire [8:0] zero = fc_mode ? fc_zero : f_zero;
  wire [8:0] we = fc_mode ? fc_we : f_on & {9{f_valid}};
  genvar p;
  generate
    for (p = 0; p < 3 * WORD; p = p + 1) begin : g_lane
      localparam integer BYTE_I = p % WORD;
      localparam [6:0] BYTE = BYTE_I[6:0];
      wire own = flat ? BYTE < f_upto : f_quarters[p*4/WORD];
      assign lanes[p] = fc_mode ? ((p < WORD) ? fc_lanes_0[p%WORD] : fc_lanes_1[p%WORD]) : own;
    end
    if (FLAT != 0 && WORD < 16) begin : g_illegal_flat
      ILLEGAL_FLAT_NEEDS_TILE_W_16 u_illegal ();
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) tile_filled <= {TW{1'b0}};
    else tile_filled <= tile_filled + {{(TW - 5) {1'b0}}, fc_mode ? fc_done : sc_done};
  end

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      wire [8*TILE_W-1:0] row;
      localparam integer OWN = (t < 6) ? 1 : 2;
      tile_bank #(
          .BANK  (t),
          .ROWS  (TILE_ROWS),
          .TILE_W(WORD),
          .PAIR  (PAIR)
      ) u_bank (
          .clk      (clk),
          .we       (we[t]),
          .zero     (zero[t]),
          .addr_0   (addr[AW-1:0]),
          .addr_own (addr[AW*OWN+:AW]),
          .lanes_0  (lanes[WORD-1:0]),
          .lanes_own(lanes[WORD*OWN+:WORD]),
          .view0    (view0),
          .view1    (view1),
          .view2    (view2),
          .view3    (view3),
          .pick     (f_pick[2*t+:2]),
          .word_b   (f_word_b),
          .on_b     (f_valid && f_on_b[t/3]),
          .fc       (fc_mode),
          .fc_byte  (fc_bytes[t*8+:8]),
          .re       (re[t]),
          .raddr    (entry[t*AW+:AW]),
          .rdata    (row)
      );
    end
    if (TILE_W < 8 || TILE_W > 128 || (TILE_W & (TILE_W - 1)) != 0 || TILE_W > PATH) begin : g_illegal
      ILLEGAL_TILE_W_8_16_32_64_128_UP_TO_PATH u_illegal ();
    end
    if (PATH != 16 && PATH != 32 && PATH != 64 && PATH != 128) begin : g_illegal_path
      ILLEGAL_PATH_16_32_64_128 u_illegal ();
    end
  endgenerate

  assign row_0 = g_bank[0].row;
  assign row_1 = g_bank[1].row;
  assign row_2 = g_bank[2].row;
  assign row_3 = g_bank[3].row;
  assign row_4 = g_bank[4].row;
  assign row_5 = g_bank[5].row;
  assign row_6 = g_bank[6].row;
  assign row_7 = g_bank[7].row;
  assign row_8 = g_bank[8].row;

  wire unused = &{1'b0, d_entry, d_count};

endmodule

`resetall
