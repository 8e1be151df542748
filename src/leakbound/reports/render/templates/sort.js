(function () {
  "use strict";
  var table = document.getElementById("findings");
  if (!table) return;
  var heads = Array.from(table.tHead.rows[0].cells);
  function key(row, column) {
    if (column !== 1) return row.cells[column].textContent;
    return row.dataset.key === undefined ? -Infinity : Number(row.dataset.key);
  }
  function sort(head, column) {
    var sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
    heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
    Array.from(table.tBodies).forEach(function (body) {
      Array.from(body.rows).filter(function (row) { return row.cells.length > 1; })
        .sort(function (a, b) {
          var p = key(a, column), q = key(b, column);
          return (p < q ? -1 : p > q ? 1 : 0) * sign;
        })
        .forEach(function (row) { body.appendChild(row); });
    });
  }
  heads.forEach(function (head, column) {
    var handle = document.createElement("span");
    handle.className = "sort";
    handle.tabIndex = 0;
    handle.setAttribute("role", "button");
    handle.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(handle);
    handle.addEventListener("click", function () { sort(head, column); });
    handle.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort(head, column);
    });
  });
})();
