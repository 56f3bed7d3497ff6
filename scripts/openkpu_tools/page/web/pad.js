// SPDX-License-Identifier: Apache-2.0
// Where a digit is drawn: by mouse, pen or finger, or by keyboard with a cursor on a grid.

import { canvasContext, colour } from "./dom.js";

const SIDE = 8;
const CURSOR_STEP = 1 / 16;
const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class Pad {
  // `changed` is called with the strokes when one has ended.
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.changed = changed;
    this.strokes = [];
    this.scan = null; // counts (64) that are shown in place of strokes
    this.cursor = null;
    this.penDown = false;
    canvas.addEventListener("pointerdown", (event) => this.begin(event));
    canvas.addEventListener("pointermove", (event) => this.follow(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => this.end(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("focus", () => this.focus(canvas.matches(":focus-visible")));
    canvas.addEventListener("blur", () => this.focus(false));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  clear() {
    this.strokes = [];
    this.scan = null;
    this.penDown = this.drawing = false;
    this.draw();
  }

  // A reader's wish: the empty pad is what the device then gets.
  erase() {
    this.clear();
    this.changed(this.strokes);
  }

  show(scan) {
    this.clear();
    this.scan = scan;
    this.draw();
  }

  // ---- pointers
  point(event) {
    const box = this.canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  }

  begin(event) {
    if (event.button || !event.isPrimary) return; // a second finger draws nothing
    this.canvas.setPointerCapture(event.pointerId);
    if (this.scan) this.clear();
    this.drawing = true;
    this.strokes.push([this.point(event)]);
    this.draw();
  }

  follow(event) {
    if (!this.drawing || !event.isPrimary) return;
    this.strokes.at(-1).push(this.point(event));
    this.draw();
  }

  end(event) {
    if (!this.drawing || !event.isPrimary) return;
    this.drawing = false;
    this.changed(this.strokes);
  }

  // ---- keyboard
  focus(on) {
    this.cursor = on ? (this.cursor ?? [0.5, 0.25]) : this.cursor;
    this.cursorSeen = on;
    if (!on && this.penDown) this.lift();
    this.draw();
  }

  lift() {
    this.penDown = false;
    this.changed(this.strokes);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own
    const move = MOVES[event.key];
    this.cursor ??= [0.5, 0.25];
    if (move) {
      this.cursorSeen = true;
      const inside = (value) => Math.min(1 - CURSOR_STEP, Math.max(CURSOR_STEP, value));
      this.cursor = this.cursor.map((at, i) => inside(at + move[i] * CURSOR_STEP));
      if (this.penDown) this.strokes.at(-1).push(this.cursor);
    } else if (event.key === " " && event.repeat) {
      // held down is pressed once
    } else if (event.key === " ") {
      if (this.scan) this.clear();
      if (this.penDown) this.lift();
      else {
        this.penDown = true;
        this.strokes.push([this.cursor]);
      }
    } else if (event.key === "Delete" || event.key === "Backspace") {
      this.erase();
    } else return;
    event.preventDefault();
    this.draw();
  }

  // ---- picture
  draw() {
    const size = this.canvas.clientWidth;
    if (!size) return;
    const context = canvasContext(this.canvas, size, size);
    if (this.scan) this.drawScan(context, size);
    context.lineWidth = size / 14;
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = colour("ink");
    for (const stroke of this.strokes) {
      context.beginPath();
      for (const [x, y] of [stroke[0], ...stroke]) context.lineTo(x * size, y * size);
      context.stroke();
    }
    if (!this.cursorSeen) return;
    const [x, y] = this.cursor.map((at) => at * size);
    context.lineWidth = 2;
    context.strokeStyle = colour(this.penDown ? "warm" : "accent");
    context.beginPath();
    context.arc(x, y, size / 24, 0, 2 * Math.PI);
    context.stroke();
  }

  drawScan(context, size) {
    const cell = size / SIDE;
    context.fillStyle = colour("ink");
    this.scan.forEach((count, i) => {
      context.globalAlpha = count / 16;
      context.fillRect((i % SIDE) * cell, Math.floor(i / SIDE) * cell, cell, cell);
    });
    context.globalAlpha = 1;
  }
}

// The pixels that the device gets.
export function drawScanOn(canvas, scan) {
  const size = canvas.clientWidth;
  const context = canvasContext(canvas, size, size);
  const cell = size / SIDE;
  context.fillStyle = colour("ink");
  scan.forEach((count, i) => {
    context.globalAlpha = count / 16;
    context.fillRect((i % SIDE) * cell, Math.floor(i / SIDE) * cell, cell - 1, cell - 1);
  });
}
