// What can be seen without touching anything.
const pixels = canvas => {
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: canvas.height });
  const pen = copy.getContext("2d", { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  return new Uint32Array(pen.getImageData(0, 0, copy.width, copy.height).data.buffer);
};
const colors = canvas => new Set(pixels(canvas)).size;
const ink = canvas => pixels(canvas).reduce((sum, pixel) => sum + (pixel !== 0), 0) / (canvas.width * canvas.height);
const canvases = () => [...document.querySelectorAll(".chart canvas:first-child")];
result.agrees = document.getElementById("check").dataset.agrees;
result.check = document.getElementById("check").textContent;
result.ink = canvases().map(ink);
result.colors = canvases().map(colors);
result.static = [...document.querySelectorAll(".static")].map(one => one.hidden);
result.markup = [...document.querySelectorAll("#app script, #app img, #app iframe")].length;
const rows = () => [...document.querySelectorAll(".grid-layer [role=row]")];
const grid = document.querySelector("[role=grid]");
result.rowcount = Number(grid.getAttribute("aria-rowcount"));
result.rows = rows().length;
