// The pinned buffer: what it is, who made and reads it, and who else lies on its bytes.

const MOST_SHARING = 12;

function fillPane(pane, run, buffer, pin) {
  if (buffer < 0) {
    pane.replaceChildren(
      element("p", { class: "hint" }, "Click a buffer, or choose a row of the table, to pin it here."),
      element("p", { class: "hint" }, "Keys, with a chart in focus: ← → ↑ ↓ move, + − zoom (with Shift: addresses), 0 shows all, p goes to the peak."),
      element("p", { class: "hint" }, "Mouse: drag over the curve to zoom into slots; drag the arena to move; Ctrl + wheel zooms slots, Shift + wheel addresses; a double click shows all."),
    );
    return;
  }
  const { buffers, allocations } = run;
  const at = buffers.allocation[buffer], ranged = buffer < run.ranged;
  const rows = [
    ["size", sizeText(run, buffer)],
    ["shape", textOf(run, "shape", buffer)],
    ["live", ranged ? `slots ${slotText(buffers.start[buffer])} to ${slotText(run.end[buffer])}` : "no live range"],
    ["at peak", run.atPeak[buffer] ? bytesText(run.atPeak[buffer]) : "nothing"],
    ["lies in", `allocation ${allocations.index[at]} (${run.kinds[allocations.kind[at]].name}, ${run.spaces[allocations.space[at]]}) at ${slotText(buffers.offset[buffer])}`],
    ["opcode", textOf(run, "opcode", buffer)],
    ["op_name", textOf(run, "op_name", buffer)],
    ["source", textOf(run, "source", buffer)],
  ].filter(([, text]) => text);
  pane.replaceChildren(
    element("b", {}, textOf(run, "name", buffer)),
    element("dl", {}, ...rows.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)])),
    ...stackList(run, buffer),
    ...useList(run, buffer, pin),
    ...sharingLists(run, buffer, pin),
  );
  pane.scrollTop = 0;
}

function sizeText(run, buffer) {
  const { size, padding } = run.buffers;
  const padded = padding[buffer] > 0 ? `, of it ${bytesText(padding[buffer])} padding` : "";
  return `${bytesText(size[buffer])} (${slotText(size[buffer])} bytes${padded})`;
}

function stackList(run, buffer) {
  const stack = stackOf(run, buffer).reverse();
  if (!stack.length) return [];
  const lines = stack.map(frame =>
    element("li", frame.framework ? { class: "framework" } : {}, `${frame.function} (${frame.file}:${frame.line})`));
  return [element("h3", {}, "Python stack, innermost first"), element("ol", {}, ...lines)];
}

function useList(run, buffer, pin) {
  const total = run.buffers.uses[buffer];
  if (!total) return [];
  const users = Array.from(run.users.subarray(run.firstUser[buffer], run.firstUser[buffer + 1]));
  const lines = users.map(name => element("li", {}, nameLink(run, name, pin)));
  if (total > users.length) lines.push(element("li", {}, `and ${slotText(total - users.length)} more`));
  return [element("h3", {}, total === 1 ? "Read by" : `Read by, ${slotText(total)} uses`), element("ul", {}, ...lines)];
}

// The name of an instruction; a link where a buffer has that name.
function nameLink(run, name, pin) {
  const made = run.texts.name.number.indexOf(name);
  const text = run.texts.name.names[name];
  return made < 0 ? text : bufferLink(run, made, pin, text);
}

function bufferLink(run, buffer, pin, text) {
  return element("button", { type: "button", class: "link", click: () => pin(buffer) }, text);
}

function sharingLists(run, buffer, pin) {
  if (buffer >= run.ranged) return [];
  const { start, size, offset, allocation } = run.buffers;
  const low = offset[buffer], high = low + size[buffer];
  const together = [], before = [], after = [];
  for (let i = 0; i < run.ranged; i++) {
    if (i === buffer || allocation[i] !== allocation[buffer] || offset[i] >= high || offset[i] + size[i] <= low) continue;
    if (run.end[i] < start[buffer]) before.push(i);
    else if (start[i] > run.end[buffer]) after.push(i);
    else together.push(i);
  }
  before.sort((a, b) => run.end[b] - run.end[a]);
  after.sort((a, b) => start[a] - start[b]);
  const list = (title, found) => found.length ? [
    element("h3", {}, `${title} (${slotText(found.length)})`),
    element("ul", {}, ...found.slice(0, MOST_SHARING).map(i => element("li", {}, bufferLink(
      run, i, pin, `${textOf(run, "name", i)}, ${bytesText(size[i])}, slots ${slotText(start[i])} to ${slotText(run.end[i])}`)))),
  ] : [];
  return [
    ...list("Shares its bytes while it lives", together),
    ...list("Had its bytes before, latest first", before),
    ...list("Has its bytes afterwards", after),
  ];
}

function tipContent(run, buffer) {
  const ranged = buffer < run.ranged;
  const lines = [
    textOf(run, "shape", buffer),
    textOf(run, "op_name", buffer),
    [textOf(run, "source", buffer), ranged ? `slots ${slotText(run.buffers.start[buffer])} to ${slotText(run.end[buffer])}` : ""]
      .filter(Boolean).join(" · "),
  ].filter(Boolean);
  return [
    element("b", {}, textOf(run, "name", buffer)), ` ${bytesText(run.buffers.size[buffer])}`,
    ...lines.map(line => element("div", {}, line)),
  ];
}
