import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { PersonReceipt } from '../../src/remote/people.ts';
import { PATHS, type WireDelivery } from '../../src/remote/wire.ts';
import { TraceCollector } from '../integration/trace-collector.ts';
import { callGateway, takeOver } from './inside.ts';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, type PodObject, policyObject, replies } from './scene.ts';

const NAMESPACE = 'conversation';
/** A message may have so many before it in its chain. */
const DEEPEST = 5;

/** Agents that write to each other, and one that lies about it. */
export function conversations(installation: () => Installation): void {
  describe('agents that write to each other', () => {
    let agents: Agents;

    before(async () => {
      agents = new Agents(installation(), NAMESPACE);
      const writesTo = (name: string) => ({ grants: { tools: ['agent_send'], messages: [name] } });
      await installation().apply(namespaceObject(NAMESPACE));
      await installation().apply(
        policyObject(NAMESPACE),
        agentObject(NAMESPACE, 'ping', writesTo('pong')),
        agentObject(NAMESPACE, 'pong', writesTo('ping')),
        agentObject(NAMESPACE, 'stranger', { grants: { tools: ['agent_send'] } }),
      );
      for (const name of ['ping', 'pong', 'stranger']) await agents.until(name, 'Running');
    });

    it('go round in circles no deeper than the chain may be, all under the first message', async () => {
      const { id, session } = await agents.tell('ping', 'ball');
      const seen: string[] = [];
      let [turn, other] = ['ping', 'pong'];
      let here = session;
      for (let depth = 0; depth <= DEEPEST; depth += 1) {
        const [agent, at] = [turn, here];
        await eventually(async () => assert.equal(replies(await agents.lines(agent, at)).length, 1, `${agent} ${at}`));
        const lines = await agents.lines(agent, at);
        seen.push(...replies(lines));
        const roots = lines.flatMap((line) => (line.kind === 'event' ? [line.event.rootMessage] : []));
        assert.deepEqual([...new Set(roots)], [id]);
        here = `${turn}.${here}`;
        [turn, other] = [other, turn];
      }
      const last = seen.pop() ?? '';
      assert.deepEqual(
        seen,
        Array.from({ length: DEEPEST }, () => 'passed on'),
      );
      assert.match(last, /^kept: .*TEMPER_MESSAGE_DEPTH/);
      assert.ok(!(await agents.sessions(turn)).some((found) => found.session === here));
    });

    it('are refused where no grant names the receiver', async () => {
      assert.match(await agents.ask('stranger', 'ball'), /^kept: .*TEMPER_POLICY_DENIED/);
    });

    it('go on with the trace of the person, whose call the API server passed on', async () => {
      await using collector = await TraceCollector.start();
      const environment = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.endpoint };
      const send = ['send', 'ping', 'hello', '-n', NAMESPACE, '-o', 'json'];
      const { code, stdout, stderr } = await installation().temperWith(environment, ...send);
      assert.equal(code, 0, stderr);
      const { traceId, session } = JSON.parse(stdout) as PersonReceipt;
      const [span] = collector.spans;
      assert.deepEqual([span?.name, span?.traceId], ['temper send', traceId]);
      await eventually(async () => assert.deepEqual(replies(await agents.lines('ping', session)), ['heard: hello']));
    });

    describe('and a pod that lies', () => {
      let ping: PodObject;
      let pong: PodObject;
      let root: string;
      let delivery: WireDelivery;
      const draft = { to: 'pong', session: 'talk', text: 'hello' };
      const say = (pod: PodObject, path: string, body: object) => callGateway(installation().node, pod, { path, body });
      const next = async (pod: PodObject) => {
        const { status, body } = await say(pod, PATHS.nextMessage, { waitSeconds: 20 });
        assert.equal(status, 200, JSON.stringify(body));
        return body as unknown as WireDelivery;
      };

      before(async () => {
        [ping, pong] = [await agents.pod('ping'), await agents.pod('pong')];
        for (const pod of [ping, pong]) await takeOver(installation().node, pod);
        ({ id: root } = await agents.tell('ping', 'hello'));
        delivery = await next(ping);
        assert.equal(delivery.message.id, root);
      });

      it('about root, depth or deadline beside its lease is refused', async () => {
        for (const lie of [
          { root: 'another' },
          { depth: 0 },
          { deadline: '2099-01-01T00:00:00Z' },
          { from: 'stranger' },
        ]) {
          const beside = await say(ping, PATHS.messages, { lease: delivery.lease, draft, ...lie });
          const within = await say(ping, PATHS.messages, { lease: delivery.lease, draft: { ...draft, ...lie } });
          assert.deepEqual([beside.status, within.status], [400, 400], JSON.stringify([lie, beside, within]));
        }
      });

      it('within its lease is refused', async () => {
        const [form, content = '', signature] = delivery.lease.split('.');
        const claims = JSON.parse(Buffer.from(content, 'base64url').toString()) as Record<string, unknown>;
        assert.equal(claims['depth'], 0);
        for (const lie of [
          { root: 'another' },
          { depth: -3 },
          { deadline: '2099-01-01T00:00:00Z' },
          { agent: 'pong' },
        ]) {
          const changed = Buffer.from(JSON.stringify({ ...claims, ...lie })).toString('base64url');
          const answer = await say(ping, PATHS.messages, { lease: `${form}.${changed}.${signature}`, draft });
          assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_LEASE_INVALID']);
        }
      });

      it('about who it is, with the lease of another pod, is refused', async () => {
        const answer = await say(pong, PATHS.messages, { lease: delivery.lease, draft: { ...draft, to: 'ping' } });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_LEASE_INVALID']);
      });

      it('about whom it may write to is refused', async () => {
        const answer = await say(ping, PATHS.messages, { lease: delivery.lease, draft: { ...draft, to: 'stranger' } });
        assert.deepEqual([answer.status, answer.code], [403, 'TEMPER_POLICY_DENIED']);
      });

      it('passes on the root, the depth and the deadline it was given, and a session of its own', async () => {
        const sent = await say(ping, PATHS.messages, { lease: delivery.lease, draft });
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
