// Two runs: what changed at the peak, and how their slots correspond.

// Slots of each run that correspond, from the first to behind the last.
function anchorsOf(runs, comparison) {
  return runs.map((run, side) => [0, ...comparison?.anchors[side] ?? [], run.span]);
}

function alignment({ anchors, order_kept: kept }, difference) {
  const line = difference ? "Above zero B holds more than A" : "The line is the other run";
  if (kept === null) return `${line}; no buffer of one was found in the other, so slots are drawn as shares of the schedules.`;
  const share = `${(100 * kept).toFixed(0)} % of the buffers that both have start in the same order`;
  return anchors[0].length ? `${line}, aligned where the same buffers start: ${share}.` : `${line}, by shares of the schedules: only ${share}.`;
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
