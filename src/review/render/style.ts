/** The style of the page. Boxes clip what they contain, so that no foreign text is drawn over another part of the page. */
export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --box: #8881; --accent: #b45309; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; }
main { max-width: 78rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; }
h2 { font-size: 1.25rem; border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; }
h3 { font-size: 1rem; }
code { font: 0.9em/1.4 ui-monospace, monospace; unicode-bidi: isolate; }
p > code, li > code, dd > code, h1 > code, h3 > code { background: var(--box); border: 1px solid var(--line); border-radius: 4px; padding: 0 0.3em; white-space: pre-wrap; overflow: clip; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3rem 1rem; }
dt { font-weight: 600; }
dd { margin: 0; }
.warning { border-left: 4px solid var(--accent); background: #f59e0b22; padding: 0.5rem 1rem; }
.box { border: 1px solid var(--line); border-radius: 6px; background: var(--box); margin: 0.5rem 0 1rem; padding: 0.3rem 0; overflow: clip; contain: paint; }
.line { display: flex; overflow: clip; min-height: 1.4em; }
.line code { white-space: pre-wrap; padding-left: 0.8rem; border-left: 1px solid var(--line); flex: 1; min-width: 0; overflow: clip; }
.gutter { flex: 0 0 3.5rem; text-align: right; padding-right: 0.6rem; color: #888; font: 0.8em/1.7 ui-monospace, monospace; user-select: none; }
.cited { background: #f59e0b33; }
.remark code { font-style: italic; color: #888; }
.keyword { color: #7c3aed; }
.string { color: #15803d; }
.number { color: #b91c1c; }
.comment { color: #888; font-style: italic; }
.escape { background: #dc2626; color: #fff; border-radius: 3px; }
.added { background: #16a34a33; }
.removed { background: #dc262633; }
@media (prefers-color-scheme: dark) { .keyword { color: #a78bfa; } .string { color: #4ade80; } .number { color: #f87171; } }
`;
