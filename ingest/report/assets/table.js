// All buffers as a table of which only the rows in sight exist: the way to them without a mouse or a chart.

const ROW = 24, VISIBLE = 18;
const MOST_PIXELS = 6_000_000; // browsers cap the height of an element

const numeric = (title, value, text, width) => ({ title, value, text, width, number: true });
const textual = (title, column, width, brief = text => text, tail = false) => ({ title, column, width, brief, tail, number: false });

// Where an op_name and a path are cut, their ends say the most; the function that was compiled says nothing.
const withoutFunction = name => name.replace(/^p?jit\([^/]*\)\/(jit\(main\)\/)?/, "");

// Dimensions come first: the layout is in the tip and in the pane.
const withoutLayout = shape => shape.replace(/\{[^{}]*\}/g, "");

function tableColumns(run) {
  const { buffers, allocations, ranged } = run;
  const slot = (values, i) => i < ranged ? slotText(values[i]) : "-";
  const kind = i => run.kinds[allocations.kind[buffers.allocation[i]]].name;
  const space = i => run.spaces[allocations.space[buffers.allocation[i]]];
  return [
    numeric("at peak", i => run.atPeak[i], i => run.atPeak[i] ? bytesText(run.atPeak[i]) : "-", "88px"),
    numeric("size", i => buffers.size[i], i => bytesText(buffers.size[i]), "88px"),
    numeric("padding", i => buffers.padding[i], i => buffers.padding[i] > 0 ? bytesText(buffers.padding[i]) : "-", "80px"),
    numeric("from", i => i < ranged ? buffers.start[i] : -1, i => slot(buffers.start, i), "76px"),
    numeric("to", i => i < ranged ? run.end[i] : -1, i => slot(run.end, i), "76px"),
    { ...numeric("kind", i => allocations.kind[buffers.allocation[i]], kind, "134px"), number: false },
    { ...numeric("space", i => allocations.space[buffers.allocation[i]], space, "74px"), number: false },
    textual("opcode", "opcode", "minmax(70px, .7fr)"),
    textual("name", "name", "minmax(110px, 1.1fr)"),
    textual("shape", "shape", "minmax(110px, 1.3fr)", withoutLayout),
    textual("op_name", "op_name", "minmax(120px, 1.6fr)", withoutFunction, true),
    textual("source", "source", run.texts.source.names.length ? "minmax(90px, 1fr)" : "76px", lastPart),
  ];
}

// A grid of the buffers of a run; `pin` is called with the buffer that is chosen.
function makeTable(pin) {
  const head = element("div", { role: "row", class: "grid-row grid-head", "aria-rowindex": "1" });
  const layer = element("div", { class: "grid-layer", role: "presentation" });
  const space = element("div", { role: "presentation" });
  const body = element("div", { class: "grid-body", tabindex: "0", role: "rowgroup", "aria-label": "Rows" }, layer, space);
  const box = element("div", { class: "grid-table", role: "grid", "aria-label": "All buffers" }, head, body);
  const table = { box, head, layer, space, body, run: null, rows: new Uint32Array(0), sort: 0, down: true, active: 0, pinned: -1 };
  body.addEventListener("scroll", () => fillRows(table));
  body.addEventListener("keydown", event => tableKey(table, event, pin));
  layer.addEventListener("click", event => {
    const row = event.target.closest("[data-row]");
    if (!row) return;
    table.active = Number(row.dataset.row);
    pin(table.rows[table.active]);
  });
  return table;
}

// Show the buffers that a search found, in the order of the table.
function showRows(table, run) {
  if (table.run !== run) {
    table.run = run;
    table.columns = tableColumns(run);
    table.box.style.setProperty("--widths", table.columns.map(column => column.width).join(" "));
    table.box.setAttribute("aria-colcount", table.columns.length);
  }
  let count = 0;
  const rows = new Uint32Array(run.count);
  for (let i = 0; i < run.count; i++) if (!run.found || run.found[i]) rows[count++] = i;
  table.rows = sortRows(run, rows.subarray(0, count), table.columns[table.sort], table.down);
  table.box.setAttribute("aria-rowcount", count + 1);
  table.active = Math.min(table.active, Math.max(count - 1, 0));
  fillHead(table);
  const full = count * ROW;
  table.space.style.height = `${Math.max(0, Math.min(full, MOST_PIXELS) - VISIBLE * ROW)}px`;
  fillRows(table);
}

