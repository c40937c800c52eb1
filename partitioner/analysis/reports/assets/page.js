"use strict";
(() => {
  const items = JSON.parse(document.getElementById("figures").textContent);
  const drawn = Promise.all(items.map((item) => Bokeh.embed.embed_item(item)));
  const models = () => Bokeh.documents.flatMap((one) => one.roots()).flatMap((root) => [...root.references()]);
  const figures = () => models().filter((model) => model.type === "Figure");
  const repaint = () => drawn.then(() => figures().forEach((figure) => figure.change.emit()));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
