// SPDX-License-Identifier: Apache-2.0
// Where the cycles went: the device's own counters, whose sum is the total.

import { byId, element, number, percent } from "./dom.js";

const TEXTS = {
  array: "the array was issued work",
  weights: "waits for weights",
  input: "waits for input rows",
  output: "waits for the output side",
  bus: "waits for a transfer on the bus",
  control: "starts of layers, decisions",
};

export function showSpent(counters, colours) {
  const causes = Object.keys(TEXTS);
  const cycles = Object.fromEntries(causes.slice(1).map((name) => [name, counters[`stall_${name}`]]));
  cycles.array = counters.total - Object.values(cycles).reduce((sum, value) => sum + value, 0);
  const share = (name) => cycles[name] / counters.total;
  byId("spent-bar").replaceChildren(
    ...causes.map((name) =>
      element("span", { style: `width:${100 * share(name)}%;background:${colours[name]}`, title: name }),
    ),
  );
  byId("spent").replaceChildren(
    ...causes.map((name) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, element("i", { style: `background:${colours[name]}` }), name),
        element("td", { class: "number" }, number(cycles[name])),
        element("td", { class: "number" }, percent(share(name))),
        element("td", { class: "what" }, TEXTS[name]),
      ),
    ),
  );
}
