  // Properties of fifo_ram. One arbitrary input word is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* hierconn *) wire [PTR_W-1:0] \u_ram.f_look ;
  (* hierconn *) wire [WIDTH-1:0] \u_ram.f_seen ;
  (* anyseq *) reg f_pick;
  reg f_held = 1'b0;
  reg [WIDTH-1:0] f_word;
  reg [COUNT_W-1:0] f_ahead;  // words ahead of it
  wire f_enters = push && f_pick && !f_held;
  wire f_leaves = f_held && pop && f_ahead == 0;
  always @(posedge clk) begin
    if (rst || flush) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && !f_leaves);
    if (f_enters) f_word <= in_data;
    f_ahead <= f_enters ? count - pop : f_ahead - (f_held && pop);
  end
  wire [COUNT_W+1:0] f_place = rd_ptr + f_ahead - out_valid;
  assign \u_ram.f_look = f_place >= DEPTH ? f_place - DEPTH : f_place;
  wire [COUNT_W:0] f_end = rd_ptr + stored;
  reg [1:0] f_waits = 2'd0;  // cycles with words held, none offered
  always @(posedge clk) f_waits <= (rst || flush || out_valid || count == 0) ? 2'd0 : f_waits + 1'b1;

  reg f_ran = 1'b0;
  always @(posedge clk) f_ran <= 1'b1;
  // words accepted and not yet output
  reg [COUNT_W:0] f_total = 0;
  always @(posedge clk) f_total <= (rst || flush) ? 0 : f_total + push - pop;

  always @(posedge clk) begin
    if (!rst) begin
      //: A word leaves unchanged and in FIFO order.
      if (f_held && f_ahead == 0 && out_valid) in_order : assert (out_data == f_word);
      //: A word is counted from entry to exit: none is lost.
      if (f_held) none_lost : assert (f_ahead < count);
      //: The count equals the words accepted and not yet output: none is duplicated.
      if (f_ran) none_doubled : assert (f_total == count);
      //: (invariant) The tracked word is stored at its position, unless it is at the output.
      if (f_held && !(out_valid && f_ahead == 0)) kept : assert (\u_ram.f_seen == f_word);
      //: The count covers the words in the memory and at the output, and stays within the depth.
      count_range : assert (count <= DEPTH && stored <= DEPTH && count == stored + out_valid);
      //: A word is accepted unless the FIFO is full.
      flags : assert (in_ready == (count != DEPTH));
      //: A word is offered in the second cycle after it enters an empty FIFO.
      visible : assert (f_waits == 0 || (f_waits == 1 && out_valid));
      //: (invariant) The distance of the pointers equals the words stored.
      pointers : assert (rd_ptr < DEPTH && wr_ptr == (f_end >= DEPTH ? f_end - DEPTH : f_end));
      //: The FIFO becomes full.
      becomes_full : cover (count == DEPTH);
      //: The tracked word leaves a FIFO that filled behind it.
      tracked_leaves : cover (f_leaves && count == DEPTH);
    end
  end
