// What a reader does: zoom, search, color, sort, pin. After look.js.
const key = (target, name) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
const arena = document.querySelector(".arena"), curve = document.querySelector(".curve");
const shot = () => { const c = curve.firstChild; return c.toDataURL(); };
const whole = shot();
key(arena, "+"); await next(); result.zoomed = shot() !== whole;
key(arena, "ArrowRight"); key(arena, "ArrowUp"); key(arena, "p"); await next();
key(arena, "0"); await next(); result.reset = shot() === whole;
const before = arena.firstChild.toDataURL();
const field = document.getElementById("search");
field.value = result.word = rows()[0].children[8].textContent; field.dispatchEvent(new Event("input")); await next();
result.found = Number(grid.getAttribute("aria-rowcount")) - 1;
result.count = document.querySelector("output").textContent;
result.dimmed = arena.firstChild.toDataURL() !== before;
result.shapes = rows().map(row => row.children[9].textContent);
result.cells = [10, 11].map(at => [rows()[0].children[at].title, rows()[0].children[at].textContent]);
field.value = ""; field.dispatchEvent(new Event("input")); await next();
const press = name => document.querySelector(`[data-choice="${name}"]`).click();
const legend = () => [...document.querySelectorAll(".legend li")].map(one => one.textContent);
result.legends = {};
for (const mode of ["space", "op", "kind"]) { press(mode); await next(); result.legends[mode] = legend(); }
result.modes = {};
result.feet = [];
const foot = canvas => pixels(canvas).slice(-15 * canvas.width).some(pixel => pixel !== 0);
for (const mode of ["layers folded", "source", "opcode", "op_name"]) {
  press(mode);
  await next();
  result.modes[mode] = ink(document.querySelector(".icicle canvas"));
  result.feet.push(foot(document.querySelector(".icicle canvas")));
}
const body = document.querySelector(".grid-body");
key(body, "End"); await next();
result.last = body.getAttribute("aria-activedescendant");
result.lastThere = Boolean(document.getElementById(result.last));
key(body, "Home"); key(body, "Enter"); await next();
result.pinned = document.querySelector(".pane b").textContent;
result.pane = [...document.querySelectorAll(".pane dt")].map(one => one.textContent);
result.titles = [...document.querySelectorAll(".pane h3")].map(one => one.textContent);
const heads = () => [...document.querySelectorAll("[role=columnheader]")];
result.sorted = [];
for (let at = 0; at < heads().length; at++) {
  heads()[at].firstChild.click();
  await next();
  result.sorted.push(heads()[at].getAttribute("aria-sort"));
}
// A cell that is too narrow for an op_name shows its end.
grid.style.setProperty("--widths", "repeat(12, 60px)");
const long = rows().map(row => row.children[10]).find(cell => cell.scrollWidth > cell.clientWidth);
if (long) result.end = [long.firstChild.getBoundingClientRect().right, long.getBoundingClientRect().right];
const box = arena.getBoundingClientRect();
for (const name of ["pointermove", "pointerdown", "pointerup"]) {
  arena.dispatchEvent(new PointerEvent(name, { clientX: box.left + 300, clientY: box.top + 430, pointerId: 1, bubbles: true }));
}
await next();
result.tip = document.querySelector(".tip").textContent;
