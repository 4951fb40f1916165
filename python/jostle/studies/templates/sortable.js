"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => {
    const text = row.cells[at].textContent.trim();
    const number = parseFloat(text.replace("\u2212", "-"));
    return Number.isNaN(number) ? text : number;
  };
  heads.forEach((head, at) => head.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a, at), key(b, at)];
      const order = typeof x === typeof y
        ? (typeof x === "number" ? x - y : x.localeCompare(y))
        : (typeof x === "number" ? -1 : 1);
      return up ? order : -order;
    });
    body.append(...rows);
  }));
}
