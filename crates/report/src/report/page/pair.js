// Two plans side by side: what differs is coloured, each line leads to its source line and to what is waited for there.
(() => {
  "use strict";
  const section = document.getElementById("code");
  if (!section) return;
  // More differences than these are shown as one.
  const MOST = 1500;
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };
  const linesOf = (listing) => {
    const text = listing.querySelector("code").textContent;
    return text.replace(/\n$/, "").split("\n");
  };

  // A listing's lines: the text, the place as file:line, and for machine code the share of waiting and for what.
  const readers = {
    IR(lines) {
      const files = named(lines, /^\s*file #(\d+) "(.*)"/);
      return lines.map((line) => {
        const place = line.match(/ #(\d+):(\d+):\d+/);
        return { text: line.replace(/ (in )?#\d+:\d+:\d+/g, ""), at: place && `${files.get(place[1])}:${place[2]}` };
      });
    },
    PTX(lines) {
      const files = named(lines, /^\s*\.file\s+(\d+)\s+"(.*)"/);
      const read = [];
      let at = null;
      for (const line of lines) {
        const place = line.match(/^\s*\.loc\s+(\d+)\s+(\d+)/);
        if (place) at = `${files.get(place[1])}:${place[2]}`;
        else if (!/^\s*\.file\s/.test(line)) read.push({ text: line.replace(/^\t/, "  "), at: /^\t[^.]/.test(line) ? at : null });
      }
      return read;
    },
    "machine code"(lines) {
      const files = named(lines, /^\s*file #(\d+) "(.*)"/);
      return lines.filter((line) => !/^file #/.test(line)).map((line) => {
        const [code, waits] = line.slice(8).split(" ! ");
        const place = code.match(/ #(\d+):(\d+):\d+$/);
        return {
          text: place ? code.slice(0, place.index) : code,
          at: place && `${files.get(place[1])}:${place[2]}`,
          share: Number.parseFloat(line.slice(0, 7)) || 0,
          waits: waits ? [...waits.matchAll(/(?:^|, )(.+?) ([\d.]+) %/g)].map(([, what, share]) => [what, Number(share)]) : [],
        };
      });
    },
  };
  const named = (lines, pattern) => new Map(lines.map((line) => line.match(pattern)).filter(Boolean).map(([, number, file]) => [number, file]));

  const plans = [...section.querySelectorAll("details.code")].map((element) => {
    const forms = new Map();
    for (const listing of element.querySelectorAll("details.listing")) {
      const { form } = listing.dataset;
      if (readers[form]) forms.set(form, readers[form](linesOf(listing)));
    }
    // What is waited for at each place, by the machine code.
    const waits = new Map();
    for (const line of forms.get("machine code") ?? []) {
      if (!line.at) continue;
      const own = waits.get(line.at) ?? new Map();
      for (const [what, share] of line.waits) own.set(what, (own.get(what) ?? 0) + share);
      waits.set(line.at, own);
    }
    return { name: element.querySelector("summary").textContent, forms, waits };
  });
  const sum = (waits) => [...(waits?.values() ?? [])].reduce((all, share) => all + share, 0);
  const source = new Map();
  for (const listing of section.querySelectorAll("details.listing[data-form=source]")) {
    linesOf(listing).forEach((text, number) => source.set(`${listing.dataset.file}:${Number(listing.dataset.first) + number}`, text));
  }
  if (source.size > 0) {
    for (const plan of plans) {
      plan.forms.set("source", [...source].map(([at, text]) => ({ text, at, share: sum(plan.waits.get(at)) })));
    }
  }

  // Values, registers and labels are numbered anew in each kernel: their names are not compared.
  const compared = (line) =>
    line.text.replace(/^[0-9a-f]{5}\s/, "").replace(/[%$][\w.$]+/g, "%").replace(/\br\d+\b/g, "r").replace(/\s+/g, " ").trim();

  // Pairs of lines; one is missing where only the other kernel has it.
  const paired = (one, other) => {
    const [a, b] = [one.map(compared), other.map(compared)];
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
    let [endA, endB] = [a.length, b.length];
    while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) [endA, endB] = [endA - 1, endB - 1];
    const same = new Set(matched(a.slice(start, endA), b.slice(start, endB)).map(([x, y]) => `${x + start} ${y + start}`));
    const rows = [];
    let [x, y] = [0, 0];
    while (x < a.length || y < b.length) {
      const isSame = (p, q) => (p < start && p === q) || (p >= endA && p - endA === q - endB) || same.has(`${p} ${q}`);
      if (x < a.length && y < b.length && isSame(x, y)) {
        rows.push([one[x++], other[y++], true]);
        continue;
      }
      // A stretch that differs: up to where both go on alike.
      const [fromX, fromY] = [x, y];
      const next = nextSame(same, x, y, endA, endB);
      [x, y] = next;
      for (let at = 0; at < Math.max(x - fromX, y - fromY); at += 1) {
        rows.push([fromX + at < x ? one[fromX + at] : null, fromY + at < y ? other[fromY + at] : null, false]);
      }
    }
    return rows;
  };
  const nextSame = (same, x, y, endA, endB) => {
    for (const pair of same) {
      const [p, q] = pair.split(" ").map(Number);
      if (p >= x && q >= y) return [p, q];
    }
    return [endA, endB];
  };

  // The lines that both have, in order: Myers' algorithm.
  const matched = (a, b) => {
    const trace = [];
    let ends = new Map([[1, 0]]);
    for (let d = 0; d <= a.length + b.length; d += 1) {
      if (d > MOST) return [];
      trace.push(ends);
      ends = new Map(ends);
      for (let k = -d; k <= d; k += 2) {
        const down = k === -d || (k !== d && (ends.get(k - 1) ?? -1) < (ends.get(k + 1) ?? -1));
        let x = down ? ends.get(k + 1) : ends.get(k - 1) + 1;
        while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
        ends.set(k, x);
        if (x >= a.length && x - k >= b.length) return walked(trace, d, k, x);
      }
    }
    return [];
  };
  const walked = (trace, last, diagonal, end) => {
    const pairs = [];
    let [k, x] = [diagonal, end];
    for (let d = last; d >= 0; d -= 1) {
      const before = trace[d];
      const down = k === -d || (k !== d && (before.get(k - 1) ?? -1) < (before.get(k + 1) ?? -1));
      const [from, start] = down ? [k + 1, before.get(k + 1) ?? 0] : [k - 1, (before.get(k - 1) ?? -1) + 1];
      while (x > start) {
        x -= 1;
        pairs.push([x, x - k]);
      }
      [k, x] = [from, down ? start : start - 1];
    }
    return pairs.filter(([p, q]) => p >= 0 && q >= 0).reverse();
  };

  const select = (label, names, chosen) => {
    const box = make("select", {}, ...names.map((name, value) => new Option(name, value)));
    box.value = chosen;
    return [make("label", {}, `${label} `, box), box];
  };
  const forms = ["source", "IR", "PTX", "machine code"].filter((form) => plans.some((plan) => plan.forms.has(form)));
  const names = plans.map((plan) => plan.name);
  const [leftLabel, left] = select("Left", names, 0);
  const [rightLabel, right] = select("Right", names, Math.min(1, names.length - 1));
  // Plans share their source: what differs is in the other forms.
  const differing = names.length > 1 ? forms.findIndex((form) => form !== "source") : 0;
  const [formLabel, form] = select("as", forms, Math.max(0, differing));
  const [only, onlyLabel] = (() => {
    const box = make("input", { type: "checkbox" });
    return [box, make("label", {}, box, " only what differs")];
  })();
  const told = make("p", { className: "told" });
  told.setAttribute("aria-live", "polite");
  const view = make("div", { className: "pair", tabIndex: 0 });
  const counted = make("output", {});
  view.setAttribute("role", "group");
  view.setAttribute("aria-label", "Two plans side by side");

  const percent = (share) => `${share >= 10 ? share.toFixed(0) : share.toFixed(1)} %`;
  const tell = (at) => {
    for (const cell of view.querySelectorAll(".linked")) cell.classList.remove("linked");
    for (const cell of view.querySelectorAll(".cell")) cell.classList.toggle("linked", cell.dataset.at === at);
    const waits = [plans[left.value], plans[right.value]].map((plan, side) => {
      const own = [...(plan.waits.get(at) ?? [])].sort(([, one], [, other]) => other - one);
      const what = own.length > 0 ? own.map(([what, share]) => `${what} ${percent(share)}`).join(", ") : "no waiting";
      return `${["left", "right"][side]}: ${what}`;
    });
    told.replaceChildren(make("b", {}, at), source.has(at) ? make("code", {}, source.get(at).trim()) : "", ` ${waits.join("; ")}.`);
  };
  const cell = (line, side) => {
    const element = make("div", { className: `cell ${side}` });
    if (!line) {
      element.classList.add("gap");
      return element;
    }
    const gutter = make("span", { className: "gutter" });
    if (line.at) {
      element.dataset.at = line.at;
      const link = make("button", { type: "button", title: line.at }, line.at.slice(line.at.lastIndexOf(":") + 1));
      link.addEventListener("click", () => tell(line.at));
      gutter.append(link);
    }
    if (line.share >= 0.05) gutter.append(make("span", { className: "share" }, percent(line.share)));
    element.append(gutter, make("code", {}, line.text));
    return element;
  };
  const show = () => {
    const [one, other] = [left, right].map((box) => plans[box.value].forms.get(forms[form.value]) ?? []);
    const rows = paired(one, other);
    const shown = only.checked ? rows.filter(([, , same]) => !same) : rows;
    view.replaceChildren(...shown.map(([a, b, same]) =>
      make("div", { className: same ? "row same" : "row differs" }, cell(a, "a"), cell(b, "b"))));
    view.classList.toggle("is-source", forms[form.value] === "source");
    view.classList.toggle("shares", ["source", "machine code"].includes(forms[form.value]));
    const differ = rows.filter(([, , same]) => !same).length;
    const same = forms[form.value] === "source" ? "" : "No line differs.";
    counted.textContent = differ === 0 ? same : `${differ} of ${rows.length} lines differ.`;
    told.textContent = "Choose a line’s number for its source line and what is waited for there.";
  };
  for (const box of [left, right, form, only]) box.addEventListener("change", show);
  document.getElementById("pair").append(
    make("p", { className: "filter" }, leftLabel, rightLabel, formLabel, onlyLabel, counted), told, view);
  show();
})();
