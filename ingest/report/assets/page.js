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
    runs, kinds, comparison, anchors: anchorsOf(runs, comparison), shown: 0, difference: false, mode: "kind", path: "op_name",
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

const letter = number => "AB"[number];
const DIFFERENCE = "B−A";

// One of two runs, or the curve of their difference; arena, icicle and table are those of A then.
function show(page, name) {
  page.difference = name === DIFFERENCE;
  page.shown = page.difference ? 0 : "AB".indexOf(name);
  refresh(page);
}

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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); color(page); fillLegend(page); repaint(page); });
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
    ...(page.runs.length > 1 ? [choice("show", page.runs.every(run => run.ranged) ? ["A", "B", DIFFERENCE] : ["A", "B"], "A", name => show(page, name))] : []),
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
  focusOn(page.icicle, icicleTree(page.runs[page.shown], page.path));
}

function fillLegend(page) {
  const run = page.runs[page.shown], { group, names, colors } = run.grouping;
  const used = new Set(group.subarray(0, run.ranged));
  const groups = names.map((name, at) => [name, colors[at]]).filter((_, at) => used.has(at));
  const signs = [["B holds more", theme.more], ["B holds less", theme.less]];
  page.legend.replaceChildren(...[...page.difference ? signs : [], ...groups].map(([name, color]) => {
    const patch = element("i");
    patch.style.background = color;
    return element("li", {}, patch, name);
  }), ...run.padded && !page.difference ? [element("li", {}, "┄ without padding")] : []);
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
  if (page.comparison) lines.push({ good: true, text: alignment(page.comparison, page.difference) });
  page.check.dataset.agrees = lines.every(line => line.good);
  page.check.replaceChildren(...lines.map(({ good, text }) => element("span", { class: good ? "hint" : "bad" }, text)));
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
  if (run.ranged && !page.difference) {
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

start().catch(error => {
  document.documentElement.dataset.state = "failed";
  for (const hint of document.querySelectorAll(".script-off")) hint.textContent = `The charts cannot be shown: ${error.message}`;
  throw error;
});
