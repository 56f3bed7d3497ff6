  // Properties of piece_walk: every write it describes lies at its address in the output map.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [15:0] f_depth;  // rows of the AI RAM
  (* anyseq *) reg [27:0] f_any_group;
  (* anyseq *) reg [16:0] f_any_above;
  reg [`DESC_BITS-1:0] f_desc;
  reg [`JOB_BITS-1:0] f_job;
  reg [1:0] f_wide;
  wire [2:0] f_pool = f_desc[`DESC_POOL];
  wire [ZW:0] f_job_nz = f_job[`JOB_NZ];
  wire [10:0] f_right = {1'b0, f_job[`JOB_GX]} + f_job[`JOB_WIDTH];
  wire [9:0] f_bottom = {1'b0, f_job[`JOB_GY]} + f_job[`JOB_LINES];
  reg [12:0] f_chan, f_chan0;  // channel of the output map, the job's first one; with out32 each byte of a sum is one
  reg [11:0] f_y, f_y0;  // line of the output, first one of the job
  reg f_below;  // the map has lines below the job's
  reg [27:0] f_group, f_group0;  // rows of the groups of channels before these, wide enough for the sums below
  reg [16:0] f_above;  // rows of its lines before this one
  // values for the last read
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
  wire [4:0] f_orl = desc[`DESC_ORL];
  wire [12:0] f_chans = out32 ? {f_o, 2'd0} : {2'd0, f_o};  // channels of the output map, up to 4096
  wire [2:0] f_apart = out32 ? 3'd4 : 3'd1;  // from one channel of a job to the next
  wire [13:0] f_ocs = desc[`DESC_OCS];
  wire [2:0] f_swl = desc[`DESC_SWL];
  wire [6:0] f_sw = 7'd1 << f_swl;
  wire [2:0] f_nl = f_swl == 4 ? 3'd4 : f_swl == 5 ? 3'd2 : 3'd1;
  wire [1:0] f_sub_mask = op == 0 ? 2'd3 : op == 1 ? 2'd1 : 2'd0;
  wire f_dw = desc[`DESC_DW];
  wire [2:0] f_bytes = r_mask[0] + r_mask[1] + r_mask[2] + r_mask[3];
  wire [8:0] f_job_y = job_gy >> fl;

  always @(posedge clk) begin
    f_desc <= desc;
    f_job <= job;
    f_wide <= wide;
    if (job_ready) begin
      f_chan   <= out32 ? {1'b0, job_chan, job_plane} : {3'd0, job_chan};
      f_chan0  <= out32 ? {1'b0, job_chan, job_plane} : {3'd0, job_chan};
      f_y      <= f_job_y;
      f_y0     <= f_job_y;
      f_group  <= f_any_group;
      f_group0 <= f_any_group;
      f_above  <= f_any_above;
      f_below  <= f_bottom < f_desc[`DESC_KH];
    end else if (rd_en && step_last) begin
      f_chan <= part_end ? f_chan0 : f_chan + f_apart;
      // rows of the groups passed: four channels are four, two or one of them
      f_group <= part_end ? f_group0 :
          f_group + (out32 ? f_ocs << op : (f_chan[1:0] & f_sub_mask) == f_sub_mask ? f_ocs : 14'd0);
      if (line_end && !dwrow) begin
        f_y <= f_y + 12'd1;
        f_above <= f_above + f_orl;
      end
    end
    if (rd_en) begin
      r_group <= f_group;
      r_above <= f_above;
      r_y <= f_y;
      r_x <= x_map;
      r_chan <= f_chan + (dwrow ? line : 2'd0);
    end
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The layer is stable from before its first job until the last one is over,
      layer_stands : assume ((!job_valid && !valid && !r_valid) || (desc == f_desc && wide == f_wide));
      //: ... and so is a job whose row is computed.
      if (formed) job_stands : assume (job == f_job);
      //: Its fields are those of the layer decoder.
      if (desc == f_desc) layer_legal : assume (f_kw != 0 && f_kw <= 1024 && f_kh != 0 && f_kh <= 512 &&
          f_ow == (f_kw >> fl) && f_oh == (f_kh >> fl) && f_kw == (f_ow << fl) && f_kh == (f_oh << fl) && f_ow <= 960 &&
          f_o != 0 && f_o <= 1024 &&
          f_orl == (f_ow + 11'd63) >> 6 && op == (f_ow <= 16 ? 0 : f_ow <= 32 ? 1 : 2) && pool <= 6 &&
          (!dwrow || (plain && f_dw)) && (!out32 || (plain && !f_dw)));
      //: A stripe has lines of 64 pixels, 32 or 16: 16 for pools of stride 4 or 1, 32 at most for those of stride 2.
      if (desc == f_desc) stripe_legal : assume (f_swl >= 4 && f_swl <= 6 && (!(s1 || four) || f_swl == 4) &&
          (!two || f_swl <= 5) &&
          (!plain || f_swl == (f_kw <= 16 ? 4 : f_kw <= 32 ? 5 : 6)) &&
          wide == (dwrow ? op : f_swl == 4 ? 2'd0 : f_swl == 5 ? 2'd1 : 2'd2));
      //: A job is a stripe of the grid, as produced by stripe_iter, or up to 64 pixels of a line of a
      //: depthwise layer.
      if (job_valid) job_legal : assume (job_width != 0 && job_gx + job_width <= f_kw && job_lines != 0 &&
          job_lines <= 4 && job_chan < f_o && (dwrow ?
            job_gx % 64 == 0 && job_width <= 64 && (job_gx == 0 || op == 2) && job_gy < f_kh &&
            job_lines <= f_sub_mask + 3'd1 && (job_chan[1:0] & f_sub_mask) == 0 && job_chan + job_lines <= f_o :
            job_width <= f_sw && job_lines <= f_nl && job_gy + job_lines <= f_kh &&
            (job_gx + job_width == f_kw || job_width == f_sw) && (job_gy + job_lines == f_kh || job_lines == f_nl) &&
            (s1 || (job_gx % f_sw == 0 && job_gy % f_nl == 0)) && (f_dw || (job_nz != 0 && job_chan + job_nz <= f_o))));
      //: job_row computes a row only for a pending job, and it is where the job begins.
      if (formed) row_formed : assume (job_valid);
      //: That is where the job begins.
      if (job_ready) row_of_job : assume (base == (desc[`DESC_DST] + f_any_group + f_any_above) % 32768 &&
          f_any_group <= 32768 && f_any_above <= 32768);
      //: The rows of each group of channels of the map lie in the AI RAM, of up to 32768 rows.
      if (valid && f_chan < f_chans) map_inside : assume (desc[`DESC_DST] + f_group + f_ocs <= f_depth &&
          f_depth <= 32768);
      //: The rows of a group of channels are those of its lines, a product of layer_decode.
      if (valid && f_y < f_oh) rows_of_lines : assume (f_above + f_orl <= f_ocs);
      //: (invariant) The registered layer is that of the previous cycle,
      layer_in_registers : assert (dwrow == (f_desc[`DESC_MODE] == `MODE_DWROW) &&
          {out32, op} == {f_desc[`DESC_OUT32], f_desc[`DESC_OP]} &&
          s1 == (f_pool == `POOL_MAXS1 || f_pool == `POOL_MEANS1) && two == (f_pool == `POOL_MAX2 || f_pool ==
              `POOL_MEAN2) &&
          plain == (f_pool == `POOL_NONE) && four == (f_pool == `POOL_MAX4 || f_pool == `POOL_MEAN4));
      //: (invariant) ... and so are the edges that the job touches, and its last channel.
      edges_in_registers : assert (right_edge == (f_right == f_desc[`DESC_KW]) && bottom_edge == (f_bottom ==
          f_desc[`DESC_KH]) &&
          job_z_end == (f_desc[`DESC_DW] ? {ZW{1'b0}} : f_job_nz[ZW-1:0] - 1'b1));
      //: The last line of the window is the first one, or below it by the height of the window.
      if (valid) last_line_of_window : assert (far_line == (s1 ? line + {1'b0, line != lowest} : line | window_m1));
      if (r_valid && r_out) begin
        //: Written bytes belong to one to four pixels of a line and channel of the output map.
        in_map : assert (r_y < f_oh && r_chan < f_chans && f_bytes != 0 && r_x + f_bytes <= f_ow);
        //: Their row is that of this channel, line and pixel in docs/kpu.md.
        row_of_bytes : assert (r_row == (desc[`DESC_DST] + r_group + r_above + (r_x >> 6)) % 32768);
        //: Their offset in the row is that of the pixel; unpooled, it is the first one of four.
        place_in_row : assert (r_at == (r_chan[1:0] & f_sub_mask) * (7'd16 << op) + r_x[5:0] &&
            (plain ? r_at[1:0] == 0 && r_mask[0] && (r_mask[2] || !r_mask[3]) && (r_mask[1] || !r_mask[2]) :
                r_mask == 4'd1 << r_at[1:0]));
        //: They lie in the rows of the output map, hence in the AI RAM.
        inside : assert (desc[`DESC_DST] + r_group + r_above + (r_x >> 6) < f_depth && r_above + (r_x >> 6) < f_ocs);
      end
      //: A pool of stride 1 repeats the job's last line at the map's lower edge alone.
      if (valid && s1 && f_below) no_line_twice : assert (line_last < lowest);
      if (valid) begin
        //: (invariant) The channel, and the start of its group.
        group : assert (f_chan0 < f_chans && f_chan == f_chan0 + (out32 ? {z, 2'd0} : z) && f_chan0 + (out32 ?
            {z_end, 2'd0} : z_end) < f_chans && z <= z_end &&
            sub_0 == (f_chan0[1:0] & f_sub_mask) && f_group <= 65535 && f_group0 <= 65535 && (!f_dw || z_end == 0) &&
            (!dwrow || (f_chan0 + line_last < f_chans && sub_0 == 0 && line_last <= f_sub_mask)));
        //: (invariant) First row of the line in this channel and in the first one.
        rows_now : assert (f_y < f_oh && f_y0 < f_oh && f_above <= 32768 && row ==
            (desc[`DESC_DST] + f_group + f_above) % 32768 &&
            (z == 0 ? f_group == f_group0 : first_row == (desc[`DESC_DST] + f_group0 + f_above) % 32768));
        //: (invariant) The lines of the job.
        lines_of_job : assert (line <= line_last && f_y == f_y0 + (dwrow ? 2'd0 : two ? line >> 1 : line) &&
            f_y0 + (dwrow ? 2'd0 : two ? line_last >> 1 : line_last) < f_oh && (!two || (!line[0] && !line_last[0])) &&
            (!four || line_last == 0) && step <= window_m1);
        //: (invariant) The pixels of the job.
        pixels_of_job : assert (width != 0 && width <= 64 && x_0 + width <= f_ow && x < width && (s1 || x_0 % 4 ==
            0 || four) &&
            (!plain || (x[1:0] == 0 && x_0[1:0] == 0)) && (!(two || s1) || !x[0]) && (!two || !x_0[0]));
      end
    end
    //: A pool of stride 1 continues in the next row of a line.
    crosses : cover (!rst && r_valid && r_out && s1 && r_x[5:0] == 0 && r_y != f_y0);
    //: The second line of a job's second channel is described.
    second_line : cover (!rst && r_valid && r_out && r_y != f_y0 && r_chan != f_chan0);
  end
