import type { Json } from '../lib/json.ts';
import type { OpenArtifact } from './open-artifact.ts';

/** Shorter texts stand in honest code by chance. */
const TELLING = 8;
/** Looked for per test; each costs a walk through the source. */
const TEXTS = 20;

/**
 * Signs that a tool may know its tests instead of its task: the source holds texts of test inputs or whole expected outputs.
 * No proof, so no refusal: a warning for the judge and for reviewers. What decides is a run on inputs the author never saw.
 */
export function giveaways(open: OpenArtifact): string[] {
  const { source } = open.artifact.implementation;
  if (source === undefined) return [];
  const held = open.tests.filter((test) => {
    const texts = [...textsOf(test.input), ...textsOf(test.expectedOutput ?? null)];
    return texts.slice(0, TEXTS).some((text) => source.includes(text));
  });
  if (held.length === 0) return [];
  return [`the source holds texts of ${held.length} of ${open.tests.length} test cases; it may recognise its tests`];
}

function textsOf(value: Json): string[] {
  const texts: string[] = [];
  const left: Json[] = [value];
  for (let item = left.pop(); item !== undefined; item = left.pop()) {
    if (typeof item === 'string' && item.length >= TELLING) texts.push(item, JSON.stringify(item).slice(1, -1));
    else if (typeof item === 'object' && item !== null) {
      left.push(...(Array.isArray(item) ? item : Object.values(item)));
    }
  }
  return texts;
}
