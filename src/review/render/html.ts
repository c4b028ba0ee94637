import { createHash } from 'node:crypto';
import type { Block, Box, BoxLine, Inline, ReviewDocument } from '../page/document.ts';
import { visibleLine } from '../page/visible-text.ts';
import { STYLE } from './style.ts';

const MAX_INLINE = 4_096;

/** The page as one HTML file without scripts and without requests. Its policy permits nothing but its own style. */
export function renderHtml(document: ReviewDocument, title: string): string {
  const styleDigest = createHash('sha256').update(STYLE).digest('base64');
  const policy = `default-src 'none'; style-src 'sha256-${styleDigest}'; base-uri 'none'; form-action 'none'`;
  return [
    '<!doctype html>',
    '<html lang="en" dir="ltr">',
    '<head>',
    '<meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="${escape(policy)}">`,
    '<meta name="referrer" content="no-referrer">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    `<title>${escape(visibleLine(title, 200))}</title>`,
    `<style>${STYLE}</style>`,
    '</head>',
    '<body>',
    '<main>',
    ...document.map(block),
    '</main>',
    '</body>',
    '</html>',
    '',
  ].join('\n');
}

function block(item: Block): string {
  switch (item.type) {
    case 'heading':
      return `<h${item.level}>${inlines(item.text)}</h${item.level}>`;
    case 'paragraph':
      return `<p>${inlines(item.text)}</p>`;
    case 'warning':
      return `<p class="warning">${inlines(item.text)}</p>`;
    case 'list':
      return `<ul>\n${item.items.map((texts) => `<li>${inlines(texts)}</li>`).join('\n')}\n</ul>`;
    case 'facts':
      return `<dl>\n${item.rows.map(([label, value]) => `<dt>${escape(label)}</dt><dd>${inlines(value)}</dd>`).join('\n')}\n</dl>`;
    case 'box':
      return boxOf(item);
  }
}

function inlines(texts: readonly Inline[]): string {
  return texts
    .map((text) =>
      typeof text === 'string'
        ? escape(text)
        : `<code dir="ltr">${escape(visibleLine(text.foreign, MAX_INLINE)) || '(empty)'}</code>`,
    )
    .join('');
}

function boxOf({ language, lines }: Box): string {
  return `<div class="box ${language}" dir="ltr">\n${lines.map(line).join('\n')}\n</div>`;
}

function line({ gutter, spans, isCited, isRemark }: BoxLine): string {
  const kinds = ['line', ...(isCited === true ? ['cited'] : []), ...(isRemark === true ? ['remark'] : [])];
  const text = spans
    .map((span) =>
      span.kind === 'plain' ? escape(span.text) : `<span class="${span.kind}">${escape(span.text)}</span>`,
    )
    .join('');
  return `<div class="${kinds.join(' ')}"><span class="gutter">${escape(gutter)}</span><code>${text}</code></div>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
