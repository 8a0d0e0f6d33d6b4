// The page: charts, search, table and pane, and what connects them.

async function start() {
  const began = performance.now();
  const block = await readBlock(document.getElementById("data").textContent);
  const { kinds, comparison } = block;
  const runs = block.runs.map(run => prepare(Object.assign(run, { kinds })));
  // Two arenas on one scale, so that their heights compare.
  const axisTop = Math.max(1, ...runs.map(run => run.top));
  for (const run of runs) run.axisTop = axisTop;
  const page = {
    runs, kinds, comparison, anchors: anchorsOf(runs, comparison), shown: 0, mode: "kind", path: "op_name", 
    pinned: runs.map(() => -1), hover: runs.map(() => -1), slot: null,
  };
  readTheme();
  color(page);
  build(page);
  for (const hidden of document.querySelectorAll(".static")) hidden.hidden = true;
  document.getElementById("app").hidden = false;
  refresh(page);
  document.documentElement.dataset.state = "ready";
  document.documentElement.dataset.milliseconds = Math.round(performance.now() - began);
}

// Slots of each run that correspond, from the first to behind the last.
function anchorsOf(runs, comparison) {
  return runs.map((run, side) => [0, ...comparison?.anchors[side] ?? [], run.span]);
}

function alignment({ anchors, order_kept: kept }) {
  const line = "The line is the other run";
  if (kept === null) return `${line}; no buffer of one was found in the other, so its slots are drawn as shares of its schedule.`;
  const share = `${(100 * kept).toFixed(0)} % of the buffers that both have start in the same order`;
  return anchors[0].length ? `${line}, aligned where the same buffers start: ${share}.` : `${line}, its slots as shares of its schedule: only ${share}.`;
}

const letter = number => "AB"[number];

function color(page) {
  for (const run of page.runs) {
    run.grouping = groupsOf(run, page.mode, page.kinds);
    pixelColors(run);
  }
}

function build(page) {
  const { runs } = page;
  const pin = buffer => pinBuffer(page, page.shown, buffer);
  page.tip = element("div", { class: "tip", hidden: "" });
  page.curve = makeChart("curve", "Live bytes over the schedule", (pen, width, height, chart) =>
    drawCurve(pen, width, height, chart, page));
  page.curve.over = (pen, width, height) => drawCurveOver(page, pen, width, height);
  page.arenas = runs.map((run, number) => {
    const chart = makeChart("arena", `Arena of ${run.figures.module}: addresses over slots`, (pen, width, height, own) =>
      drawArena(pen, width, height, own, run));
    chart.over = (pen, width, height) => drawArenaOver(page, number, pen, width, height);
    arenaEvents(page, chart, number);
    return chart;
  });
  page.icicle = makeChart("icicle", "Live at the peak, by part", drawIcicle);
  icicleEvents(page);
  curveEvents(page);
  page.table = makeTable(pin);
  page.pane = element("aside", { class: "pane", "aria-live": "polite", "aria-label": "Pinned buffer" });
  page.count = element("output", { class: "hint" });
  page.legend = element("ul", { class: "legend", "aria-label": "Colors" });
  page.check = element("p", { id: "check" });
  for (const chart of [page.curve, ...page.arenas]) chart.box.addEventListener("keydown", event => chartKey(page, event));
  document.getElementById("app").append(
    toolbar(page),
    ...(page.comparison ? [differenceSection(page.comparison, runs)] : []),
    head("Live bytes over the program"), page.legend, page.curve.box, page.check,
    element("div", { class: "columns" },
      element("div", {}, head("Arena: addresses over slots, peak dashed"), element("div", { class: "arenas" }, ...page.arenas.map((chart, number) =>
        element("div", {}, ...(runs.length > 1 ? [element("h3", {}, `${letter(number)}: run ${runs[number].figures.run_id}`)] : []), chart.box)))),
      element("div", {}, head("Pinned buffer"), page.pane)),
    head("Live at the peak", choice("by", ["op_name", "layers folded", "source", "opcode"], page.path, path => { page.path = path; plant(page); paint(page.icicle); })),
    page.icicle.box,
    head("All buffers"), page.table.box, page.tip,
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); color(page); repaint(page); });
}

