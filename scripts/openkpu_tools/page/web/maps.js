// SPDX-License-Identifier: Apache-2.0
// The maps that layers read, with the pixels marked whose multiplications the gate skips: zero and below.

import { byId, canvasContext, colour, element, number, percent } from "./dom.js";

const MOST_CELL = 14;

// Values of a map, and which of them are gated.
function values(map, signed) {
  return Array.from(map, (byte) => (signed && byte > 127 ? byte - 256 : byte));
}

// `maps`: input of each layer, bytes in the order channel, line, column.
export function showMaps(maps, layers) {
  byId("maps").replaceChildren(
    ...layers.map((layer, i) => {
      const pixels = values(maps[i], layer.signed_in);
      const gated = pixels.filter((value) => value <= 0).length;
      const canvas = element("canvas", {
        role: "img",
        "aria-label": `input of layer ${i}: ${gated} of ${pixels.length} pixels are zero or below`,
      });
      const figure = element(
        "figure",
        {},
        element("figcaption", {}, element("b", {}, `Layer ${i}`), ` ${layer.title}`),
        canvas,
        element("p", {}, `${number(gated)} of ${number(pixels.length)} pixels gated, ${percent(gated / pixels.length)}`),
      );
      requestAnimationFrame(() => draw(canvas, pixels, layer.in));
      return figure;
    }),
  );
}

function draw(canvas, pixels, [channels, height, width]) {
  const room = canvas.clientWidth;
  const gap = width > 1 ? 4 : 0;
  const across = Math.min(channels, width > 1 ? Math.ceil(Math.sqrt(channels)) : 12);
  const down = Math.ceil(channels / across);
  const cell = Math.min(MOST_CELL, Math.floor((room - gap * (across - 1)) / (across * width)));
  const context = canvasContext(canvas, room, down * (height * cell + gap));
  const brightest = Math.max(1, ...pixels);
  pixels.forEach((value, i) => {
    const channel = Math.floor(i / (height * width));
    const [y, x] = [Math.floor(i / width) % height, i % width];
    const left = (channel % across) * (width * cell + gap) + x * cell;
    const top = Math.floor(channel / across) * (height * cell + gap) + y * cell;
    context.globalAlpha = 1;
    context.fillStyle = colour(value > 0 ? "track" : "gated");
    context.fillRect(left, top, cell - 1, cell - 1);
    if (value > 0) {
      context.globalAlpha = 0.25 + (0.75 * value) / brightest;
      context.fillStyle = colour("accent");
      context.fillRect(left, top, cell - 1, cell - 1);
    } else {
      context.strokeStyle = colour("gated-mark");
      context.beginPath();
      context.moveTo(left + 1, top + cell - 2);
      context.lineTo(left + cell - 2, top + 1);
      context.stroke();
    }
  });
}
