// Canvases with axes; what all charts share: sizes, colors, zoom.

const LEFT = 66, RIGHT = 8, TOP = 6, BOTTOM = 20;

// The part that is shown, as fractions: of the schedule (x) and of the addresses (y). Charts of all runs share it.
const view = { x0: 0, x1: 1, y0: 0, y1: 1 };

function zoom(axis, factor, about) {
  const from = view[axis + "0"], to = view[axis + "1"];
  const width = Math.min(1, Math.max((to - from) * factor, 1e-9));
  const start = about - (about - from) * width / (to - from);
  setRange(axis, start, width);
}

function pan(axis, share) {
  const width = view[axis + "1"] - view[axis + "0"];
  setRange(axis, view[axis + "0"] + share * width, width);
}

function setRange(axis, start, width) {
  const from = Math.min(Math.max(start, 0), 1 - width);
  view[axis + "0"] = from;
  view[axis + "1"] = from + width;
}

// A chart: a canvas to draw on and one above it for what moves. `draw(pen, width, height)` works in CSS pixels.
function makeChart(name, label, draw) {
  const canvas = element("canvas", { role: "img", "aria-label": label });
  const above = element("canvas", { "aria-hidden": "true" });
  const box = element("div", { class: `chart ${name}`, tabindex: "0" }, canvas, above);
  const chart = { box, canvas, above, draw, over: null };
  new ResizeObserver(() => paint(chart)).observe(box);
  return chart;
}

function paint(chart) {
  const { width, height } = chart.box.getBoundingClientRect();
  if (!width || !height) return;
  chart.width = width;
  chart.height = height;
  chart.ratio = window.devicePixelRatio || 1;
  chart.draw(penOf(chart, chart.canvas), width, height, chart);
  paintOver(chart);
}

function paintOver(chart) {
  if (chart.width && chart.over) chart.over(penOf(chart, chart.above), chart.width, chart.height, chart);
}

function penOf(chart, canvas) {
  const width = Math.round(chart.width * chart.ratio), height = Math.round(chart.height * chart.ratio);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const pen = canvas.getContext("2d");
  pen.setTransform(chart.ratio, 0, 0, chart.ratio, 0, 0);
  pen.clearRect(0, 0, chart.width, chart.height);
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  return pen;
}

// Colors of the style sheet, read again when the system turns light or dark.
let theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  theme = Object.fromEntries(["back", "panel", "text", "dim", "line", "strong", "accent", "peak", "more", "less"]
    .map(name => [name, style.getPropertyValue("--" + name).trim()]));
}

const PALETTE = ["#4a74c9", "#e08a2e", "#2f9e77", "#a463b5", "#d9b91f", "#c8553d", "#3fa7c4", "#8a6d3b", "#d66ba0", "#6b8e23"];
const OTHER = "#8a8f98";

// Groups of buffers by color: names, colors and the group of each buffer.
function groupsOf(run, mode, kinds) {
  const { allocation } = run.buffers;
  const group = new Uint8Array(run.count);
  if (mode === "kind") {
    for (let i = 0; i < run.count; i++) group[i] = run.allocations.kind[allocation[i]];
    return { group, names: kinds.map(kind => kind.name), colors: kinds.map(kind => kind.color) };
  }
  if (mode === "space") {
    for (let i = 0; i < run.count; i++) group[i] = run.allocations.space[allocation[i]];
    return { group, names: run.spaces, colors: run.spaces.map((_, at) => PALETTE[at] || OTHER) };
  }
  return opcodeGroups(run, group);
}

function opcodeGroups(run, group) {
  const { number, names } = run.texts.opcode;
  const weight = new Float64Array(names.length);
  for (let i = 0; i < run.ranged; i++) {
    if (number[i] >= 0) weight[number[i]] += (run.buffers.slots[i] + 1) * run.buffers.size[i];
  }
  const most = Array.from(names.keys()).sort((a, b) => weight[b] - weight[a] || a - b).slice(0, PALETTE.length);
  const place = new Map(most.map((opcode, at) => [opcode, at]));
  for (let i = 0; i < run.count; i++) group[i] = place.get(number[i]) ?? most.length;
  return {
    group,
    names: [...most.map(opcode => names[opcode]), "other"],
    colors: [...most.map((_, at) => PALETTE[at]), OTHER],
  };
}

function rgb(color) {
  return [1, 3, 5].map(at => parseInt(color.slice(at, at + 2), 16));
}

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

function bytesText(size) {
  if (Math.abs(size) < 1024) return `${Math.round(size)} B`;
  let value = size, unit = -1;
  do { value /= 1024; unit++; } while (Math.abs(value) >= 1024 && unit < UNITS.length - 1);
  return `${value.toFixed(unit ? 2 : 1)} ${UNITS[unit]}`;
}

// As short as it can be and to a thousandth: of steps of 128 MiB one is at 1.125 GiB, and below zero is a minus.
function shortBytes(size) {
  let value = Math.abs(size), unit = -1;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit++; }
  return `${size < 0 ? "−" : ""}${Number(value.toFixed(3))} ${unit < 0 ? "B" : UNITS[unit]}`;
}

const COUNTS = new Intl.NumberFormat("en-US");
const slotText = slot => COUNTS.format(slot);

// Round steps: powers of two for bytes, 1-2-5 for slots.
function byteStep(range, most) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(range / most)));
}

function slotStep(range, most) {
  const rough = Math.max(range / most, 1), ten = 10 ** Math.floor(Math.log10(rough));
  return ten * [1, 2, 5, 10].find(factor => factor * ten >= rough);
}

function drawByteAxis(pen, from, to, width, height) {
  const step = byteStep(to - from, Math.max(2, height / 32));
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (let size = Math.ceil(from / step) * step; size <= to; size += step) {
    const y = TOP + height - height * (size - from) / (to - from);
    pen.strokeStyle = theme.line;
    pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(LEFT + width, y); pen.stroke();
    pen.fillStyle = theme.dim;
    pen.fillText(shortBytes(size), LEFT - 5, Math.max(y, 7));
  }
}

function drawSlotAxis(pen, span, width, height) {
  const from = view.x0 * span, to = view.x1 * span;
  const step = slotStep(to - from, Math.max(2, width / 90));
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.fillStyle = theme.dim;
  for (let slot = Math.ceil(from / step) * step; slot <= to; slot += step) {
    pen.fillText(slotText(slot), Math.min(LEFT + width * (slot - from) / (to - from), LEFT + width - 20), TOP + height + 4);
  }
}

function drawFrame(pen, width, height) {
  pen.strokeStyle = theme.strong;
  pen.strokeRect(LEFT - .5, TOP - .5, width + 1, height + 1);
}

// Where a slot is, in pixels from the left edge of the plot.
function slotX(slot, span, width) {
  return (slot / span - view.x0) / (view.x1 - view.x0) * width;
}

function drawSlotLine(pen, slot, run, width, height, color, dashed) {
  const x = LEFT + slotX(slot + .5, run.span, width);
  if (x < LEFT || x > LEFT + width) return;
  pen.strokeStyle = color;
  pen.setLineDash(dashed ? [4, 3] : []);
  pen.beginPath(); pen.moveTo(x, TOP); pen.lineTo(x, TOP + height); pen.stroke();
  pen.setLineDash([]);
}

// Make an element; a text becomes text, never markup.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
