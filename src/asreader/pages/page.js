"use strict";
const cases = [...document.querySelectorAll(".case")];
const tools = document.querySelector(".tools");
const shown = () => cases.filter(one => !one.hidden);

function step(by) {
  const open = shown();
  const here = open.findIndex(one => one.contains(document.activeElement));
  const next = open[here < 0 ? (by > 0 ? 0 : open.length - 1) : Math.min(Math.max(here + by, 0), open.length - 1)];
  if (next) next.focus();
}

document.addEventListener("keydown", event => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (typing) { if (event.key === "Escape") event.target.blur(); return; }
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "/" && tools) { tools.querySelector("input").focus(); event.preventDefault(); }
});

if (tools) {
  const [word, verdict, order] = tools.querySelectorAll("input, select");
  const texts = new Map(cases.map(one => [one, one.textContent.toLowerCase()]));
  const number = (one, key) => Number(one.dataset[key]);
  const apply = () => {
    const wanted = word.value.trim().toLowerCase();
    for (const one of cases)
      one.hidden = !texts.get(one).includes(wanted) || (verdict.value !== "all" && one.dataset.verdict !== verdict.value);
    const [key, sign] = { place: ["place", 1], confidence: ["confidence", -1], doubt: ["confidence", 1], support: ["support", 1] }[order.value];
    const sorted = [...cases].sort((a, b) => sign * (number(a, key) - number(b, key)) || number(a, "place") - number(b, "place"));
    for (const one of sorted) one.parentNode.append(one);
    cases.splice(0, cases.length, ...sorted);
    tools.querySelector("output").textContent = `${shown().length} shown`;
  };
  for (const control of [word, verdict, order]) control.addEventListener("input", apply);
  tools.hidden = false;
}
