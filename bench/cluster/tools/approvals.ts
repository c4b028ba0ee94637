import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import {
  ALICE,
  approval,
  ApprovalsFixture,
  promotionOf,
  sharedNameOf,
} from '../../../test/support/operator/approvals-fixture.ts';
import type { Row } from '../row.ts';
import { DecisionObjects } from './decision-objects.ts';
import { SecondAgent } from './second-agent.ts';
import { stepRow, writesRow } from './step-row.ts';

/** The Shared object with two statuses, those of its source and of the request, one or two of the Approval; three of a verifier pod. */
const MAX_APPROVAL_WRITES = 12;
/** The statuses of both objects and of both Approvals. */
const MAX_REVOCATION_WRITES = 4;

/** From the decision of a user to the tools of another agent's pod, in milliseconds. */
interface Cycle {
  readonly served: number;
  readonly callable: number;
  readonly withdrawn: number;
  readonly refused: number;
  readonly approving: readonly KubeRequest[];
  readonly revoking: readonly KubeRequest[];
}

interface Setup {
  readonly fixture: ApprovalsFixture;
  readonly objects: DecisionObjects;
  readonly agent: SecondAgent;
}

/** A tool is approved by a user, called by another agent, and revoked. */
export async function benchApprovals(samples: number): Promise<Row[]> {
  await using fixture = await ApprovalsFixture.open();
  await using agent = await SecondAgent.open(fixture, 'reviewer');
  await using objects = new DecisionObjects(fixture.transport);
  const cycles: Cycle[] = [];
  // An Approval may be too young right after the installation, so the first one is not measured.
  for (let sample = 0; sample <= samples; sample += 1) {
    const cycle = await decide({ fixture, objects, agent }, anArtifact(`life_${sample}`), sample === 0);
    if (sample > 0) cycles.push(cycle);
  }
  const times = (of: 'served' | 'callable' | 'withdrawn' | 'refused'): number[] => cycles.map((cycle) => cycle[of]);
  const sent = (of: 'approving' | 'revoking'): KubeRequest[] => cycles.flatMap((cycle) => cycle[of]);
  return [
    stepRow('Approval created → Shared tool in service', times('served'), 0.5, 2_000),
    stepRow('Approval created → callable by another agent', times('callable'), 0.5, 2_000),
    stepRow('revocation created → Shared tool out of service', times('withdrawn'), 0.5, 2_000),
    stepRow('revocation created → refused to another agent', times('refused'), 0.5, 2_000),
    writesRow('writes of the operator per approval', sent('approving'), samples, MAX_APPROVAL_WRITES),
    writesRow('writes of the operator per revocation', sent('revoking'), samples, MAX_REVOCATION_WRITES),
  ];
}

async function decide({ fixture, objects, agent }: Setup, artifact: ToolArtifact, isFirst: boolean): Promise<Cycle> {
  const promotion = promotionOf(artifact);
  const [name, { metadata: own }] = [sharedNameOf(artifact), await fixture.agentTool(artifact)];
  const request = await objects.request(promotion.digest);
  const { nonce } = request.spec;
  const [yes, no] = [`yes-${request.metadata.name}`, `no-${request.metadata.name}`];
  await Promise.all([objects.hasReason('tools', own.name, 'Shared', 'AwaitingApproval'), objects.warmVerifier()]);
  fixture.sent.length = 0;
  let since = milliseconds();
  if (isFirst) await fixture.approve(ALICE, promotion, nonce, 'first');
  else await fixture.mustCreate(ALICE, approval(ALICE, promotion, { nonce, name: yes }));
  const [served, callable] = await Promise.all([
    objects.hasReason('tools', name, 'Active', 'Approved').then(since),
    agent.until(promotion.digest, true).then(since),
    objects.hasReason('tools', own.name, 'Active', 'Promoted'),
    objects.hasReason('requests', request.metadata.name, 'Decided', 'Approved'),
    isFirst ? undefined : objects.hasReason('approvals', yes, 'Effective', 'Applied'),
  ]);
  await objects.warmVerifier();
  const approving = fixture.sent.splice(0);
  since = milliseconds();
  const revocation = { nonce, name: no, decision: 'Revoke', reason: 'measured' };
  await fixture.mustCreate(ALICE, approval(ALICE, promotion, revocation));
  const [withdrawn, refused] = await Promise.all([
    objects.hasReason('tools', name, 'Active', 'Revoked').then(since),
    agent.until(promotion.digest, false).then(since),
    objects.hasReason('tools', own.name, 'Active', 'Revoked'),
    objects.hasReason('approvals', no, 'Effective', 'Applied'),
    isFirst ? undefined : objects.hasReason('approvals', yes, 'Effective', 'Withdrawn'),
  ]);
  return { served, callable, withdrawn, refused, approving, revoking: fixture.sent.splice(0) };
}

/** Starts a stopwatch; call the result to read it. */
function milliseconds(): () => number {
  const start = performance.now();
  return () => performance.now() - start;
}
