import type { VerificationWork } from '../../../src/gateway-api/pod-api.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createSupervisor } from '../../../src/sandbox/supervisor.ts';
import { doubled, PromotionFixture } from '../../../test/support/promotion/promotion-fixture.ts';
import { type Behaviour, sandboxedOutputs } from '../../../test/support/promotion/simulated-verifier.ts';
import { quantile } from '../../baseline/baseline.ts';
import { milliseconds, plain, type Row } from '../row.ts';
import { stepRow, writesRow } from './step-row.ts';

const TESTS = 10;
/** Claim, next warm pod and end of a pod; the tool with two statuses; the request for tier Shared with its status. */
const MAX_WRITES = 8;

interface Promotion {
  readonly atWork: number;
  readonly visible: number;
  readonly sent: readonly KubeRequest[];
  readonly natsRequests: number;
  /** Processor time of this process, in milliseconds: the operator, and the doubles beside it. */
  readonly processor: number;
}

/** A verifier that answers at once shows the time of operator, API server and NATS; one with a sandbox the whole verification. */
export async function benchPromotions(samples: number): Promise<Row[]> {
  await using fixture = await PromotionFixture.open();
  await using supervisor = await createSupervisor({ clock: systemClock, warm: 1 });
  // The first one compiles code and opens connections.
  await promotions(fixture, 1, doubled);
  const own = await promotions(fixture, samples, doubled);
  const whole = await promotions(fixture, samples, sandboxedOutputs(supervisor));
  const all = [...own, ...whole];
  const sent = all.flatMap((one) => one.sent);
  const toNats = all.reduce((sum, { natsRequests }) => sum + natsRequests, 0) / all.length;
  const visible = (from: readonly Promotion[]): number[] => from.map((one) => one.visible);
  const atWork = all.map((one) => one.atWork);
  return [
    stepRow('promotion request → verifier at work', atWork, 0.5, 1_000),
    stepRow('promotion request → tool in service, verifier and reviewers answer at once', visible(own), 0.99, 500),
    stepRow(
      `promotion request → tool in service, ${TESTS} tests and 5 inputs in a sandbox`,
      visible(whole),
      0.5,
      5_000,
    ),
    writesRow('writes of the operator per promotion', sent, all.length, MAX_WRITES),
    { kind: 'reference', what: 'requests of the operator to NATS per promotion', value: plain(toNats) },
    processorRow(own),
  ];
}

/** Processor time does not depend on what else the machine does. */
function processorRow(own: readonly Promotion[]): Row {
  const times = own.map(({ processor }) => processor);
  const what = 'processor time of operator and doubles per promotion, verifier and reviewers answer at once, p50';
  return { kind: 'reference', what, value: milliseconds(quantile(times, 0.5)) };
}

async function promotions(fixture: PromotionFixture, samples: number, behaviour: Behaviour): Promise<Promotion[]> {
  const tests = Array.from({ length: TESTS }, (_, index) => ({
    input: `{"value":${index}}`,
    expectedOutput: `{"result":${index * 2}}`,
  }));
  const done: Promotion[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const agent = await fixture.prepare(undefined, undefined, { artifact: { tests } });
    await fixture.warmVerifier();
    fixture.sent.length = 0;
    fixture.natsRequests = 0;
    let atWork = 0;
    const start = performance.now();
    const usedBefore = process.cpuUsage();
    fixture.behaviour = (work: VerificationWork, pod) => {
      if (atWork === 0) atWork = performance.now() - start;
      return behaviour(work, pod);
    };
    await fixture.request(agent);
    await fixture.inService(agent.name);
    const visible = performance.now() - start;
    await fixture.settled(agent);
    const { natsRequests } = fixture;
    const { user, system } = process.cpuUsage(usedBefore);
    await fixture.warmVerifier();
    done.push({ atWork, visible, sent: [...fixture.sent], natsRequests, processor: (user + system) / 1_000 });
  }
  return done;
}
