import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PatternRules } from '../../findings.ts';
import { contextIsReadable } from './context.ts';

/** Patterns without stars; one with an empty segment is none. */
const RULES: PatternRules = {
  patternError: (text) => (text.includes('..') ? 'a segment is empty' : undefined),
  covers(ceiling, text) {
    assert.ok(
      [...ceiling, text].every((pattern) => !pattern.includes('..')),
      'only patterns are compared',
    );
    return ceiling.includes(text);
  },
};

function refused(memory: string[], read: string[]): string[] {
  const spec = { prompt: { context: { memory } }, grants: { memory: { read } } };
  return contextIsReadable(spec, RULES).map(({ message }) => message);
}

describe('the memory keys of a context', () => {
  it('a key needs a grant, and what is no pattern neither grants nor fails', () => {
    assert.deepEqual(refused(['self.a', 'self.b'], ['self.a', 'x..y']), [
      'spec.prompt.context.memory[1] "self.b" has no effect: grants.memory.read does not allow the key',
    ]);
    assert.deepEqual(refused(['self..a'], []), [], 'the schema refuses it');
    assert.deepEqual(contextIsReadable({ prompt: { context: { files: ['a'] } } }, RULES), []);
  });
});
