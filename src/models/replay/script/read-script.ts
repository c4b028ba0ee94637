import { LineCounter, parseDocument, type Document } from 'yaml';
import { messageOf, TemperError } from '../../../lib/errors.ts';
import type { Json } from '../../../lib/json.ts';
import { scriptShape } from './check-script.ts';
import type { ReplayScript } from './script.ts';

/** Reads a replay script. Throws TEMPER_REPLAY_SCRIPT_INVALID with every problem as `file:line: path rule`. */
export function readReplayScript(source: string, file: string): ReplayScript {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  const syntax = document.errors.map((error) => {
    const problem =
      error.code === 'MULTIPLE_DOCS' ? 'a replay script is one YAML document; remove the others' : error.message;
    return `${file}:${lines.linePos(error.pos[0]).line}: ${problem}`;
  });
  if (syntax.length > 0) throw invalid(syntax);
  let value: Json;
  try {
    value = document.toJS() as Json;
  } catch (error) {
    // YAML aliases that would expand to an excessive size.
    throw invalid([`${file}: ${messageOf(error)}`]);
  }
  const problems = scriptShape(value, []).map(
    ({ path, rule }) => `${file}:${lineOf(document, lines, path)}: ${path.join('.') || 'the script'} ${rule}`,
  );
  if (problems.length > 0) throw invalid(problems);
  return value as unknown as ReplayScript;
}

function invalid(problems: string[]): TemperError {
  return new TemperError('TEMPER_REPLAY_SCRIPT_INVALID', problems.join('\n'), { details: { problems } });
}

/** The line of the nearest existing node: a missing member is reported at its parent. */
function lineOf(document: Document, lines: LineCounter, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
    if (Array.isArray(range) && typeof range[0] === 'number') return lines.linePos(range[0]).line;
  }
  return 1;
}
