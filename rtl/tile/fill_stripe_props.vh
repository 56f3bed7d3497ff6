  // Properties of fill_stripe: what a stripe reads lies in the input map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_on = 1'b0;  // a layer was started
  reg [`DESC_BITS-1:0] f_desc;
  reg f_whole, f_k3_taps;
  wire [3:0] f_words = (n_w + 11'd63) >> 6;  // rows of a line
  wire [10:0] f_kw = desc[`DESC_KW];
  wire [9:0] f_kh = desc[`DESC_KH];
  wire [2:0] f_swl = desc[`DESC_SWL];
  // first line times rows of a line, by adding
  wire [14:0] f_y = {5'd0, first_y};
  wire [14:0] f_above = (irl[3] ? f_y << 3 : 15'd0) + (irl[2] ? f_y << 2 : 15'd0) +
      (irl[1] ? f_y << 1 : 15'd0) + (irl[0] ? f_y : 15'd0);
  always @(posedge clk) begin
    f_on <= !rst && (start || f_on);
    f_desc <= desc;
    f_whole <= whole;
    f_k3_taps <= k3_taps;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The grid is the map, or the part of it that a pick's stride leaves; sizes are those that the layer decoder accepts.
      if (start || f_on) grid_legal : assume (n_w != 0 && n_w <= 960 && n_h != 0 && n_h <= 512 &&
          f_kw != 0 && f_kw <= 1024 && f_kh != 0 && f_kh <= 512 && stl <= 2 &&
          ({2'd0, f_kw} << stl) <= n_w && ({2'd0, f_kh} << stl) <= n_h && (!ph || stl == 1) &&
          f_swl >= 4 && f_swl <= 6 && !(overlap && f_swl == 6) && irl == f_words);
      //: The layer stands from its start on.
      if (f_on && !start) layer_stands : assume (desc == f_desc && whole == f_whole && k3_taps == f_k3_taps);
      //: A stripe is taken only when it is there.
      if (taken) taken_when_there : assume (ready && !start);
      if (f_on && !start && ready) begin
        //: A stripe reads lines of the map only.
        lines_inside : assert (first_y <= last_y && last_y < n_h);
        //: It reads words of a line only.
        words_inside : assert (first_s <= last_s && {last_s, {TB{1'b0}}} < n_w);
        //: It begins in the row of its first line: so many lines below the first row of the map.
        row_of_line : assert (row == (desc[`DESC_SRC] + f_above) % 32768);
      end
      //: (invariant) The stripe lies in the grid.
      if (f_on && !start) grid : assert (stripe_gx < f_kw && stripe_gy < f_kh);
      //: (invariant) What the first step kept is the stripe.
      if (f_on && !start && steps >= 1) kept : assert (p_gx == stripe_gx && p_gy == stripe_gy && p_lines == stripe_lines &&
          p_reach == stripe_width - 7'd1 && p_last == (whole || (stripe_last_x && stripe_last_y)));
      //: (invariant) What the second step worked out is of the stripe.
      if (f_on && !start && steps >= 2) worked_out : assert (last_y == (whole ? n_h - 10'd1 : y_end + {9'd0, k3_taps && y_end != n_h - 10'd1}) &&
          first_y == (whole ? 10'd0 : y_top - {9'd0, up_tap}) && first_s == (whole ? {NB{1'b0}} : x_first[9:TB]) &&
          last_s == x_last[9:TB] && last == (whole || (stripe_last_x && stripe_last_y)));
      //: (invariant) What the third step worked out is of the stripe.
      if (f_on && !start && steps == 3) multiplied : assert (rows == rows_low + rows_high);
    end
    //: A stripe below and to the right of the first one is taken.
    second_row : cover (!rst && f_on && taken && first_y != 0 && first_s != 0);
  end
