// The theme, and every figure in its place; what the story lacks is left out.

function startTheme(button) {
  const root = document.documentElement;
  const prefers = window.matchMedia("(prefers-color-scheme: dark)");
  try { // some browsers keep nothing for pages opened from a file
    const kept = localStorage.getItem("theme");
    if (kept === "dark" || kept === "light") root.dataset.theme = kept;
  } catch { /* the system's choice holds */ }
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : prefers.matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* until it is closed */ }
    redrawAll();
  });
  prefers.addEventListener("change", redrawAll);
}

const orHide = (id, there, draw) => {
  if (there) draw();
  else document.getElementById(id).hidden = true;
};

startTheme(document.getElementById("theme"));
drawCounts(inSection("counts", ".figure"));
drawTable(inSection("scores", ".scroll"), inSection("scores", ".choice"));
inSection("scores", ".download").addEventListener("click", download);
drawConfusion(inSection("confusion", ".figure"), inSection("confusion", ".scroll"));
drawCurves(inSection("curves", ".figure"), inSection("curves", "select"));
drawReliability(inSection("reliability", ".figure"));
orHide("embedding", data.embedding, () => drawEmbedding(document.getElementById("embedding")));
orHide("rounds", data.rounds.length, () => drawRounds(inSection("rounds", ".figure")));
orHide("pictures", data.pictures, () => {});
orHide("mistakes", data.mistakes, () => {});
