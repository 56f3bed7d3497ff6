  // Properties of weight_ring: every byte leaves once and in order, through the AI RAM or past it. One arbitrary
  // byte is tracked, so that the properties hold for all; the AI RAM is a model of two words.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [7:0] f_place;  // of a byte in the stream
  reg f_began = 1'b0;
  reg [7:0] f_taken, f_left;  // bytes
  reg [7:0] f_kept;  // the byte, from its entry on
  reg [8*PATH-1:0] f_even, f_odd, f_read;  // words of the ring, and what a read gives
  reg [1:0] f_held;  // they were written and not read
  reg f_due;  // data of a read are due
  reg f_empty;  // in the previous cycle nothing was in the ring or on its way there
  reg [AW-1:0] f_base, f_words;
  reg [LVL_W-1:0] f_avail;
  reg [3:0] f_waits;  // cycles in which everybody would have served the ring

  wire [7:0] f_in_at = f_place - f_taken;
  wire f_enters = f_place >= f_taken && f_in_at < take;
  wire [7:0] f_entering = bytes[8*f_in_at+:8];
  wire [4:0] f_count = out_go ? out_piece[`KEPT_CNT] : 5'd0;
  wire [7:0] f_out_at = f_place - f_left;
  wire f_leaves = f_place >= f_left && f_out_at < f_count;
  wire [127:0] f_data = out_piece[`KEPT_DATA];
  wire [AW-1:0] f_put = write_word - first, f_got = read_word - first;
  wire [1:0] f_written = write_over ? 2'd1 << f_put : 2'd0;
  wire [1:0] f_fetched = read_gnt ? 2'd1 << f_got : 2'd0;
  wire f_served = out_ready && (!write_req || write_gnt) && (!read_req || read_gnt);

  always @(posedge clk) begin
    f_began <= f_began || rst;
    f_avail <= rst ? {LVL_W{1'b0}} : avail - take;
    f_taken <= rst ? 8'd0 : f_taken + take;
    f_left  <= rst ? 8'd0 : f_left + f_count;
    if (f_enters) f_kept <= f_entering;
    if (f_written[0]) f_even <= write_data;
    if (f_written[1]) f_odd <= write_data;
    f_held <= rst ? 2'd0 : f_written | (f_held & ~f_fetched);
    f_due  <= !rst && read_gnt;
    f_empty <= !rst && !drain && used == 0 && held == 0 && !write_req && !complete;
    {f_base, f_words} <= {base, words};
    f_read <= f_got[0] ? f_odd : f_even;
    f_waits <= (rst || !f_served || out_valid || f_taken == f_left) ? 4'd0 : f_waits + 4'd1;
  end

  always @(posedge clk) begin
    if (f_began && !rst) begin
      //: Bytes of the gearbox stay until they are accepted.
      gear : assume (avail >= f_avail && avail <= 3 * BW);
      //: Reads are granted where they are requested.
      grants : assume (!read_gnt || read_req);
      //: The AI RAM returns what was written, READ = 1 cycle after the grant.
      if (f_due) memory : assume (read_data == f_read);
      //: The ring has two words at most (so that it fills within the bound).
      small : assume (words <= 2);
      //: Short streams: the counts of bytes do not overflow.
      short : assume (f_taken < 8'd200);
      //: A byte leaves unchanged and in order: none is lost, none is doubled.
      if (f_leaves) in_order : assert (f_data[8*f_out_at+:8] == (f_enters ? f_entering : f_kept));
      //: No byte leaves that has not entered.
      entered : assert (f_left + f_count <= f_taken + take);
      //: A word is written in the ring.
      if (write_over) in_ring : assert (f_put < size);
      //: No word is written over one that was not read.
      not_over : assert ((f_written & f_held) == 0);
      //: A word is read once, after it was written.
      if (read_gnt) was_written : assert (f_fetched != 0 && (f_fetched & ~f_held) == 0);
      //: An empty ring has the rows that are named.
      if (f_empty) named : assert (first == f_base && size == f_words);
      //: The ring holds no more words than it has.
      never_over : assert (used <= size || direct);
      //: A word that was read finds a place.
      if (got_word) place_for_it : assert (places_ready);
      //: No deadlock: bytes that wait are offered if the AI RAM and the loader serve the ring.
      no_deadlock : assert (f_waits < 8);
      //: A full ring is read to its end, and the way is direct again.
      direct_again : cover (direct && f_taken >= 48 && f_left == f_taken && f_held == 0);
      //: A third word is written behind the wrap.
      wraps : cover (write_over && put == 0 && f_taken >= 48 && size == 2);
    end
  end
