  // Properties of dma_write: the bursts cover the bytes of a request, in order, and their data are
  // available.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  wire cmd_wrap = burst[`BURST_WRAP];
  wire [31:0] cmd_addr = cmd[`CMD_ADDR];
  wire [4:0] cmd_beats = cmd[`CMD_BEATS];
  wire [2:0] cmd_size = cmd[`CMD_SIZE];
  reg f_on = 1'b0;  // a request is active
  reg [32:0] f_next;  // its next byte
  reg [24:0] f_left;  // remaining bytes
  reg [`OWNER_BITS-1:0] f_owner;
  reg [NW+1:0] f_owed = 0;  // words of issued bursts, not yet popped
  reg [NW+1:0] f_taken = 0;  // popped words that may be rewound
  // one arbitrary word is tracked: words ahead of it, its position
  (* hierconn *) wire [PW-1:0] \u_words.f_look ;
  (* hierconn *) wire [AHB_W-1:0] \u_words.f_seen ;
  (* anyseq *) reg f_pick;
  reg f_tracked = 1'b0;
  reg [AHB_W-1:0] f_word;
  reg [FW-1:0] f_ahead;
  reg [PW-1:0] f_place;
  wire f_enters = in_push && f_pick && !f_tracked;
  always @(posedge clk) begin
    if (rst || flush) f_tracked <= 1'b0;
    else f_tracked <= f_enters || (f_tracked && !(wd_free && f_ahead == 0));
    if (f_enters) f_word <= store_data;
    if (f_enters) f_place <= wr_ptr;
    f_ahead <= (f_enters ? held : f_ahead) - wd_free;
  end
  assign \u_words.f_look = f_place;
  reg f_saw_back = 1'b0;
  always @(posedge clk) f_saw_back <= !rst && !flush && (f_saw_back || (f_tracked && wd_back == 2));
  wire [24:0] f_bytes = {20'd0, cmd_beats} << cmd_size;
  wire f_begins = store_req_valid && store_req_ready && req_len != 0;
  always @(posedge clk) begin
    if (rst || flush) begin
      f_on   <= 1'b0;
      f_owed <= 0;
      f_taken <= 0;
    end else begin
      f_on   <= f_begins || (f_on && !(cmd_take && cmd_last));
      f_owed <= f_owed + spent - wd_pop + wd_back;
      f_taken <= f_taken + wd_pop - wd_back - wd_free;
    end
    if (f_begins) begin
      f_next  <= {1'b0, req_addr};
      f_left  <= req_len;
      f_owner <= store_req[`REQ_OWNER];
    end else if (cmd_take) begin
      f_next <= f_next + f_bytes;
      f_left <= f_left - f_bytes;
    end
  end
  wire [24:0] f_in_blocks = {blocks, {BB{1'b0}}};

  always @(posedge clk) begin
    if (!rst) begin
      //: A burst is accepted only while it is proposed.
      if (cmd_take) take_wanted : assume (cmd_want);
      //: The master pops one word for each word of an issued burst, and no other.
      if (wd_pop) pop_owed : assume (f_owed != 0);
      //: It rewinds at most two popped words, and not in the cycle of a pop.
      back_taken : assume (wd_back <= 2 && wd_back <= f_taken && !(wd_pop && wd_back != 0));
      //: It retires only a popped word that it does not rewind.
      if (wd_free) free_taken : assume (f_taken != 0 && wd_back < f_taken);
      //: Requests begin at a bus word.
      if (store_req_valid) req_aligned : assume (req_addr[OW-1:0] == 0);
      //: A burst begins where the previous one ended: no byte is skipped or written twice.
      if (cmd_want) address : assert (f_on && {cmd_wrap, cmd_addr} == f_next && tag[`DMA_TAG_OWNER] == f_owner);
      //: A burst stays within its request, and is the last one when the request ends with it.
      if (cmd_want) length : assert (cmd_beats != 0 && f_bytes <= f_left && cmd_last == (f_bytes == f_left));
      //: A burst is aligned and crosses no block of MAX_BURST words, so no 1 KiB.
      if (cmd_want) block : assert ((f_next & ((33'd1 << cmd_size) - 1)) == 0 && cmd_size <= OW && cmd_beats <= 16 &&
          f_next[BB-1:0] + f_bytes <= (1 << BB));
      //: All words of a burst are in the FIFO when it is proposed.
      if (cmd_want) data_there : assert (ready >= (bulk ? beats_w : 1));
      //: The FIFO holds all words of its bursts: it is never popped empty.
      words : assert (held == ready + f_owed + f_taken && ready + f_owed + f_taken <= FIFO_DEPTH);
      //: The master pops words in FIFO order; rewound words are popped again.
      if (f_tracked && f_ahead == f_taken) in_order : assert (wd_data == f_word);
      //: (invariant) The tracked word keeps its position until it is written, within the held words.
      if (f_tracked) kept : assert (\u_words.f_seen == f_word && f_ahead < held &&
          f_place == rd_ptr - f_taken[PW-1:0] + f_ahead[PW-1:0]);
      //: (invariant) The distance of the pointers equals the words not yet popped.
      pointers : assert (wr_ptr == rd_ptr - f_taken[PW-1:0] + held[PW-1:0]);
      //: A failed channel proposes nothing.
      if (failed) contained : assert (!cmd_want);
      //: A request ends with its last byte.
      idle_when_done : assert (idle == !f_on && (!f_on || f_left != 0));
      //: (invariant) The counters match the remaining bytes.
      if (cur_valid) counters : assert (f_next == {wrap, cur_word, cur_byte} && owner == f_owner &&
          f_left == (in_rest ? 25'd0 : f_in_blocks) + {rest, {OW{1'b0}}} - {from, {OW{1'b0}}} + tail &&
          (in_rest ? from <= rest : blocks != 0) && (cur_byte == 0 || (in_rest && from == rest)) &&
          rest <= MASK_C && (from & ~MASK_C) == 0 && ((tail + cur_byte) & ~((1 << OW) - 1)) == 0 &&
          (cur_byte & ((cur_byte & -cur_byte) - 1)) == 0 && (tail == 0 || (tail & -cur_byte) == 0 || cur_byte == 0) &&
          f_left <= 25'hFFFFFF);
      //: (invariant) A proposal belongs to a request.
      if (want) proposal : assert (cur_valid && (bulk || tail != 0) && ready >= (bulk ? beats_w : 1));
      //: A word is rewound, and all are written.
      taken_back : cover (f_saw_back && f_tracked && wd_free && f_ahead == 0);
      //: A request of three bursts with a tail ends.
      tail_ends : cover (cmd_take && cmd_last && !bulk && cur_byte != 0);
    end
  end
