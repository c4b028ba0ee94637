import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { CONDITIONS } from '../../src/api/v1alpha1/reasons.ts';
import { modulesOf, reasonsIn, stringsOf } from './source/source-strings.ts';

type Kind = keyof typeof CONDITIONS;

/** The modules that set the conditions of a kind, or act on a condition that a user sets. */
const WRITERS: Readonly<Record<Kind, readonly string[]>> = {
  Agent: [
    'api/checks/warnings.ts',
    'api/generate/definitions.ts',
    'operator/conditions.ts',
    'operator/admission-policies',
    'operator/agent',
    'operator/nats',
    'operator/schedules',
    'operator/spec-conditions.ts',
    'operator/trust',
    'policy/trust',
  ],
  TrustPolicy: [
    'api/generate/definitions.ts',
    'operator/conditions.ts',
    'operator/policy',
    'operator/spec-conditions.ts',
  ],
  EmergentTool: [
    'gateway/cluster/demotions.ts',
    'operator/promotion/tool-object.ts',
    'operator/reruns',
    'operator/sharing',
    'operator/tool',
    'tempering/registry/serialization.ts',
  ],
  Capability: ['api/generate/definitions.ts', 'capabilities', 'operator/capabilities', 'operator/spec-conditions.ts'],
  ApprovalRequest: ['operator/approval'],
  Approval: ['operator/approval'],
};
const KINDS = Object.keys(WRITERS) as Kind[];

/** Reasons of Events without a condition. */
function eventReasons(): string[] {
  const page = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');
  const section = page.split(/^## /m).find((part) => part.startsWith('Events without a condition\n')) ?? '';
  return [...section.matchAll(/^\| \w+ \| `(\w+)` \|/gm)].map(([, reason = '']) => reason);
}

describe('the reasons of conditions', () => {
  for (const kind of KINDS) {
    it(`every documented reason of ${kind} is in the code that sets the conditions of the kind`, () => {
      const strings = new Set(WRITERS[kind].flatMap(modulesOf).flatMap((module) => [...stringsOf(module)]));
      const documented = CONDITIONS[kind].flatMap(({ type, reasons }) => [type, ...Object.keys(reasons)]);
      assert.deepEqual(
        documented.filter((word) => !strings.has(word)),
        [],
      );
    });
  }
});

describe('the reasons that the operator sets', () => {
  it('every reason is documented, for a condition or for an Event', () => {
    const documented = new Set([
      ...KINDS.flatMap((kind) => CONDITIONS[kind].flatMap(({ reasons }) => Object.keys(reasons))),
      ...eventReasons(),
    ]);
    // The metrics have own values of the label `reason`, for agents without a documented reason.
    const modules = modulesOf('operator').filter((module) => module !== 'operator/metrics.ts');
    const set = modules.flatMap((module) => [...reasonsIn(module)].map((reason) => ({ module, reason })));
    assert.ok(set.length > 10, 'the parser finds the reasons');
    assert.deepEqual(
      set.filter(({ reason }) => !documented.has(reason)),
      [],
    );
  });
});
