// SPDX-License-Identifier: Apache-2.0
// Prediction and the ten scores: signed bytes of the last layer, as they lie in the storage.

import { byId, element } from "./dom.js";

const LEAST = -128;
const RANGE = 256;

export function showScores(scores, found, label, empty) {
  byId("prediction").textContent = found;
  byId("truth").textContent = empty ? "nothing is drawn" : label === null ? "drawn here" : `labelled ${label} in the test set`;
  const rows = Array.from(scores, (score, digit) => {
    const [from, to] = [Math.min(0, score), Math.max(0, score)].map((v) => (100 * (v - LEAST)) / RANGE);
    const bar = element("span", { class: "bar", style: `left:${from}%;width:${to - from}%` });
    return element(
      "li",
      { class: digit === found ? "best" : undefined },
      element("span", { class: "digit" }, String(digit)),
      element("span", { class: "track" }, bar),
      element("span", { class: "score" }, String(score)),
    );
  });
  byId("scores").replaceChildren(...rows);
}
