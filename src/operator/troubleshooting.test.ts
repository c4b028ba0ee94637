import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { CONDITIONS } from '../api/v1alpha1/reasons.ts';

const PAGE = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');

/** `condition reason` of every row below the heading of the kind. */
function rowsOf(kind: string): string[] {
  const section = PAGE.split(/^## /m).find((part) => part.startsWith(`${kind}\n`)) ?? '';
  return [...section.matchAll(/^\| (\w+) \| `(\w+)` \| \S.+ \| \S.* \|$/gm)].map(
    ([, type, reason]) => `${type} ${reason}`,
  );
}

describe('docs/troubleshooting.md', () => {
  for (const kind of ['Agent', 'TrustPolicy', 'Capability'] as const) {
    it(`the page has exactly one row per reason of ${kind}`, () => {
      const known = CONDITIONS[kind].flatMap(({ type, reasons }) =>
        Object.keys(reasons).map((reason) => `${type} ${reason}`),
      );
      assert.deepEqual(rowsOf(kind).sort(), known.sort());
    });
  }
});
