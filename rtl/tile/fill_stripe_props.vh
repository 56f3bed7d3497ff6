  // Properties of fill_stripe: all lines and words of a stripe lie in the input map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_on = 1'b0;  // a layer was started
  reg [`DESC_BITS-1:0] f_desc;
  reg f_whole, f_k3_taps;
  wire [3:0] f_words = (n_w + 11'd63) >> 6;  // rows per line
  wire [10:0] f_kw = desc[`DESC_KW];
  wire [9:0] f_kh = desc[`DESC_KH];
  wire [2:0] f_swl = desc[`DESC_SWL];
  wire f_overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
  // f_row: row of the stripe's first line, by multiplication; f_will: final value of the row, from the
  // partial sum and the remaining bits
  wire [14:0] f_y = {5'd0, y_first};
  wire [14:0] f_row_1 = desc[`DESC_SRC] + (irl[0] ? f_y : 15'd0);
  wire [14:0] f_row_2 = f_row_1 + (irl[1] ? f_y << 1 : 15'd0);
  wire [14:0] f_row_3 = f_row_2 + (irl[2] ? f_y << 2 : 15'd0);
  wire [14:0] f_row = f_row_3 + (irl[3] ? f_y << 3 : 15'd0);
  wire [14:0] f_will_1 = row + (factor[0] ? multiple : 15'd0);
  wire [14:0] f_will_2 = f_will_1 + (factor[1] ? multiple << 1 : 15'd0);
  wire [14:0] f_will_3 = f_will_2 + (factor[2] ? multiple << 2 : 15'd0);
  wire [14:0] f_will = f_will_3 + (factor[3] ? multiple << 3 : 15'd0);
  // the same for the rows from one tap row to the next
  wire [14:0] f_hop_y = {11'd0, apart} + 15'd1 - {12'd0, p_lines};
  wire [14:0] f_hop_1 = irl[0] ? f_hop_y : 15'd0;
  wire [14:0] f_hop_2 = f_hop_1 + (irl[1] ? f_hop_y << 1 : 15'd0);
  wire [14:0] f_hop_3 = f_hop_2 + (irl[2] ? f_hop_y << 2 : 15'd0);
  wire [14:0] f_hop = f_hop_3 + (irl[3] ? f_hop_y << 3 : 15'd0);
  wire [14:0] f_part;
  generate
    if (DILATION > 1) begin : g_part
      assign f_part = g_hop.part;
    end else begin : g_no_part
      assign f_part = 15'd0;
    end
  endgenerate
  wire [14:0] f_hops = stripe[`STRIPE_HOP];
  wire [14:0] f_hops_1 = f_hops + (factor[0] ? f_part : 15'd0);
  wire [14:0] f_hops_2 = f_hops_1 + (factor[1] ? f_part << 1 : 15'd0);
  wire [14:0] f_hops_3 = f_hops_2 + (factor[2] ? f_part << 2 : 15'd0);
  wire [14:0] f_hops_4 = f_hops_3 + (factor[3] ? f_part << 3 : 15'd0);
  // columns and lines of the grid from the registered stripe on; those of a full stripe
  wire [10:0] f_left_x = f_kw - p_gx;
  wire [9:0] f_left_y = f_kh - p_gy;
  wire [10:0] f_width = 11'd1 << f_swl;
  wire [9:0] f_lines = 10'd1 << (3'd6 - f_swl);
  wire [9:0] f_last_line = y_first + stripe[`STRIPE_REACH];
  wire [NB:0] f_words_read = {1'b0, last_s} - {1'b0, first_s};
  // dilation: lines of the lower tap row
  wire [11:0] f_low = stripe[`STRIPE_REACH] + 12'd1 - (index == 4 ? 12'd0 : p_lines - {9'd0, index}) - p_lines;
  always @(posedge clk) begin
    f_on <= !rst && (start || f_on);
    f_desc <= desc;
    f_whole <= whole;
    f_k3_taps <= k3_taps;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The grid is the map, or the part of it selected by the stride of a pick.
      if (start || f_on) grid_legal : assume (f_kw != 0 && f_kw <= 1024 && f_kh != 0 && f_kh <= 512 &&
          stl <= 2 && ({2'd0, f_kw} << stl) <= n_w && ({2'd0, f_kh} << stl) <= n_h && (!ph || stl == 1));
      //: Sizes are within the limits of the layer decoder.
      if (start || f_on) sizes_legal : assume (n_w != 0 && n_w <= 960 && n_h != 0 && n_h <= 512 &&
          f_swl >= 4 && f_swl <= 6 && !(f_overlap && f_swl == 6) && irl == f_words);
      //: Dilation is that of 3x3 windows without picks and overlapping pools (layer_flags).
      if (start || f_on) dilation_legal : assume (desc[`DESC_DIL] == 0 || (DILATION > 1 && desc[`DESC_DIL] < DILATION &&
          k3_taps && !whole && stl == 0 && !ph && !f_overlap && !desc[`DESC_FLAT]));
      //: The layer's descriptor is stable from its start on.
      if (f_on && !start) layer_stands : assume (desc == f_desc && whole == f_whole && k3_taps == f_k3_taps &&
          right == n_w - 11'd1);
      //: A stripe is accepted only while it is ready.
      if (taken) taken_when_there : assume (ready && !start);
      if (f_on && !start && ready) begin
        //: A stripe reads lines of the map only.
        lines_inside : assert (y_first <= last_y && last_y < n_h);
        //: The last line read follows from the first one and STRIPE_REACH; with dilation lines are left out.
        lines_read : assert (far || f_last_line == last_y);
        //: A stripe reads words within a line only.
        words_inside : assert (first_s <= last_s && {last_s, {TB{1'b0}}} < n_w);
        //: The words read are those that its pixels span, plus the extra word before and after.
        words_used : assert (whole || f_words_read == {1'b0, x_reach[8:TB]} + pre + post);
        //: The row is that of its first line: the map's first row plus the rows of the lines above.
        row_of_line : assert (row == f_row);
        //: With dilation the rows from a tap row's last line to the next one's first line are those of d + 1 lines
        //: less the lines of the stripe.
        if (far) row_of_taps : assert (f_hops == f_hop);
        //: With dilation, each line read is one of the map: those of the upper tap row end above the middle ones, and
        //: so on; a tap row without lines in the map is left out.
        if (far) taps_inside : assert (
            p_lines != 0 && p_lines <= 4 && (index < p_lines || index == 4) &&
            (index == 4 ? y_first == p_gy : {2'd0, y_first} + apart == p_gy + {9'd0, index}) &&
            p_gy + {9'd0, p_lines} <= n_h && f_low <= p_lines && (f_low == 0 || p_gy + apart + f_low <= n_h));
      end
      //: (invariant) The registered grid is that of the layer.
      if (f_on && !start) grid_of_layer : assert (kw == f_kw && kh == f_kh && swl == f_swl && overlap == f_overlap);
      //: (invariant) ... and the dilation.
      if (f_on && !start && DILATION > 1) apart_of_layer : assert (
          far == (desc[`DESC_DIL] != 0) && apart == desc[`DESC_DIL] + 4'd1);
      //: (invariant) The stripe lies in the grid.
      if (f_on && !start) grid : assert (stripe_gx < f_kw && stripe_gy < f_kh);
      //: (invariant) Without overlap it begins at a multiple of its width.
      if (f_on && !start && far) aligned : assert (
          ((stripe_gx | (p_there ? p_gx : 10'd0)) & (f_width[9:0] - 10'd1)) == 0);
      //: (invariant) The second step follows the first.
      if (f_on && !start) in_turn : assert (p_there || !there);
      //: (invariant) The whole map is one stripe.
      if (f_on && !start && whole) one_stripe : assert (stripe_gx == 0 && stripe_gy == 0 && (!p_there || p_gx == 0 &&
          p_gy == 0));
      //: (invariant) The first step's registers hold the iterator's stripe until the iterator advances.
      if (f_on && !start && onward) kept : assert (p_gx == stripe_gx && p_gy == stripe_gy);
      //: (invariant) The first step's registers hold a stripe of the grid.
      if (f_on && !start && p_there) kept_of_grid : assert (p_gx < f_kw && p_gy < f_kh && p_low ==
          (f_left_y <= f_lines) &&
          p_lines == (p_low ? f_left_y : f_lines) && p_reach == (f_left_x <= f_width ? f_left_x : f_width) - 1 &&
          p_last == (whole || (f_left_x <= f_width && p_low)));
      //: (invariant) The lines computed by the second step are those of the stripe.
      if (f_on && !start && there) lines_worked_out : assert (last_y == y_last && last == p_last &&
          reach == (far ? far_reach : y_reach + {3'd0, up_tap} + {3'd0, down_tap}) && (!far || index == far_index));
      //: (invariant) ... and so are the words.
      if (f_on && !start && there) words_worked_out : assert (first_s == (whole ? {NB{1'b0}} : x_lo[9:TB] - pre_word) &&
          last_s == (beyond ? right[9:TB] : x_next[9:TB]) && pre == (!whole && pre_word) &&
          post == (!whole && carries && !beyond));
      //: (invariant) The partial sum plus the remaining terms equals the product.
      if (f_on && !start && there) multiplies : assert (f_will == f_row);
      //: (invariant) ... also for the rows between tap rows.
      if (f_on && !start && there && far) multiplies_hop : assert (f_hops_4 == f_hop);
    end
    //: A stripe below and to the right of the first one is accepted.
    second_row : cover (!rst && f_on && taken && y_first != 0 && first_s != 0);
  end
