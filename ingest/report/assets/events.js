// Keys and pointers over charts.

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
      const at = page.slot * page.runs[page.shown].span;
      const lines = page.runs.flatMap((run, number) => {
        if (!run.ranged) return [];
        const there = number === page.shown ? at : correspondingSlots([at], page.anchors[page.shown], page.anchors[number])[0];
        const slot = Math.min(Math.floor(there), run.span - 1);
        return [element("div", {}, `${page.runs.length > 1 ? `${letter(number)}: ` : ""}${bytesText(liveAt(run, slot))} live at slot ${slotText(slot)}`)];
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
    else focusOn(icicle, bar.node);
    paint(icicle);
  });
  box.addEventListener("keydown", event => {
    if (event.key !== "Escape" && event.key !== "0") return;
    plant(page);
    paint(icicle);
  });
}
