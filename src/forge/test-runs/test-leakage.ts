import type { Json } from '../../lib/json.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';

/** Shorter texts occur in honest code by chance. */
const MIN_LITERAL = 8;
/** Literals searched per test; each search scans the whole source. */
const MAX_LITERALS = 20;

/**
 * Warns when a tool may recognise its tests instead of solving its task: the source contains texts of test inputs or of
 * expected outputs. This is no proof, so it is a warning for the judge and the reviewers, not a refusal. A run on inputs
 * that the author never saw decides.
 */
export function testLeakWarnings(open: ParsedArtifact): string[] {
  const { source } = open.artifact.implementation;
  if (source === undefined) return [];
  const leaking = open.tests.filter((test) => {
    const texts = [...textsOf(test.input), ...textsOf(test.expectedOutput ?? null)];
    return texts.slice(0, MAX_LITERALS).some((text) => source.includes(text));
  });
  if (leaking.length === 0) return [];
  return [
    `the source contains texts of ${leaking.length} of ${open.tests.length} test cases; it may recognise its tests`,
  ];
}

function textsOf(value: Json): string[] {
  const texts: string[] = [];
  const stack: Json[] = [value];
  for (let item = stack.pop(); item !== undefined; item = stack.pop()) {
    if (typeof item === 'string' && item.length >= MIN_LITERAL) texts.push(item, JSON.stringify(item).slice(1, -1));
    else if (typeof item === 'object' && item !== null) {
      stack.push(...(Array.isArray(item) ? item : Object.values(item)));
    }
  }
  return texts;
}
