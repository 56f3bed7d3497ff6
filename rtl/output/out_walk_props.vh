  // Properties of out_walk: every word that it describes lies in the output map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  reg [`DESC_BITS-1:0] f_desc;
  reg [1:0] f_wide;
  reg [11:0] f_chan;  // channel at work
  reg [11:0] f_y, f_y0;  // line of the output, first one of the job
  reg [25:0] f_group;  // rows of the groups of channels before this one
  reg [16:0] f_above;  // rows of its lines before this one
  // what the last word that was read is of
  reg [25:0] r_group;
  reg [16:0] r_above;
  reg [11:0] r_y;
  reg [11:0] r_x, r_chan;
  wire [10:0] f_kw = desc[`DESC_KW];
  wire [9:0] f_kh = desc[`DESC_KH];
  wire [10:0] f_ow = desc[`DESC_OW];
  wire [9:0] f_oh = desc[`DESC_OH];
  wire [10:0] f_o = desc[`DESC_O];
  wire [13:0] f_ocs = desc[`DESC_OCS];
  wire [2:0] f_swl = desc[`DESC_SWL];
  wire [6:0] f_sw = 7'd1 << f_swl;
  wire [2:0] f_nl = f_swl == 4 ? 3'd4 : f_swl == 5 ? 3'd2 : 3'd1;
  wire [1:0] f_sub_mask = op == 0 ? 2'd3 : op == 1 ? 2'd1 : 2'd0;
  // output lines before a step, at a step
  function [2:0] outs(input [2:0] n);
    outs = pairs ? {1'b0, n[2:1]} : (four || dwrow) ? 3'd0 : n;
  endfunction
  wire [10:0] f_width_of_job = s1 ? (right_edge ? job_width : job_width - 7'd1) : job_width >> fl;
  always @(posedge clk) begin
    f_desc <= desc;
    f_wide <= wide;
    if (job_ready) begin
      f_chan  <= job_chan;
      f_y     <= y;
      f_y0    <= y;
      f_group <= grp_rows;
      f_above <= line_rows;
    end else if (rd_en) begin
      f_y <= step_last ? f_y0 : (out && !dwrow) ? f_y + 12'd1 : f_y;
      f_above <= step_last ? line_row_0 : (out && !dwrow) ? f_above + orl : f_above;
      f_chan <= f_chan + entry_last;
      if (entry_last && (f_chan[1:0] & f_sub_mask) == f_sub_mask) f_group <= f_group + f_ocs;
    end
    if (rd_en) begin
      r_group <= f_group;
      r_above <= f_above;
      r_y <= f_y;
      r_x <= x;
      r_chan <= f_chan;
    end
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The layer stands while a word is at work; its fields are those of the layer decoder.
      layer_stands : assume (((!valid && !r_valid) || (desc == f_desc && wide == f_wide)) &&
          f_kw != 0 && f_kw <= 1024 && f_kh != 0 && f_kh <= 512 && f_ow == (f_kw >> fl) && f_oh == (f_kh >> fl) &&
          f_kw == (f_ow << fl) && f_kh == (f_oh << fl) && f_ow <= 960 && f_o != 0 && f_o <= 1024 &&
          orl == (f_ow + 11'd63) >> 6 && op == (f_ow <= 16 ? 0 : f_ow <= 32 ? 1 : 2) && pool <= 6 &&
          (!dwrow || (plain && dw)));
      //: A stripe has lines of 64 pixels, 32 or 16: 16 for pools of stride 4 or 1, 32 at most for those of stride 2.
      stripe_legal : assume (f_swl >= 4 && f_swl <= 6 && (!(s1 || four) || f_swl == 4) && (!two || f_swl <= 5) &&
          (!plain || f_swl == (f_kw <= 16 ? 4 : f_kw <= 32 ? 5 : 6)) &&
          wide == (dwrow ? op : f_swl == 4 ? 2'd0 : f_swl == 5 ? 2'd1 : 2'd2));
      //: A job is a stripe of the grid, as stripe_iter gives it, or up to 64 pixels of a line of a depthwise layer.
      if (job_valid) job_legal : assume (job_width != 0 && job_gx + job_width <= f_kw && job_lines != 0 &&
          job_lines <= 4 && job_chan < f_o && (dwrow ?
            job_gx % 64 == 0 && job_width <= 64 && (job_gx == 0 || op == 2) && job_gy < f_kh &&
            job_lines <= f_sub_mask + 3'd1 && (job_chan[1:0] & f_sub_mask) == 0 :
            job_width <= f_sw && job_lines <= f_nl && job_gy + job_lines <= f_kh &&
            (job_gx + job_width == f_kw || job_width == f_sw) && (job_gy + job_lines == f_kh || job_lines == f_nl) &&
            (s1 || (job_gx % f_sw == 0 && job_gy % f_nl == 0)) && (dw || (job_nz != 0 && job_chan + job_nz <= f_o))));
      //: Two lines of a depthwise layer go at once only where a line is a row, and the map has both.
      if (job_valid && PAIR != 0 && dwrow && job_nz[1]) two_legal : assume (job_gy + 10'd1 < f_kh && op == 2 && orl == 1);
      //: The rows of each group of channels that the map has lie in the AI RAM, of up to 32768 rows.
      if (valid && f_chan < f_o) map_inside : assume (desc[`DESC_DST] + f_group + f_ocs <= f_depth && f_depth <= 32768);
      //: A group of channels has as many rows as its lines, which is how layer_decode multiplies.
      if (valid && f_y < f_oh) rows_of_lines : assume (f_above + orl <= f_ocs);
      //: ... of two lines the rows of both.
      if (valid && f_y + 12'd1 < f_oh) rows_of_two : assume (f_above + orl + orl <= f_ocs);
      if (r_valid && r_out) begin
        //: A word is of a pixel, line and channel of the output map.
        in_map : assert (r_y < f_oh && r_chan < f_o && r_x < f_ow && (dwrow || r_x + r_count <= f_ow));
        //: Its row is where docs/kpu.md has this channel, line and pixel.
        row_of_word : assert ((r_row_a + r_row_b) % 32768 == (desc[`DESC_DST] + r_group + r_above + (r_x >> 6)) % 32768);
        //: Its place in the row is that of the pixel.
        if (!dwrow) place_in_row : assert (r_at == (r_chan[1:0] & f_sub_mask) * (7'd16 << op) + r_x[5:0]);
        //: It lies in the rows of the output map, and so in the AI RAM; a line that goes on in the next row too.
        inside : assert (desc[`DESC_DST] + r_group + r_above + (r_x >> 6) + ((!dwrow && r_at + r_count > 64) || r_two) < f_depth &&
            r_above + (r_x >> 6) + ((!dwrow && r_at + r_count > 64) || r_two) < f_ocs);
      end
      if (valid) begin
        //: (invariant) The channel, and where its group begins.
        group : assert (f_chan < f_o && f_chan + left < f_o && sub == (f_chan[1:0] & f_sub_mask) && grp_row == f_group[14:0] &&
            f_group <= 65535);
        //: (invariant) The line, and where it begins.
        lines_left : assert (f_y0 < f_oh && line_row == f_above && step <= last && f_y == f_y0 + outs(step) && f_y0 + outs(last) < f_oh &&
            (!pairs || last[0]) && (!rows_two || (PAIR != 0 && dwrow && f_y0 + 10'd1 < f_oh && op == 2 && orl == 1)));
        //: (invariant) The pixels of the job.
        pixels : assert (o_width != 0 && o_width <= 64 && x_0 + o_width <= f_ow && x_part < 64 && (dwrow || part == 0 || x_part < o_width) &&
            (!dwrow || (x_0[5:0] == 0 && x_part < o_width)));
      end
    end
    //: A line that crosses the end of a row is described.
    crosses : cover (!rst && r_valid && r_out && !plain && r_at + r_count > 64);
  end
