/** A place in a generated file: line and column, both from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const DIGITS = Uint8Array.from({ length: 128 }, (_, code) => Math.max(0, ALPHABET.indexOf(String.fromCharCode(code))));
const [LINE_END, SEGMENT_END] = [';'.charCodeAt(0), ','.charCodeAt(0)];

/** The fields of the latest segment. All but the column of the generated line are sums over the whole map. */
interface Segment {
  column: number;
  source: number;
  line: number;
  sourceColumn: number;
  hasSource: boolean;
}

/**
 * Finds the source of each position as `file:line:column`, or undefined where the map has none. It reads the mappings once, front to back,
 * and builds no table: a decoded map of a bundle takes some hundred megabytes. Throws for a text that is not a source map (version 3).
 */
export function originalPositions(text: string, positions: readonly Position[]): (string | undefined)[] {
  const { mappings, sources } = JSON.parse(text) as { mappings: string; sources: string[] };
  const found: (string | undefined)[] = positions.map(() => undefined);
  const segment: Segment = { column: 0, source: 0, line: 0, sourceColumn: 0, hasSource: false };
  let [line, index] = [1, 0];
  const last = Math.max(0, ...positions.map((position) => position.line));
  while (index < mappings.length && line <= last) {
    const code = mappings.charCodeAt(index);
    if (code === LINE_END) {
      line += 1;
      segment.column = 0;
    }
    if (code === LINE_END || code === SEGMENT_END) {
      index += 1;
      continue;
    }
    index = readSegment(mappings, index, segment);
    for (const [which, position] of positions.entries()) {
      if (position.line === line && position.column > segment.column) found[which] = locationIn(sources, segment);
    }
  }
  return found;
}

function locationIn(
  sources: readonly string[],
  { hasSource, source, line, sourceColumn }: Segment,
): string | undefined {
  return hasSource ? `${sources[source]}:${line + 1}:${sourceColumn + 1}` : undefined;
}

/** Adds the fields of the segment at `start` to `segment` and returns the index after it. */
function readSegment(mappings: string, start: number, segment: Segment): number {
  let [index, field, value, shift] = [start, 0, 0, 0];
  for (; index < mappings.length; index += 1) {
    const code = mappings.charCodeAt(index);
    if (code === LINE_END || code === SEGMENT_END) break;
    const digit = DIGITS[code] ?? 0;
    value += (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    const delta = (value & 1) === 1 ? -(value >>> 1) : value >>> 1;
    if (field === 0) segment.column += delta;
    else if (field === 1) segment.source += delta;
    else if (field === 2) segment.line += delta;
    else if (field === 3) segment.sourceColumn += delta;
    [field, value, shift] = [field + 1, 0, 0];
  }
  segment.hasSource = field >= 4;
  return index;
}
