  // Properties of pixel_ctrl: a layer begins with lines that have arrived, and uses no others.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_run = 1'b0;  // since the reset
  reg f_loads = 1'b0;  // the map is being loaded
  reg f_all = 1'b0, f_all_q = 1'b0;  // it is complete
  reg f_used = 1'b0;  // the layer has begun
  reg [9:0] f_lines;  // lines in the AI RAM
  reg [3:0] f_band;  // lines of a band of the map
  wire f_stop = rst || flush;
  wire f_loads_now = load_start || f_loads;
  wire f_uses = f_used && !load_start;  // the map that is loaded, not the one before it
  always @(posedge clk) begin
    f_run <= 1'b1;
    f_loads <= !f_stop && f_loads_now && !load_done;
    f_all <= !f_stop && !load_start && ((f_loads && load_done) || f_all);
    f_all_q <= f_all;
    f_used <= !f_stop && !load_start && (take || f_used);
    f_lines <= load_start ? 10'd0 : (f_loads && load_band) ? f_lines + f_band : f_lines;
    if (load_start) f_band <= load[`LOAD_BAND];
  end

  always @(posedge clk) begin
    if (f_run && !f_stop) begin
      //: The loader reports a band, and the end, only while it loads a map.
      if (load_done || load_band) while_it_loads : assume (f_loads);
      //: A map has 512 lines at most, a band eight.
      if (f_loads && load_band) lines_legal : assume (f_lines < 512);
      //: pixel_bands (cut away) has requests from the start on until the map that comes in bands is complete.
      if (band_req_valid) bands_asked : assume (in_bands && (state == P_PLACE || state == P_FILL));
      //: The pixels are accepted only when they are offered.
      if (take) take_when_ready : assume (ready);
      //: No layer begins before a band of its map has arrived, or all of it.
      if (ready) not_too_early : assert (f_all || (f_loads && f_lines != 0));
      //: A map is offered until its layer begins, and no further.
      if (f_used) offered_once : assert (!ready);
      //: While the map of a layer that has begun is loaded, the layer uses no line that has not arrived.
      if (f_uses && f_loads) arrived : assert (lines_there <= f_lines);
      //: All lines are there two cycles after the last one, and nothing is loading.
      if (f_all && f_all_q && !f_loads_now) all_there : assert (lines_there == 10'h3ff && !loading);
      //: A layer that has begun is reported to be incomplete until its last line arrives.
      if (f_loads_now) incomplete : assert (loading == f_uses);
      //: A map is loaded once it was requested, in bands of as many lines.
      if (load_start) load_as_asked : assert (state == P_FILL && load[`LOAD_BAND] == band && !f_loads);
      //: No pixels are requested twice: there is one request for a map that comes whole.
      if (pixel_req_valid && !in_bands) asks_once : assert (state == P_ASK && !f_loads_now);
      //: (invariant) The state while a map is loaded, and behind it.
      states : assert ((state == P_FILL) == f_loads_now && (state != P_READY || f_all) && (!f_loads || !f_all) &&
          state <= P_READY && !(f_loads && load_start) && part == (in_bands && f_loads_now));
      //: (invariant) Lines that have arrived, of the map in bands.
      if (part) counts : assert (taken == f_uses && (!f_loads || f_band == band) && (load_start ? lines == 0 && !there :
          lines == f_lines && f_lines <= 520 && (there == (f_lines != 0))) && (!taken || there));
      //: (invariant) A band has a power of two of lines, eight at most.
      if (state != P_IDLE) of_a_band : assert (band <= 8 && (band & (band - 4'd1)) == 0);
      //: (invariant) A map is not in use while it comes whole.
      if (f_loads_now && !part) not_used : assert (!f_uses);
      //: A layer begins with the first band, and a later one arrives.
      second_band : cover (f_used && f_loads && load_band && lines_there == f_lines && f_lines > f_band);
    end
  end
