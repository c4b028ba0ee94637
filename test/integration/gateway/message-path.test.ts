import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { issueTlsIdentity, writeGatewayConfig } from '../../../src/gateway-client/certificates.testing.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { type ReplayServer, startReplay } from '../../../src/models/replay/server.ts';
import { RoleProcess } from '../../../src/pod/pod.testing.ts';
import { type GatewayReplica, GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { Wiretap, WIRETAP_USER } from '../../support/nats/wiretap.ts';
import { poll } from '../../support/poll.ts';

const NAME = 'temper-gateway.temper-system.svc';
const AGENT = '/v1/users/namespaces/team-a/agents/speaker';
const SCRIPT = { rules: [{ answer: { text: 'Done.' } }] };
const SEARCH = '$JS.API.DIRECT.GET.temper-inbox';
const DELETE = '$JS.API.STREAM.MSG.DELETE.temper-inbox';
/**
 * The gateway looks for the next message: the pod asks for it while it works on this one, and each notification about the agent makes
 * the request look again. So their number depends on what ends first.
 */
const LOOK = /(DIRECT|STREAM\.MSG)\.GET\.temper-(inbox|deliveries)$/;
const MAX_LOOKS = 16;
const EVENTS = 'temper.events.AGENT.s-1';
/** Spend, usage and health are written when their time has come, and each follower reads for itself. */
const NOT_OF_THE_MESSAGE =
  /ledger|health|residents|usage-|PURGE\.KV_temper-tasks|DIRECT\.GET\.temper-(events|replies)|STREAM\.INFO/;

describe('what a message costs', { timeout: 600_000 }, () => {
  let fixture: GatewayFixture;
  let replay: ReplayServer;
  let gateway: GatewayReplica;
  let userToken: string;
  let agentUid: string;
  let tap: Wiretap;
  let keys = 0;
  const roles: RoleProcess[] = [];
  const at = (...parts: string[]): string => join(fixture.folder, ...parts);

  before(async () => {
    fixture = await GatewayFixture.open(['team-a'], { users: WIRETAP_USER });
    replay = await startReplay({ script: SCRIPT, clock: systemClock });
    await Promise.all(['run', 'endpoints', 'keys', 'workspace'].map((name) => mkdir(at(name))));
    const { authority } = await issueTlsIdentity(at('keys'), 'gateway', NAME);
    const model = { name: 'scripted', contextWindow: 128_000, inputPrice: 0, outputPrice: 0 };
    const replica = {
      tls: { certificate: at('keys/gateway-tls.crt'), key: at('keys/gateway-tls.key') },
      models: {
        providers: [{ name: 'replay', type: 'openai-compatible', baseUrl: `${replay.url}/v1`, models: [model] }],
        aliases: { 'default/default': 'replay/scripted' },
      },
    };
    gateway = await fixture.startReplica(replica, openModelModule);
    await fixture.createPolicy('team-a', 'talking', { models: { allow: ['replay/*'] } });
    const running = await fixture.createRunningAgent('team-a', 'speaker', { trustPolicyRef: { name: 'talking' } });
    agentUid = running.uid;
    userToken = await fixture.createUserToken('team-a');
    const { token } = running;
    await writeGatewayConfig(at('endpoints'), {
      url: `https://127.0.0.1:${gateway.port}`,
      name: NAME,
      authority,
      token,
    });
    const shared = ['--run', at('run'), '--workspace', at('workspace')];
    roles.push(new RoleProcess('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0), ...shared]));
    roles.push(new RoleProcess('agent', ['--endpoints', at('endpoints'), '--token', at('endpoints/token'), ...shared]));
    tap = await Wiretap.open(await fixture.nats.connect('wiretap'));
  });
  after(async () => {
    await Promise.all(roles.map((role) => role.end('SIGKILL')));
    await replay?.[Symbol.asyncDispose]();
    await fixture?.[Symbol.asyncDispose]();
  });

  async function send(session: string): Promise<UserMessageReceipt> {
    keys += 1;
    const body = { text: 'Go on.', session };
    const { status, text } = await gateway.call('POST', `${AGENT}/messages`, { userToken, key: `k-${keys}`, body });
    assert.equal(status, 200, text);
    return JSON.parse(text) as UserMessageReceipt;
  }

  async function replyTo({ id, session }: UserMessageReceipt): Promise<void> {
    const path = `${AGENT}/sessions/${session}/events?follow=true&message=${id}`;
    const { text } = await gateway.call('GET', path, { userToken });
    const lines = text.split('\n').filter((line) => line !== '');
    const last = JSON.parse(lines.at(-1) ?? '{}') as SessionStreamLine;
    assert.ok(last.kind === 'reply' && last.text === 'Done.', text);
  }

  /** Until so many messages have ended and the pod waits for the next one. */
  async function untilIdle(messages: number): Promise<void> {
    await poll('the end of the messages and the next poll', async () => {
      const requests = tap.requests();
      const ends = requests.flatMap((subject, index) => (subject === DELETE ? [index] : []));
      return ends.length === messages && requests.lastIndexOf(SEARCH) > (ends.at(-1) ?? 0);
    });
  }

  interface Costs {
    http: Record<string, number>;
    nats: Record<string, number>;
    reports: number;
  }

  /** What `count` messages of one session cost that are sent without waiting for their replies. */
  async function costsOf(session: string, count: number): Promise<Costs> {
    const before = fixture.logLines.length;
    tap.clear();
    const receipts: UserMessageReceipt[] = [];
    for (let message = 0; message < count; message += 1) receipts.push(await send(session));
    await Promise.all(receipts.map(replyTo));
    await untilIdle(count);
    const routes = fixture.logLines.slice(before).flatMap((line) => {
      const { route = '' } = JSON.parse(line) as { route?: string };
      return route.startsWith('/v1/') && !route.startsWith('/v1/users') && route !== '/v1/assignment' ? [route] : [];
    });
    const subjects = tap.requests().filter((subject) => !NOT_OF_THE_MESSAGE.test(subject));
    const http = tally(routes);
    const { '/v1/reports': reports = 0, ...rest } = http;
    return { http: rest, nats: tally(subjects.map((subject) => nameOf(subject, agentUid))), reports };
  }

  it('a simple message takes a fixed number of requests of its pod and of NATS', async () => {
    await replyTo(await send('s-1'));
    await untilIdle(1);
    const { http, nats, reports } = await costsOf('s-1', 1);
    assert.deepEqual(http, {
      '/v1/deliveries': 1,
      '/v1/messages/next': 1,
      '/v1/models/stream': 1,
    });
    const looks = Object.keys(nats).filter((subject) => LOOK.test(subject));
    const looked = looks.reduce((sum, subject) => sum + (nats[subject] ?? 0), 0);
    assert.ok(looked >= 3 && looked <= MAX_LOOKS, JSON.stringify(nats));
    for (const subject of looks) Reflect.deleteProperty(nats, subject);
    // Its beginning and its end. The pod sends its reports after a time, so their number depends on the speed of the machine.
    const events = nats[EVENTS] ?? 0;
    assert.ok(events >= 2 && events <= 2 + reports, `${events} events and ${reports} reports`);
    Reflect.deleteProperty(nats, EVENTS);
    assert.deepEqual(nats, {
      // The user's message; a session that exists may wait for an approval.
      '$JS.API.STREAM.MSG.GET.temper-events': 1,
      '$JS.API.STREAM.MSG.GET.temper-pending-calls': 1,
      'temper.inbox.AGENT': 1,
      // Was it in work before?
      '$JS.API.STREAM.MSG.GET.temper-acked': 1,
      // Its session.
      '$JS.API.STREAM.MSG.GET.temper-session-tools': 1,
      '$JS.API.DIRECT.GET.KV_temper-sessions': 1,
      // Also whether a user closed it.
      '$JS.API.STREAM.MSG.GET.temper-sessions': 2,
      '$KV.temper-sessions.AGENT.s-1.head': 1,
      '$KV.temper-sessions.AGENT.s-1.history': 1,
      // Its end.
      'temper.replies.AGENT.s-1': 1,
      '$JS.API.STREAM.MSG.DELETE.temper-inbox': 1,
      '$KV.temper-acked.AGENT.MESSAGE': 1,
      '$KV.temper-tasks.AGENT.end.MESSAGE': 1,
      // Its beginning and its end; the acknowledgement reads the state, as a delivery lasts longer than a reply takes to be stored.
      '$KV.temper-deliveries.AGENT': 2,
    });
  });
});

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** A subject without what differs between runs. */
function nameOf(subject: string, agentUid: string): string {
  return subject
    .replace(agentUid, 'AGENT')
    .replace(/msg-[0-9a-f]+/, 'MESSAGE')
    .replace(/history\..*/, 'history');
}
