  // Properties of fill_addr: the row is that of the current line.
  reg f_begun = 1'b0;  // a stripe was loaded
  // first row of the group of channels in either map, rows of the lines above the current line, above the
  // stripe's first one; the line is in the second map
  reg [14:0] f_group, f_group2, f_above, f_above_0;
  reg f_second;
  reg [14:0] f_src, f_src2;
  reg [13:0] f_group_rows;
  wire [14:0] f_line_row = f_group + f_above;
  wire [14:0] f_stripe_row = src + f_above_0;
  wire [14:0] f_group_row = f_group + f_above_0;
  wire [14:0] f_apart = f_group2 - f_group;
  wire [14:0] f_maps_apart = src2 - src;
  wire [14:0] f_row = f_second ? f_group2 + f_above : f_line_row;
  always @(posedge clk) begin
    f_begun <= f_begun || load;
    {f_src, f_src2, f_group_rows} <= {src, src2, group_rows};
    if (load) begin
      f_group <= src;
      f_group2 <= src2;
      f_above <= first - src;
      f_above_0 <= first - src;
      f_second <= 1'b0;
    end else begin
      f_second <= turn || (f_second && !line_end);
      if (line_end) f_above <= chan_end ? f_above_0 : f_above + (stay ? 15'd0 : hop ? hop_rows :
          {10'd0, line_rows} << skip_l);
      if (line_end && chan_end) begin
        f_group  <= pass_end ? src : group_end ? f_group + group_rows : f_group;
        f_group2 <= pass_end ? src2 : group_end ? f_group2 + group_rows : f_group2;
      end
    end
  end

  always @(posedge clk) begin
    //: turn ends a line of the first map only, and coincides neither with line_end nor with load.
    one_end : assume (!(turn && (line_end || load || f_second)));
    if (f_begun) begin
      //: The layer's fields are stable while its stripes are processed.
      layer_stands : assume ({f_src, f_src2, f_group_rows} == {src, src2, group_rows});
      //: The row is that of the current line: first row of its group of channels plus the rows above the line.
      row_of_line : assert (row == f_row);
      //: (invariant) The channel groups of the two maps are as far apart as the maps.
      second_map : assert (f_apart == f_maps_apart);
      //: (invariant) The rows of the first map's line, of the stripe and of the group equal those of the model.
      rows_of_nest : assert (line_row == f_line_row && stripe_row == f_stripe_row && group_row == f_group_row);
    end
    //: A line of the second map, beyond the first group of channels, is reached.
    second_group : cover (f_begun && f_second && f_group != src && f_above != f_above_0);
  end
