// The arena: addresses over slots. Each pixel knows its buffer.

// Write the number of each buffer, from 1, into its pixels; every buffer has one at least.
function drawNumbers(run, numbers, width, height) {
  numbers.fill(0);
  const { start, size } = run.buffers;
  const { low, end, span, order } = run;
  const top = run.axisTop;
  const xScale = width / ((view.x1 - view.x0) * span), x0 = view.x0 * span;
  const yScale = height / ((view.y1 - view.y0) * top), y0 = view.y0 * top;
  for (let k = 0; k < order.length; k++) {
    const i = order[k];
    if (!size[i]) continue;
    let left = Math.floor((start[i] - x0) * xScale), right = Math.floor((end[i] + 1 - x0) * xScale);
    if (right <= left) right = left + 1;
    if (left >= width || right <= 0) continue;
    let upper = height - Math.ceil((low[i] + size[i] - y0) * yScale), lower = height - Math.floor((low[i] - y0) * yScale);
    if (lower <= upper) lower = upper + 1;
    if (upper >= height || lower <= 0) continue;
    if (left < 0) left = 0;
    if (right > width) right = width;
    if (upper < 0) upper = 0;
    if (lower > height) lower = height;
    if (right - left < 12) {
      for (let row = upper; row < lower; row++) {
        for (let at = row * width + left, to = row * width + right; at < to; at++) numbers[at] = i + 1;
      }
    } else {
      for (let row = upper; row < lower; row++) numbers.fill(i + 1, row * width + left, row * width + right);
    }
  }
}

// Color of each buffer as a pixel: its group's, in three shades, faint where a search does not find it.
function pixelColors(run) {
  const { group, colors } = run.grouping;
  const back = rgb(theme.back);
  const shades = colors.flatMap(color => [1, .9, .8].map(factor => rgb(color).map(part => part * factor)));
  const pixel = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
  const plain = shades.map(pixel);
  const faint = shades.map(shade => pixel(shade.map((part, at) => part * .16 + back[at] * .84)));
  const result = new Uint32Array(run.count);
  for (let i = 0; i < run.count; i++) {
    const shade = group[i] * 3 + run.buffers.id[i] % 3;
    result[i] = run.found && !run.found[i] ? faint[shade] : plain[shade];
  }
  run.pixels = result;
}

function drawArena(pen, fullWidth, fullHeight, chart, run) {
  const width = fullWidth - LEFT - RIGHT, height = fullHeight - TOP - BOTTOM;
  const columns = Math.max(1, Math.round(width * chart.ratio)), rows = Math.max(1, Math.round(height * chart.ratio));
  if (!chart.numbers || chart.columns !== columns || chart.rows !== rows) {
    Object.assign(chart, { columns, rows, numbers: new Uint32Array(columns * rows), image: pen.createImageData(columns, rows) });
  }
  drawNumbers(run, chart.numbers, columns, rows);
  const pixels = new Uint32Array(chart.image.data.buffer), { numbers } = chart;
  for (let at = 0; at < pixels.length; at++) pixels[at] = numbers[at] ? run.pixels[numbers[at] - 1] : 0;
  drawByteAxis(pen, view.y0 * run.axisTop, view.y1 * run.axisTop, width, height);
  putPixels(pen, chart, columns, rows, width, height);
  drawBorders(pen, run, width, height);
  drawFrame(pen, width, height);
  drawSlotAxis(pen, run.span, width, height);
}

// putImageData ignores transforms and what lies below, so the pixels go through a canvas of their own.
function putPixels(pen, chart, columns, rows, width, height) {
  chart.raster ??= document.createElement("canvas");
  if (chart.raster.width !== columns || chart.raster.height !== rows) Object.assign(chart.raster, { width: columns, height: rows });
  chart.raster.getContext("2d").putImageData(chart.image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(chart.raster, LEFT, TOP, width, height);
}

// Name the large allocations at the right, where there is room.
function drawBorders(pen, run, width, height) {
  const { base, size, index, kind, space } = run.allocations;
  const scale = height / ((view.y1 - view.y0) * run.axisTop);
  pen.textAlign = "right";
  pen.textBaseline = "top";
  for (let i = 0; i < index.length; i++) {
    if (run.kinds[kind[i]].name !== "temporary" || size[i] * scale < 16) continue;
    const y = TOP + height - (base[i] + size[i] - view.y0 * run.axisTop) * scale;
    pen.strokeStyle = theme.strong;
    pen.beginPath(); pen.moveTo(LEFT, y); pen.lineTo(LEFT + width, y); pen.stroke();
    const words = `arena ${index[i]} · ${run.spaces[space[i]]} · ${bytesText(size[i])}`;
    const long = pen.measureText(words).width;
    if (y < TOP - 1 || y + 15 > TOP + height) continue;
    pen.globalAlpha = .8;
    pen.fillStyle = theme.back;
    pen.fillRect(LEFT + width - long - 8, y + 1, long + 8, 14);
    pen.globalAlpha = 1;
    pen.fillStyle = theme.dim;
    pen.fillText(words, LEFT + width - 4, y + 2);
  }
}

// The buffer below a place of the chart, -1 for none.
function bufferAt(chart, x, y) {
  const column = Math.floor((x - LEFT) * chart.ratio), row = Math.floor((y - TOP) * chart.ratio);
  if (!chart.numbers || column < 0 || row < 0 || column >= chart.columns || row >= chart.rows) return -1;
  return chart.numbers[row * chart.columns + column] - 1;
}

function outlineBuffer(pen, run, buffer, width, height, color) {
  if (buffer < 0 || buffer >= run.ranged) return;
  const x = LEFT + slotX(run.buffers.start[buffer], run.span, width);
  const right = LEFT + slotX(run.end[buffer] + 1, run.span, width);
  const scale = height / ((view.y1 - view.y0) * run.axisTop);
  const y = TOP + height - (run.low[buffer] + run.buffers.size[buffer] - view.y0 * run.axisTop) * scale;
  pen.save();
  pen.beginPath(); pen.rect(LEFT - 2, TOP - 2, width + 4, height + 4); pen.clip();
  pen.lineWidth = 2;
  pen.strokeStyle = color;
  pen.strokeRect(x - 1, y - 1, Math.max(right - x, 1) + 2, Math.max(run.buffers.size[buffer] * scale, 1) + 2);
  pen.restore();
}
