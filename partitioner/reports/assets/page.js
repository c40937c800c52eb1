"use strict";
(() => {
  const items = JSON.parse(document.getElementById("figures").textContent);
  const drawn = Promise.all(items.map((item) => Bokeh.embed.embed_item(item)));
  const repaint = () => drawn.then(() => Bokeh.documents.forEach((one) => one.roots().forEach((root) => root.change.emit())));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
})();
