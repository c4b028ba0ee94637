import { setTimeout as sleep } from 'node:timers/promises';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { VerificationWork } from '../../../src/gateway-api/pod-api.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Json } from '../../../src/lib/json.ts';
import { runVerification } from '../../../src/pod/verifier/verification.ts';
import type { Sandbox } from '../../../src/sandbox/port.ts';
import { createSupervisor } from '../../../src/sandbox/supervisor.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';
import { GatewayFixture } from '../../../test/support/gateway/gateway-fixture.ts';
import { openParkedCalls, parsed } from '../../../test/support/gateway/parked-call-world.ts';
import {
  ALICE,
  approval,
  ApprovalsFixture,
  digestOfArtifact,
  promotionOf,
  sharedNameOf,
} from '../../../test/support/operator/approvals-fixture.ts';
import { doubled, PromotionFixture } from '../../../test/support/promotion/promotion-fixture.ts';
import { poll } from '../../../test/support/poll.ts';
import { quantile } from '../../baseline/baseline.ts';
import { atMost, milliseconds, type Row } from '../row.ts';

const TESTS = 10;
const INTERVAL_MS = 5;
const TIMEOUT_MS = 60_000;

/** The steps of a tool's life after its uses, `samples` times each, one after the other. */
export async function benchToolLife(samples: number): Promise<Row[]> {
  return [...(await benchPromotions(samples)), ...(await benchApprovals(samples)), ...(await benchParked(samples))];
}

function row(what: string, times: readonly number[], share: 0.5 | 0.99, limit: number): Row {
  const [p50, p99] = [0.5, 0.99].map((each) => milliseconds(quantile(times, each)));
  const note = `p50 ${p50}, p99 ${p99}; ${times.length} one after the other`;
  return atMost('goal', `${what}, p${share * 100}`, quantile(times, share), limit, milliseconds, { note });
}

/** A verifier that answers at once shows the time of operator, API server and NATS; one with a sandbox the whole verification. */
async function benchPromotions(samples: number): Promise<Row[]> {
  await using fixture = await PromotionFixture.open();
  const own = await promotions(fixture, samples, async (work) => doubled(work, {} as never));
  await using supervisor = await createSupervisor({ clock: systemClock, warm: 1 });
  const whole = await promotions(fixture, samples, (work) => verified(work, supervisor));
  const atWork = [...own, ...whole].map((times) => times.atWork);
  const visible = own.map((times) => times.visible);
  return [
    row('promotion request → verifier at work', atWork, 0.5, 1_000),
    row('promotion request → tool in service, with a verifier and reviewers that answer at once', visible, 0.99, 500),
    row(
      `promotion request → tool in service, a tool with ${TESTS} tests and 5 inputs in a real sandbox`,
      whole.map((times) => times.visible),
      0.5,
      5_000,
    ),
  ];
}

async function verified(work: VerificationWork, sandbox: Sandbox): Promise<Json> {
  const op = {
    signal: AbortSignal.timeout(TIMEOUT_MS),
    deadline: systemClock.monotonic() + TIMEOUT_MS,
    key: work.attempt,
  };
  return (await runVerification(work, { sandbox, clock: systemClock }, op)) as unknown as Json;
}

async function promotions(
  fixture: PromotionFixture,
  samples: number,
  verify: (work: VerificationWork) => Promise<Json | undefined>,
): Promise<{ atWork: number; visible: number }[]> {
  const tests = Array.from({ length: TESTS }, (_, index) => ({
    input: `{"value":${index}}`,
    expectedOutput: `{"result":${index * 2}}`,
  }));
  const times: { atWork: number; visible: number }[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const agent = await fixture.prepare(undefined, undefined, { artifact: { tests } });
    let atWork = 0;
    const start = performance.now();
    fixture.behaviour = (work) => {
      atWork = performance.now() - start;
      return verify(work);
    };
    await fixture.request(agent);
    const isActive = async () => (await fixture.objectsOf(agent.name))[0]?.status?.active;
    await poll('a tool in service', isActive, { intervalMs: INTERVAL_MS, timeoutMs: TIMEOUT_MS });
    times.push({ atWork, visible: performance.now() - start });
    await fixture.settled(agent);
  }
  return times;
}

async function benchApprovals(samples: number): Promise<Row[]> {
  await using fixture = await ApprovalsFixture.open();
  const [approved, revoked]: [number[], number[]] = [[], []];
  for (let sample = 0; sample <= samples; sample += 1) {
    const artifact = anArtifact(`life_${sample}`);
    const name = sharedNameOf(artifact);
    await fixture.agentTool(artifact);
    const request = await poll(`a request for ${artifact.name}`, async () => {
      const requests = await fixture.list<ApprovalRequest>('approvalRequests');
      return requests.find(({ spec }) => spec.subject.promotion?.digest === digestOfArtifact(artifact));
    });
    const { nonce } = request.spec;
    const until = (isActive: boolean): Promise<unknown> =>
      poll(
        `${name} ${isActive ? 'in' : 'out of'} service`,
        async () => (await fixture.read<EmergentTool>('emergenttools', name))?.status?.active === isActive,
        { intervalMs: INTERVAL_MS, timeoutMs: TIMEOUT_MS },
      );
    let start = performance.now();
    // An Approval may be too young right after the installation, so the first one is not measured.
    if (sample === 0) await fixture.approve(ALICE, promotionOf(artifact), nonce, 'first');
    else await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), { nonce, name: `yes-${sample}` }));
    await until(true);
    if (sample > 0) approved.push(performance.now() - start);
    await sleep(100);
    start = performance.now();
    const revocation = { nonce, name: `no-${sample}`, decision: 'Revoke', reason: 'measured' };
    await fixture.mustCreate(ALICE, approval(ALICE, promotionOf(artifact), revocation));
    await until(false);
    if (sample > 0) revoked.push(performance.now() - start);
  }
  return [
    row('Approval created → Shared tool in service', approved, 0.5, 2_000),
    row('revocation created → Shared tool out of service', revoked, 0.5, 2_000),
  ];
}

async function benchParked(samples: number): Promise<Row[]> {
  await using fixture = await GatewayFixture.open(['team-a']);
  await using world = await openParkedCalls(fixture, 'measured');
  const times: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    await world.send('read the note', `s-${sample}`);
    const delivery = await world.next();
    const { request } = await world.approval(delivery, { callKey: `s-${sample}/0/1/call-0` });
    const { deliveryToken } = delivery;
    parsed(await world.post('/v1/deliveries', { deliveryToken, action: 'park', requests: [request] }), 204);
    const asked = await world.request(request);
    const resumed = world.next();
    const start = performance.now();
    await world.approve(asked);
    const { deliveryToken: again } = await resumed;
    times.push(performance.now() - start);
    const ended = { deliveryToken: again, action: 'ack', reply: 'done', finishReason: 'complete' };
    parsed(await world.post('/v1/deliveries', ended), 204);
  }
  return [row('Approval of a call created → the waiting pod has the parked message', times, 0.5, 1_000)];
}