function head(title, ...rest) {
  return element("div", { class: "head" }, element("h2", {}, title), ...rest);
}

// Buttons of which one is pressed.
function choice(label, names, chosen, choose) {
  const buttons = names.map(name => element("button", {
    type: "button",
    "aria-pressed": name === chosen,
    "data-choice": name,
    click: () => {
      for (const button of buttons) button.setAttribute("aria-pressed", button.dataset.choice === name);
      choose(name);
    },
  }, name));
  return element("span", { class: "group", role: "group", "aria-label": label }, element("span", { class: "hint" }, label), ...buttons);
}

function toolbar(page) {
  const field = element("input", {
    type: "search",
    id: "search",
    placeholder: "op_name, instruction, source, shape",
    input: () => requestAnimationFrame(() => find(page, field.value)),
  });
  const move = (text, label, act) => element("button", { type: "button", "aria-label": label, title: label, click: () => { act(); moved(page); } }, text);
  return element("div", { class: "toolbar", role: "toolbar", "aria-label": "Charts" },
    element("span", { class: "group" }, element("label", { for: "search" }, "search"), field, page.count),
    choice("color by", ["kind", "space", "op"], page.mode, mode => { page.mode = mode; color(page); refresh(page); }),
    ...(page.runs.length > 1 ? [choice("show", ["A", "B"], "A", name => { page.shown = "AB".indexOf(name); refresh(page); })] : []),
    element("span", { class: "group", role: "group", "aria-label": "Zoom" },
      move("+", "Zoom in", () => zoom("x", .5, middle("x"))),
      move("−", "Zoom out", () => zoom("x", 2, middle("x"))),
      move("0", "Show all", showAll),
      move("peak", "Go to the peak", () => goToPeak(page)),
      regionChoice(page)),
  );
}

// A list of the parts of the address axis; small ones (VMEM below HBM) are not seen on the whole.
function regionChoice(page) {
  const regions = [{ name: "all addresses", from: 0, to: page.runs[0].axisTop }];
  page.runs.forEach((run, number) => {
    const { base, size, kind, space, index } = run.allocations, of = page.runs.length > 1 ? `${letter(number)}: ` : "";
    page.kinds.forEach(({ name }, at) => {
      const members = Array.from(index.keys()).filter(i => kind[i] === at && size[i]);
      if (name === "temporary") {
        for (const i of members) {
          regions.push({ name: `${of}arena ${index[i]}, ${run.spaces[space[i]]}, ${bytesText(size[i])}`, from: base[i], to: base[i] + size[i] });
        }
      } else if (members.length) {
        const from = members.reduce((least, i) => Math.min(least, base[i]), Infinity);
        const to = members.reduce((most, i) => Math.max(most, base[i] + size[i]), 0);
        regions.push({ name: `${of}${name}, ${bytesText(to - from)}`, from, to });
      }
    });
  });
  const select = element("select", { "aria-label": "Addresses to show", change: () => {
    const { from, to } = regions[select.value], top = page.runs[0].axisTop;
    setRange("y", from / top, Math.max((to - from) / top, 1e-9));
    moved(page);
  } }, ...regions.map(({ name }, at) => element("option", { value: at }, name)));
  return select;
}

const middle = axis => (view[axis + "0"] + view[axis + "1"]) / 2;

function showAll() {
  Object.assign(view, { x0: 0, x1: 1, y0: 0, y1: 1 });
}

function goToPeak(page) {
  const run = page.runs[page.shown];
  const width = Math.min(view.x1 - view.x0, .1);
  setRange("x", (run.peak.time + .5) / run.span - width / 2, width);
}

