// Live bytes over the schedule: each pixel column shows its greatest slot, with its whole stack.

// For each column the change of the curve with the greatest figure; what was live when a column begins counts in it.
function columnPeaks(run, columns) {
  const { time, live } = run.curve;
  const chosen = new Uint32Array(columns);
  const from = view.x0 * run.span, width = (view.x1 - view.x0) * run.span / columns;
  let at = lastUpTo(time, Math.floor(from));
  for (let column = 0; column < columns; column++) {
    const limit = Math.max(Math.floor(from + (column + 1) * width), Math.floor(from + column * width) + 1);
    let best = at;
    while (at + 1 < time.length && time[at + 1] < limit) { at++; if (live[at] > live[best]) best = at; }
    chosen[column] = best;
  }
  return chosen;
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

// Draw the curves: the first run as a filled stack, a second one as a line above it.
function drawCurve(pen, fullWidth, fullHeight, chart, runs, shown) {
  const width = fullWidth - LEFT - RIGHT, height = fullHeight - TOP - BOTTOM;
  const columns = Math.max(1, Math.round(width * chart.ratio));
  const top = Math.max(1, ...runs.map(run => run.peak.bytes)) * 1.02;
  drawByteAxis(pen, 0, top, width, height);
  const run = runs[shown];
  const stacks = stacksAt(run, run.grouping, columnPeaks(run, columns));
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
  runs.forEach((other, number) => {
    if (number !== shown && other.ranged) drawOutline(pen, other, columns, step, height, top);
  });
  drawFrame(pen, width, height);
  drawSlotAxis(pen, run.span, width, height);
}

function drawOutline(pen, run, columns, step, height, top) {
  pen.strokeStyle = theme.text;
  pen.lineWidth = 1.5;
  pen.beginPath();
  columnPeaks(run, columns).forEach((at, column) => {
    const y = TOP + height - run.curve.live[at] * height / top;
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
