/** The style of a page: light and dark, on a phone, a wide screen and paper. */
export const PAGE_STYLE = `
:root {
  color-scheme: light dark;
  --ground: #fff; --raised: #f6f7f9; --line: #d9dde3; --ink: #1c2127; --dim: #59626e;
  --good: #18713c; --bad: #b3261e; --warning: #8a5300; --link: #1f5fae;
  --hue1: #2a6fbb; --hue2: #b4540a; --hue3: #2b7d4f; --hue4: #8b4bb8; --hue5: #b0306a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15181c; --raised: #1e2227; --line: #363c44; --ink: #e4e7eb; --dim: #a2abb6;
    --good: #6cc78d; --bad: #ff8f86; --warning: #e5b052; --link: #86b8f5;
    --hue1: #6ba8ec; --hue2: #e59255; --hue3: #62b98a; --hue4: #c091e6; --hue5: #e980ac;
  }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(1rem, 4vw, 3rem) 3rem; max-width: 110rem;
  background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .9em; }
header { color: var(--dim); border-bottom: 1px solid var(--line); padding-bottom: .75rem; }
footer { color: var(--dim); border-top: 1px solid var(--line); margin-top: 2.5rem; font-size: .875rem; }
h1 { font-size: clamp(1.25rem, 1rem + 1.2vw, 1.75rem); line-height: 1.3; margin: 1.25rem 0 1rem; font-weight: 650; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .5rem; }
p { margin: .5rem 0; max-width: 50rem; }
pre { margin: .5rem 0; padding: .6rem .8rem; background: var(--raised); border-radius: .4rem;
  white-space: pre-wrap; max-width: 60rem; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .3rem 1.5rem; margin: 1rem 0; }
dt { color: var(--dim); } dd { margin: 0; max-width: 50rem; }
.scroll { overflow-x: auto; margin: .75rem 0; max-width: 100%; }
.scroll:focus-visible, summary:focus-visible, button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .925rem; overflow-wrap: normal; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
th:last-child, td:last-child { padding-right: 0; }
thead :is(th, td) { vertical-align: bottom; color: var(--dim); font-weight: 600; border-bottom-width: 2px; white-space: nowrap; }
tbody th { font-weight: 400; }
tfoot th, tfoot td { font-weight: 600; border-bottom: 0; }
.right { text-align: right; }
.number { white-space: nowrap; }
.name { white-space: pre-wrap; min-width: 9rem; max-width: 32rem; overflow-wrap: anywhere; }
th button { all: unset; cursor: pointer; }
th button::after { content: "\\2195"; margin-left: .3em; opacity: .45; }
[aria-sort="ascending"] button::after { content: "\\2191"; opacity: 1; }
[aria-sort="descending"] button::after { content: "\\2193"; opacity: 1; }
details { margin: 1.25rem 0; border-top: 1px solid var(--line); padding-top: .6rem; }
summary { cursor: pointer; color: var(--link); width: fit-content; }
summary :is(h2, h3) { display: inline; margin: 0; }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; }
figure svg { display: block; width: 100%; min-width: 34rem; max-width: 52rem; height: auto; }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 34rem), 1fr)); gap: 0 2rem; }
.pictures figure { margin: .75rem 0; min-width: 0; }
figure details { border: 0; margin: .25rem 0; padding: 0; font-size: .925rem; }
.outline { list-style: none; margin: 0; padding-left: 0; }
.outline .outline { padding-left: 1.2rem; border-left: 1px solid var(--line); }
.outline li { margin: .15rem 0; }
.outline summary { color: var(--ink); }
.ink { color: var(--ink); } .dim { color: var(--dim); } .strong { font-weight: 600; }
.good { color: var(--good); } .bad { color: var(--bad); } .warning { color: var(--warning); }
.hue1 { color: var(--hue1); } .hue2 { color: var(--hue2); } .hue3 { color: var(--hue3); }
.hue4 { color: var(--hue4); } .hue5 { color: var(--hue5); }
.bar { color: var(--hue1); vertical-align: middle; }
@media (min-width: 90rem) {
  .introduction, .parts { display: flex; flex-wrap: wrap; gap: 0 3rem; }
  :is(.introduction, .parts) > * { min-width: 0; max-width: 100%; }
  .introduction > figure { flex: 1 1 42.5rem; margin-top: 0; }
}
@media (max-width: 60rem) {
  .scroll { background:
    linear-gradient(90deg, var(--ground) 40%, transparent) 0 0 / 2rem 100% local no-repeat,
    linear-gradient(270deg, var(--ground) 40%, transparent) 100% 0 / 2rem 100% local no-repeat,
    linear-gradient(90deg, var(--line), transparent) 0 0 / .75rem 100% scroll no-repeat,
    linear-gradient(270deg, var(--line), transparent) 100% 0 / .75rem 100% scroll no-repeat; }
}
@media (max-width: 30rem) {
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; }
}
@media print {
  :root { font-size: 10pt; }
  body { max-width: none; padding: 0; }
  details:not([open]) { display: none; }
  .scroll { overflow: visible; background: none; } th button::after { content: none; }
  figure, tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  figure svg { min-width: 0; max-width: 100%; }
}
`;
