// SPDX-License-Identifier: Apache-2.0
// The page: what is drawn goes into the device, and what comes of it is shown.

import { fromBase64, inflate } from "./bytes.js";
import { Device } from "./device.js";
import { byId, documentLink, element, number, percent } from "./dom.js";
import { showAccesses, showTaskList } from "./host.js";
import { showLanes, showStep } from "./lanes.js";
import { showMaps } from "./maps.js";
import { Pad, drawScanOn } from "./pad.js";
import { toScan } from "./pixels.js";
import { showScores } from "./scores.js";
import { showSpent } from "./spent.js";
import { showTimeline } from "./timeline.js";

const PIXELS = 64;
const TO_THE_END = 1 << 20;
const FIRST_STEP = 250; // cycles until the array is at work

const data = JSON.parse(byId("data").textContent);
const scans = fromBase64(data.scans);
const devices = new Map(); // promises, by the id of the element that holds the module

const state = { scan: new Uint8Array(PIXELS), label: null, next: 0, result: null, options: null, stepping: null, turn: 0 };

// ---- the device
function device(gate) {
  const id = gate ? "wasm-gate" : "wasm-plain";
  if (!devices.has(id)) devices.set(id, loaded(id));
  return devices.get(id);
}

async function loaded(id) {
  const binary = await inflate(fromBase64(byId(id).textContent));
  return Device.load(openkpuDevice, binary, data);
}

function scanAt(place) {
  const first = (place % data.labels.length) * PIXELS;
  return scans.slice(first, first + PIXELS);
}

// Bytes of the images of a run as the network wants them: what is shown, and in continuous mode the scans that come
// next.
function images(network, continuous) {
  const shown = [state.scan];
  for (let i = 0; continuous && i < network.stream.count - 1; i++) shown.push(scanAt(state.next + i));
  return shown.map((scan) => Uint8Array.from(network.order, (place) => scan[place] * data.scale));
}

function chosen() {
  const continuous = byId("continuous").checked;
  const network = data.networks[Number(byId("network").value)];
  const [waits, gate] = [Number(byId("waits").value), byId("gate").checked];
  return { network, continuous, waits, gate, images: images(network, continuous) };
}

// What steps showed is of the run before, hence they begin anew with each run.
async function run() {
  const turn = ++state.turn;
  await guarded(async () => {
    const options = chosen();
    const machine = await device(options.gate);
    if (turn !== state.turn) return; // a later run began while the device was loaded
    const began = performance.now();
    const result = machine.run(options.images, options);
    const took = performance.now() - began;
    Object.assign(state, { result, options, took, stepping: null });
    window.openkpu = { result, images: options.images }; // for a reader at the console, and tests
    show();
    await step(FIRST_STEP);
  });
}

// An error is shown where the result would be.
async function guarded(action) {
  const said = byId("failure");
  try {
    said.hidden = true;
    await action();
  } catch (error) {
    said.textContent = `The device did not finish: ${error.message}`;
    said.hidden = false;
    throw error;
  }
}

