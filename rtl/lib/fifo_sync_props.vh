  // Properties of fifo_sync. One arbitrary input word is tracked, so that its properties hold for all.
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
  wire [COUNT_W:0] f_place = rd_ptr + f_ahead;
  assign \u_ram.f_look = f_place >= DEPTH ? f_place - DEPTH : f_place;
  wire [COUNT_W:0] f_end = rd_ptr + count;

  reg f_ran = 1'b0;
  always @(posedge clk) f_ran <= 1'b1;
  // words accepted and not yet output
  reg [COUNT_W:0] f_total = 0;
  always @(posedge clk) f_total <= (rst || flush) ? 0 : f_total + push - pop;

  always @(posedge clk) begin
    if (!rst) begin
      //: A word leaves unchanged and in FIFO order.
      if (f_held && f_ahead == 0) in_order : assert (out_valid && out_data == f_word);
      //: A word is counted from entry to exit: none is lost.
      if (f_held) none_lost : assert (f_ahead < count);
      //: The count equals the words accepted and not yet output: none is duplicated.
      if (f_ran) none_doubled : assert (f_total == count);
      //: (invariant) The tracked word is stored at its position.
      if (f_held) stored : assert (\u_ram.f_seen == f_word);
      //: The count stays within the depth.
      count_range : assert (count <= DEPTH);
      //: A word is accepted unless the FIFO is full, and offered unless it is empty.
      flags : assert (in_ready == (count != DEPTH) && out_valid == (count != 0));
      //: (invariant) The pointers are count words apart.
      pointers : assert (rd_ptr < DEPTH && wr_ptr == (f_end >= DEPTH ? f_end - DEPTH : f_end));
      //: The FIFO becomes full.
      becomes_full : cover (count == DEPTH);
      //: The tracked word leaves a FIFO that filled behind it.
      tracked_leaves : cover (f_leaves && count == DEPTH);
    end
  end
