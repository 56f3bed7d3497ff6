// SPDX-License-Identifier: Apache-2.0
// The verilated device: the driver starts it, its clock runs as far as the page lets it, and everything that is shown
// is read out of it.

import { fromBase64 } from "./bytes.js";

const NETWORK = ["list", "layers", "weights", "biases", "eight_bit", "input", "input_bytes", "input_stride"];
NETWORK.push("result", "result_bytes", "result_stride");
const MOST_CYCLES = 1 << 20;

export class DeviceError extends Error {}

export class Device {
  // `create` is emscripten's factory, `binary` the module of WebAssembly
  static async load(create, binary, data) {
    const wasm = await create({ wasmBinary: binary });
    return new Device(wasm, data);
  }

  constructor(wasm, data) {
    this.wasm = wasm;
    this.data = data;
  }

  // Power on, put a network of `data` and images (64 bytes each) into the storage, and start. With `vcd` the run is
  // recorded.
  begin(images, { network, waits = 0, continuous = false, vcd = false }) {
    const { wasm } = this;
    const plan = continuous ? network.stream : network.single;
    this.network = network;
    this.plan = plan;
    this.count = continuous ? images.length : 1;
    this.finished = 0;
    this.images = images;
    this.check(wasm._page_open(waits, Number(vcd)));
    const store = wasm._page_store();
    wasm.HEAPU8.set(fromBase64(network.store), store);
    images.slice(0, this.count).forEach((image, i) => {
      wasm.HEAPU8.set(image, store + plan.input + i * plan.input_stride);
    });
    wasm.HEAPU32.set(NETWORK.map((name) => plan[name]), wasm._page_network() >> 2);
    for (const layer of network.layers) wasm._page_watch(layer.first, layer.bytes);
    this.check(wasm._page_start(this.count));
    this.started = wasm._page_row_count();
  }

  // At most so many cycles; true when all results are stored.
  advance(cycles) {
    const end = this.cycle + cycles;
    while (this.finished < this.count && this.cycle < end) {
      if (!this.wasm._page_step(end - this.cycle)) break;
      this.check(this.wasm._page_collect());
      this.finished = this.wasm._page_finished();
    }
    return this.finished >= this.count;
  }

  // A whole run and what came of it.
  run(images, options) {
    this.begin(images, options);
    if (!this.advance(MOST_CYCLES)) throw new DeviceError(`no result within ${MOST_CYCLES} cycles`);
    return this.results();
  }

  results() {
    const { wasm, data, network, plan } = this;
    const counters = Object.fromEntries(data.counters.map((name, i) => [name, wasm._page_counter(i)]));
    const store = wasm._page_store();
    const bytes = Array.from({ length: this.count }, (_, i) => {
      const from = store + plan.result + i * plan.result_stride;
      return wasm.HEAPU8.slice(from, from + plan.result_bytes);
    });
    const score = network.signed ? (byte) => (byte << 24) >> 24 : (byte) => byte - network.add;
    const scores = bytes.map((each) => Array.from(each, score));
    return {
      counters,
      store: wasm.HEAPU8.slice(store, store + plan.result),
      bytes,
      scores,
      classes: scores.map((values) => values.indexOf(Math.max(...values))),
      toggles: wasm._page_toggles(),
      idleToggles: wasm._page_idle_toggles(),
      products: wasm._page_products(),
      accesses: this.accesses(),
      maps: this.maps(),
      ends: this.ends(),
      rows: this.rows(),
    };
  }

  // Cycles since power on.
  get cycle() {
    return this.wasm._page_cycle();
  }

  // Rows of the probe in which layers ended.
  ends() {
    const from = this.wasm._page_ends() >> 2;
    return Array.from(this.wasm.HEAPU32.subarray(from, from + this.wasm._page_end_count()));
  }

  // Inputs of the layers of the first inference, as they lie in the AI RAM: bytes in the order channel, line, column.
  maps() {
    const { wasm, network } = this;
    let from = wasm._page_snapshots();
    return network.layers.map((layer) => {
      const map = Uint8Array.from(layer.places, (place) => wasm.HEAPU8[from + place]);
      from += layer.bytes;
      return map;
    });
  }

  // Rows of the probe, one for each cycle since the start.
  rows() {
    const from = this.wasm._page_rows() >> 2;
    const words = this.data.row_words;
    return new Rows(this.wasm.HEAPU32.slice(from, from + words * this.wasm._page_row_count()), this.data);
  }

  // What the host read and wrote: [{cycle, write, offset, value}].
  accesses() {
    let at = this.wasm._page_accesses() >> 2;
    return Array.from({ length: this.wasm._page_access_count() }, () => {
      const [cycle, write, offset, value] = this.wasm.HEAPU32.subarray(at, at + 4);
      at += 4;
      return { cycle, write: Boolean(write), offset, value };
    });
  }

  // The multipliers in this cycle: [{on, pixel, weight}], nine of a lane together.
  multipliers() {
    const { macs, weight_bits: bits } = this.data.config;
    const enables = this.wasm._page_enables() >> 2;
    const operands = this.wasm._page_operands();
    const bit = (n) => (this.wasm.HEAPU32[enables + (n >> 5)] >>> (n & 31)) & 1;
    const size = 1 + bits / 8;
    return Array.from({ length: macs }, (_, i) => {
      const at = operands + i * size;
      const low = this.wasm.HEAPU8[at + 1];
      const weight = bits === 8 ? low : low | (this.wasm.HEAPU8[at + 2] << 8);
      return { on: Boolean(bit(i)), pixel: this.wasm.HEAPU8[at], weight };
    });
  }

  // The recording of the last run that was begun with `vcd`.
  vcd() {
    const from = this.wasm._page_vcd();
    return this.wasm.HEAPU8.slice(from, from + this.wasm._page_vcd_bytes());
  }

  check(code) {
    if (code) throw new DeviceError(this.wasm.UTF8ToString(this.wasm._page_text(code)));
  }
}

// Rows of the probe: a value for each cycle and signal.
class Rows {
  constructor(words, data) {
    this.words = words;
    this.each = data.row_words;
    this.places = data.probe;
    this.length = words.length / this.each;
  }

  value(name, row) {
    const [low, width] = this.places[name];
    const at = row * this.each + (low >> 5);
    return (this.words[at] >>> (low & 31)) & (2 ** width - 1);
  }

  // Cycles in which a signal is high.
  at(name) {
    const found = [];
    for (let row = 0; row < this.length; row++) if (this.value(name, row)) found.push(row);
    return found;
  }
}
