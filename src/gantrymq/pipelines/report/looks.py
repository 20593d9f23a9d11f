"""How the page looks and the little it can do by itself: style, and sorting of tables."""

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
th,td{padding:6px 8px;text-align:left;border-bottom:1px solid var(--line);white-space:nowrap}
td.long{white-space:normal;min-width:11rem}
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
@media (max-width:900px){th,td{white-space:normal;overflow-wrap:normal;padding:6px 5px}
td.num{white-space:nowrap}td.id,td.long{overflow-wrap:anywhere}}
@media (max-width:719px){main,header,footer{padding:0 12px}header{padding-top:18px}
h1{font-size:1.3rem}.card{padding:12px}.wide{display:none}.narrow{display:block}
.tiles{grid-template-columns:repeat(2,1fr);gap:8px}.tiles b{font-size:1.2rem}}
@media print{body{background:#fff}.scroll{max-height:none;overflow:visible}nav{display:none}}
"""

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
