import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Decision, preparsePolicySet, statefulIsAuthorized } from '@cedar-policy/cedar-wasm/nodejs';
import * as fc from 'fast-check';
import { createDecider } from '../decider.ts';
import type { Effect, PolicyRequest, PolicySnapshot } from '../types.ts';
import { cedarPolicies } from './policies.testing.ts';
import { requests, snapshots } from './questions.testing.ts';
import { cedarQuestion } from './requests.testing.ts';

/** `make chaos` compares 100,000. */
const REQUESTS = Number(process.env['CEDAR_REQUESTS'] ?? 1_000);
const PER_POLICY = 25;
const SEED = 20_261_124;

/** What Cedar decides under the policies of this snapshot. */
function cedarOf(snapshot: PolicySnapshot): (request: PolicyRequest) => Effect {
  for (const [kind, policies] of Object.entries(cedarPolicies(snapshot.agent.spec, snapshot.policy.spec))) {
    const parsed = preparsePolicySet(kind, { staticPolicies: policies });
    if (parsed.type === 'failure') throw new Error(`${JSON.stringify(parsed.errors.slice(0, 2))}\n${policies}`);
  }
  const decide = (request: PolicyRequest, unattended: boolean): Decision => {
    const question = cedarQuestion(request, snapshot, unattended);
    const answer = statefulIsAuthorized({ ...question, preparsedPolicySetId: request.kind });
    if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
    const { decision, diagnostics } = answer.response;
    assert.deepEqual(diagnostics.errors, []);
    return decision;
  };
  return (request) => {
    if (decide(request, true) === 'allow') return 'Allow';
    return decide(request, false) === 'allow' ? 'Escalate' : 'Deny';
  };
}

describe('decisions beside Cedar', () => {
  it('the decider and Cedar decide equally about every request that both languages express', () => {
    const counts: Record<string, number> = {};
    fc.assert(
      fc.property(
        snapshots,
        fc.array(requests, { minLength: PER_POLICY, maxLength: PER_POLICY }),
        (snapshot, asked) => {
          const decider = createDecider(snapshot);
          const cedar = cedarOf(snapshot);
          for (const request of asked) {
            const { effect, rule } = decider.decide(request);
            assert.notEqual(rule, 'policy.invalid');
            assert.notEqual(rule, 'internal');
            assert.equal(effect, cedar(request), `${rule}: ${JSON.stringify(request)}`);
            const counted = `${request.kind === 'Tool' ? 'Tool' : 'other'} ${effect}`;
            counts[counted] = (counts[counted] ?? 0) + 1;
          }
        },
      ),
      // To shrink a failure takes minutes.
      { numRuns: REQUESTS / PER_POLICY, seed: SEED, endOnFailure: true },
    );
    const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
    assert.equal(total, REQUESTS);
    for (const kind of ['Tool Allow', 'Tool Escalate', 'Tool Deny', 'other Allow', 'other Deny']) {
      assert.ok((counts[kind] ?? 0) > REQUESTS / 100, `too few of "${kind}": ${JSON.stringify(counts)}`);
    }
  });
});