function sortRows(run, rows, column, down) {
  const value = column.number || !column.column ? column.value : rankOf(run, column.column);
  const sign = down ? -1 : 1;
  const keys = new Float64Array(run.count);
  for (const i of rows) keys[i] = value(i) * sign;
  // Largest first where all else is equal.
  const { size } = run.buffers;
  return rows.sort((a, b) => keys[a] - keys[b] || size[b] - size[a] || a - b);
}

// The alphabetic place of each text, so that rows are sorted by numbers; buffers without one come last.
function rankOf(run, column) {
  const { number, names } = run.texts[column];
  const order = Array.from(names.keys()).sort((a, b) => names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0);
  const rank = new Uint32Array(names.length);
  order.forEach((name, place) => { rank[name] = place; });
  return i => number[i] < 0 ? names.length : rank[number[i]];
}

function fillHead(table) {
  table.head.replaceChildren(...table.columns.map((column, at) => {
    const sorted = at === table.sort;
    const button = element("button", {
      type: "button",
      title: "Sort",
      click: () => {
        table.down = sorted ? !table.down : column.number;
        table.sort = at;
        showRows(table, table.run);
        table.head.children[at].firstChild.focus();
      },
    }, column.title + (sorted ? table.down ? " ▼" : " ▲" : ""));
    return element("div", {
      role: "columnheader",
      class: column.number ? "number" : "",
      "aria-colindex": at + 1,
      "aria-sort": sorted ? table.down ? "descending" : "ascending" : "none",
    }, button);
  }));
}

// Fill in the rows in sight. Beyond the cap the scroll bar moves by more than a pixel for each pixel.
function fillRows(table) {
  const { rows, columns, body } = table;
  const height = VISIBLE * ROW, full = rows.length * ROW;
  const range = Math.min(full, MOST_PIXELS) - height;
  const top = range > 0 ? body.scrollTop / range * (full - height) : 0;
  const first = Math.max(0, Math.floor(top / ROW)), last = Math.min(rows.length, first + VISIBLE + 1);
  const made = [];
  for (let at = first; at < last; at++) {
    const buffer = rows[at];
    const row = element("div", {
      role: "row",
      id: `row-${at}`,
      class: `grid-row${at === table.active ? " active" : ""}${buffer === table.pinned ? " pinned" : ""}`,
      "aria-rowindex": at + 2,
      "aria-selected": buffer === table.pinned,
      "data-row": at,
    }, ...columns.map((column, number) => {
      const text = column.column ? textOf(table.run, column.column, buffer) : column.text(buffer);
      const shown = column.column ? column.brief(text) : text;
      return element("div", {
        role: "gridcell", "aria-colindex": number + 1, class: column.number ? "number" : column.tail ? "tail" : "", title: text,
      }, column.tail ? element("bdi", { dir: "ltr" }, shown) : shown); // `tail`: what is too long loses its beginning
    }));
    row.style.top = `${at * ROW - top}px`;
    made.push(row);
  }
  table.layer.replaceChildren(...made);
  if (rows.length) body.setAttribute("aria-activedescendant", `row-${table.active}`);
  else body.removeAttribute("aria-activedescendant");
}

function scrollToRow(table, at) {
  const height = VISIBLE * ROW, full = table.rows.length * ROW;
  const range = Math.min(full, MOST_PIXELS) - height;
  const top = range > 0 ? table.body.scrollTop / range * (full - height) : 0;
  const wanted = at * ROW < top ? at * ROW : (at + 1) * ROW > top + height ? (at + 1) * ROW - height : top;
  if (range > 0 && wanted !== top) table.body.scrollTop = wanted / (full - height) * range;
  table.active = at;
  fillRows(table);
}

const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: VISIBLE - 1, PageUp: 1 - VISIBLE, Home: -Infinity, End: Infinity };

function tableKey(table, event, pin) {
  if (event.key in STEPS) {
    event.preventDefault();
    scrollToRow(table, Math.max(0, Math.min(table.rows.length - 1, table.active + STEPS[event.key])));
  } else if ((event.key === "Enter" || event.key === " ") && table.rows.length) {
    event.preventDefault();
    pin(table.rows[table.active]);
  }
}
