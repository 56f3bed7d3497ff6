  // Properties of fill_seq: every word read lies in the input map, or in the second map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  // last word of a line read as a whole: of a full unit, of the last one
  (* hierconn *) wire [9-TB:0] \u_units.full_last ;
  (* hierconn *) wire [9-TB:0] \u_units.tail_last ;
  (* hierconn *) wire [10:0] \u_units.full_right ;
  (* hierconn *) wire [10:0] \u_units.tail_right ;
  wire [13:0] n_c = desc[`DESC_C];
  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  reg f_on = 1'b0;  // a layer was started
  reg [1:0] f_age = 2'd0;  // cycles since then
  reg [`DESC_BITS-1:0] f_desc;
  reg [15:0] f_c;  // first channel of the current unit
  reg [16:0] f_above, f_above_0;  // rows of the lines above the current one, above the stripe's first one
  reg [11:0] f_y, f_first_y;  // current line, the stripe's first line
  reg [26:0] f_lo, f_lo2;  // first row of the group of channels, in either map
  // requested word: first row of its group of channels in its map, rows of the lines above, word index
  reg [26:0] f_asked_row;
  reg [16:0] f_asked_above;
  reg [10:0] f_asked_word;
  wire [9:0] n_h = desc[`DESC_H];
  wire [13:0] f_ics = desc[`DESC_ICS];
  wire [1:0] f_mode = desc[`DESC_MODE];
  wire f_dwrow = f_mode == `MODE_DWROW;
  wire f_chan = f_mode == `MODE_CHAN;
  wire [1:0] f_gl = (ip == 0) ? 2'd2 : (ip == 1) ? 2'd1 : 2'd0;  // log2 of the channels in a row
  wire [1:0] f_mask = (ip == 0) ? 2'd3 : (ip == 1) ? 2'd1 : 2'd0;
  // words of a row before the unit; word index from the beginning of the line, or of the row
  wire [1:0] f_sub = f_c[1:0] & f_mask;
  wire [5:0] f_before = ({4'd0, f_sub} << (ip + 3'd4)) >> TB;
  wire [10:0] f_word = f_before + s;
  wire [14:0] f_row = (map2 ? f_lo2 : f_lo) + f_above;
  wire [14:0] f_stripe_rows = following[`STRIPE_ROW] - desc[`DESC_SRC];
  wire [16:0] f_stripe_above = {2'd0, f_stripe_rows};
  wire [9:0] f_reach = following[`STRIPE_REACH];
  wire [NB-1:0] f_first_s = following[`STRIPE_FIRST];
  wire [NB-1:0] f_last_s = following[`STRIPE_FINAL];
  (* anyseq *) reg [11:0] f_stripe_y;  // first line of the next stripe
  // dilation: the first line of the middle tap row; lines of the lower one; tap row and line in it
  wire f_far = DILATION > 1 && desc[`DESC_DIL] != 3'd0;
  wire [11:0] f_d = {9'd0, desc[`DESC_DIL]} + 12'd1;
  wire [2:0] f_next_lines = following[`STRIPE_LINES], f_next_index = following[`STRIPE_INDEX];
  (* anyseq *) reg [11:0] f_stripe_gy;
  wire [2:0] f_up = f_next_index == 3'd4 ? 3'd0 : f_next_lines - f_next_index;
  wire [11:0] f_next_low = f_reach + 12'd1 - f_up - f_next_lines;
  reg [11:0] f_gy, f_low;
  reg [1:0] f_t, f_l, f_t_0, f_l_0;
  wire [2:0] f_lines = stripe[`STRIPE_LINES];
  wire f_hop = f_far && f_l + 3'd1 == f_lines;
  wire [14:0] f_hop_rows = stripe[`STRIPE_HOP];  // may be negative
  wire [11:0] f_after = f_lines - 12'd1 - f_l;  // lines of the tap row after this one
  wire [2:0] f_unit = f_dwrow ? 3'd1 << f_gl : (f_chan && TB == 6) ? 3'd1 << f_gl :
      (f_chan && TB == 5 && ip == 0) ? 3'd2 : 3'd1;
  always @(posedge clk) begin
    f_on <= !rst && (start || f_on);
    f_age <= (rst || start) ? 2'd0 : f_age + !(&f_age);
    f_desc <= desc;
    if (load) begin
      f_c <= 16'd0;
      f_above <= f_stripe_above;
      f_above_0 <= f_stripe_above;
      f_y <= f_stripe_y;
      f_first_y <= f_stripe_y;
      f_gy <= f_stripe_gy;
      f_low <= f_next_low;
      {f_t, f_l} <= f_next_index == 3'd4 ? 4'b0100 : {2'd0, f_next_index[1:0]};
      {f_t_0, f_l_0} <= f_next_index == 3'd4 ? 4'b0100 : {2'd0, f_next_index[1:0]};
      f_lo <= desc[`DESC_SRC];
      f_lo2 <= desc[`DESC_SRC2];
    end else if (go) begin
      if (line_end) begin
        f_above <= y_last ? f_above_0 : f_hop ? f_above + {{2{f_hop_rows[14]}}, f_hop_rows} :
            f_above + ({12'd0, irl} << skip_l);
        f_y <= y_last ? f_first_y : f_hop ? f_y + f_d + 12'd1 - f_lines : f_y + (12'd1 << skip_l);
        {f_t, f_l} <= y_last ? {f_t_0, f_l_0} : f_hop ? {f_t + 2'd1, 2'd0} : {f_t, f_l + 2'd1};
      end
      if (unit_end) begin
        f_c <= unit_last ? 16'd0 : f_c + f_unit;
        f_lo <= unit_last ? desc[`DESC_SRC] : group_end ? f_lo + f_ics : f_lo;
        f_lo2 <= unit_last ? desc[`DESC_SRC2] : group_end ? f_lo2 + f_ics : f_lo2;
      end
    end
    if (go) begin
      f_asked_row   <= map2 ? f_lo2 : f_lo;
      f_asked_above <= f_above;
      f_asked_word  <= f_word;
    end
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: A layer is started only while idle, and its descriptor is stable from then on.
      layer_stands : assume ((!start || !busy) && (!f_on || start || desc == f_desc));
      //: Sizes are within the limits of the layer decoder.
      sizes_legal : assume (n_w != 0 && n_w <= 960 && n_h != 0 && n_h <= 512 && n_c != 0 &&
          n_c <= (f_chan ? 9216 : 1024) && desc[`DESC_G] != 0 && desc[`DESC_B] != 0 &&
          desc[`DESC_IP] == (n_w <= 16 ? 0 : n_w <= 32 ? 1 : 2) && desc[`DESC_IRL] == (n_w + 11'd63) >> 6 &&
          desc[`DESC_STL] <= 2);
      //: No stripe is ready before the third cycle; its lines and words lie in the map (proven for fill_stripe).
      if (f_on && stripe_ready) stripe_legal : assume (f_age >= 2 && f_stripe_y < n_h && (f_far ||
          f_stripe_y + f_reach < n_h) &&
          f_first_s <= f_last_s && {f_last_s, {TB{1'b0}}} < n_w &&
          (!whole || (f_first_s == 0 && f_stripe_y == 0)));
      //: Dilation is that of 3x3 windows without picks (layer_flags).
      if (f_far) dilation_legal : assume (f_mode == `MODE_TAPS && k3_layer && desc[`DESC_STL] == 0 &&
          desc[`DESC_DIL] < DILATION);
      //: With dilation a stripe has lines of three tap rows, clipped to the map: from a line of the upper one, or
      //: the first one of the middle one, to the last one of the lower or the middle one (proven for fill_stripe).
      if (f_on && stripe_ready && f_far) far_legal : assume (f_next_lines != 0 && f_next_lines <= 4 &&
          (f_next_index < f_next_lines || f_next_index == 4) && f_next_low <= f_next_lines &&
          f_stripe_y + (f_next_index == 4 ? 12'd0 : f_d) == f_stripe_gy + (f_next_index == 4 ? 12'd0 : f_next_index) &&
          f_stripe_gy < 512 && f_stripe_gy + f_next_lines <= n_h && (f_next_low == 0 ||
              f_stripe_gy + f_d + f_next_low <= n_h));
      //: A group of channels includes the rows of its lines (layer_decode multiplies): at a stripe's first line,
      if (f_on && stripe_ready) rows_above_stripe : assume (f_stripe_above + desc[`DESC_IRL] <= f_ics);
      //: ... and at the current line.
      if (active && f_y < n_h) rows_of_lines : assume (f_above + irl <= f_ics && (!f_far || f_above < f_ics));
      //: The rows of each group of channels lie in the AI RAM of up to 32768 rows; so do those of the second map.
      if (active && f_c < n_c) maps_inside : assume (f_lo + f_ics <= f_depth &&
          (!two_maps || f_lo2 + f_ics <= f_depth) && f_depth <= 32768);
      //: The row is that of the current line (proven for fill_addr).
      if (active) row_of_line : assume (row == f_row);
      if (fill_req) begin
        //: Each word read is at the address that docs/kpu.md defines for its channel, line and index.
        place_of_word : assert (fill_word == ((f_asked_row + f_asked_above) << (6 - TB)) + f_asked_word);
        //: No word outside the rows of the input map or the second map is read, so none outside the AI RAM.
        inside : assert (fill_word >> (6 - TB) >= f_asked_row && fill_word >> (6 - TB) < f_asked_row + f_ics &&
            fill_word >> (6 - TB) < f_depth);
      end
      //: (invariant) The fill is idle before the first layer.
      if (!f_on) rests : assert (!working && !active && !fill_req);
      //: (invariant) The requested word lies in a line of the group of channels.
      if (fill_req) asked_inside : assert (f_asked_row + f_ics <= f_depth && f_depth <= 32768 &&
          f_asked_above + (f_asked_word >> (6 - TB)) < f_ics);
      //: (invariant) The mode is that of the layer,
      if (f_on && !start) mode_of_layer : assert ({chan_mode, dwrow_mode} == {f_chan, f_dwrow} &&
          {taps_mode, k3_taps} == {f_mode == `MODE_TAPS, f_mode == `MODE_TAPS && k3_layer} &&
          {fc_mode, ew, two_maps} == {f_mode == `MODE_FC, desc[`DESC_EW], desc[`DESC_EW] && !desc[`DESC_ONE]});
      //: (invariant) ... its dilation,
      if (f_on && !start) far_layer : assert (far == f_far);
      //: (invariant) ... and so are the registered fields,
      if (f_on && !start) fields_of_layer : assert ({k3, stl, ip, irl} ==
          {k3_layer, desc[`DESC_STL], desc[`DESC_IP], desc[`DESC_IRL]} &&
          {src, src2, group_rows} == {desc[`DESC_SRC], desc[`DESC_SRC2], desc[`DESC_ICS]});
      //: (invariant) ... the last column,
      if (f_on && !start) column_of_layer : assert (right == n_w - 11'd1);
      //: (invariant) ... and the last word indices of a whole line.
      if (f_on && !start && f_age != 0) words_of_layer : assert (
          \u_units.full_last == \u_units.full_right [9:TB] && \u_units.tail_last == \u_units.tail_right [9:TB]);
      //: (invariant) The units begin a cycle after the layer.
      units_begin : assert (started == (f_on && f_age == 0 && !start) || start);
      if (f_on && !start && working && f_age != 0) begin
        //: (invariant) Remaining channels, from the current unit on.
        units : assert (chans_left != 0 && chans_left <= n_c && unit_last == (chans_left <= f_unit) &&
            unit == ((n_c - chans_left) & f_mask) && ((n_c - chans_left) & (f_unit - 1)) == 0);
        //: (invariant) All channels remain while no stripe is active.
        if (!active) at_rest : assert (chans_left == n_c);
      end
      //: (invariant) A stripe begins with the first map.
      if (f_on && !start && working && !active) first_map : assert (!map2);
      if (active) begin
        //: (invariant) A stripe is active only during a layer.
        begun : assert (f_on && working && f_age >= 2 && !start);
        //: (invariant) The channel matches the model.
        channel : assert (f_c == n_c - chans_left);
        //: (invariant) The first row of its group of channels does not overflow.
        groups : assert (f_lo <= 65535 && (!two_maps || f_lo2 <= 65535));
        //: (invariant) The stripe and the line lie within the rows of the group.
        rows_above : assert ((f_far || f_above >= f_above_0) && f_above < f_ics && f_above_0 + irl <= f_ics);
        //: (invariant) The line lies in the stripe and in the map.
        line : assert (f_first_y < n_h && (f_far || f_y >= f_first_y) && f_y < n_h && (!map2 || two_maps) && (f_far ||
            (f_first_y + stripe[`STRIPE_REACH] < n_h && f_y + y_left == f_first_y + stripe[`STRIPE_REACH])));
        if (f_far) begin
          //: (invariant) With dilation each tap row has the lines of the stripe, d from those of the next one; a
          //: clipped one fewer.
          far_line : assert (f_t < 3 && f_l < f_lines && f_lines != 0 && f_lines <= 4 && rel == {f_t, f_l} &&
              f_y + f_d == f_gy + (f_t == 0 ? 12'd0 : f_t == 1 ? f_d : f_d << 1) + f_l &&
              f_low <= f_lines && f_gy < 512 && f_gy + f_lines <= n_h && (f_low == 0 || f_gy + f_d + f_low <= n_h));
          //: (invariant) Remaining lines of the tap rows.
          far_left : assert (y_left == (f_t == 0 ? f_after + f_lines + f_low : f_t == 1 ? f_after + f_low :
              f_low - 12'd1 - f_l));
          //: (invariant) A pass begins with the stripe's first line again.
          far_again : assert ({f_t_0, f_l_0} <= {f_t, f_l} && (stripe[`STRIPE_INDEX] == 4 ? {f_t_0, f_l_0} == 4'b0100 :
              f_t_0 == 0 && f_l_0 == stripe[`STRIPE_INDEX] && f_l_0 < f_lines) &&
              stripe[`STRIPE_REACH] == (f_t_0 == 0 ? f_lines - 12'd1 - f_l_0 + f_lines + f_low :
                  f_lines - 12'd1 + f_low) &&
              f_first_y + f_d == f_gy + (f_t_0 == 0 ? 12'd0 : f_d) + f_l_0);
        end
        //: (invariant) The word index lies in the line.
        words : assert (s <= s_final && s_final == (!whole ? stripe[`STRIPE_FINAL] : unit_last ? \u_units.tail_last :
            \u_units.full_last ) && {stripe[`STRIPE_FINAL], {TB{1'b0}}} < n_w &&
            stripe[`STRIPE_FIRST] <= s_final && (!whole || stripe[`STRIPE_FIRST] == 0));
      end
    end
    //: A word beyond the first group of channels and the first line is read.
    next_group : cover (!rst && fill_req && fill_gnt && f_asked_row != desc[`DESC_SRC] && f_asked_above != 0);
    //: With dilation, if there is any, a line of the lower tap row is read.
    lower_taps : cover (!rst && go && (DILATION < 2 || (f_far && f_t == 2 && f_t_0 == 0)));
    //: A word of the second map is read.
    second_map : cover (!rst && go && map2);
  end
