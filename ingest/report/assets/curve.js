// Live bytes over the schedule: each pixel column shows its greatest slot, with its whole stack.

// The slots at which columns begin and end, for the part in view; `count` columns have `count + 1` edges.
function columnEdges(run, count) {
  const from = view.x0 * run.span, width = (view.x1 - view.x0) * run.span / count;
  return Float64Array.from({ length: count + 1 }, (_, at) => from + at * width);
}

// For each column the change of the curve with the greatest figure; what was live when a column begins counts in it.
function columnPeaks(run, edges) {
  const { time, live } = run.curve;
  const chosen = new Uint32Array(edges.length - 1);
  let at = lastUpTo(time, Math.floor(edges[0]));
  for (let column = 0; column < chosen.length; column++) {
    const limit = Math.max(Math.floor(edges[column + 1]), Math.floor(edges[column]) + 1);
    let best = at;
    while (at + 1 < time.length && time[at + 1] < limit) { at++; if (live[at] > live[best]) best = at; }
    chosen[column] = best;
  }
  return chosen;
}

// The slots of another run that correspond: between the anchors in proportion, without any as shares of the schedules.
function correspondingSlots(edges, from, to) {
  const result = new Float64Array(edges.length);
  for (let i = 0, at = 0; i < edges.length; i++) {
    while (at + 2 < from.length && from[at + 1] <= edges[i]) at++;
    const width = from[at + 1] - from[at];
    result[i] = width > 0 ? to[at] + (edges[i] - from[at]) / width * (to[at + 1] - to[at]) : to[at + 1];
  }
  return result;
}

// Live bytes of each group at the chosen changes: rows of `groups` figures.
function stacksAt(run, grouping, chosen) {
  const { buffer, change } = run.events;
  const groups = grouping.names.length;
  const now = new Float64Array(groups), stacks = new Float64Array(groups * chosen.length);
  let event = 0;
  for (let column = 0; column < chosen.length; column++) {
    for (const limit = run.curve.upto[chosen[column]]; event < limit; event++) {
      now[grouping.group[buffer[event]]] += change[event];
    }
    stacks.set(now, column * groups);
  }
  return stacks;
}

// Draw the curves: the run that is shown as a filled stack, the other one as a line above it; or what both differ by.
function drawCurve(pen, fullWidth, fullHeight, chart, page) {
  const { runs, shown } = page;
  const width = fullWidth - LEFT - RIGHT, height = fullHeight - TOP - BOTTOM;
  const columns = Math.max(1, Math.round(width * chart.ratio));
  if (page.difference) {
    drawDifference(pen, width, height, columns, page);
    return;
  }
  // Room above the peak for the words that name it.
  const top = Math.max(1, ...runs.map(run => run.peak.bytes)) * height / Math.max(1, height - 20);
  drawByteAxis(pen, 0, top, width, height);
  const run = runs[shown];
  const edges = columnEdges(run, columns);
  const stacks = stacksAt(run, run.grouping, columnPeaks(run, edges));
  const groups = run.grouping.names.length, step = width / columns;
  const base = new Float64Array(columns);
  for (let group = 0; group < groups; group++) {
    pen.fillStyle = run.grouping.colors[group];
    pen.beginPath();
    for (let column = 0; column < columns; column++) {
      const size = stacks[column * groups + group];
      if (size <= 0) continue;
      const low = base[column] * height / top, high = (base[column] += size) * height / top;
      pen.rect(LEFT + column * step, TOP + height - high, step, high - low);
    }
    pen.fill();
  }
  if (run.padded) {
    pen.setLineDash([3, 3]);
    drawSteps(pen, Array.from(columnPeaks(run, edges), at => run.curve.unpadded[at]), step, height, top);
    pen.setLineDash([]);
  }
  runs.forEach((other, number) => {
    if (number === shown || !other.ranged) return;
    const slots = correspondingSlots(edges, page.anchors[shown], page.anchors[number]);
    drawSteps(pen, Array.from(columnPeaks(other, slots), at => other.curve.live[at]), step, height, top);
  });
  drawFrame(pen, width, height);
  drawSlotAxis(pen, run.span, width, height);
}

// For each pixel column, the greatest live bytes of B less those of A, on the schedule of A.
function differences(page, columns) {
  const [before, after] = page.runs;
  const edges = columnEdges(before, columns);
  const there = columnPeaks(after, correspondingSlots(edges, page.anchors[0], page.anchors[1]));
  return Float64Array.from(columnPeaks(before, edges), (at, column) => after.curve.live[there[column]] - before.curve.live[at]);
}

function drawDifference(pen, width, height, columns, page) {
  const [{ span }] = page.runs, step = width / columns;
  const change = differences(page, columns);
  const most = change.reduce((top, bytes) => Math.max(top, bytes), 0), least = change.reduce((low, bytes) => Math.min(low, bytes), 0);
  const margin = Math.max(1, .04 * (most - least)), from = least - margin, to = most + margin;
  drawByteAxis(pen, from, to, width, height);
  const y = bytes => TOP + height * (to - bytes) / (to - from);
  change.forEach((bytes, column) => {
    pen.fillStyle = bytes > 0 ? theme.more : theme.less;
    pen.fillRect(LEFT + column * step, Math.min(y(bytes), y(0)), step, Math.abs(y(bytes) - y(0)));
  });
  pen.strokeStyle = theme.text;
  pen.beginPath(); pen.moveTo(LEFT, y(0)); pen.lineTo(LEFT + width, y(0)); pen.stroke();
  drawFrame(pen, width, height);
  drawSlotAxis(pen, span, width, height);
}

// A line of bytes, one for each pixel column.
function drawSteps(pen, sizes, step, height, top) {
  pen.strokeStyle = theme.text;
  pen.lineWidth = 1.5;
  pen.beginPath();
  sizes.forEach((bytes, column) => {
    const y = TOP + height - bytes * height / top;
    pen.lineTo(LEFT + column * step, y);
    pen.lineTo(LEFT + (column + 1) * step, y);
  });
  pen.stroke();
  pen.lineWidth = 1;
}

// Live bytes at a slot.
function liveAt(run, slot) {
  return run.curve.live[lastUpTo(run.curve.time, slot)];
}