// ---- what is shown
function show() {
  const { result, options } = state;
  if (!result) return;
  showScores(result.scores[0], result.classes[0], state.label, !state.scan.some(Boolean));
  byId("bytes").textContent = Array.from(result.bytes[0], (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  drawScanOn(byId("pixels"), state.scan);
  showFigures();
  showSpent(result.counters, data.colours);
  showTimeline(result.rows, data.units);
  showMaps(result.maps, options.network.layers);
  showGate();
  showAccesses(result.accesses, data);
  showTaskList(options.network);
  document.body.dataset.runs = String(Number(document.body.dataset.runs ?? 0) + 1);
}

// Cycles of an inference: of a stream those of its steady state, from the second result to the last.
function cyclesEach({ counters, rows }) {
  const ends = rows.at("inf_done");
  return ends.length > 2 ? (ends.at(-1) - ends[1]) / (ends.length - 2) : counters.total;
}

function showFigures() {
  const { result, took } = state;
  const hertz = Number(byId("clock").value) * 1e6;
  const each = cyclesEach(result);
  byId("cycles").textContent = number(each);
  byId("time").textContent = `${((1e6 * each) / hertz).toFixed(1)} µs`;
  byId("rate").textContent = number(hertz / each);
  byId("took").textContent = `${Math.round(took)} ms`;
  byId("stream-note").textContent = result.classes.length > 1
    ? `Continuous: ${result.classes.length} images in ${number(result.counters.total)} cycles, read as ${result.classes.join(", ")}; the cycles are those of the steady state.`
    : "Discontinuous: one image, with its list, weights and biases read from the storage.";
}

function showGate() {
  const { counters, toggles, idleToggles, products } = state.result;
  byId("macs").textContent = number(counters.macs_issued);
  byId("gated").textContent = number(counters.macs_gated);
  byId("gated-share").textContent = percent(counters.macs_gated / counters.macs_issued);
  byId("toggles").textContent = number(toggles);
  byId("idle-toggles").textContent = number(idleToggles);
  byId("products").textContent = number(products);
}

// ---- buttons
function nextScan() {
  state.scan = scanAt(state.next);
  state.label = Number(data.labels[state.next % data.labels.length]);
  state.next = (state.next + 1) % data.labels.length;
  pad.show(state.scan);
  return run();
}

function drawn(strokes) {
  state.scan = toScan(strokes);
  state.label = null;
  return run();
}

async function download() {
  if (!state.result) return;
  await guarded(async () => {
    state.stepping = null; // the recording runs on the same device
    const machine = await device(state.options.gate);
    machine.run(state.options.images, { ...state.options, vcd: true });
    const bytes = machine.vcd();
    const link = element("a", { download: "openkpu.vcd", href: URL.createObjectURL(new Blob([bytes])) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    await step(FIRST_STEP);
    byId("vcd-note").textContent = `openkpu.vcd: ${(bytes.length / 1e6).toFixed(1)} MB`;
  });
}

// ---- single steps
async function step(cycles) {
  await guarded(async () => {
    if (!state.stepping) {
      const options = chosen();
      const machine = await device(options.gate);
      machine.begin(options.images, options);
      state.stepping = { machine, options, done: false };
    }
    const { machine } = state.stepping;
    if (cycles === "layer") toNextLayer(machine);
    else if (!state.stepping.done) state.stepping.done = machine.advance(cycles);
    showLanes(machine);
    showStep(machine, machine.rows(), state.stepping.done);
  });
}

function toNextLayer(machine) {
  const before = machine.ends().length;
  while (!state.stepping.done && machine.ends().length === before) state.stepping.done = machine.advance(1);
}

function restart() {
  state.stepping = null;
  return step(0);
}

// ---- beginning
function links() {
  for (const link of document.querySelectorAll("a[data-page]")) {
    link.href = documentLink(data.links, link.dataset.page, link.dataset.anchor);
  }
}

function supported() {
  const missing = [];
  if (typeof WebAssembly !== "object") missing.push("WebAssembly");
  if (typeof DecompressionStream !== "function") missing.push("DecompressionStream");
  if (!missing.length) return true;
  byId("unsupported").textContent =
    `This browser has no ${missing.join(" and no ")}, without which the device cannot run here. ` +
    "A checkout runs the same inference by make sim.";
  byId("unsupported").hidden = false;
  for (const control of document.querySelectorAll("button, input, select")) control.disabled = true;
  return false;
}

const pad = new Pad(byId("pad"), drawn);

function listen() {
  byId("next").addEventListener("click", nextScan);
  byId("clear").addEventListener("click", () => pad.erase());
  byId("vcd").addEventListener("click", download);
  byId("restart").addEventListener("click", restart);
  for (const button of document.querySelectorAll("button[data-cycles]")) {
    const { cycles } = button.dataset;
    const many = { layer: "layer", end: TO_THE_END }[cycles] ?? Number(cycles);
    button.addEventListener("click", () => step(many));
  }
  byId("network").append(...data.networks.map(({ title }, i) => element("option", { value: i }, title)));
  byId("network").addEventListener("change", () => run());
  for (const id of ["continuous", "single", "gate", "waits"]) byId(id).addEventListener("change", run);
  byId("waits").addEventListener("input", () => (byId("waits-shown").textContent = byId("waits").value));
  byId("clock").addEventListener("change", () => state.result && showFigures());
  const redraw = () => {
    pad.draw();
    if (!state.result) return;
    drawScanOn(byId("pixels"), state.scan);
    showTimeline(state.result.rows, data.units);
    showMaps(state.result.maps, state.options.network.layers);
  };
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth !== width) redraw();
    width = window.innerWidth;
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

links();
if (supported()) {
  listen();
  nextScan();
}
