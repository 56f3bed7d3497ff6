// SPDX-License-Identifier: Apache-2.0
// Single steps: the multipliers of the array cycle by cycle, lit where a multiplication is enabled.

import { byId, element, number } from "./dom.js";

const COLUMNS = 9; // the reduction is always nine wide

function lane(multipliers, name) {
  const cells = multipliers.map(({ on, pixel, weight }) =>
    element(
      "span",
      { class: on ? "on" : "off" },
      element("b", {}, String(pixel)),
      element("small", {}, `× ${weight > 32767 ? weight - 65536 : weight}`),
    ),
  );
  return element("figure", {}, element("figcaption", {}, name), element("div", { class: "cells" }, ...cells));
}

export function showLanes(device) {
  const { n_y: pixels } = device.data.config;
  const all = device.multipliers();
  const lanes = [];
  for (let i = 0; i < all.length; i += COLUMNS) {
    const number_ = i / COLUMNS;
    const name = `pixel ${number_ % pixels}, output channel ${Math.floor(number_ / pixels)}`;
    lanes.push(lane(all.slice(i, i + COLUMNS), name));
  }
  byId("lanes").replaceChildren(...lanes);
}

// Cycle since the start, layer and units of the last row of the probe.
export function showStep(device, rows, done) {
  const last = rows.length - 1;
  const working = Object.entries(device.data.units)
    .filter(([, signal]) => rows.value(signal, last))
    .map(([name]) => name);
  byId("step-cycle").textContent = number(rows.length - device.started);
  byId("step-layer").textContent = String(rows.value("layer", last));
  byId("step-units").textContent = done ? "the result is stored" : working.join(", ") || "none";
}
