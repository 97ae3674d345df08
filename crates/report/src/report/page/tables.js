// Tables that sort and filter. The page says everything without this.
(() => {
  "use strict";
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // A cell's number, or its text; what is empty comes last either way.
  const value = (row, column) => {
    const cell = row.cells[column];
    if (!cell || cell.textContent === "") return null;
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compared = (one, other) =>
    typeof one === "number" && typeof other === "number"
      ? one - other
      : String(one).localeCompare(String(other), "en", { numeric: true });

  const sorted = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    for (const [column, head] of heads.entries()) {
      if (head.tagName !== "TH") continue;
      const button = make("button", { type: "button", className: "sort" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].map((row) => [value(row, column), row]);
        rows.sort(([one], [other]) => {
          if (one === null || other === null) return (one === null) - (other === null);
          return up ? compared(one, other) : compared(other, one);
        });
        body.append(...rows.map(([, row]) => row));
      });
    }
  };

  // Rows that have every word; with `-` before it, a word that they must not have.
  const filtered = (table, label) => {
    const rows = [...table.tBodies[0].rows];
    const input = make("input", { type: "search", placeholder: "words, or -words to leave out" });
    const count = make("output", {});
    const show = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "" && word !== "-");
      let shown = 0;
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const fits = words.every((word) => (word[0] === "-" ? !text.includes(word.slice(1)) : text.includes(word)));
        row.hidden = !fits;
        shown += fits;
      }
      count.textContent = words.length > 0 ? `${shown} of ${rows.length}` : "";
    };
    input.addEventListener("input", show);
    table.parentElement.before(make("p", { className: "filter" }, make("label", {}, `${label} `, input), count));
  };

  for (const table of document.querySelectorAll("table.sorts")) sorted(table);
  for (const table of document.querySelectorAll("table[data-filter]")) filtered(table, table.dataset.filter);
})();
