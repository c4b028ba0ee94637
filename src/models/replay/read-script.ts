import { LineCounter, parseDocument, type Document } from 'yaml';
import { messageOf, TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ReplayScript } from './script.ts';
import { checkScript } from './check-script.ts';

/** Reads a replay script. Throws TEMPER_REPLAY_SCRIPT_INVALID with every broken rule and its line. */
export function readReplayScript(source: string, file: string): ReplayScript {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  const syntax = document.errors.map((error) => `${file}:${lines.linePos(error.pos[0]).line}: ${error.message}`);
  if (syntax.length > 0) throw invalid(syntax);
  const value = plainValue(document, file);
  const problems = checkScript(value).map(
    (problem) =>
      `${file}:${lineOf(document, lines, problem.path)}: ${problem.path.join('.') || 'script'} ${problem.rule}`,
  );
  if (problems.length > 0) throw invalid(problems);
  return value as unknown as ReplayScript;
}

function plainValue(document: Document, file: string): Json {
  try {
    return document.toJS() as Json;
  } catch (error) {
    throw invalid([`${file}: ${messageOf(error)}`]);
  }
}

function invalid(problems: string[]): TemperError {
  return new TemperError('TEMPER_REPLAY_SCRIPT_INVALID', problems.join('\n'), { details: { problems } });
}

/** The line of the nearest thing that exists: a missing member is shown where it should stand. */
function lineOf(document: Document, lines: LineCounter, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
    if (Array.isArray(range) && typeof range[0] === 'number') return lines.linePos(range[0]).line;
  }
  return 1;
}
