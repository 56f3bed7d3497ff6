// SPDX-License-Identifier: Apache-2.0
// Which unit works when: the probe's rows, as in the picture of docs/continuous.md.

import { byId, canvasContext, colour, element, number } from "./dom.js";

const LINE = 24;
const BIN = 2; // CSS pixels
const AXIS = 18;

// A value for each cycle: 1 where the unit works. A write counts with its beat.
function activity(rows, signal) {
  const values = new Uint8Array(rows.length);
  for (let row = 0; row < rows.length; row++) {
    values[row] = rows.value(signal, row) && (signal !== "write" || rows.value("beat", row)) ? 1 : 0;
  }
  return values;
}

export function showTimeline(rows, units) {
  const begin = rows.at("start")[0];
  const inferences = rows.at("inf_done");
  const stop = (inferences.at(-1) ?? rows.length - 1) + 1;
  const busy = Object.values(units).map((signal) => activity(rows, signal).subarray(begin, stop));
  byId("units").replaceChildren(
    ...Object.keys(units).map((name, i) => {
      const cycles = busy[i].reduce((sum, value) => sum + value, 0);
      return element("li", {}, name, element("span", {}, number(cycles)));
    }),
  );
  const ends = rows.at("layer_done").map((row) => row - begin);
  draw(busy, ends, inferences.map((row) => row - begin), stop - begin);
}

function draw(busy, layers, inferences, cycles) {
  const canvas = byId("timeline");
  const width = canvas.clientWidth;
  const bins = Math.floor(width / BIN);
  const context = canvasContext(canvas, width, busy.length * LINE + AXIS);
  const at = (cycle) => (cycle / cycles) * width;
  busy.forEach((values, line) => {
    context.fillStyle = colour("track");
    context.fillRect(0, line * LINE + 2, width, LINE - 4);
    context.fillStyle = colour("accent");
    for (let bin = 0; bin < bins; bin++) {
      const [from, to] = [bin, bin + 1].map((edge) => Math.floor((edge * cycles) / bins));
      let sum = 0;
      for (let cycle = from; cycle < to; cycle++) sum += values[cycle];
      if (!sum) continue;
      context.globalAlpha = Math.sqrt(sum / (to - from)); // short accesses stay visible
      context.fillRect((bin * width) / bins, line * LINE + 2, width / bins + 0.3, LINE - 4);
    }
    context.globalAlpha = 1;
  });
  const mark = (cycle, name) => {
    context.fillStyle = colour(name);
    context.fillRect(at(cycle) - 0.75, 0, 1.5, busy.length * LINE);
  };
  layers.forEach((cycle) => mark(cycle, "muted"));
  inferences.forEach((cycle) => mark(cycle, "warm"));
  context.fillStyle = colour("muted");
  context.font = "12px system-ui, sans-serif";
  for (let i = 0; i <= 4; i++) {
    context.textAlign = ["left", "center", "center", "center", "right"][i];
    context.fillText(number((cycles * i) / 4), (width * i) / 4, busy.length * LINE + 14);
  }
}
