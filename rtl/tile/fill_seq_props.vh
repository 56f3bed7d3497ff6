  // Properties of fill_seq: every word that it reads lies in the input map, or in the second one.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  reg f_on = 1'b0;  // a layer was started
  reg [1:0] f_age = 2'd0;  // cycles since then
  reg [`DESC_BITS-1:0] f_desc;
  reg [15:0] f_c;  // first channel of the unit at work
  reg [16:0] f_above, f_above_0;  // rows of the lines above this one, above the stripe's first one
  reg [26:0] f_lo, f_lo2;  // row where the group of channels begins, in either map
  reg [NB-1:0] f_s;  // first word of a line of the stripe
  // of the word that is asked for: its map and group of channels begin at this row; word of them
  reg [26:0] f_asked_row;
  reg [16:0] f_asked_above;
  reg [10:0] f_asked_word;
  wire [13:0] f_ics = desc[`DESC_ICS];
  wire [1:0] f_sub = f_c[1:0] & row_mask;
  // words of a row before those of the unit; word of the line, or of the row, from its beginning on
  wire [5:0] f_before = ({4'd0, f_sub} << pl) >> TB;
  wire [10:0] f_word = f_before + f_s + n;
  wire [14:0] f_row_0 = f_lo + f_above_0;
  wire [14:0] f_row = f_lo + f_above;
  wire [AW-1:0] f_stripe_w = (desc[`DESC_SRC] + f_above_0) << (6 - TB);
  wire [AW-1:0] f_group_w = f_row_0 << (6 - TB);
  wire [AW-1:0] f_line_w = f_row << (6 - TB);
  wire [2:0] f_unit = dwrow_mode ? (ip == 0 ? 3'd4 : ip == 1 ? 3'd2 : 3'd1) :
      chan_mode ? (gwl == 2 ? 3'd4 : gwl == 1 ? 3'd2 : 3'd1) : 3'd1;
  wire [11:0] f_first_y = {2'd0, c_first_y};
  wire [11:0] f_y = {2'd0, y};
  wire [14:0] f_a_above = a_row - desc[`DESC_SRC];
  always @(posedge clk) begin
    f_on <= !rst && (start || f_on);
    f_age <= (rst || start) ? 2'd0 : f_age + !(&f_age);
    f_desc <= desc;
    if (load) begin
      f_c <= 16'd0;
      f_above <= f_a_above;
      f_above_0 <= f_a_above;
      f_lo <= desc[`DESC_SRC];
      f_lo2 <= desc[`DESC_SRC2];
      f_s <= a_first_s;
    end else if (go) begin
      if (line_end) f_above <= y_last ? f_above_0 : f_above + ({12'd0, irl} << skip_l);
      if (unit_end) begin
        f_c <= unit_last ? 16'd0 : f_c + unit_size;
        f_lo <= unit_last ? desc[`DESC_SRC] : group_next ? f_lo + f_ics : f_lo;
        f_lo2 <= unit_last ? desc[`DESC_SRC2] : group_next ? f_lo2 + f_ics : f_lo2;
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
      //: A layer is started while none is at work, and stands from then on; sizes are those of the layer decoder.
      layer_legal : assume ((!start || !busy) && (!f_on || start || desc == f_desc) &&
          n_w != 0 && n_w <= 960 && n_h != 0 && n_h <= 512 && n_c != 0 && n_c <= (new_chan ? 9216 : 1024) && n_g != 0 && n_b != 0 &&
          ip == (n_w <= 16 ? 0 : n_w <= 32 ? 1 : 2) && irl == (n_w + 11'd63) >> 6 && stl <= 2);
      //: A stripe's lines and words are of the map, and it is not there before the third cycle (proven of fill_stripe).
      if (f_on && a_ready) stripe_legal : assume (f_age >= 2 && a_first_y <= a_last_y && a_last_y < n_h &&
          a_first_s <= a_last_s && {a_last_s, {TB{1'b0}}} < n_w && (!whole || (a_first_s == 0 && a_first_y == 0)));
      //: A group of channels has as many rows as its lines, which is how layer_decode multiplies: at a stripe's first line.
      if (f_on && a_ready) rows_above_stripe : assume (f_a_above + irl <= f_ics);
      //: ... at the line at work,
      if (active && f_y < n_h) rows_of_lines : assume (f_above + irl <= f_ics);
      //: The rows of each group of channels that the map has lie in the AI RAM, of up to 32768 rows; so do the second map's.
      if (active && f_c < n_c) maps_inside : assume (f_lo + f_ics <= f_depth &&
          (!two_maps || f_lo2 + f_ics <= f_depth) && f_depth <= 32768);
      if (fill_req) begin
        //: Each word that is read is where docs/kpu.md has this channel, line and word.
        place_of_word : assert (fill_word == ((f_asked_row + f_asked_above) << (6 - TB)) + f_asked_word);
        //: No word outside the rows of the input map or the second one is read, so none outside the AI RAM.
        inside : assert (fill_word >> (6 - TB) >= f_asked_row && fill_word >> (6 - TB) < f_asked_row + f_ics &&
            fill_word >> (6 - TB) < f_depth);
      end
      //: (invariant) Nothing is at work before the first layer.
      if (!f_on) rests : assert (!working && !active && !fill_req);
      //: (invariant) The word that is asked for is of a line that the group of channels has.
      if (fill_req) asked_inside : assert (f_asked_row + f_ics <= f_depth && f_depth <= 32768 &&
          f_asked_above + (f_asked_word >> (6 - TB)) < f_ics);
      //: (invariant) What is derived from the layer.
      if (f_on && !start) of_layer : assert ({taps_mode, k3_taps} == {new_mode == `MODE_TAPS, new_mode == `MODE_TAPS && k3} &&
          {chan_mode, dwrow_mode, fc_mode} == {new_chan, new_dwrow, new_mode == `MODE_FC} &&
          {ew, two_maps} == {desc[`DESC_EW], desc[`DESC_EW] && !desc[`DESC_ONE]} &&
          (f_age == 0 || {l_full, l_tail} == (fc_mode ? {2{fc_last}} : {dw_full[9:TB], dw_tail[9:TB]})));
      if (f_on && !start && working) begin
        //: (invariant) Channels from the unit at work on.
        units : assert (chans_left != 0 && chans_left <= n_c && unit_last == (chans_left <= f_unit) &&
            unit == ((n_c - chans_left) & 3) && ((n_c - chans_left) & (f_unit - 1)) == 0);
        //: (invariant) No word is left over when no stripe is at work.
        if (!active) at_rest : assert (chans_left == n_c && !map2);
      end
      if (active) begin
        //: (invariant) A stripe is at work while a layer is.
        begun : assert (f_on && working && f_age >= 2 && !start);
        //: (invariant) The channel, and where its group, its unit and the stripe begin.
        channel : assert (f_c == n_c - chans_left && f_lo <= 65535 && (!two_maps || f_lo2 <= 65535) &&
            saddr == f_stripe_w + f_s && gaddr == f_group_w + f_s && uaddr == gaddr + f_before &&
            rows_apart == (f_lo2 - f_lo) % 32768 && f_above >= f_above_0 && f_above_0 < f_ics && f_above < f_ics && f_above_0 + irl <= f_ics);
        //: (invariant) The line and the word, and where they are.
        line : assert (f_first_y + c_reach < n_h && f_y + y_left == f_first_y + c_reach && f_y >= f_first_y &&
            (!map2 || two_maps) && laddr == f_line_w + f_s + f_before && addr == laddr + n + (map2 ? apart : {AW{1'b0}}));
        //: (invariant) The words of the line.
        words : assert (n <= n_last && (whole ? f_s == 0 : {1'b0, f_s} + c_n_last < 1 << NB &&
            (({11'd0, f_s} + c_n_last) << TB) < n_w));
      end
    end
    //: A word of another group of channels, not in the first line, is read.
    next_group : cover (!rst && fill_req && fill_gnt && f_asked_row != desc[`DESC_SRC] && f_asked_above != 0);
    //: A word of the second map is read.
    second_map : cover (!rst && go && map2);
  end
