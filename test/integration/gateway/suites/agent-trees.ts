import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import type { UsageBreakdown, UsageReport } from '../../../../src/gateway-api/user-api.ts';
import { openModelModule } from '../../../../src/gateway/model-module.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { type ReplayServer, startReplay } from '../../../../src/models/replay/server.ts';
import { childObject } from '../../../../src/operator/children/child-object.ts';
import type { GatewayReplica, HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { startGatewayProcess } from '../../../support/gateway/gateway-process.ts';
import { AGENTS, deliveryOf, type MessageClient, NEXT, parsed } from '../../../support/gateway/message-client.ts';
import { aModelRequest, streamLines } from '../../../support/gateway/model-gateway-fixture.ts';
import { poll, pollValue } from '../../../support/poll.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
/** Less than a call reserves, so that the quota holds exactly. */
const CALL_TOKENS = 60;
const USAGE = { inputTokens: 40, outputTokens: 20, cachedInputTokens: 0 };
const MODEL = { model: { primary: 'default/default' } };

interface Member {
  name: string;
  uid: string;
  token: string;
  delivery: PodDelivery;
}

type Caller = Pick<GatewayReplica, 'call'>;

/** Trees of agents that spend at the same time. `open` gives the client of two replicas. */
export function agentTreeTests(open: () => MessageClient): void {
  let keys = 0;

  const modelsOf = ({ url }: ReplayServer) => ({
    providers: [{ name: 'replay', type: 'openai-compatible', baseUrl: `${url}/v1` }],
    aliases: { 'default/default': 'replay/m' },
  });

  /** Creates an agent with a pod and a message in work. */
  async function member(name: string, policy: string, gateway: Caller, parent?: Member, spec = {}): Promise<Member> {
    const { fixture, userToken } = open();
    const full = { trustPolicyRef: { name: policy }, prompt: { system: 'x' }, ...MODEL, ...spec };
    if (parent === undefined) await fixture.createAgent('team-a', name, full);
    else {
      const owner = { uid: parent.uid, name: parent.name, namespace: 'team-a' };
      const request = { id: name, parent: owner, name, state: 'Requested', time: '' } as const;
      await fixture.create(GROUP, childObject(request, full));
    }
    const { body } = await fixture.plane.admin.call('GET', `${GROUP}/${name}`);
    const pod = await fixture.createPod('team-a', `${name}-1`);
    await fixture.bindPod('team-a', name, pod);
    const token = await fixture.createPodToken('team-a', pod);
    const known = async () => (await gateway.call('GET', '/v1/assignment', { token })).status;
    await pollValue(`the gateway to know agent ${name}`, known, (status) => status === 200);
    keys += 1;
    const sent = { userToken, key: `tree-${keys}`, body: { text: 'work' } };
    parsed(await gateway.call('POST', `${AGENTS}/${name}/messages`, sent));
    const delivery = deliveryOf(await gateway.call('POST', NEXT, { token, body: { waitSeconds: 20 } }));
    return { name, uid: (body.metadata as { uid: string }).uid, token, delivery };
  }

  const call = ({ token, delivery: { deliveryToken } }: Member, gateway: Caller, system = 'x'): Promise<HttpResponse> =>
    gateway.call('POST', '/v1/models/stream', {
      token,
      body: { deliveryToken, request: aModelRequest({ system, maxOutputTokens: 50 }) },
    });

  const isServed = (response: HttpResponse) => response.status === 200 && streamLines(response).at(-1)?.type === 'end';

  async function spentBy(name: string, gateway: Caller): Promise<number> {
    const { userToken } = open();
    const report = parsed(await gateway.call('GET', `${AGENTS}/${name}/usage`, { userToken })) as UsageReport;
    const hour = report.windows.find(({ window }) => window === 'hour');
    return (hour?.inputTokens ?? 0) + (hour?.outputTokens ?? 0);
  }

  async function charges(path: string, by: string, gateway: Caller): Promise<Map<string, number>> {
    const query = `by=${by}&since=2020-01-01`;
    const report = parsed(
      await gateway.call('GET', `/v1/users/namespaces/team-a/${path}charges?${query}`, { userToken: open().userToken }),
    ) as UsageBreakdown;
    return new Map(report.rows.map(({ name, inputTokens, outputTokens }) => [name, inputTokens + outputTokens]));
  }

  it('twenty agents of one tree stay within the quota of its root, and are charged what was served', async () => {
    await using replay = await startReplay({
      script: { rules: [{ answer: { text: 'ok', usage: USAGE } }] },
      clock: systemClock,
    });
    const { fixture } = open();
    const models = modelsOf(replay);
    const gateway = await fixture.startReplica({ models }, openModelModule);
    await using other = await startGatewayProcess(fixture, { models });
    await fixture.createPolicy('team-a', 'trees', {});
    const limit = 4_000;
    const root = await member('tree', 'trees', gateway, undefined, { quotas: { tokensPerHour: limit } });
    const all = [root];
    let generation = [root];
    for (const size of [2, 4, 8, 5]) {
      const parents = generation;
      generation = await Promise.all(
        Array.from({ length: size }, (_, index) =>
          member(`tree-${all.length + index}`, 'trees', gateway, parents[index % parents.length]),
        ),
      );
      all.push(...generation);
    }
    assert.equal(all.length, 20);
    await pollValue(
      'the other gateway to know the whole tree',
      async () => {
        const known = await Promise.all(all.map(({ token }) => other.call('GET', '/v1/assignment', { token })));
        return known.filter(({ status }) => status === 200).length;
      },
      (count) => count === all.length,
    );

    const served = new Map<string, number>();
    const denied: string[] = [];
    // One call after another per agent, all agents at once.
    const work = all.map(async (agent, index) => {
      for (let round = 0; round < 5; round += 1) {
        const through = (index + round) % 2 === 0 ? gateway : other;
        const response = await pollValue(
          'an answer',
          () => call(agent, through),
          ({ text }) => !text.includes('TEMPER_OVERLOADED'),
        );
        if (isServed(response)) served.set(agent.name, (served.get(agent.name) ?? 0) + CALL_TOKENS);
        else denied.push(response.text);
      }
    });
    await Promise.all(work);
    const total = [...served.values()].reduce((sum, tokens) => sum + tokens, 0);
    assert.ok(total <= limit && total > 0, `${total} of ${limit}`);
    assert.ok(denied.length > 0, 'the quota of the root was reached');
    for (const text of denied) assert.match(text, /TEMPER_QUOTA_EXCEEDED/);
    assert.ok(denied.some((text) => text.includes('spec.quotas of its parent')));
    await pollValue(
      'the charges of the root',
      () => spentBy('tree', gateway),
      (spent) => spent === total,
    );

    const byAgent = () => charges('agents/tree/', 'Agent', gateway);
    const sumOf = (rows: Map<string, number>): number => [...rows.values()].reduce((sum, tokens) => sum + tokens, 0);
    const rows = await pollValue('the usage of both gateways', byAgent, (found) => sumOf(found) === total);
    assert.deepEqual(rows, served);
    assert.deepEqual(await charges('agents/tree/', 'Model', gateway), new Map([['replay/m', total]]));
    assert.equal((await charges('', 'Team', gateway)).get('tree'), total);
    const roots = await charges('agents/tree/', 'Root', gateway);
    assert.equal(roots.get(root.delivery.message.root), served.get('tree'));
    assert.equal(sumOf(roots), total);
  });

  it('the end of a parent ends its tree, and a gateway that is killed leaves what its calls may cost charged', async () => {
    const script = {
      rules: [
        { when: { system: 'slow' }, answer: { text: 'ok', usage: USAGE, delayMilliseconds: 1_500 } },
        { when: { system: 'hangs' }, answer: { text: 'ok', usage: USAGE, delayMilliseconds: 60_000 } },
        { answer: { text: 'ok', usage: USAGE } },
      ],
    };
    await using replay = await startReplay({ script, clock: systemClock });
    const { fixture, userToken } = open();
    const models = modelsOf(replay);
    const gateway = await fixture.startReplica({ models }, openModelModule);
    await using killed = await startGatewayProcess(fixture, { models });
    await fixture.createPolicy('team-a', 'ending', {});
    const root = await member('ending', 'ending', gateway);
    const lead = await member('ending-lead', 'ending', gateway, root);
    const leaf = await member('ending-leaf', 'ending', gateway, lead);
    await poll('the other gateway to know the tree', async () => {
      const { status } = await killed.call('GET', '/v1/assignment', { token: leaf.token });
      return status === 200;
    });

    assert.ok(isServed(await call(leaf, killed)));
    await pollValue(
      'the charge',
      () => spentBy('ending', gateway),
      (spent) => spent === CALL_TOKENS,
    );
    const lost = call(leaf, killed, 'hangs').catch(() => undefined);
    await poll('the call to arrive', () => replay.requests.some(({ body }) => JSON.stringify(body).includes('hangs')));
    await killed.end('SIGKILL');
    await lost;
    const report = parsed(await gateway.call('GET', `${AGENTS}/ending/usage`, { userToken })) as UsageReport;
    const hour = report.windows.find(({ window }) => window === 'hour');
    assert.equal((hour?.inputTokens ?? 0) + (hour?.outputTokens ?? 0), CALL_TOKENS);
    assert.ok((hour?.inFlightTokens ?? 0) >= 50, `${hour?.inFlightTokens} tokens stay reserved`);

    const inFlight = call(leaf, gateway, 'slow');
    await poll('the call to arrive', () => replay.requests.some(({ body }) => JSON.stringify(body).includes('slow')));
    await fixture.plane.admin.call('DELETE', `${GROUP}/ending-lead`);
    const left = async (name: string) => (await fixture.plane.admin.call('GET', `${GROUP}/${name}`)).status;
    await pollValue(
      'the end of the leaf',
      () => left('ending-leaf'),
      (status) => status === 404,
    );
    const response = await inFlight;
    const spent = await pollValue(
      'the charge of the call in flight',
      () => spentBy('ending', gateway),
      (tokens) => tokens > CALL_TOKENS,
    );
    if (isServed(response)) assert.equal(spent, 2 * CALL_TOKENS);
    assert.notEqual((await call(leaf, gateway)).status, 200, 'an agent that has ended calls no model');
    assert.equal(await left('ending'), 200);
  });
}
