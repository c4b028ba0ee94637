/** Edits of a text. Pure: a set of edits gives one new text, or a reason why not. */
import { printable } from '../../lib/printable.ts';

/** Replaces a text that occurs once, or each occurrence with `all`. */
interface TextEdit {
  oldText: string;
  newText: string;
  all?: boolean;
}

/** Replaces whole lines, if they are these. Without lines it inserts before `firstLine`. */
interface LineEdit {
  firstLine: number;
  lineCount: number;
  /** What the lines are now, with their line ends; the line end of the last one may be missing. */
  expectedText: string;
  newText: string;
}

export type Edit = TextEdit | LineEdit;

export type EditResult = { text: string; replaced: number } | { problem: string };

const MAX_LISTED_LINES = 10;

/**
 * Makes the edits one after the other: each sees the text that the one before it left. In a text whose lines all end with CRLF, the line
 * ends of the edits count as CRLF.
 */
export function applyEdits(text: string, edits: readonly Edit[], maxCharacters: number): EditResult {
  const inForm = usesCarriageReturns(text) ? withCarriageReturns : (part: string): string => part;
  let current = text;
  let replaced = 0;
  for (const [index, edit] of edits.entries()) {
    const result =
      'oldText' in edit ? replaceText(current, edit, inForm, maxCharacters) : replaceLines(current, edit, inForm);
    if ('problem' in result) return { problem: `edits[${index}]: ${result.problem}` };
    current = result.text;
    replaced += result.replaced;
    if (current.length > maxCharacters) return { problem: `edits[${index}]: ${tooLong(maxCharacters)}` };
  }
  return { text: current, replaced };
}

type InForm = (part: string) => string;

function replaceText(text: string, edit: TextEdit, inForm: InForm, maxCharacters: number): EditResult {
  const [from, to] = [inForm(edit.oldText), inForm(edit.newText)];
  if (from === '') return { problem: 'oldText is empty; name the text to replace' };
  const positions = positionsOf(text, from);
  if (positions.length === 0) return { problem: `oldText is not in the file${nearMiss(text, from)}` };
  if (positions.length > 1 && edit.all !== true) {
    return {
      problem: `oldText occurs ${positions.length} times, at ${listed(linesOf(text, positions))}; name more of the text around it, or set all`,
    };
  }
  if (text.length + positions.length * (to.length - from.length) > maxCharacters)
    return { problem: tooLong(maxCharacters) };
  return { text: text.split(from).join(to), replaced: positions.length };
}

function replaceLines(text: string, edit: LineEdit, inForm: InForm): EditResult {
  const { firstLine, lineCount } = edit;
  const starts = lineStarts(text);
  const lines = starts.length - 1;
  const last = firstLine + lineCount - 1;
  if (last > lines || firstLine > lines + 1)
    return { problem: `the file has ${lines} lines, not ${Math.max(last, firstLine)}` };
  const [start, end] = [starts[firstLine - 1] ?? text.length, starts[last] ?? text.length];
  const present = text.slice(start, end);
  const expected = inForm(edit.expectedText);
  if (!isSame(present, expected)) {
    const shown = printable(present, 300);
    return { problem: `lines ${firstLine} to ${last} are not expectedText; they are: ${shown}` };
  }
  let to = inForm(edit.newText);
  // Whole lines stay whole lines: the line after them must not become a part of the last one.
  if (to !== '' && !to.endsWith('\n') && (end < text.length || present.endsWith('\n'))) to = `${to}${inForm('\n')}`;
  const gap = start === text.length && text !== '' && !text.endsWith('\n') && to !== '' ? inForm('\n') : '';
  return { text: `${text.slice(0, start)}${gap}${to}${text.slice(end)}`, replaced: 1 };
}

function isSame(present: string, expected: string): boolean {
  return present === expected || present === `${expected}\n` || present === `${expected}\r\n`;
}

/** The positions of occurrences that do not overlap, from the left. */
function positionsOf(text: string, part: string): number[] {
  const positions: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) positions.push(at);
  return positions;
}

/** The line numbers of ascending positions. */
function linesOf(text: string, positions: readonly number[]): number[] {
  const lines: number[] = [];
  let [line, from] = [1, 0];
  for (const position of positions.slice(0, MAX_LISTED_LINES)) {
    for (let at = text.indexOf('\n', from); at !== -1 && at < position; at = text.indexOf('\n', at + 1)) {
      line += 1;
      from = at + 1;
    }
    lines.push(line);
  }
  return positions.length > MAX_LISTED_LINES ? [...lines, Number.POSITIVE_INFINITY] : lines;
}

function listed(lines: readonly number[]): string {
  const shown = lines.map((line) => (Number.isFinite(line) ? String(line) : '…'));
  return `${lines.length === 1 ? 'line' : 'lines'} ${shown.join(', ')}`;
}

/** Where a text stands that differs in blanks alone, which models often do not copy. */
function nearMiss(text: string, part: string): string {
  const wanted = part.split('\n').map((line) => line.trim());
  if (wanted.every((line) => line === '')) return '';
  const lines = text.split('\n').map((line) => line.trim());
  const at = lines.findIndex((_, index) => wanted.every((line, offset) => lines[index + offset] === line));
  return at === -1 ? '; read the file again' : `; line ${at + 1} differs from it in blanks only`;
}

/** The positions at which lines start, and the end of the text. */
function lineStarts(text: string): number[] {
  const starts: number[] = [];
  for (let at = 0; at < text.length; ) {
    starts.push(at);
    const end = text.indexOf('\n', at);
    at = end === -1 ? text.length : end + 1;
  }
  return [...starts, text.length];
}

function usesCarriageReturns(text: string): boolean {
  let found = false;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) {
    if (text[at - 1] !== '\r') return false;
    found = true;
  }
  return found;
}

function withCarriageReturns(part: string): string {
  return part.replaceAll('\r\n', '\n').replaceAll('\n', '\r\n');
}

function tooLong(maxCharacters: number): string {
  return `the file would have more than ${maxCharacters} characters`;
}
