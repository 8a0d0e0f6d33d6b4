// Runs STEPS in a page that is ready, and leaves what they found in the document.
(async () => {
  const root = document.documentElement;
  // Virtual time waits for timers, not for frames.
  window.requestAnimationFrame = draw => setTimeout(draw, 0);
  const next = () => new Promise(done => setTimeout(done, 50));
  for (let i = 0; i < 1000 && !root.dataset.state; i++) await next();
  const result = {};
  try {
    result.state = root.dataset.state;
    await next();
    STEPS;
  } catch (error) { result.error = String(error.stack || error); }
  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = JSON.stringify(result);
  document.body.append(out);
})();
