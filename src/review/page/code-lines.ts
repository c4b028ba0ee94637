import type { BoxLine, Span, SpanKind } from './document.ts';
import type { SourceToken } from './source-tokens.ts';
import { visibleParts } from './visible-text.ts';

/** Longer lines continue on the next one, so that no text is beyond the right edge. */
export const MAX_COLUMNS = 140;
/** Longer runs of blank lines become one remark, so that no text is beyond the bottom. */
export const MAX_BLANK_LINES = 3;
const CONTINUED = '↳';
const OMITTED = '⋯';

interface NumberedLine {
  readonly number: number;
  readonly spans: readonly Span[];
}

/** The lines of a foreign text with their numbers. `tokens` highlight; `cited` marks lines that reviewers name. */
export function codeLines(
  text: string,
  tokens: readonly SourceToken[] = [],
  cited: ReadonlySet<number> = new Set(),
): BoxLine[] {
  const numbered = splitSpans(text, tokens).map((spans, index) => ({ number: index + 1, spans }));
  const lines: BoxLine[] = [];
  for (let index = 0; index < numbered.length; index += 1) {
    const blank = blankRun(numbered, index);
    if (blank > MAX_BLANK_LINES) {
      lines.push(remark(OMITTED, `${blank} blank lines, ${index + 1} to ${index + blank}`));
      index += blank - 1;
      continue;
    }
    const line = numbered[index];
    if (line === undefined) continue;
    const rows = wrapped(String(line.number), isBlank(line) ? [] : line.spans, cited.has(line.number));
    for (const row of rows) lines.push(row);
  }
  return lines;
}

export function remark(gutter: string, text: string): BoxLine {
  return { gutter, spans: [{ kind: 'plain', text }], isRemark: true };
}

/** The spans in pieces of at most MAX_COLUMNS characters. */
export function wrapped(gutter: string, spans: readonly Span[], isCited = false): BoxLine[] {
  const rows: Span[][] = [[]];
  let column = 0;
  for (const { kind, text } of spans) {
    const characters = Array.from(text);
    let position = 0;
    while (position < characters.length) {
      if (column >= MAX_COLUMNS) {
        rows.push([]);
        column = 0;
      }
      const piece = characters.slice(position, position + MAX_COLUMNS - column);
      position += piece.length;
      rows.at(-1)?.push({ kind, text: piece.join('') });
      column += piece.length;
    }
  }
  return rows.map((row, index) => ({
    gutter: index === 0 ? gutter : CONTINUED,
    spans: row,
    ...(isCited ? { isCited } : {}),
  }));
}

/** The visible spans of each line of a text. */
export function splitSpans(text: string, tokens: readonly SourceToken[]): Span[][] {
  const lines: Span[][] = [[]];
  let position = 0;
  const emit = (end: number, kind: SpanKind): void => {
    const [first = '', ...others] = text.slice(position, end).split('\n');
    const open = lines.at(-1) ?? [];
    for (const span of visibleSpans(first, kind, open.length === 0)) open.push(span);
    for (const line of others) lines.push(visibleSpans(line, kind, true));
    position = Math.max(position, end);
  };
  for (const { kind, start, end } of tokens) {
    if (start < position) continue;
    emit(start, 'plain');
    emit(end, kind);
  }
  emit(text.length, 'plain');
  return lines;
}

/** Tabs that indent a line are shown as blanks; any other one as an escape. */
function visibleSpans(text: string, kind: SpanKind, isLineStart: boolean): Span[] {
  const indented = isLineStart ? text.replace(/^\t+/, (tabs) => '    '.repeat(tabs.length)) : text;
  return visibleParts(indented).map((part) => ({ kind: part.isEscape ? 'escape' : kind, text: part.text }));
}

function blankRun(lines: readonly NumberedLine[], from: number): number {
  let end = from;
  while (end < lines.length && isBlank(lines[end])) end += 1;
  return end - from;
}

function isBlank(line: NumberedLine | undefined): boolean {
  return line !== undefined && line.spans.every(({ text }) => text.trim() === '');
}
