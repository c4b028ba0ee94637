import type { Json } from '../../../lib/json.ts';

const MAX_CITATIONS = 20;
/** The sections of a presented artifact that hold what the tool runs. */
const IMPLEMENTATION = /^"(?:code|steps)":\[$/;

/** The material of a question, by lines. A reviewer cites lines by their number, from 1. */
export interface Material {
  lines: readonly string[];
  /** The numbers of the lines of the implementation; of all lines with letters when the material presents no artifact. */
  implementation: ReadonlySet<number>;
}

export function materialOf(text: string): Material {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => IMPLEMENTATION.test(line));
  if (start === -1) return { lines, implementation: numbersOf(lines, (line) => /[A-Za-z]/.test(line)) };
  const length = lines.slice(start).findIndex((line) => line.startsWith(']'));
  const end = length === -1 ? lines.length : start + length;
  return { lines, implementation: numbersOf(lines, (_, index) => index > start && index < end) };
}

/** The material with the number of each line, as the reviewer reads it. */
export function numbered({ lines }: Material): string {
  return lines.map((line, index) => `${index + 1}| ${line}`).join('\n');
}

/** Why the citations of an answer prove nothing; undefined when each names a line, and at least one a line of the implementation. */
export function citationProblem(value: Json | undefined, { lines, implementation }: Material): string | undefined {
  if (!Array.isArray(value) || value.length === 0) return 'the answer cites no line of the data';
  if (value.length > MAX_CITATIONS) return `the answer cites more than ${MAX_CITATIONS} lines`;
  const isLine = (line: Json): boolean =>
    typeof line === 'number' && Number.isInteger(line) && line >= 1 && line <= lines.length;
  if (!value.every(isLine)) return 'the answer cites a line that the data does not have';
  if (value.some((line) => implementation.has(Number(line)))) return undefined;
  return 'the answer cites no line of the implementation';
}

/** The cited lines of an answer whose citations have no problem, each once, in order. */
export function citedLines(value: Json | undefined): number[] {
  const lines = Array.isArray(value) ? value.filter((line) => typeof line === 'number') : [];
  return [...new Set(lines)].sort((a, b) => a - b);
}

function numbersOf(lines: readonly string[], selects: (line: string, index: number) => boolean): Set<number> {
  return new Set(lines.flatMap((line, index) => (selects(line, index) ? [index + 1] : [])));
}
