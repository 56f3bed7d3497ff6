// SPDX-License-Identifier: Apache-2.0
// What the host did: registers as the driver wrote and read them, and the task list in the storage.

import { byId, documentLink, element, hex, number } from "./dom.js";

// The register of an offset; those of 64 bits have a second word.
function register(offset, names) {
  if (names[offset]) return { name: names[offset], half: "" };
  const low = names[offset - 4];
  return low ? { name: low, half: " (high)" } : { name: hex(offset, 3), half: "" };
}

export function showAccesses(accesses, data) {
  const counters = (access) => !access.write && register(access.offset, data.registers).name.startsWith("PERF_");
  byId("accesses").replaceChildren(
    ...accesses.map((access) => {
      const { name, half } = register(access.offset, data.registers);
      const link = documentLink(data.links, "registers", name.toLowerCase());
      return element(
        "tr",
        { class: counters(access) ? "quiet" : undefined },
        element("td", { class: "number" }, number(access.cycle)),
        element("td", {}, access.write ? "write" : "read"),
        element("td", { class: "code" }, hex(access.offset, 3)),
        element("td", { class: "code" }, element("a", { href: link }, name), half),
        element("td", { class: "code number" }, hex(access.value, 8)),
      );
    }),
  );
}

let listed = null; // a list stays as the reader has opened it

export function showTaskList(network) {
  if (listed === network) return;
  listed = network;
  byId("layers").replaceChildren(
    ...network.layers.map((layer, i) =>
      element(
        "details",
        i ? {} : { open: "" },
        element("summary", {}, element("b", {}, `Layer ${i}`), ` ${layer.title}`),
        element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `words of layer ${i}` }, words(layer)),
      ),
    ),
  );
}

function words(layer) {
  const row = (word, i) =>
    element(
      "tr",
      {},
      element("td", { class: "number" }, String(i)),
      element("td", { class: "code" }, `0x${word.toUpperCase()}`),
      element("td", {}, layer.fields[i].map(([name, value]) => `${name} ${value}`).join(", ") || "all zero"),
    );
  const head = ["word", "value", "fields"].map((text) => element("th", { scope: "col" }, text));
  return element(
    "table",
    {},
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...layer.words.map(row)),
  );
}
