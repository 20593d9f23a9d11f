"""The style of the page, and its script, which sorts tables."""

from collections.abc import Iterable
from typing import Final

CSS: Final = """
:root{color-scheme:light dark;--bg:#f6f7f9;--card:#fff;--text:#1d2530;--muted:#5f6b7a;
--line:#e3e7ed;--accent:#2b6cdf;--ok:#167a4a;--ok-bg:#e4f5ec;--no:#b3261e;--no-bg:#fdeceb;
--un:#7a5200;--un-bg:#fdf3da}
@media (prefers-color-scheme:dark){:root{--bg:#11161c;--card:#1a212a;--text:#e7ebf1;--muted:#9aa7b6;
--line:#2c3642;--accent:#6ea3ff;--ok:#6ddba3;--ok-bg:#15301f;--no:#ff9c94;--no-bg:#3a1a19;
--un:#f0c36a;--un-bg:#33270f}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:15px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
main,header,footer{max-width:1340px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:1.6rem;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:40px 0 4px}
h3{font-size:1rem;margin:0 0 8px}
p{margin:0 0 12px}.soft{color:var(--muted)}
a{color:var(--accent)}
nav{display:flex;flex-wrap:wrap;gap:4px 16px;margin:12px 0 0;font-size:.9rem}
nav a{text-decoration:none}nav a:hover{text-decoration:underline}
.verdict{margin:20px 0 0;padding:14px 18px;border-radius:10px;border-left:5px solid;font-weight:600}
.verdict span{display:block;font-weight:400}
.fine{background:var(--ok-bg);border-color:var(--ok);color:var(--ok)}
.unsure{background:var(--un-bg);border-color:var(--un);color:var(--un)}
.off{background:var(--no-bg);border-color:var(--no);color:var(--no)}
.tiles{display:grid;grid-template-columns:repeat(auto-fill,minmax(150px,1fr));gap:12px;
margin:16px 0 0;padding:0;list-style:none}
.tiles li,.card{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tiles li{padding:12px 14px}
.tiles b{display:block;font-size:1.5rem;line-height:1.2;font-variant-numeric:tabular-nums}
.tiles span{color:var(--muted);font-size:.85rem}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,560px),1fr));gap:16px;
align-items:start}
.card{padding:16px 18px;margin:0 0 16px;min-width:0}
.grid .card{margin:0}.grid{margin:0 0 16px}.grid .full{grid-column:1/-1}
.card svg{max-width:100%;height:auto;display:block}
.narrow{display:none}
.scroll{overflow-x:auto;max-height:26rem;overflow-y:auto;border-top:1px solid var(--line)}
table{border-collapse:collapse;width:100%;font-size:.85rem}
th,td{padding:6px 8px;text-align:left;border-bottom:1px solid var(--line)}
th{overflow-wrap:normal;vertical-align:bottom}
td{min-width:5.5rem}td.id{min-width:9rem}td.long{min-width:11rem}
td.num,td.time{min-width:0;overflow-wrap:normal}td.num{white-space:nowrap}
th{position:sticky;top:0;background:var(--card);font-weight:600}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
.num{text-align:right;font-variant-numeric:tabular-nums}
.alarm{color:var(--no);font-weight:700}
td.id{font-family:ui-monospace,SFMono-Regular,Menlo,monospace;font-size:.8rem}
summary{cursor:pointer;font-weight:600}
details[open] summary{margin-bottom:8px}
ul{padding-left:20px}footer{padding-bottom:40px;margin-top:40px;color:var(--muted);font-size:.85rem}
@media (max-width:719px){main,header,footer{padding:0 12px}header{padding-top:18px}
h1{font-size:1.3rem}.card{padding:12px}.wide{display:none}.narrow{display:block}
.tiles{grid-template-columns:repeat(2,1fr);gap:8px}.tiles b{font-size:1.2rem}}
@media print{body{background:#fff}.scroll{max-height:none;overflow:visible}nav{display:none}}
"""

STEPS_PX: Final = (360, 480, 600, 720, 840, 960, 1080, 1200, 1400)
"""Widths that tables may need; each has a class of its own."""
BESIDE_PX: Final = 110
"""What a window has besides a table: margins, the border of its card, two scroll bars."""
_CELL_PX: Final = {"": 88, "num": 78, "time": 100, "id": 144, "long": 176}
_LETTER_PX: Final = 8
_STACKED: Final = """
@media (max-width:%(px)dpx){.w%(n)d,.w%(n)d tbody{display:block}
.w%(n)d thead tr{display:flex;flex-wrap:wrap;gap:0 12px;color:var(--muted)}
.w%(n)d thead tr::before{content:"Sort by"}
.w%(n)d th{position:static;padding:0;border:0}
.w%(n)d tbody tr{display:grid;grid-template-columns:repeat(auto-fill,minmax(7.5rem,1fr));
gap:4px 12px;padding:8px 0;border-bottom:1px solid var(--line)}
.w%(n)d td{display:block;min-width:0;padding:0;border:0;text-align:left;
white-space:normal;overflow-wrap:anywhere}
.w%(n)d td::before{content:attr(data-h);display:block;color:var(--muted);
font:400 .75rem/1.3 system-ui,sans-serif}
.w%(n)d .id{grid-column:span 2}.w%(n)d .long{grid-column:1/-1}}
"""


def width_class(columns: Iterable[tuple[str, str]]) -> str:
    """The CSS class of a table, by the width that its columns need."""
    words = ((css, max(title.split(), key=len)) for css, title in columns)
    need = sum(max(_CELL_PX[css], len(word) * _LETTER_PX + 16) for css, word in words)
    return f"w{next((step for step in STEPS_PX if need <= step), STEPS_PX[-1])}"


def stacked() -> str:
    """Style for windows narrower than a table.

    Each row becomes a block, with each value below the name of its column.
    """
    return "".join(_STACKED % {"n": step, "px": step + BESIDE_PX} for step in STEPS_PX)


SCRIPT: Final = """
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.parentElement, row = head.parentElement;
    const body = row.closest("table").tBodies[0], at = [...row.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    const key = cells => cells.children[at].dataset.v;
    const compare = (a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const number = x - y;
      return (Number.isNaN(number) ? x.localeCompare(y) : number) * (down ? -1 : 1);
    };
    for (const other of row.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...[...body.rows].sort(compare));
  });
}
"""
