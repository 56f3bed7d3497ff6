// SPDX-License-Identifier: Apache-2.0
//
// weight_ring: weights that arrive before the weight loader can accept them wait in rows of the AI RAM that no
// map uses.
//
// How it works: a FIFO of bytes with three ways through it. *direct*: bytes of the DMAC go to the loader. When
// the loader has refused them for PATIENCE cycles they are *stored*: gathered to words of the AI RAM, written to
// a ring of its rows, and read again in order, a few words ahead of the loader. When the loader has caught up,
// bytes that do not fill a word are *drained* from the register where they were gathered, and the way is direct
// again. The loader gets a bus word a cycle, or sixteen bytes out of the AI RAM: a narrow layer needs its weights
// faster than the bus brings them. The stream of weights is dense: the boundaries of requests do not matter to
// the loader, so none are kept.
// Handshake: valid/ready on both sides; a piece has its bytes from byte 0 on. Requests to the AI RAM are
// held until granted; data follow a read by READ cycles. base and words are sampled while the ring is empty;
// after a change of them no word is added until it is. rst drops everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_ring #(
    // data width of the bus; bytes of a word of the AI RAM, at least those of the bus
    parameter AHB_W    = 64,
    parameter PATH     = 64,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ     = 1,
    // cycles that the loader refuses bytes before they are stored
    parameter PATIENCE = 8,
    // derived, not to be set: widths of a word address, of a bus offset and a count
    parameter AW       = 21 - $clog2(PATH),
    parameter OW       = $clog2(AHB_W / 8),
    parameter CW       = OW + 1
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // first word of the ring, number of its words; 0: all bytes go directly
    input  wire [        AW-1:0] base,
    input  wire [        AW-1:0] words,
    // weights of the DMAC, weights for the loader
    input  wire                  in_valid,
    output wire                  in_ready,
    input  wire [`BEAT_BITS-1:0] in_beat,
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire [`KEPT_BITS-1:0] out_piece,
    // AI RAM: write port, read port
    output wire                  write_req,
    output wire [        AW-1:0] write_word,
    output wire [    8*PATH-1:0] write_data,
    input  wire                  write_gnt,
    // no room for another word until one is written: the bus will stall
    output wire                  write_late,
    output wire                  read_req,
    output wire [        AW-1:0] read_word,
    input  wire                  read_gnt,
    input  wire [    8*PATH-1:0] read_data
);

  localparam BW = AHB_W / 8;
  // bus words and pieces of a word
  localparam PARTS = PATH / BW, PIECES = PATH / 16;
  localparam PW = (PARTS > 1) ? $clog2(PARTS) : 1, CUT_W = (PIECES > 1) ? $clog2(PIECES) : 1;
  localparam LVL_W = $clog2(3 * BW + 1), TAKE_W = $clog2(BW + 1);
  localparam LAST_I = PARTS - 1, CUT_I = PIECES - 1, DEPTH = READ + 3;
  localparam [PW-1:0] LAST = LAST_I[PW-1:0];
  localparam [CUT_W-1:0] LAST_CUT = CUT_I[CUT_W-1:0];
  localparam [3:0] LAST_WAIT = PATIENCE[3:0] - 4'd1;
  localparam [LVL_W-1:0] PIECE_L = BW[LVL_W-1:0];
  localparam [TAKE_W-1:0] PIECE_T = BW[TAKE_W-1:0];
  localparam [2:0] PLACES = DEPTH[2:0];
  localparam [1:0] DIRECT = 2'd0, STORE = 2'd1, DRAIN = 2'd2;

  reg [1:0] way;
  wire direct = way == DIRECT, store = way == STORE, drain = way == DRAIN;

  // ---- bytes of the DMAC, without gaps
  wire [LVL_W-1:0] avail;
  wire [AHB_W-1:0] bytes;
  wire [TAKE_W-1:0] take;
  wire whole = avail >= PIECE_L;
  byte_gearbox #(
      .IN_BYTES (BW),
      .OUT_BYTES(BW)
  ) u_gear (
      .clk     (clk),
      .rst     (rst),
      .flush   (1'b0),
      .in_valid(in_valid),
      .in_ready(in_ready),
      .in_data (in_beat[`BEAT_DATA]),
      .in_off  (in_beat[`BEAT_OFF]),
      .in_cnt  (in_beat[`BEAT_CNT]),
      .avail   (avail),
      .out_data(bytes),
      .take    (take)
  );

  // ---- gathering: pieces of the next word
  reg [8*PATH-1:0] gathered;
  reg [PW-1:0] fill;
  reg [AW-1:0] first, size;  // of the ring
  reg [AW-1:0] used;  // its words, from the last piece on until they are read
  reg [AW-1:0] put, got;  // next word to write, to read
  reg changed;  // the ports name other rows
  wire full = changed || used == size;
  wire last_piece = fill == LAST;
  wire ready_to_write;  // room for a word
  wire gather = store && whole && !(last_piece && (full || !ready_to_write));
  wire complete = gather && last_piece;

  // ---- reading
  reg [AW-1:0] there;  // words in the AI RAM that are not read
  reg [2:0] held;  // words requested that are not cut up
  wire got_word, cut_word, word_there;
  wire [8*PATH-1:0] word;
  assign read_req   = there != {AW{1'b0}} && held != PLACES;
  assign read_word  = first + got;
  assign write_word = first + put;
  reg  [READ-1:0] on_way;
  wire [  READ:0] on_way_next = {on_way, read_gnt};
  assign got_word = on_way[READ-1];

  // ---- output
  reg  [    PW-1:0] at;  // bus word of what was gathered
  reg  [ CUT_W-1:0] piece;  // of the word
  wire              cut = store && word_there;
  wire              drained = drain && fill == at;
  wire [ AHB_W-1:0] part = drain ? gathered[at*AHB_W+:AHB_W] : bytes;
  wire [TAKE_W-1:0] few = whole ? PIECE_T : avail[TAKE_W-1:0];
  wire              out_go = out_valid && out_ready;
  wire              on_path = used != {AW{1'b0}} || held != 3'd0 || write_req;
  assign out_valid = direct ? avail != {LVL_W{1'b0}} : drain ? !drained : cut;
  // of sixteen bytes at most
  wire [127+AHB_W:0] part_16 = {128'd0, part};
  wire [ 4+TAKE_W:0] count_16 = {5'd0, drain ? PIECE_T : few};
  assign out_piece[`KEPT_DATA] = store ? word[piece*128+:128] : part_16[127:0];
  assign out_piece[`KEPT_OFF] = 4'd0;
  assign out_piece[`KEPT_CNT] = store ? 5'd16 : count_16[4:0];
  assign take = direct ? (out_go ? few : {TAKE_W{1'b0}}) : gather ? PIECE_T : {TAKE_W{1'b0}};
  assign cut_word = cut && out_go && piece == LAST_CUT;

  reg [3:0] refused;  // cycles
  wire patient = refused != LAST_WAIT;

  always @(posedge clk) begin
    if (rst) begin
      way     <= DIRECT;
      refused <= 4'd0;
      fill    <= {PW{1'b0}};
      at      <= {PW{1'b0}};
      piece   <= {CUT_W{1'b0}};
    end else begin
      refused <= !(direct && whole && !out_ready) ? 4'd0 : refused + {3'd0, patient};
      case (way)
        DIRECT:  way <= (whole && !out_ready && !patient && words != {AW{1'b0}}) ? STORE : DIRECT;
        STORE:   way <= (on_path || gather || !out_ready) ? STORE : DRAIN;
        DRAIN:   way <= drained ? DIRECT : DRAIN;
        default: way <= DIRECT;
      endcase
      fill <= (drained || complete) ? {PW{1'b0}} : fill + {{(PW - 1) {1'b0}}, gather};
      at <= drained ? {PW{1'b0}} : at + {{(PW - 1) {1'b0}}, drain && out_go};
      piece <= cut_word ? {CUT_W{1'b0}} : piece + {{(CUT_W - 1) {1'b0}}, cut && out_go};
    end
  end

  always @(posedge clk) if (gather) gathered[fill*AHB_W+:AHB_W] <= bytes;

  // ---- the ring: sampled while it is empty
  wire empty = direct || (store && !on_path && !complete);
  wire [AW-1:0] last_word = size - {{(AW - 1) {1'b0}}, 1'b1};
  wire write_over = write_req && write_gnt;
  always @(posedge clk) begin
    if (rst) begin
      used   <= {AW{1'b0}};
      there  <= {AW{1'b0}};
      put    <= {AW{1'b0}};
      got    <= {AW{1'b0}};
      held   <= 3'd0;
      on_way <= {READ{1'b0}};
    end else begin
      used <= used + {{(AW - 1) {1'b0}}, complete} - {{(AW - 1) {1'b0}}, read_gnt};
      there <= there + {{(AW - 1) {1'b0}}, write_over} - {{(AW - 1) {1'b0}}, read_gnt};
      put    <= (empty || (write_over && put == last_word)) ? {AW{1'b0}} : put + {{(AW - 1) {1'b0}}, write_over};
      got    <= (empty || (read_gnt && got == last_word)) ? {AW{1'b0}} : got + {{(AW - 1) {1'b0}}, read_gnt};
      held <= held + {2'd0, read_gnt} - {2'd0, cut_word};
      on_way <= on_way_next[READ-1:0];
    end
  end
  always @(posedge clk) begin
    first <= empty ? base : first;
    size <= empty ? words : size;
    changed <= !empty && (first != base || size != words);
  end

  // words that are not written yet: the write-back and maps go before them
  localparam WRITES = 4;
  wire [2:0] writes;
  assign write_late = !ready_to_write;
  fifo_sync #(
      .WIDTH(8 * PATH),
      .DEPTH(WRITES)
  ) u_writes (
      .clk      (clk),
      .rst      (rst),
      .flush    (1'b0),
      .in_valid (complete),
      .in_ready (ready_to_write),
      .in_data  ({bytes, gathered[8*PATH-AHB_W-1:0]}),
      .out_valid(write_req),
      .out_ready(write_gnt),
      .out_data (write_data),
      .count    (writes)
  );

  // words read that are not cut up: always room, because held counts them
  wire places_ready;
  wire [2:0] places_count;
  fifo_sync #(
      .WIDTH(8 * PATH),
      .DEPTH(DEPTH)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .flush    (1'b0),
      .in_valid (got_word),
      .in_ready (places_ready),
      .in_data  (read_data),
      .out_valid(word_there),
      .out_ready(cut_word),
      .out_data (word),
      .count    (places_count)
  );

  generate
    if (PATH < 2 * BW) begin : g_illegal
      ILLEGAL_PATH_BELOW_TWO_BUS_WORDS u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, writes, places_ready, places_count, on_way_next, gathered, part_16, count_16};

`ifdef FORMAL_weight_ring
  `include "weight_ring_props.vh"
`endif

endmodule

`resetall
