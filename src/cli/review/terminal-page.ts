import type { Block, Inline, ReviewDocument } from '../../review/page/document.ts';
import { visibleLine } from '../../review/page/visible-text.ts';
import { displayWidth } from '../display-width.ts';
import type { CliIo } from '../io.ts';
import { type Paint, screenOf } from '../transcript/screen.ts';
import { wrap } from '../transcript/wrap.ts';
import { leftToRight } from './left-to-right.ts';
import { terminalBox } from './terminal-box.ts';

export interface PageOptions {
  /** Lines of one box; more are counted and left out. */
  readonly maxBoxLines: number;
  /** The command that shows what is left out. */
  readonly more: string;
}

interface TerminalPage extends PageOptions {
  /** Of the terminal; absent for a pipe or a file, where lines are not wrapped. */
  readonly columns: number | undefined;
  readonly paint: Paint;
}

const MAX_INLINE = 4_096;
/** Values stand beside their labels from this width on, and below them on narrower terminals. */
const MIN_ALIGNED_COLUMNS = 60;
const MAX_LABEL = 28;

/**
 * A review page for the output of a command: as wide as its terminal, in colour where the output has colours. Foreign text stands between ‹ and ›, which it cannot contain, or in a box, of which each row begins
 * with a gutter of this program.
 */
export function terminalText(document: ReviewDocument, options: PageOptions, io: CliIo): string {
  const columns = io.terminal ? io.columns?.() : undefined;
  const page = { ...options, columns, paint: screenOf(io).paint };
  return document
    .flatMap((block) => blockLines(block, page))
    .map((line) => `${line}\n`)
    .join('');
}

function blockLines(block: Block, page: TerminalPage): string[] {
  const { paint, columns } = page;
  switch (block.type) {
    case 'heading': {
      const isSection = block.level < 3;
      return [...(isSection ? [''] : []), wrap(paint(isSection ? 'bold' : 'cyan', inlines(block.text)), columns)];
    }
    case 'paragraph':
      return [wrap(inlines(block.text), columns)];
    case 'warning':
      return [wrap(`${paint('yellow', 'Attention:')} ${inlines(block.text)}`, columns, 2)];
    case 'list':
      return block.items.map((item) => wrap(`- ${inlines(item)}`, columns, 2));
    case 'facts':
      return factLines(block.rows, page);
    case 'box':
      return terminalBox(block, page);
  }
}

function factLines(rows: Extract<Block, { type: 'facts' }>['rows'], { paint, columns }: TerminalPage): string[] {
  const isAligned = (columns ?? MIN_ALIGNED_COLUMNS) >= MIN_ALIGNED_COLUMNS;
  const labels = rows.map(([label]) => displayWidth(label)).filter((width) => width <= MAX_LABEL);
  const width = isAligned ? Math.max(0, ...labels) + 2 : 0;
  return rows.map(([label, value]) => {
    const name = `${label}:`.padEnd(width);
    const gap = isAligned && name.length <= width ? '' : ' ';
    return wrap(`${paint('dim', name)}${gap}${inlines(value)}`, columns, isAligned ? width : 2);
  });
}

function inlines(texts: readonly Inline[]): string {
  return texts.map((text) => (typeof text === 'string' ? text : `‹${inlineForeign(text.foreign)}›`)).join('');
}

function inlineForeign(text: string): string {
  const shown = leftToRight(visibleLine(text, MAX_INLINE));
  if (shown === '') return '(empty)';
  return shown.replaceAll(/[\u2039\u203a]/g, (mark) => `\\u{${mark.charCodeAt(0).toString(16)}}`);
}
