import { GatewayFixture } from '../../../test/support/gateway/gateway-fixture.ts';
import { openParkedCalls, parsed } from '../../../test/support/gateway/parked-call-setup.ts';
import type { Row } from '../row.ts';
import { stepRow } from './step-row.ts';

/** The decision of a user about a call, and the message of the parked turn in the pod that waits. */
export async function benchParkedCalls(samples: number): Promise<Row[]> {
  await using fixture = await GatewayFixture.open(['team-a']);
  await using setup = await openParkedCalls(fixture, 'measured');
  const times: number[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    await setup.send('read the note', `s-${sample}`);
    const delivery = await setup.next();
    const { request } = await setup.approval(delivery, { callKey: `s-${sample}/0/1/call-0` });
    const { deliveryToken } = delivery;
    parsed(await setup.post('/v1/deliveries', { deliveryToken, action: 'park', requests: [request] }), 204);
    const asked = await setup.request(request);
    const resumed = setup.next();
    const start = performance.now();
    await setup.approve(asked);
    const { deliveryToken: again } = await resumed;
    times.push(performance.now() - start);
    const ended = { deliveryToken: again, action: 'ack', reply: 'done', finishReason: 'complete' };
    parsed(await setup.post('/v1/deliveries', ended), 204);
  }
  return [stepRow('Approval of a call created → the waiting pod has the parked message', times, 0.5, 1_000)];
}
