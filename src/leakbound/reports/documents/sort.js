// A table of more than ten rows is sorted by a click on a heading: numbers first, the largest first.
(function () {
  "use strict";
  var SIGNS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  var NUMBER = /^[≤≥\s]*(-?\d+(?:\.\d+)?)(?: × )?(?:10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?/;
  function power(signs) {
    var digits = Array.from(signs, function (sign) { return sign === "⁻" ? "-" : SIGNS.indexOf(sign); });
    return Math.pow(10, Number(digits.join("")));
  }
  function key(row, column) {
    var text = row.cells[column].textContent.trim().replace(/,/g, "").replace(/−/g, "-");
    if (text === "infinity") return Infinity;
    var found = NUMBER.exec(text);
    return found ? Number(found[1]) * (found[2] ? power(found[2]) : 1) : text;
  }
  function compared(p, q) {
    if (typeof p !== typeof q) return typeof p === "number" ? 1 : -1;
    return p < q ? -1 : p > q ? 1 : 0;
  }
  function sort(heads, head, column, body) {
    var sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    Array.from(body.rows)
      .sort(function (a, b) { return compared(key(a, column), key(b, column)) * sign; })
      .forEach(function (row) { body.appendChild(row); });
  }
  Array.from(document.querySelectorAll("table")).forEach(function (table) {
    var body = table.tBodies[0];
    if (!body || body.rows.length <= 10) return;
    var heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      var handle = document.createElement("span");
      handle.className = "sort";
      handle.tabIndex = 0;
      handle.setAttribute("role", "button");
      handle.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(handle);
      handle.addEventListener("click", function () { sort(heads, head, column, body); });
      handle.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sort(heads, head, column, body);
      });
    });
  });
})();
