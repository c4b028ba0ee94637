import type { Block, Box, Inline, ReviewDocument } from '../page/document.ts';
import { visibleLine } from '../page/visible-text.ts';

const MAX_INLINE = 4_096;

/**
 * The page as Markdown. Foreign text is only in code spans and fenced blocks, whose delimiters are longer than any run of backticks in the
 * text, and never in a table: implementations differ in how they read a bar in a cell.
 */
export function renderMarkdown(document: ReviewDocument): string {
  return `${document.map(block).join('\n\n')}\n`;
}

function block(item: Block): string {
  switch (item.type) {
    case 'heading':
      return `${'#'.repeat(item.level)} ${inlines(item.text)}`;
    case 'paragraph':
      return inlines(item.text);
    case 'warning':
      return `> **Attention:** ${inlines(item.text)}`;
    case 'list':
      return item.items.map((texts) => `- ${inlines(texts)}`).join('\n');
    case 'facts':
      return item.rows.map(([label, value]) => `- ${own(label)}: ${inlines(value)}`).join('\n');
    case 'box':
      return fenced(item);
  }
}

function inlines(texts: readonly Inline[]): string {
  return texts.map((text) => (typeof text === 'string' ? own(text) : codeSpan(text.foreign))).join('');
}

/** Texts of this project can contain characters with a meaning in Markdown. */
function own(text: string): string {
  return text.replaceAll(/[\\`*_[\]<>&|~]/g, (character) => `\\${character}`);
}

/** A code span is literal but for its delimiter. Blanks at both ends keep a backtick at an end apart from it. */
function codeSpan(text: string): string {
  const shown = visibleLine(text, MAX_INLINE);
  const delimiter = '`'.repeat(longestRun(shown) + 1);
  return `${delimiter} ${shown === '' ? '(empty)' : shown} ${delimiter}`;
}

function fenced({ language, lines }: Box): string {
  const width = Math.max(1, ...lines.map(({ gutter }) => gutter.length));
  const rows = lines.map(({ gutter, spans, isCited, isRemark }) => {
    const text = spans.map((span) => span.text).join('');
    const mark = isCited === true ? '>' : ' ';
    const line = language === 'diff' ? `${gutter} ${text}` : `${gutter.padStart(width)}${mark}| ${text}`;
    return isRemark === true ? `${gutter.padStart(width)} (${text})` : line.trimEnd();
  });
  const fence = '`'.repeat(Math.max(3, longestRun(rows.join('\n')) + 1));
  return `${fence}${language}\n${rows.join('\n')}\n${fence}`;
}

function longestRun(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((longest, run) => Math.max(longest, run.length), 0);
}
