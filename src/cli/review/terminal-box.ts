import type { Box, BoxLine, Span, SpanKind } from '../../review/page/document.ts';
import { displayWidth } from '../display-width.ts';
import type { Paint, Style } from '../transcript/screen.ts';
import { graphemes } from '../transcript/styled-text.ts';
import { leftToRight } from './left-to-right.ts';

export interface BoxOptions {
  readonly columns: number | undefined;
  readonly paint: Paint;
  readonly maxBoxLines: number;
  readonly more: string;
}

const CONTINUED = '↳';
const EDGE = '│';
/** At least this many columns remain for text. */
const MIN_TEXT_COLUMNS = 8;

const STYLES: Readonly<Partial<Record<SpanKind, Style>>> = {
  added: 'green',
  removed: 'red',
  escape: 'yellow',
  comment: 'dim',
  keyword: 'cyan',
  string: 'green',
  number: 'yellow',
};

/** The rows of a box: gutter, edge, text. A row that is wider than the terminal continues on the next one. */
export function terminalBox({ lines }: Box, options: BoxOptions): string[] {
  const { paint, maxBoxLines, more } = options;
  const shown = lines.slice(0, maxBoxLines);
  const width = Math.max(1, ...shown.map(({ gutter }) => displayWidth(gutter)));
  const rows = shown.flatMap((line) => rowsOf(withoutReordering(line), width, options));
  const hidden = lines.length - shown.length;
  return hidden === 0 ? rows : [...rows, paint('yellow', `${hidden} further lines are left out; ${more}`)];
}

function rowsOf(
  { gutter, spans, isRemark, isCited }: BoxLine,
  width: number,
  { columns, paint }: BoxOptions,
): string[] {
  const edge = isCited === true ? '>' : EDGE;
  const available = columns === undefined ? undefined : Math.max(MIN_TEXT_COLUMNS, columns - width - 3);
  return broken(spans, available).map((row, index) => {
    const mark = (index === 0 ? gutter : CONTINUED).padStart(width);
    const text = row.map((span) => painted(span, isRemark === true, paint)).join('');
    const lead = `${markPaint(gutter, paint)(mark)} ${paint('dim', edge)}`;
    return text === '' ? lead : `${lead} ${text}`;
  });
}

function withoutReordering(line: BoxLine): BoxLine {
  return { ...line, spans: line.spans.map(({ kind, text }) => ({ kind, text: leftToRight(text) })) };
}

/** The sign of a changed line has its colour also where the text is blank. */
function markPaint(gutter: string, paint: Paint): (text: string) => string {
  const style = gutter === '+' ? 'green' : gutter === '-' ? 'red' : 'dim';
  return (text) => paint(style, text);
}

function painted({ kind, text }: Span, isRemark: boolean, paint: Paint): string {
  const style = isRemark ? 'dim' : STYLES[kind];
  return style === undefined ? text : paint(style, text);
}

/** The spans in rows of at most `available` columns. */
function broken(spans: readonly Span[], available: number | undefined): Span[][] {
  if (available === undefined) return [[...spans]];
  const rows: Span[][] = [[]];
  let column = 0;
  for (const { kind, text } of spans) {
    let piece = '';
    for (const cluster of graphemes(text)) {
      const width = displayWidth(cluster);
      if (column + width > available) {
        if (piece !== '') rows.at(-1)?.push({ kind, text: piece });
        piece = '';
        rows.push([]);
        column = 0;
      }
      piece += cluster;
      column += width;
    }
    if (piece !== '') rows.at(-1)?.push({ kind, text: piece });
  }
  return rows;
}
