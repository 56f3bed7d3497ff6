// SPDX-License-Identifier: Apache-2.0
//
// tile_buffer: fetches the operands of the array from the AI RAM and holds them, nine banks wide.
//
// How it works: fill_seq reads AI RAM words in the order in which the array needs them; tile_scatter
// distributes their bytes to the banks, at the places given by tile_place; for fully connected layers
// fc_flatten does, or fc_serial where a word is 8 bytes. An entry is one reduction step, bank t the 64
// operands of column t. Entries form a ring. The tile buffer works in words of TILE_WORD bytes; a word of the
// memory path holds one or more of them.
// Handshake: start with a stable descriptor. The fill waits for room (tile_freed) and for the AI RAM
// (fill_req until fill_gnt); tile_filled and tile_freed are running counts of entries. Each bank has its own
// read port; row_t follows re[t] by two cycles.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_buffer #(
    // entries
    parameter TILE_ROWS = 32,
    // bytes of the memory path (16, 32, 64, 128), bytes read from a bank at once (8 to PATH): 128 are two
    // entries, for pairs of depthwise lines
    parameter PATH      = 64,
    parameter TILE_W    = (PATH > 64) ? 64 : PATH,
    // 1: maps of 1x1 layers may be one line; largest dilation: 1 to 8
    parameter FLAT_MAPS = 0,
    parameter DILATION  = 1,
    // cycles from a grant to the read data, see ai_ram
    parameter READ      = 1,
    // derived, not to be set: bytes of a word, log2 of the path and of the word, widths of an entry counter,
    // of an entry index, of an address in a bank
    parameter TILE_WORD = (TILE_W > 64) ? 64 : TILE_W,
    parameter PB        = $clog2(PATH),
    parameter TB        = $clog2(TILE_WORD),
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter TA        = $clog2(TILE_ROWS),
    parameter AW        = TA + 6 - TB
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; words remain to be read
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    output wire                  busy,
    // lines of the map in the AI RAM
    input  wire [           9:0] lines_there,
    // entries: filled, released by the sequencer (running counts)
    output reg  [        TW-1:0] tile_filled,
    input  wire [        TW-1:0] tile_freed,
    // AI RAM read port, data READ cycles after the grant
    output wire                  fill_req,
    output wire [       20-PB:0] fill_word,
    input  wire                  fill_gnt,
    input  wire [    8*PATH-1:0] fill_data,
    // read ports of the nine banks: enables, word addresses
    input  wire [           8:0] re,
    input  wire [      9*AW-1:0] entry,
    // read data, one port per bank: with vectors of nine an event-driven simulator would convert 72 * TILE_W
    // bits for every change of a bank
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

  // the mode, registered in the cycle after start, before the first word
  reg [1:0] mode;
  reg [2:0] apart;
  reg fc_mode;
  always @(posedge clk) begin
    if (rst) begin
      mode    <= 2'd0;
      apart   <= 3'd0;
      fc_mode <= 1'b0;
    end else if (start) begin
      mode    <= desc[`DESC_MODE];
      apart   <= (DILATION > 1) ? desc[`DESC_DIL] : 3'd0;
      fc_mode <= desc[`DESC_MODE] == `MODE_FC;
    end
  end

  wire flat = FLAT_MAPS != 0 && desc[`DESC_FLAT];
  // depthwise rows are stored as they are; flat: the 16 bytes may go to any position
  wire [2:0] swl = (mode == `MODE_DWROW) ? 3'd6 : flat ? 3'd4 : desc[`DESC_SWL];

  // words of eight bytes: a vector is written through the views of tile_scatter
  localparam FC_SERIAL = (TILE_WORD == 8) ? 1 : 0;
  wire serial = FC_SERIAL != 0 && fc_mode;
  wire note_valid;
  wire [`NOTE_BITS-1:0] note;
  wire [TW-1:0] entry_now;
  wire fc_ready, fc_done, taken, taken_last;
  wire [TB:0] taken_bytes;
  wire [20-TB:0] tile_word;

  fill_seq #(
      .TILE_ROWS(TILE_ROWS),
      .TILE_WORD(TILE_WORD),
      .PAIR     (PAIR),
      .FLAT_MAPS(FLAT_MAPS),
      .DILATION (DILATION),
      .FC_SERIAL(FC_SERIAL),
      .READ     (READ)
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
      .taken_bytes(taken_bytes),
      .taken_last (taken_last),
      .fc_done    (fc_done),
      .entry      (entry_now),
      .note_valid (note_valid),
      .note       (note)
  );
  assign fill_word = tile_word[20-TB:PB-TB];

  // ---- stage D: the tile word within the word read, and its note
  wire d_valid;
  wire [8*TILE_WORD-1:0] d_word, d_word_b;
  wire [`NOTE_BITS-1:0] d_note;
  tile_word #(
      .PATH(PATH),
      .TILE_WORD(TILE_WORD),
      .PAIR(PAIR),
      .READ(READ),
      .NW(`NOTE_BITS)
  ) u_word (
      .clk       (clk),
      .rst       (rst),
      .invert    (desc[`DESC_INXOR]),
      .tile_word (tile_word),
      .fill_data (fill_data),
      .note_valid(note_valid),
      .note      (note),
      .d_valid   (d_valid),
      .d_word    (d_word),
      .d_note    (d_note),
      .d_word_b  (d_word_b)
  );

  // ---- fully connected: banks written with elements of the vector, byte rotated to byte 0, step in the
  // entry
  wire d_go;  // the word enters tile_scatter
  wire [8:0] fc_on;
  wire [5:0] fc_base;
  wire [5:0] fc_step;

  // ---- destination of its bytes
  localparam WW = 9 + 9 + 18 + 3 * AW + 12 + 1;
  wire [TW-1:0] d_entry = serial ? entry_now : d_note[`NOTE_ENTRY];
  wire [TB-1:0] d_base = serial ? fc_base[TB-1:0] : d_note[`NOTE_BASE];
  wire [8:0] d_on, d_zero;
  wire [17:0] d_pick;
  wire [3*AW-1:0] d_addr;
  wire [11:0] d_quarters;
  wire [7:0] d_count = {{(7 - TB) {1'b0}}, d_note[`NOTE_BYTES]};
  tile_place #(
      .TILE_ROWS(TILE_ROWS),
      .TILE_WORD(TILE_WORD)
  ) u_place (
      .mode    (mode),
      .ew      (desc[`DESC_EW]),
      .flat    (flat || serial),
      .swl     (swl),
      .stl     (serial ? 2'd2 : desc[`DESC_STL]),
      .irl     (desc[`DESC_IRL]),
      .entry   (d_entry[TA-1:0]),
      .first   (serial ? fc_step[5:TB-2] : d_note[`NOTE_PLACE]),
      .ky_on   (d_note[`NOTE_KY_ON]),
      .ky_slot (d_note[`NOTE_SLOTS]),
      .chmod   (d_note[`NOTE_CHMOD]),
      .chans   (d_note[`NOTE_CHANS]),
      .on      (d_on),
      .zero    (d_zero),
      .pick    (d_pick),
      .addr    (d_addr),
      .quarters(d_quarters)
  );

  wire [4:0] sc_done, flatten_done;
  wire f_valid;
  wire [8*TILE_WORD-1:0] view0, view1, view2, view3, f_word_b;
  wire [2:0] f_on_b;
  wire [8:0] f_on, f_zero;
  wire [17:0] f_pick;
  wire [3*AW-1:0] f_addr;
  wire [11:0] f_quarters;
  wire f_odd;  // serial: odd or even byte lanes are written
  wire [6:0] f_upto;  // flat: number of bytes written

  tile_scatter #(
      .TILE_WORD(TILE_WORD),
      .PAIR     (PAIR),
      .FLAT_MAPS(FLAT_MAPS),
      .DILATION (DILATION),
      .WW       (WW)
  ) u_scatter (
      .clk       (clk),
      .rst       (rst),
      .chan      (mode == `MODE_CHAN),
      .ew        (desc[`DESC_EW]),
      .flat      (flat),
      .vector    (serial),
      .apart     (apart),
      .ip        (desc[`DESC_IP]),
      .stl       (desc[`DESC_STL]),
      .swl       (swl),
      .note_valid(d_go),
      .word      (d_word),
      .note_done (serial ? {4'd0, fc_done} : d_note[`NOTE_DONE]),
      .note_emit (d_note[`NOTE_EMIT] || serial),
      .note_base (d_base),
      .note_where({serial ? fc_on : d_on, d_zero, d_pick, d_addr, d_quarters, fc_step[0]}),
      .note_last (d_note[`NOTE_LINE_END] || serial),
      .note_first(d_note[`NOTE_SLOTS]),
      .note_count(d_count[4:0]),
      .word_b    (d_word_b),
      .note_on_b (d_note[`NOTE_KY_BELOW]),
      .f_valid   (f_valid),
      .view0     (view0),
      .view1     (view1),
      .view2     (view2),
      .view3     (view3),
      .f_where   ({f_on, f_zero, f_pick, f_addr, f_quarters, f_odd}),
      .f_upto    (f_upto),
      .f_word_b  (f_word_b),
      .f_on_b    (f_on_b),
      .done      (sc_done)
  );

  // ---- fully connected layers: bytes for the banks, or repeated passes of a word through tile_scatter
  wire [8:0] we, zero;
  wire [71:0] fc_bytes;
  wire [3*AW-1:0] addr;
  wire [3*TILE_WORD-1:0] lanes, own;  // byte enables at the three places; those of tile_scatter
  wire flattens;  // fc_flatten writes the banks
  genvar p;
  generate
    for (p = 0; p < 3 * TILE_WORD; p = p + 1) begin : g_lane
      localparam integer BYTE_I = p % TILE_WORD;
      localparam [6:0] BYTE = BYTE_I[6:0];
      wire one = !serial || f_odd == BYTE[0];
      assign own[p] = flat ? BYTE < f_upto : f_quarters[p*4/TILE_WORD] && one;
    end
    if (FC_SERIAL != 0) begin : g_serial
      wire work;
      fc_serial u_serial (
          .clk       (clk),
          .rst       (rst),
          .restart   (start),
          .ready     (fc_ready),
          .sent      (taken),
          .sent_bytes(taken_bytes),
          .sent_last (taken_last),
          .granted   (fill_req && fill_gnt),
          .valid     (d_valid && fc_mode),
          .bytes     (d_note[`NOTE_BYTES]),
          .last      (d_note[`NOTE_VECTOR_END]),
          .work      (work),
          .on        (fc_on),
          .base      (fc_base[2:0]),
          .step      (fc_step),
          .done      (fc_done)
      );
      assign fc_base[5:3] = 3'd0;
      assign d_go = fc_mode ? work : d_valid;
      assign {flattens, flatten_done, fc_bytes} = 78'd0;
      assign {we, zero, addr, lanes} = {f_on & {9{f_valid}}, 9'd0, f_addr, own};
    end else begin : g_flatten
      wire [8:0] fc_we, fc_zero;
      wire [AW-1:0] fc_addr_0, fc_addr_1;
      wire [TILE_WORD-1:0] fc_lanes_0, fc_lanes_1;
      fc_flatten #(
          .TILE_ROWS(TILE_ROWS),
          .TILE_WORD(TILE_WORD)
      ) u_flatten (
          .clk        (clk),
          .rst        (rst),
          .restart    (start),
          .tile_freed (tile_freed),
          .tile_filled(tile_filled),
          .ready      (fc_ready),
          .sent       (taken),
          .valid      (d_valid && fc_mode),
          .word       (d_word),
          .base       (d_base),
          .bytes      (d_note[`NOTE_BYTES]),
          .lastword   (d_note[`NOTE_VECTOR_END]),
          .we         (fc_we),
          .bytes_out  (fc_bytes),
          .zero       (fc_zero),
          .addr_0     (fc_addr_0),
          .addr_1     (fc_addr_1),
          .lanes_0    (fc_lanes_0),
          .lanes_1    (fc_lanes_1),
          .done       (flatten_done)
      );
      assign {fc_on, fc_base, fc_step, fc_done} = 22'd0;
      assign d_go = d_valid && !fc_mode;
      assign flattens = fc_mode;
      assign we = fc_mode ? fc_we : f_on & {9{f_valid}};
      assign zero = fc_mode ? fc_zero : f_zero;
      assign addr = fc_mode ? {fc_addr_1, fc_addr_1, fc_addr_0} : f_addr;
      assign lanes = fc_mode ? {fc_lanes_1, fc_lanes_1, fc_lanes_0} : own;
    end
    if (FLAT_MAPS != 0 && TILE_WORD < 16) begin : g_illegal_flat
      ILLEGAL_FLAT_NEEDS_TILE_WORD_16 u_illegal ();
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) tile_filled <= {TW{1'b0}};
    else tile_filled <= tile_filled + {{(TW - 5) {1'b0}}, flattens ? flatten_done : sc_done};
  end

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      wire [8*TILE_W-1:0] row;
      // a word of several channels, or of a vector, may go to place 0 in any bank
      localparam integer OWN = (FC_SERIAL != 0) ? t / 3 : (t < 6) ? 1 : 2;
      tile_bank #(
          .BANK  (t),
          .TWO   (1 - FC_SERIAL),
          .ROWS  (TILE_ROWS),
          .TILE_WORD(TILE_WORD),
          .PAIR  (PAIR)
      ) u_bank (
          .clk      (clk),
          .we       (we[t]),
          .zero     (zero[t]),
          .addr_0   (addr[AW-1:0]),
          .addr_own (addr[AW*OWN+:AW]),
          .lanes_0  (lanes[TILE_WORD-1:0]),
          .lanes_own(lanes[TILE_WORD*OWN+:TILE_WORD]),
          .view0    (view0),
          .view1    (view1),
          .view2    (view2),
          .view3    (view3),
          .pick     (f_pick[2*t+:2]),
          .word_b   (f_word_b),
          .on_b     (f_valid && f_on_b[t/3]),
          .fc       (flattens),
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

  wire unused = &{1'b0, taken_last, taken_bytes, d_entry, d_count, entry_now, fc_step, fc_base, f_zero};

endmodule

`resetall
