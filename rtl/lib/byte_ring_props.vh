  // Properties of byte_ring. One arbitrary input byte is tracked.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  localparam FW = PTR_W + 2;
  (* anyseq *) reg f_pick;
  (* anyseq *) reg [CNT_W-1:0] f_which;
  reg f_held = 1'b0;
  reg [7:0] f_byte;
  reg [FW-1:0] f_ahead;  // bytes ahead of it
  wire f_enters = push && f_pick && !f_held && f_which < in_cnt;
  always @(posedge clk) begin
    if (rst || flush) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && f_ahead >= take);
    if (f_enters) f_byte <= in_data[8*(in_off+f_which)+:8];
    f_ahead <= f_enters ? level - take + f_which : f_ahead - take;
  end
  wire [PTR_W-1:0] f_end = {first_word, first_lane} + level;
  wire [PTR_W-1:0] f_place = {first_word, first_lane} + f_ahead;
  // the last take was not a multiple of UNIT: only a flush may follow
  reg f_odd = 1'b0;
  always @(posedge clk) f_odd <= !(rst || flush) && (f_odd || take % UNIT != 0);

  // every copy of the tracked byte, for proofs with two copies of four lanes or of two
  localparam F_TWO = IN_BYTES <= 4 && COPIES == 2;
  wire [WORD_W-1:0] f_look = f_place[PTR_W-1:OFF_W];
  wire [OFF_W-1:0] f_lane = f_place[OFF_W-1:0];
  (* hierconn *) wire [WORD_W-1:0] \g_lane[0].g_copy[0].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[0].g_copy[0].u_ram.f_seen ;
  assign \g_lane[0].g_copy[0].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[0].g_copy[1].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[0].g_copy[1].u_ram.f_seen ;
  assign \g_lane[0].g_copy[1].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[1].g_copy[0].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[1].g_copy[0].u_ram.f_seen ;
  assign \g_lane[1].g_copy[0].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[1].g_copy[1].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[1].g_copy[1].u_ram.f_seen ;
  assign \g_lane[1].g_copy[1].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[2].g_copy[0].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[2].g_copy[0].u_ram.f_seen ;
  assign \g_lane[2].g_copy[0].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[2].g_copy[1].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[2].g_copy[1].u_ram.f_seen ;
  assign \g_lane[2].g_copy[1].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[3].g_copy[0].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[3].g_copy[0].u_ram.f_seen ;
  assign \g_lane[3].g_copy[0].u_ram.f_look = f_look;
  (* hierconn *) wire [WORD_W-1:0] \g_lane[3].g_copy[1].u_ram.f_look ;
  (* hierconn *) wire [7:0] \g_lane[3].g_copy[1].u_ram.f_seen ;
  assign \g_lane[3].g_copy[1].u_ram.f_look = f_look;
  wire [15:0] f_copies =
      f_lane == 0 ? {\g_lane[0].g_copy[1].u_ram.f_seen , \g_lane[0].g_copy[0].u_ram.f_seen } :
      f_lane == 1 ? {\g_lane[1].g_copy[1].u_ram.f_seen , \g_lane[1].g_copy[0].u_ram.f_seen } :
      f_lane == 2 ? {\g_lane[2].g_copy[1].u_ram.f_seen , \g_lane[2].g_copy[0].u_ram.f_seen } :
      {\g_lane[3].g_copy[1].u_ram.f_seen , \g_lane[3].g_copy[0].u_ram.f_seen };

  reg f_zero;  // all bytes beyond the level are zero
  integer f_i;
  always @* begin
    f_zero = 1'b1;
    for (f_i = 0; f_i < OUT_BYTES; f_i = f_i + 1) begin
      if (f_i >= level) f_zero = f_zero && out_data[8*f_i+:8] == 0;
    end
  end

  reg f_ran = 1'b0;
  always @(posedge clk) f_ran <= 1'b1;
  // bytes accepted and not yet output
  reg [FW-1:0] f_total = 0;
  always @(posedge clk) f_total <= (rst || flush) ? 0 : f_total + added - take;

  always @(posedge clk) begin
    if (!rst) begin
      //: The valid bytes lie within the input word.
      in_word : assume (in_off + in_cnt <= IN_BYTES);
      //: The consumer takes only available bytes, a window at most.
      take_there : assume (take <= level && take <= OUT_BYTES);
      //: Every take is a multiple of UNIT, except the last one before a flush.
      take_units : assume (!f_odd || take == 0);
      //: A byte is in the window at the position given by the bytes ahead of it.
      if (f_held && f_ahead < OUT_BYTES && !f_odd) in_order : assert (out_data[8*f_ahead+:8] == f_byte);
      //: A byte is counted from entry to exit: none is lost.
      if (f_held) none_lost : assert (f_ahead < level);
      //: The level equals the bytes accepted and not yet output: none is duplicated.
      if (f_ran) none_doubled : assert (f_total == level);
      //: The level stays within the ring's capacity.
      level_range : assert (level <= CAP);
      //: (invariant) The end of the ring is level bytes after its start.
      if (!f_odd) pointers : assert ({end_word, end_lane} == f_end);
      //: (invariant) Both copies of the tracked byte are stored at its position.
      if (F_TWO && f_held && !f_odd) stored : assert (f_copies == {f_byte, f_byte});
      //: The window is zero behind the last byte.
      zero_beyond : assert (f_zero);
      //: A word is accepted when there is room for all of its bytes.
      flags : assert (in_ready == (level + IN_BYTES <= CAP));
      //: The tracked byte leaves, and was not the first.
      tracked_leaves : cover (f_held && f_ahead < take && f_ahead == 1);
      //: The ring is full.
      becomes_full : cover (level == CAP);
    end
  end
