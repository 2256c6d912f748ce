// The picture of a page in one file (`torchcompile-suite try --html`).
"use strict";

(() => {
  const told = JSON.parse(document.getElementById("told").textContent);
  if (!told.marks.length) return;
  document
    .getElementById("picture")
    .replaceWith(Draw.figure(told.caption, Draw.ratios(told.marks, told.series, told.axis)));
})();