const KEYS = {
  ArrowLeft: () => pan("x", -.2),
  ArrowRight: () => pan("x", .2),
  ArrowUp: () => pan("y", .2),
  ArrowDown: () => pan("y", -.2),
  "+": event => zoom(event.shiftKey && event.code !== "Equal" ? "y" : "x", .6, middle("x")),
  "=": () => zoom("x", .6, middle("x")),
  "-": () => zoom("x", 1 / .6, middle("x")),
  "_": () => zoom("y", 1 / .6, middle("y")),
  "*": () => zoom("y", .6, middle("y")),
  0: showAll,
};

function chartKey(page, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "p") goToPeak(page);
  else if (event.key === "Escape") pinBuffer(page, page.shown, -1);
  else if (event.key in KEYS) KEYS[event.key](event);
  else return;
  event.preventDefault();
  moved(page);
}

// Draw again what depends on the zoom, once a frame.
function moved(page) {
  if (page.waiting) return;
  page.waiting = true;
  requestAnimationFrame(() => {
    page.waiting = false;
    paint(page.curve);
    page.arenas.forEach(paint);
  });
}

function repaint(page) {
  for (const chart of [page.curve, ...page.arenas, page.icicle]) paint(chart);
}

function refresh(page) {
  const { runs, shown } = page;
  fillLegend(page);
  fillCheck(page);
  plant(page);
  showRows(page.table, runs[shown]);
  fillPane(page.pane, runs[shown], page.pinned[shown], buffer => pinBuffer(page, shown, buffer));
  repaint(page);
}

function plant(page) {
  page.icicle.focus = icicleTree(page.runs[page.shown], page.path);
}

function fillLegend(page) {
  const run = page.runs[page.shown], { group, names, colors } = run.grouping;
  const used = new Set(group.subarray(0, run.ranged));
  page.legend.replaceChildren(...names.flatMap((name, at) => {
    if (!used.has(at)) return [];
    const patch = element("i");
    patch.style.background = colors[at];
    return [element("li", {}, patch, name)];
  }));
}

// The page found its peak by itself: say whether the database has the same one.
function fillCheck(page) {
  const lines = page.runs.map((run, number) => {
    const name = page.runs.length > 1 ? `${letter(number)}: ` : "";
    if (!run.ranged) return { good: true, text: `${name}its dump has no live ranges: there is no curve, no arena and no peak.` };
    const found = `peak computed by this page: ${bytesText(run.peak.bytes)} (${slotText(run.peak.bytes)} bytes) at slot ${slotText(run.peak.time)}`;
    return run.agrees ? { good: true, text: `${name}${found}; the database says the same.` } : {
      good: false,
      text: `${name}${found}, but the database says ${slotText(run.figures.peak_bytes ?? 0)} bytes at slot ${slotText(run.figures.peak_time ?? 0)}. Please report it.`,
    };
  });
  if (page.comparison) lines.push({ good: true, text: alignment(page.comparison) });
  page.check.dataset.agrees = lines.every(line => line.good);
  page.check.replaceChildren(...lines.map(({ good, text }) => element("span", { class: good ? "hint" : "bad" }, text, " ")));
}

function find(page, query) {
  let found = 0, bytes = 0;
  for (const [number, run] of page.runs.entries()) {
    run.found = query ? search(run, query) : null;
    pixelColors(run);
    if (!query || number !== page.shown) continue;
    for (let i = 0; i < run.count; i++) if (run.found[i]) { found++; bytes += run.atPeak[i]; }
  }
  page.count.textContent = query ? `${slotText(found)} buffers, ${bytesText(bytes)} at the peak` : "";
  showRows(page.table, page.runs[page.shown]);
  page.arenas.forEach(paint);
}

