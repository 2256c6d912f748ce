// A page without a view: its links keep the machine that was chosen on another page.
"use strict";

if (location.hash.includes("machine=")) {
  for (const one of document.querySelectorAll("a[href$='.html']:not([href^='../'], [href*=':'])")) {
    one.href += location.hash;
  }
}
