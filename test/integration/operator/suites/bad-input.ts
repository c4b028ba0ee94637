import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../../src/api/v1alpha1/emergenttool.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { buildTrustPolicy } from '../../../support/builders.ts';
import {
  ALICE,
  approval,
  type ApprovalsFixture,
  digestOfArtifact,
  GITOPS,
  NAMESPACE,
  OPERATOR,
  promotionOf,
  sharedNameOf,
  sharedObject,
} from '../../../support/operator/approvals-fixture.ts';
import { poll } from '../../../support/poll.ts';

const NONCE = 'b4dInputZm2Zc8vN1xRt';

/** The object that shows the mistake. */
interface Shown {
  readonly plural: string;
  readonly name: string;
}

interface Mistake {
  readonly what: string;
  readonly make: (fixture: ApprovalsFixture) => Promise<Shown>;
  readonly condition: string;
  readonly reason: string;
  /** What the condition says to do, or names. */
  readonly message: RegExp;
  /** A tool that must not be in service afterwards. */
  readonly tool?: string;
  /** Ends the cause; the object then gets this reason without another step. */
  readonly mend?: (fixture: ApprovalsFixture) => Promise<unknown>;
  readonly mendedReason?: string;
}

async function approve(fixture: ApprovalsFixture, artifactName: string, nonce: string): Promise<Shown> {
  const name = `bad-${artifactName.replaceAll('_', '-')}`;
  await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(anArtifact(artifactName)), { nonce, name }));
  return { plural: 'approvals', name };
}

const MISTAKES: readonly Mistake[] = [
  {
    what: 'an Approval of a tool that does not exist',
    make: (fixture) => approve(fixture, 'never_made', NONCE),
    condition: 'Effective',
    reason: 'SubjectNotFound',
    message: /no request and no tool of the namespace has its digest.*it applies as soon as one exists/,
    tool: 'never_made',
    mend: (fixture) => fixture.mustCreate(GITOPS, sharedObject(anArtifact('never_made'), NONCE)),
    mendedReason: 'Applied',
  },
  {
    what: 'an Approval with the nonce of another request',
    make: async (fixture) => {
      await fixture.mustCreate(GITOPS, sharedObject(anArtifact('other_nonce'), NONCE));
      return approve(fixture, 'other_nonce', `${NONCE}2`);
    },
    condition: 'Effective',
    reason: 'NonceMismatch',
    message: new RegExp(`the current request has the nonce ${NONCE}; approve that one`),
    tool: 'other_nonce',
  },
  {
    what: 'a second request for one tool',
    make: async (fixture) => {
      const artifact = anArtifact('asked_twice');
      await fixture.agentTool(artifact);
      const digest = digestOfArtifact(artifact);
      const first = await poll('the first request', async () => {
        const requests = await fixture.list<ApprovalRequest>('approvalRequests');
        return requests.find(({ spec }) => spec.subject.promotion?.digest === digest);
      });
      // Objects of one second are ordered by their names.
      const name = `${first.metadata.name}-z`;
      const { apiVersion, kind, spec } = first;
      const metadata = { name, namespace: NAMESPACE };
      await fixture.mustCreate(OPERATOR, { apiVersion, kind, metadata, spec: { ...spec, nonce: `${NONCE}3` } });
      return { plural: 'approvalrequests', name };
    },
    condition: 'Decided',
    reason: 'Expired',
    message: /ApprovalRequest ".*" asks the same; decide that one/,
    tool: 'asked_twice',
  },
  {
    what: 'a policy without a judge',
    make: async ({ apiServer }) => {
      await apiServer.apply(buildTrustPolicy(NAMESPACE, { level: { initial: 'standard' } }, 'judgeless'));
      return { plural: 'trustpolicies', name: 'judgeless' };
    },
    condition: 'Ready',
    reason: 'JudgeMissing',
    message: /no judge is configured, so no forged tool is accepted: set spec\.models\.judge/,
    mend: ({ apiServer }) =>
      apiServer.apply(
        buildTrustPolicy(NAMESPACE, { level: { initial: 'standard' }, models: { judge: 'replay/judge' } }, 'judgeless'),
      ),
    mendedReason: 'Accepted',
  },
];

/** Each mistake has a condition and an Event, and nothing of it is half done. */
export function badInputTests(open: () => ApprovalsFixture): void {
  for (const { what, make, condition, reason, message, tool, mend, mendedReason } of MISTAKES) {
    it(`${what} is named by a condition and an Event, puts no tool into service${mend === undefined ? '' : ', and ends with its cause'}`, async () => {
      const fixture = open();
      const { plural, name } = await make(fixture);
      const { status } = await fixture.reason(plural, name, condition, reason);
      assert.match(status?.conditions?.find(({ type }) => type === condition)?.message ?? '', message);
      await poll(`an Event ${reason} of ${name}`, async () => {
        const events = await fixture.list<{ involvedObject: { name: string }; reason: string }>('events');
        return events.some((event) => event.involvedObject.name === name && event.reason === reason);
      });
      if (tool !== undefined) {
        const shared = await fixture.read<EmergentTool>('emergenttools', sharedNameOf(anArtifact(tool)));
        assert.notEqual(shared?.status?.active, true);
      }
      if (mend === undefined || mendedReason === undefined) return;
      await mend(fixture);
      await fixture.reason(plural, name, condition, mendedReason);
    });
  }
}