function pinBuffer(page, number, buffer) {
  if (number !== page.shown) {
    document.querySelector(`[aria-label="show"] [data-choice="${letter(number)}"]`).click();
  }
  page.pinned[number] = buffer;
  page.table.pinned = buffer;
  fillPane(page.pane, page.runs[number], buffer, other => pinBuffer(page, number, other));
  fillRows(page.table);
  page.arenas.forEach(paintOver);
}

function drawArenaOver(page, number, pen, fullWidth, fullHeight) {
  const width = fullWidth - LEFT - RIGHT, height = fullHeight - TOP - BOTTOM, run = page.runs[number];
  if (run.ranged) drawSlotLine(pen, run.peak.time, run, width, height, theme.peak, true);
  if (page.slot !== null) drawSlotLine(pen, Math.floor(page.slot * run.span), run, width, height, theme.strong, false);
  outlineBuffer(pen, run, page.hover[number], width, height, theme.text);
  outlineBuffer(pen, run, page.pinned[number], width, height, theme.accent);
}

function drawCurveOver(page, pen, fullWidth, fullHeight) {
  const width = fullWidth - LEFT - RIGHT, height = fullHeight - TOP - BOTTOM, run = page.runs[page.shown];
  if (run.ranged) {
    drawSlotLine(pen, run.peak.time, run, width, height, theme.peak, true);
    const x = LEFT + slotX(run.peak.time + .5, run.span, width);
    if (x >= LEFT && x <= LEFT + width) {
      pen.fillStyle = theme.peak;
      pen.textAlign = x > fullWidth / 2 ? "right" : "left";
      pen.textBaseline = "top";
      const words = `peak ${bytesText(run.peak.bytes)} at slot ${slotText(run.peak.time)}`;
      const at = x + (x > fullWidth / 2 ? -5 : 5), long = pen.measureText(words).width;
      pen.globalAlpha = .8; pen.fillStyle = theme.back;
      pen.fillRect(x > fullWidth / 2 ? at - long - 2 : at - 2, TOP + 2, long + 4, 15);
      pen.globalAlpha = 1; pen.fillStyle = theme.peak;
      pen.fillText(words, at, TOP + 4);
    }
  }
  if (page.drag) {
    pen.fillStyle = theme.accent;
    pen.globalAlpha = .2;
    pen.fillRect(page.drag.from, TOP, page.drag.to - page.drag.from, height);
    pen.globalAlpha = 1;
  }
  if (page.slot !== null) drawSlotLine(pen, Math.floor(page.slot * run.span), run, width, height, theme.strong, false);
}

// The place below a pointer, as fractions of the schedule and of the addresses.
function placeOf(chart, event) {
  const box = chart.box.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const across = (x - LEFT) / (box.width - LEFT - RIGHT), up = 1 - (y - TOP) / (box.height - TOP - BOTTOM);
  return { x, y, slot: view.x0 + across * (view.x1 - view.x0), address: view.y0 + up * (view.y1 - view.y0) };
}

function wheel(page, chart, event) {
  if (!event.ctrlKey && !event.shiftKey) return; // the page scrolls
  event.preventDefault();
  const place = placeOf(chart, event), factor = (event.deltaY || event.deltaX) > 0 ? 1.25 : .8;
  if (event.shiftKey) zoom("y", factor, place.address); else zoom("x", factor, place.slot);
  moved(page);
}

function showTip(page, event, content) {
  page.tip.replaceChildren(...content);
  page.tip.hidden = false;
  const { width, height } = page.tip.getBoundingClientRect();
  page.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  page.tip.style.top = `${event.clientY + height + 24 < innerHeight ? event.clientY + 16 : Math.max(4, event.clientY - height - 10)}px`;
}

function leave(page) {
  page.tip.hidden = true;
  page.slot = null;
  page.hover.fill(-1);
  paintOver(page.curve);
  page.arenas.forEach(paintOver);
}

