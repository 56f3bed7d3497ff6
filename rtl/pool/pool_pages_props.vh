  // Properties of pool_pages. One arbitrary input byte is tracked, so that its properties hold for all.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end
  always @(posedge clk) begin
    //: A group has at least one byte, and at most one per lane.
    groups : assume (in_count != 0 && in_count <= LANES);
  end

  (* anyseq *) reg f_pick;
  (* anyseq *) reg [CW-1:0] f_lane;
  reg f_held = 1'b0;
  reg f_last;  // it is the last of its line
  reg [7:0] f_byte;
  reg [3:0] f_place;
  wire f_enters = got && f_pick && !f_held && f_lane < in_count;
  wire [4:0] f_reach = place + f_lane;
  wire f_leaves;
  always @(posedge clk) begin
    if (rst) f_held <= 1'b0;
    else f_held <= f_enters || (f_held && !f_leaves);
    if (f_enters) begin
      f_byte <= in_byte[8*f_lane+:8];
      f_place <= f_reach[3:0];
      f_last <= in_end && f_lane == in_count - 1'b1;
    end
  end

  generate
    if (LANES == 1) begin : g_chain_props
      reg f_in;  // it is in the page being filled
      assign f_leaves = sent && !f_in;
      always @(posedge clk) begin
        f_in <= f_enters || (f_in && !g_chain.pass);
        if (!rst) begin
          //: (invariant) Bytes are accepted unless both pages are complete.
          chain_moves : assert (move == (!g_chain.full || !g_chain.waits));
          //: (invariant) A complete page restarts at its first position.
          if (g_chain.full) chain_first_place : assert (place == 4'd0);
          //: (invariant) The tracked byte is stored at its position, below the next byte's.
          if (f_held && f_in)
            filled_there : assert (g_chain.filled[8*f_place+:8] == f_byte &&
                (g_chain.full || f_place < place));
          //: (invariant) A page with the last byte of a line is complete.
          if (f_held && f_in && f_last) chain_complete : assert (g_chain.full && g_chain.full_end);
          //: (invariant) ... or in the pending page.
          if (f_held && !f_in)
            waiting_there : assert (g_chain.waits && page[8*f_place+:8] == f_byte);
          //: The last byte of a line leaves in a page that ends it.
          if (f_held && !f_in && f_last) chain_line_ends : assert (page_end);
        end
      end
    end else begin : g_turns_props
      reg f_page;  // the page that holds it
      wire f_crosses = f_reach[4];
      assign f_leaves = sent && f_page == g_turns.leave;
      always @(posedge clk) begin
        if (f_enters) f_page <= g_turns.fill ^ f_crosses;
        if (!rst) begin
          //: (invariant) The page that leaves next was filled first.
          in_turn : assert (g_turns.full == 2'b00 || g_turns.full == 2'b11 ?
              g_turns.fill == g_turns.leave :
              g_turns.full[g_turns.leave] && g_turns.fill != g_turns.leave);
          //: (invariant) A full page restarts at its first position.
          if (g_turns.full == 2'b11) first_place : assert (place == 4'd0);
          //: (invariant) The tracked byte is stored at its position, below the next byte's or in a full page.
          if (f_held)
            stored : assert (g_turns.pages[128*f_page+8*f_place+:8] == f_byte &&
                (g_turns.full[f_page] || (f_page == g_turns.fill && f_place < place)));
          //: (invariant) A page with the last byte of a line is full and ends it.
          if (f_held && f_last)
            complete : assert (g_turns.full[f_page] && g_turns.line_ends[f_page]);
          //: The last byte of a line leaves in a page that ends it.
          if (f_held && f_last && f_leaves) line_ends : assert (page_end);
        end
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (!rst) begin
      //: A byte leaves at its position in a page.
      if (f_held && f_leaves) same_byte : assert (page_valid && page[8*f_place+:8] == f_byte);
      //: The tracked byte leaves, while another page is filled.
      byte_leaves : cover (f_held && f_leaves && place != 4'd0);
    end
  end
