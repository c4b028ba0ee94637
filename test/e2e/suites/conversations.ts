import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { POD_API_PATHS, type PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import { TraceCollector } from '../../support/trace-collector.ts';
import { callGateway, freezeAgentProcess } from '../support/in-pod.ts';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import {
  NamespaceAgents,
  agentObject,
  namespaceObject,
  type PodObject,
  policyObject,
  replies,
} from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const NAMESPACE = 'conversation';
/** The maximum depth of a message chain. */
const MAX_DEPTH = 5;

/** Agents that send messages to each other, and a pod that sends forged requests. */
export function conversations(cluster: () => InstalledCluster): void {
  describe('agents that send messages to each other', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      const writesTo = (name: string) => ({ grants: { tools: ['agent_send'], messages: [name] } });
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(
        policyObject(NAMESPACE),
        agentObject(NAMESPACE, 'ping', writesTo('pong')),
        agentObject(NAMESPACE, 'pong', writesTo('ping')),
        agentObject(NAMESPACE, 'ungranted', { grants: { tools: ['agent_send'] } }),
      );
      for (const name of ['ping', 'pong', 'ungranted']) await agents.waitForReason(name, 'Running');
    });

    it('two agents send each other messages up to the maximum depth, all with the same root', async () => {
      const { id, session } = await agents.send('ping', 'ball');
      const seen: string[] = [];
      let [turn, other] = ['ping', 'pong'];
      let here = session;
      for (let depth = 0; depth <= MAX_DEPTH; depth += 1) {
        const [agent, at] = [turn, here];
        await pollAssertion(`the reply of ${agent}`, async () =>
          assert.equal(replies(await agents.sessionLines(agent, at)).length, 1, `${agent} ${at}`),
        );
        const lines = await agents.sessionLines(agent, at);
        seen.push(...replies(lines));
        const roots = lines.flatMap((line) => (line.kind === 'event' ? [line.event.rootMessage] : []));
        assert.deepEqual([...new Set(roots)], [id]);
        here = `${turn}.${here}`;
        [turn, other] = [other, turn];
      }
      const last = seen.pop() ?? '';
      assert.deepEqual(
        seen,
        Array.from({ length: MAX_DEPTH }, () => 'passed on'),
      );
      assert.match(last, /^kept: .*TEMPER_MESSAGE_DEPTH/);
      assert.ok(!(await agents.sessions(turn)).some((found) => found.session === here));
    });

    it('an agent without a grant for the receiver cannot send', async () => {
      assert.match(await agents.sendAndWait('ungranted', 'ball'), /^kept: .*TEMPER_POLICY_DENIED/);
    });

    it('a message continues the trace of the user through the API server', async () => {
      await using collector = await TraceCollector.start();
      const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.endpoint };
      const send = ['send', 'ping', 'hello', '-n', NAMESPACE, '-o', 'json'];
      const { code, stdout, stderr } = await cluster().temperWith(environment, ...send);
      assert.equal(code, 0, stderr);
      const { traceId, session } = JSON.parse(stdout) as UserMessageReceipt;
      const [span] = collector.spans;
      assert.deepEqual([span?.name, span?.traceId], ['temper send', traceId]);
      await pollAssertion('the reply of ping', async () =>
        assert.deepEqual(replies(await agents.sessionLines('ping', session)), ['heard: hello']),
      );
    });

    describe('forged requests of a pod', () => {
      let ping: PodObject;
      let pong: PodObject;
      let root: string;
      let delivery: PodDelivery;
      const draft = { to: 'pong', session: 'talk', text: 'hello' };
      const callAs = (pod: PodObject, path: string, body: object) => callGateway(cluster().node, pod, { path, body });
      const next = async (pod: PodObject) => {
        const { status, body } = await callAs(pod, POD_API_PATHS.nextMessage, { waitSeconds: 20 });
        assert.equal(status, 200, JSON.stringify(body));
        return body as unknown as PodDelivery;
      };

      before(async () => {
        [ping, pong] = [await agents.boundPod('ping'), await agents.boundPod('pong')];
        for (const pod of [ping, pong]) await freezeAgentProcess(cluster().node, pod);
        ({ id: root } = await agents.send('ping', 'hello'));
        delivery = await next(ping);
        assert.equal(delivery.message.id, root);
      });

      it('a request with its own root, depth, deadline or sender is rejected', async () => {
        for (const forged of [
          { root: 'another' },
          { depth: 0 },
          { deadline: '2099-01-01T00:00:00Z' },
          { from: 'ungranted' },
        ]) {
          const beside = await callAs(ping, POD_API_PATHS.messages, {
            deliveryToken: delivery.deliveryToken,
            draft,
            ...forged,
          });
          const within = await callAs(ping, POD_API_PATHS.messages, {
            deliveryToken: delivery.deliveryToken,
            draft: { ...draft, ...forged },
          });
          assert.deepEqual([beside.status, within.status], [400, 400], JSON.stringify([forged, beside, within]));
        }
      });

      it('an altered delivery token is rejected', async () => {
        const [form, content = '', signature] = delivery.deliveryToken.split('.');
        const claims = JSON.parse(Buffer.from(content, 'base64url').toString()) as Record<string, unknown>;
        assert.equal(claims['depth'], 0);
        for (const forged of [
          { root: 'another' },
          { depth: -3 },
          { deadline: '2099-01-01T00:00:00Z' },
          { agent: 'pong' },
        ]) {
          const changed = Buffer.from(JSON.stringify({ ...claims, ...forged })).toString('base64url');
          const answer = await callAs(ping, POD_API_PATHS.messages, {
            deliveryToken: `${form}.${changed}.${signature}`,
            draft,
          });
          assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_DELIVERY_TOKEN_INVALID']);
        }
      });

      it('the delivery token of another pod is rejected', async () => {
        const answer = await callAs(pong, POD_API_PATHS.messages, {
          deliveryToken: delivery.deliveryToken,
          draft: { ...draft, to: 'ping' },
        });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_DELIVERY_TOKEN_INVALID']);
      });

      it('a message to an agent without a grant is rejected', async () => {
        const answer = await callAs(ping, POD_API_PATHS.messages, {
          deliveryToken: delivery.deliveryToken,
          draft: { ...draft, to: 'ungranted' },
        });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_POLICY_DENIED']);
      });

      it('a valid message gets root, depth and deadline from the delivery token, and its own session', async () => {
        const sent = await callAs(ping, POD_API_PATHS.messages, { deliveryToken: delivery.deliveryToken, draft });
        assert.equal(sent.status, 200, JSON.stringify(sent.body));
        const { message } = await next(pong);
        const { from, depth, deadline, session } = message;
        assert.deepEqual(
          { from, root: message.root, depth, deadline, session },
          { from: 'ping', root, depth: 1, deadline: delivery.message.deadline, session: 'ping.talk' },
        );
      });
    });
  });
}
