import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { modulesOf } from './source/source-strings.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/development/controller-runtime.md'), 'utf8');
/** What the page describes, and the registry that its example creates. */
const MODULES = [...modulesOf('kube'), ...modulesOf('operator'), 'telemetry/prometheus.ts'];
const WORDS = new Set(
  MODULES.flatMap((module) => readFileSync(join(ROOT, 'src', module), 'utf8').match(/[A-Za-z_]\w*/g) ?? []),
);

/** The example declares `ownersOf`; Node and JavaScript have the others. */
const NOT_OURS = new Set(['ownersOf', 'structuredClone', 'Retry', 'After', 'healthz', 'readyz']);

function unknownWords(texts: readonly string[]): string[] {
  const words = texts.flatMap((text) => text.match(/[A-Za-z_]\w*/g) ?? []);
  return [...new Set(words)].filter((word) => !WORDS.has(word) && !NOT_OURS.has(word));
}

describe('docs/development/controller-runtime.md', () => {
  const [, example = ''] = /```ts\n([\s\S]+?)```/.exec(PAGE) ?? [];
  const prose = PAGE.replace(/```[\s\S]+?```/g, '');

  it('every identifier of its text is in the controller runtime or the operator', () => {
    const marked = [...prose.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    const paths = marked.filter((code) => code.includes('/') || code.endsWith('.ts'));
    const modules = MODULES.map((module) => `src/${module}`);
    assert.deepEqual(
      paths.filter((path) => /^src|\.ts$/.test(path) && !modules.some((module) => module.includes(path))),
      [],
    );
    assert.ok(marked.length > 20, 'the page marks identifiers');
    assert.deepEqual(unknownWords(marked.filter((code) => !paths.includes(code))), []);
  });

  it('every function, class and option of its example is in the controller runtime or the operator', () => {
    const called = [...example.matchAll(/(?:new )?\.?([A-Za-z_]\w*)(?:<\w+>)?\(/g)].map(([, name = '']) => name);
    const options = [...example.matchAll(/([a-z]\w*): /g)].map(([, name = '']) => name);
    assert.ok(called.length > 15, 'the example calls functions');
    assert.deepEqual(unknownWords([...called, ...options]), []);
  });
});