function arenaEvents(page, chart, number) {
  const { box } = chart, run = page.runs[number];
  let held = null;
  box.addEventListener("pointerdown", event => { held = { x: event.clientX, y: event.clientY, view: { ...view }, moved: false }; box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointermove", event => {
    if (held && (held.moved || Math.hypot(event.clientX - held.x, event.clientY - held.y) > 4)) {
      held.moved = true;
      const size = box.getBoundingClientRect(), from = held.view;
      setRange("x", from.x0 - (event.clientX - held.x) / (size.width - LEFT - RIGHT) * (from.x1 - from.x0), from.x1 - from.x0);
      setRange("y", from.y0 + (event.clientY - held.y) / (size.height - TOP - BOTTOM) * (from.y1 - from.y0), from.y1 - from.y0);
      moved(page);
      return;
    }
    const place = placeOf(chart, event);
    const buffer = bufferAt(chart, place.x, place.y);
    page.slot = place.slot >= view.x0 && place.slot <= view.x1 ? place.slot : null;
    page.hover[number] = buffer;
    if (buffer >= 0) showTip(page, event, tipContent(run, buffer)); else page.tip.hidden = true;
    paintOver(page.curve);
    page.arenas.forEach(paintOver);
  });
  box.addEventListener("pointerup", event => {
    const place = placeOf(chart, event);
    if (held && !held.moved) pinBuffer(page, number, bufferAt(chart, place.x, place.y));
    held = null;
  });
  box.addEventListener("pointerleave", () => leave(page));
  box.addEventListener("dblclick", () => { showAll(); moved(page); });
  box.addEventListener("wheel", event => wheel(page, chart, event), { passive: false });
}

function curveEvents(page) {
  const { box } = page.curve;
  let held = null;
  box.addEventListener("pointerdown", event => { held = placeOf(page.curve, event); box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointermove", event => {
    const place = placeOf(page.curve, event);
    page.slot = place.slot >= view.x0 && place.slot <= view.x1 ? place.slot : null;
    page.drag = held && Math.abs(place.x - held.x) > 4 ? { from: Math.min(held.x, place.x), to: Math.max(held.x, place.x) } : null;
    if (page.slot !== null) {
      const lines = page.runs.filter(run => run.ranged).map(run => {
        const slot = Math.floor(page.slot * run.span);
        return element("div", {}, `${page.runs.length > 1 ? `${letter(page.runs.indexOf(run))}: ` : ""}${bytesText(liveAt(run, slot))} live at slot ${slotText(slot)}`);
      });
      showTip(page, event, lines);
    }
    paintOver(page.curve);
    page.arenas.forEach(paintOver);
  });
  box.addEventListener("pointerup", event => {
    const place = placeOf(page.curve, event);
    if (page.drag) {
      const from = Math.max(0, Math.min(held.slot, place.slot)), to = Math.min(1, Math.max(held.slot, place.slot));
      setRange("x", from, Math.max(to - from, 1e-6));
      moved(page);
    }
    held = page.drag = null;
    paintOver(page.curve);
  });
  box.addEventListener("pointerleave", () => leave(page));
  box.addEventListener("dblclick", () => { showAll(); moved(page); });
  box.addEventListener("wheel", event => wheel(page, page.curve, event), { passive: false });
}

function icicleEvents(page) {
  const { icicle } = page, { box } = icicle;
  const below = event => {
    const size = box.getBoundingClientRect();
    return barAt(icicle, event.clientX - size.left, event.clientY - size.top);
  };
  box.addEventListener("pointermove", event => {
    const bar = below(event);
    if (!bar) { page.tip.hidden = true; return; }
    const { node } = bar, run = page.runs[page.shown];
    const share = (100 * node.bytes / run.peak.bytes).toFixed(1);
    const about = node.only >= 0 ? tipContent(run, node.only) : [element("b", {}, node.name)];
    showTip(page, event, [...about, element("div", {}, `${bytesText(node.bytes)}, ${share} % of the peak, ${slotText(node.buffers)} ${node.buffers === 1 ? "buffer" : "buffers"}`)]);
  });
  box.addEventListener("pointerleave", () => { page.tip.hidden = true; });
  box.addEventListener("click", event => {
    const bar = below(event);
    if (!bar) return;
    if (bar.node.only >= 0 && !bar.node.children.size) pinBuffer(page, page.shown, bar.node.only);
    else icicle.focus = bar.node;
    paint(icicle);
  });
  box.addEventListener("keydown", event => {
    if (event.key !== "Escape" && event.key !== "0") return;
    plant(page);
    paint(icicle);
  });
}

