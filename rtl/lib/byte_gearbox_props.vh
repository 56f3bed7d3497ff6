  // Properties of byte_gearbox, seen from its ports. One arbitrary input byte is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyseq *) reg f_pick;
  (* anyseq *) reg [CNT_W-1:0] f_which;
  reg f_held = 1'b0;
  reg [7:0] f_byte;
  reg [LVL_W:0] f_ahead;  // bytes ahead of it
  reg [LVL_W:0] f_level = 0;  // bytes accepted and not yet output
  wire f_push = in_valid && in_ready;
  wire [LVL_W:0] f_added = f_push ? in_cnt : 0;
  wire f_enters = f_push && f_pick && !f_held && f_which < in_cnt;
  always @(posedge clk) begin
    if (rst || flush) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && f_ahead >= take);
    if (f_enters) f_byte <= in_data[8*(in_off+f_which)+:8];
    f_ahead <= f_enters ? f_level - take + f_which : f_ahead - take;
    f_level <= (rst || flush) ? 0 : f_level + f_added - take;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The valid bytes lie within the input word.
      in_word : assume (in_off + in_cnt <= IN_BYTES);
      //: The consumer takes only available bytes, a window at most, a multiple of UNIT.
      take_there : assume (take <= avail && take <= OUT_BYTES && take % UNIT == 0);
      //: A byte is in the window at the position given by the bytes ahead of it.
      if (f_held && f_ahead < OUT_BYTES && f_ahead < avail) in_order : assert (out_data[8*f_ahead+:8] == f_byte);
      //: Never more bytes are offered than were accepted.
      none_made : assert (avail <= f_level);
      //: A consumer that takes everything available gets every byte: a full gearbox offers a window.
      if (!in_ready) window_when_full : assert (avail >= OUT_BYTES);
      //: The tracked byte leaves, and was not the first.
      tracked_leaves : cover (f_held && f_ahead < take && f_ahead == 1);
    end
  end
