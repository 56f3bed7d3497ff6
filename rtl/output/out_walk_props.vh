  // Properties of out_walk: every word it describes lies in the output map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  reg [`DESC_BITS-1:0] f_desc;
  reg [1:0] f_wide;
  reg [12:0] f_chan;  // channel of the output map in progress; with out32 each byte of a sum is a channel
  reg [11:0] f_y, f_y0;  // line of the output, first one of the job
  reg [27:0] f_group;  // rows of the groups of channels before this one, wide enough for the sums below
  reg [16:0] f_above;  // rows of its lines before this one
  // values for the last word read
  reg [27:0] r_group;
  reg [16:0] r_above;
  reg [11:0] r_y;
  reg [11:0] r_x;
  reg [12:0] r_chan;
  wire [10:0] f_kw = desc[`DESC_KW];
  wire [9:0] f_kh = desc[`DESC_KH];
  wire [10:0] f_ow = desc[`DESC_OW];
  wire [9:0] f_oh = desc[`DESC_OH];
  wire [10:0] f_o = desc[`DESC_O];
  wire [12:0] f_chans = out32 ? {f_o, 2'd0} : {2'd0, f_o};  // channels of the output map, up to 4096
  wire [2:0] f_apart = out32 ? 3'd4 : 3'd1;  // from one channel of a job to the next
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
  // flat layer: the stripe's pixels are those of consecutive map lines, cut by flat_pieces
  reg [6:0] f_size, f_pos;  // pixels of the stripe, those before the piece
  reg [3:0] f_x_0, f_x;  // first column of the stripe, of the piece
  (* anyseq *) reg [11:0] f_job_above;  // pixels of the map in the lines before the job's
  reg [11:0] f_before_0, f_before;  // those before the first line of the stripe, of the piece
  always @(posedge clk) begin
    if (job_ready) {f_size, f_x_0, f_before_0} <= {job_width, job_gx[3:0], f_job_above};
    if (job_ready || rd_en) begin
      f_pos <= (job_ready || flat_last) ? 7'd0 : f_pos + flat_count;
      f_before <= job_ready ? f_job_above : flat_last ? f_before_0 : flat_end ? f_before + f_ow : f_before;
      f_x   <= job_ready ? job_gx[3:0] : flat_last ? f_x_0 : flat_end ? 4'd0 : f_x + flat_count;
    end
  end

  always @(posedge clk) begin
    f_desc <= desc;
    f_wide <= wide;
    if (job_ready) begin
      f_chan  <= out32 ? {1'b0, job_chan, job_plane} : {3'd0, job_chan};
      f_y     <= y;
      f_y0    <= y;
      f_group <= grp_rows;
      f_above <= line_rows;
    end else if (rd_en) begin
      f_y <= (flat ? flat_last : step_last) ? f_y0 : (flat ? flat_end : out && !dwrow) ? f_y + 12'd1 : f_y;
      f_above <= (flat ? flat_last : step_last) ? line_row_0 :
          (flat ? flat_end : out && !dwrow) ? f_above + orl : f_above;
      if (flat ? flat_last : step_last && part_last) begin
        f_chan  <= f_chan + f_apart;
        // rows of the groups passed: four channels are four, two or one of them
        f_group <= f_group + (out32 ? f_ocs << op : (f_chan[1:0] & f_sub_mask) == f_sub_mask ? f_ocs : 14'd0);
      end
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
      //: The layer is stable while a word is in progress; its fields are those of the layer decoder.
      layer_stands : assume (((!valid && !r_valid) || (desc == f_desc && wide == f_wide)) &&
          f_kw != 0 && f_kw <= 1024 && f_kh != 0 && f_kh <= 512 && (flat ?
            f_ow != 0 && f_ow < 16 && f_oh != 0 && f_oh <= 512 && f_kh == 1 && plain && !dw && !out32 :
            f_ow == (f_kw >> fl) && f_oh == (f_kh >> fl) && f_kw == (f_ow << fl) && f_kh == (f_oh << fl)) &&
                f_ow <= 960 && f_o != 0 && f_o <= 1024 &&
          orl == (f_ow + 11'd63) >> 6 && op == (f_ow <= 16 ? 0 : f_ow <= 32 ? 1 : 2) && pool <= 6 &&
          (!dwrow || (plain && dw)) && (!out32 || (plain && !dw)));
      //: A stripe has lines of 64 pixels, 32 or 16: 16 for pools of stride 4 or 1, 32 at most for those of stride 2.
      stripe_legal : assume (f_swl >= 4 && f_swl <= 6 && (!(s1 || four) || f_swl == 4) && (!two || f_swl <= 5) &&
          (!plain || f_swl == (flat ? 6 : f_kw <= 16 ? 4 : f_kw <= 32 ? 5 : 6)) &&
          wide == (dwrow ? op : f_swl == 4 ? 2'd0 : f_swl == 5 ? 2'd1 : 2'd2));
      //: A flat job has up to 64 pixels, and begins at the column and line given.
      if (job_valid && flat) job_flat : assume (job_gx < f_ow && job_width != 0 && job_width <= 64 && job_lines == 1 &&
          job_gy < f_oh && f_job_above + job_gx + job_width <= f_kw && job_nz != 0 && job_chan + job_nz <= f_o);
      //: Before a line of a flat map there is room for its pixels; behind the last line there is none.
      if (valid && flat) lines_of_map : assume ((f_before < f_kw) == (f_y < f_oh) && (f_y >= f_oh ||
          f_before + f_ow <= f_kw));
      //: Pieces of lines, as produced by flat_pieces.
      if (valid && flat) pieces : assume (flat_pos == f_pos && flat_x == f_x && flat_count != 0 &&
          f_x + flat_count <= f_ow &&
          f_pos + flat_count <= f_size && f_pos[3:0] + flat_count <= 16 && flat_end == (f_x + flat_count == f_ow) &&
          flat_last == (f_pos + flat_count == f_size));
      //: A job is a stripe of the grid, as produced by stripe_iter, or up to 64 pixels of a line of a
      //: depthwise layer.
      if (job_valid && !flat) job_legal : assume (job_width != 0 && job_gx + job_width <= f_kw && job_lines != 0 &&
          job_lines <= 4 && job_chan < f_o && (dwrow ?
            job_gx % 64 == 0 && job_width <= 64 && (job_gx == 0 || op == 2) && job_gy < f_kh &&
            job_lines <= f_sub_mask + 3'd1 && (job_chan[1:0] & f_sub_mask) == 0 :
            job_width <= f_sw && job_lines <= f_nl && job_gy + job_lines <= f_kh &&
            (job_gx + job_width == f_kw || job_width == f_sw) && (job_gy + job_lines == f_kh || job_lines == f_nl) &&
            (s1 || (job_gx % f_sw == 0 && job_gy % f_nl == 0)) && (dw || (job_nz != 0 && job_chan + job_nz <= f_o))));
      //: A job has two lines of a depthwise layer only where a line is a row, and the map has both.
      if (job_valid && PAIR != 0 && dwrow && job_nz[1]) two_legal : assume (job_gy + 10'd1 < f_kh && op == 2 &&
          orl == 1);
      //: The rows of each group of channels of the map lie in the AI RAM, of up to 32768 rows.
      if (valid && f_chan < f_chans) map_inside : assume (desc[`DESC_DST] + f_group + f_ocs <= f_depth &&
          f_depth <= 32768);
      //: The rows of a group of channels are those of its lines, a product of layer_decode.
      if (valid && f_y < f_oh) rows_of_lines : assume (f_above + orl <= f_ocs);
      //: ... for two lines the rows of both.
      if (valid && f_y + 12'd1 < f_oh) rows_of_two : assume (f_above + orl + orl <= f_ocs);
      if (r_valid && r_out) begin
        //: A word belongs to a pixel, line and channel of the output map.
        in_map : assert (r_y < f_oh && r_chan < f_chans && r_x < f_ow && (dwrow || r_x + r_count <= f_ow));
        //: Its row is that of this channel, line and pixel in docs/kpu.md.
        row_of_word : assert ((r_row_a + r_row_b) % 32768 ==
            (desc[`DESC_DST] + r_group + r_above + (r_x >> 6)) % 32768);
        //: Its offset in the row is that of the pixel.
        if (!dwrow) place_in_row : assert (r_at == (r_chan[1:0] & f_sub_mask) * (7'd16 << op) + r_x[5:0]);
        //: It lies in the rows of the output map, hence in the AI RAM, even if the line continues in the next row.
        inside : assert (desc[`DESC_DST] + r_group + r_above + (r_x >> 6) + ((!dwrow && r_at + r_count > 64) ||
            r_two) < f_depth &&
            r_above + (r_x >> 6) + ((!dwrow && r_at + r_count > 64) || r_two) < f_ocs);
      end
      if (valid) begin
        //: (invariant) The channel, and the start of its group.
        group : assert (f_chan < f_chans && f_chan + left * f_apart < f_chans && sub == (f_chan[1:0] & f_sub_mask) &&
            grp_row == f_group[14:0] &&
            f_group <= 65535);
        //: (invariant) The line, and its first row.
        lines_left : assert (f_y0 < f_oh && line_row == f_above && f_y < f_oh &&
            (!rows_two || (PAIR != 0 && dwrow && f_y0 + 10'd1 < f_oh && op == 2 && orl == 1)));
        //: (invariant) The lines of the job.
        if (!flat) lines_of_job : assert (step <= last && f_y == f_y0 + outs(step) && f_y0 + outs(last) < f_oh &&
            (!pairs || last[0]));
        //: (invariant) The pixels of the job.
        if (!flat) pixels : assert (o_width != 0 && o_width <= 64 && x_0 + o_width <= f_ow && x_part < 64 &&
            (dwrow || part == 0 || x_part < o_width) &&
            (!dwrow || (x_0[5:0] == 0 && x_part < o_width)));
        //: (invariant) The pixels of a flat job, and those of the map before the piece.
        if (flat) flat_pixels : assert (f_size <= 64 && f_pos < f_size && f_x < f_ow && f_x_0 < f_ow &&
            f_before_0 + f_x_0 + f_size <= f_kw && f_before + f_x == f_before_0 + f_x_0 + f_pos);
      end
    end
    //: A line that crosses the end of a row is described.
    crosses : cover (!rst && r_valid && r_out && !plain && r_at + r_count > 64);
    //: A piece of the second line of a flat job is described, or of one that is not flat.
    second_line : cover (!rst && r_valid && r_out && r_y != f_y0 && (FLAT_MAPS == 0 || flat));
  end
