// SPDX-License-Identifier: Apache-2.0
// Strokes to the pixels of a scan, as the scans of the data set were made: a bitmap of 32 x 32, its bits counted in
// blocks of 4 x 4.

const GRID = 32;
const BLOCK = 4;
const PEN = 2.7; // radius of the pen on the grid: about as thick as in the scans
const SIDE = GRID / BLOCK;

// Square of the distance from (x, y) to the segment a-b.
function distance2(x, y, [ax, ay], [bx, by]) {
  const [dx, dy] = [bx - ax, by - ay];
  const length2 = dx * dx + dy * dy;
  const along = length2 ? Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / length2)) : 0;
  return (x - ax - along * dx) ** 2 + (y - ay - along * dy) ** 2;
}

// Strokes of points in any unit, scaled and moved so that the digit fills the grid.
function fitted(strokes) {
  const points = strokes.flat();
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [left, right] = [Math.min(...xs), Math.max(...xs)];
  const [top, bottom] = [Math.min(...ys), Math.max(...ys)];
  const room = GRID - 2 * PEN;
  const scale = room / Math.max(right - left, bottom - top, 1e-6);
  const place = ([x, y]) => [
    GRID / 2 + (x - (left + right) / 2) * scale,
    GRID / 2 + (y - (top + bottom) / 2) * scale,
  ];
  return strokes.map((stroke) => stroke.map(place));
}

// Counts (64) from 0 to 16 of strokes [[x, y], ...]; all zero without any.
export function toScan(strokes) {
  const counts = new Uint8Array(SIDE * SIDE);
  const drawn = strokes.filter((stroke) => stroke.length);
  if (!drawn.length) return counts;
  const segments = fitted(drawn).flatMap((stroke) =>
    stroke.map((point, i) => [stroke[Math.max(0, i - 1)], point]),
  );
  for (let y = 0; y < GRID; y++) {
    for (let x = 0; x < GRID; x++) {
      const hit = segments.some(([a, b]) => distance2(x + 0.5, y + 0.5, a, b) <= PEN * PEN);
      if (hit) counts[Math.floor(y / BLOCK) * SIDE + Math.floor(x / BLOCK)]++;
    }
  }
  return counts;
}
