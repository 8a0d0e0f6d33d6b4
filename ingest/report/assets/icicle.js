// What is live at the peak, by op_name, source line or opcode: each bar is a part of the one above it.

const MOST_LEVELS = 60;

function icicleTree(run, mode) {
  const root = { name: "peak", bytes: 0, children: new Map(), parent: null, level: 0, buffers: 0, only: -1 };
  for (let i = 0; i < run.ranged; i++) {
    if (!run.atPeak[i]) continue;
    let node = root;
    for (const part of [null, ...pathOf(run, mode, i)].slice(0, MOST_LEVELS)) {
      if (part !== null) {
        if (!node.children.has(part)) {
          node.children.set(part, {
            name: part, bytes: 0, children: new Map(), parent: node, level: node.level + 1, buffers: 0, only: -1,
          });
        }
        node = node.children.get(part);
      }
      node.bytes += run.atPeak[i];
      node.buffers++;
      node.only = node.buffers === 1 ? i : -1;
    }
  }
  return root;
}

function pathOf(run, mode, i) {
  const name = textOf(run, "name", i), kind = run.kinds[run.allocations.kind[run.buffers.allocation[i]]].name;
  if (mode === "opcode") return [kind, textOf(run, "opcode", i) || "(no opcode)", textOf(run, "shape", i), name];
  if (mode === "source") {
    const stack = stackOf(run, i).filter(frame => !frame.framework);
    if (stack.length) return [...stack.map(frame => `${frame.function} ${lastPart(frame.file)}:${frame.line}`), name];
    const source = textOf(run, "source", i);
    return source ? [source.replace(/:\d+.*$/, ""), lastPart(source), name] : [`(${kind}, no source line)`, name];
  }
  const opName = textOf(run, "op_name", i);
  const path = opName ? [...partsOf(opName), name] : [`(${kind}, no op_name)`, name];
  return mode === "layers folded" ? path.map(folded) : path;
}

// Layers fall together: h0 to h47 are h*.
const folded = name => name.replace(/\d+/g, "*");

const lastPart = path => path.slice(path.lastIndexOf("/") + 1);

// Python stack of a buffer, outermost call first.
function stackOf(run, i) {
  const stack = [];
  let id = run.buffers.frame[i];
  for (let depth = 0; depth < 100 && run.frameRow.has(id); depth++) { // a damaged table may go in circles
    const row = run.frameRow.get(id), { frames } = run;
    stack.unshift({
      function: frames.function[row], file: frames.file[row], line: frames.line[row], framework: frames.framework[row] === 1,
    });
    id = frames.parent[row];
  }
  return stack;
}

const BAR = 20;

// Levels to make room for: the page is at most 1,600 pixels wide, and less than a pixel is not drawn.
function levelsOf(node, least = node.bytes / 1600) {
  let levels = 1;
  for (const child of node.children.values()) {
    if (child.bytes >= least) levels = Math.max(levels, 1 + levelsOf(child, least));
  }
  return levels;
}

// Show a part as wide as the page, below what it is a part of. The chart grows where that is deeper than the whole.
function focusOn(chart, node) {
  chart.focus = node;
  let root = node;
  while (root.parent) root = root.parent;
  chart.box.style.height = `${Math.max(levelsOf(root), node.level + levelsOf(node)) * BAR}px`;
}

function drawIcicle(pen, width, height, chart) {
  const { focus } = chart;
  chart.bars = [];
  const place = (node, x, wide, level) => {
    if (wide < 1 || (level + 1) * BAR > height) return;
    chart.bars.push({ node, x, y: level * BAR, wide });
    let at = x;
    const children = [...node.children.values()].sort((a, b) => b.bytes - a.bytes);
    for (const child of children) {
      const part = wide * child.bytes / node.bytes;
      place(child, at, part, level + 1);
      at += part;
    }
  };
  const above = [];
  for (let node = focus.parent; node; node = node.parent) above.unshift(node);
  above.forEach((node, level) => chart.bars.push({ node, x: 0, y: level * BAR, wide: width, above: true }));
  if (focus.bytes) place(focus, 0, width, above.length);
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const { node, x, y, wide, above: ancestor } of chart.bars) {
    pen.fillStyle = node.parent ? barColor(node.name) : OTHER;
    pen.globalAlpha = ancestor ? .45 : 1;
    pen.fillRect(x, y, Math.max(wide - 1, 1), BAR - 1);
    pen.globalAlpha = 1;
    if (wide < 34) continue;
    pen.save();
    pen.beginPath(); pen.rect(x, y, wide - 4, BAR); pen.clip();
    pen.fillStyle = ancestor ? theme.text : "#fff";
    pen.fillText(`${node.name}  ${bytesText(node.bytes)}`, x + 5, y + BAR / 2);
    pen.restore();
  }
}

// Dark enough for white text.
const BARS = ["#3b62b0", "#b5651d", "#24795b", "#864d96", "#8a7410", "#a8432f", "#2b7d94", "#75592c", "#ad4c7c", "#55701c"];

// Names that differ in numbers alone have one color.
function barColor(name) {
  let sum = 7;
  for (const letter of folded(name)) sum = (sum * 31 + letter.codePointAt(0)) >>> 0;
  return BARS[sum % BARS.length];
}

function barAt(chart, x, y) {
  return (chart.bars || []).find(bar => y >= bar.y && y < bar.y + BAR && x >= bar.x && x < bar.x + bar.wide) || null;
}