// What the peak of B has more and less than that of A; the rows add up to the change.
function differenceSection(comparison, runs) {
  const { count, before, after } = comparison;
  const deltas = Array.from(after, (bytes, i) => bytes - before[i]);
  const most = Math.max(1, ...deltas.map(Math.abs));
  const total = runs[1].peak.bytes - runs[0].peak.bytes, sum = deltas.reduce((all, delta) => all + delta, 0);
  const signed = size => `${size > 0 ? "+" : size < 0 ? "−" : "±"}${bytesText(Math.abs(size))}`;
  const plain = shape => shape.replace(/\{.*$/, "");
  const row = i => {
    const [old, now] = [comparison.before_shape[i], comparison.after_shape[i]];
    const shape = plain(old) === plain(now) || !old || !now ? plain(now || old) : `${plain(old)} → ${plain(now)}`;
    return element("tr", {},
      element("td", { class: "number" }, signed(deltas[i])),
      element("td", {}, bar(deltas[i] / most)),
      element("td", { class: "number" }, `${bytesText(before[i])} → ${bytesText(after[i])}`),
      element("td", {}, comparison.change[i]),
      element("td", {}, comparison.confidence[i]),
      element("td", { class: "number" }, slotText(comparison.buffers[i])),
      element("td", { class: "text", title: comparison.what[i] }, comparison.what[i]),
      element("td", { class: "text", title: `${old} → ${now}` }, shape),
      element("td", { class: "text", title: comparison.source[i] }, lastPart(comparison.source[i])));
  };
  const titles = [["change", true], ["", false], ["A → B", true], ["how", false], ["match", false], ["buffers", true], ["what", false], ["shape", false], ["source", false]];
  const note = !runs.every(run => run.ranged) ? "without live ranges there is nothing to compare"
    : count === 0 ? "the same buffers hold the same bytes" : `${slotText(count)} rows, which add up to it${sum === total ? "" : ` except for ${signed(total - sum)}`}`;
  return element("section", { "aria-label": "Difference", id: "difference", "data-sum": sum },
    head(`Change of the peak from A to B: ${signed(total)}`, element("span", { class: "hint" }, note)),
    element("div", { class: "changes-frame", tabindex: "0" }, element("table", { class: "changes" },
      element("thead", {}, element("tr", {}, ...titles.map(([title, number]) => element("th", { scope: "col", class: number ? "number" : "" }, title)))),
      element("tbody", {}, ...Array.from({ length: count }, (_, i) => row(i))))));
}

const SVG = "http://www.w3.org/2000/svg";

function bar(share) {
  const picture = document.createElementNS(SVG, "svg"), box = document.createElementNS(SVG, "rect");
  const zero = document.createElementNS(SVG, "path");
  const set = (node, attributes) => { for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value); };
  set(picture, { class: "bar", viewBox: "-90 0 180 12", "aria-hidden": "true" });
  set(box, { class: share > 0 ? "more" : "less", x: share > 0 ? 0 : 88 * share, y: 1, width: Math.abs(88 * share), height: 10 });
  set(zero, { class: "zero", d: "M0 0V12" });
  picture.append(box, zero);
  return picture;
}

start().catch(error => {
  document.documentElement.dataset.state = "failed";
  for (const hint of document.querySelectorAll(".script-off")) hint.textContent = `The charts cannot be shown: ${error.message}`;
  throw error;
});
