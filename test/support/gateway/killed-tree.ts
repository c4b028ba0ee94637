import type { Agent } from '../../../src/api/v1alpha1/agent.ts';
import type { PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import type { SessionStreamLine } from '../../../src/gateway-api/user-api.ts';
import { openModelModule } from '../../../src/gateway/model-module.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { startReplay } from '../../../src/models/replay/server.ts';
import { agentAccount, policyAccount } from '../../../src/nats/ledger/spend-summary.ts';
import { createNatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { pollValue } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';
import { openChildOperator } from './child-operator.ts';
import type { GatewayReplica, HttpResponse } from './gateway-fixture.ts';
import { startGatewayProcess } from './gateway-process.ts';
import { ANSWER_USAGE, assertCharged } from './tree-ledger.ts';
import { AGENTS, deliveryOf, type MessageClient, NEXT, type RunningAgent } from './message-client.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents';
const POLICY = {
  autonomy: 'Full',
  level: { initial: 'restricted' },
  tools: { allow: ['*'] },
  models: { judge: 'default/judge' },
};
const TOOLS = ['agent_spawn', 'agent_kill', 'agent_message', 'task_get', 'spawn_specialist', 'file_read'];
const JUDGED = JSON.stringify({
  nonce: 'NONCE',
  lines: [1],
  fits: true,
  harmless: true,
  approved: true,
  reasoning: 'read',
});
const NONCE = '{{user | after "-----BEGIN " | before "-----"}}';
/** Steps in which a gateway calls the model. */
const MODEL_STEPS: readonly TreeStep[] = ['think', 'child-think', 'specialist'];
const UNAVAILABLE = 503;

/** A request of a walk, which also is its idempotency key. */
export type TreeStep =
  | 'think'
  | 'spawn'
  | 'ask'
  | 'child-think'
  | 'answer'
  | 'ticket'
  | 'specialist'
  | 'result'
  | 'result-ticket'
  | 'ask-peer'
  | 'end'
  | 'reply'
  | 'late-answer'
  | 'take';

/** What is killed in a step, so many milliseconds after it got the request: the gateway that has it, or the NATS server. */
export interface TreeKill {
  readonly component: 'gateway' | 'nats';
  readonly afterMs: number;
}

/** Prompts of model calls of the agents themselves; a judge has another one. */
const THINKING = 'You think as';
export const LEAD_PROMPT = `${THINKING} the lead.`;
export const CHILD_PROMPT = `${THINKING} the child.`;

export type TreeAgent = Pick<RunningAgent, 'token' | 'uid'> & { readonly name: string };

/**
 * An agent with a judge, a peer, and operators that crash. In the steps of `kills` a gateway or the NATS server is killed after it got the
 * request, and another gateway, or the same one over the server that came back, gets the request again, as the client of a pod repeats it.
 */
export async function openKilledTree(client: MessageClient, name: string, kills: ReadonlyMap<TreeStep, TreeKill>) {
  await using opening = new AsyncDisposableStack();
  const { fixture, userToken } = client;
  const judged = JUDGED.replace('NONCE', () => NONCE);
  const rules = [
    { when: { system: THINKING }, answer: { text: 'Done.', usage: ANSWER_USAGE } },
    { answer: { text: judged, usage: ANSWER_USAGE } },
  ];
  const replay = opening.use(await startReplay({ script: { rules }, clock: systemClock }));
  const models = {
    providers: [{ name: 'replay', type: 'openai-compatible', baseUrl: `${replay.url}/v1` }],
    aliases: { 'default/default': 'replay/m', 'default/judge': 'replay/judge' },
  };
  const survivor = await fixture.startReplica({ models }, openModelModule);
  opening.use(await openChildOperator(fixture, 'team-a')).startWithCrashes();
  const inbox = createNatsInbox(await fixture.nats.connect('gateway'));
  const known = async ({ token, name: agent }: TreeAgent): Promise<void> => {
    const status = async () => (await survivor.call('GET', '/v1/assignment', { token })).status;
    await pollValue(`the gateway to know ${agent}`, status, (value) => value === 200);
  };
  const policy = (await fixture.createPolicy('team-a', name, POLICY)).metadata as { uid: string };
  const running = async (agent: string, spec: object): Promise<TreeAgent> => {
    const found = await fixture.createRunningAgent('team-a', agent, {
      trustPolicyRef: { name },
      autonomy: 'Full',
      ...spec,
    });
    const made = { ...found, name: agent };
    await known(made);
    return made;
  };
  const grants = { tools: TOOLS, messages: [`${name}-peer`] };
  const lead = await running(`${name}-lead`, { children: { inherit: true }, grants });
  const peer = await running(`${name}-peer`, {});
  const childrenOf = async (): Promise<Agent[]> => {
    const selector = `?labelSelector=temper.dev%2Fparent-agent-uid%3D${lead.uid}`;
    const { body } = await fixture.plane.admin.call('GET', `${GROUP}${selector}`);
    return (body as unknown as { items: Agent[] }).items;
  };
  /** Repeats a request that the gateway is too busy for, after the time that it names, as clients do. */
  const patiently = async (what: string, send: () => Promise<HttpResponse>): Promise<HttpResponse> =>
    pollValue(
      what,
      async () => {
        const response = await send();
        const seconds = Number(response.headers['retry-after'] ?? 0);
        if (response.status === UNAVAILABLE) await systemClock.sleep(seconds * 1_000, NEVER_ABORTED);
        return response;
      },
      ({ status }) => status !== UNAVAILABLE,
    );
  const stack = opening.move();
  return {
    lead,
    peer,
    /** A message of a user to the lead. */
    send: (text: string): Promise<HttpResponse> => {
      const options = { userToken, key: name, body: { text, session: 's-1' } };
      return patiently('the receipt of the message', () =>
        survivor.call('POST', `${AGENTS}/${lead.name}/messages`, options),
      );
    },
    next: async ({ token, name: agent }: TreeAgent): Promise<PodDelivery> => {
      const options = { token, body: { waitSeconds: 20 } };
      return deliveryOf(await patiently(`a message for ${agent}`, () => survivor.call('POST', NEXT, options)));
    },
    async call(step: TreeStep, { token }: TreeAgent, path: string, body: object): Promise<HttpResponse> {
      const options = { token, key: `${name}-${step}`, body };
      const kill = kills.get(step);
      if (kill?.component === 'gateway') {
        await using gateway = await startGatewayProcess(fixture, { models });
        const isKnown = async () => (await gateway.call('GET', '/v1/assignment', { token })).status;
        await pollValue('the gateway to know the agent', isKnown, (value) => value === 200);
        const lost = gateway.call('POST', path, options).catch(() => undefined);
        await systemClock.sleep(kill.afterMs, NEVER_ABORTED);
        await gateway.end('SIGKILL');
        await lost;
      } else if (kill !== undefined) {
        const lost = survivor.call('POST', path, options);
        await systemClock.sleep(kill.afterMs, NEVER_ABORTED);
        await fixture.nats.server.kill();
        await fixture.nats.server.restart();
        await lost;
        await Promise.all([survivor, client.one, client.other].map(isReady));
      }
      return patiently(`the answer in step ${step}`, () => survivor.call('POST', path, options));
    },
    /** Ends the gateway, and asserts what the accounts of the lead, of its policy and of its child are charged. */
    async assertCharged(child: TreeAgent): Promise<void> {
      await survivor.stop();
      const connection = await fixture.nats.connect('operator');
      const answers = replay.requests.length;
      const ofChild = replay.requests.filter(({ conversation }) => conversation.system === CHILD_PROMPT).length;
      const killed = MODEL_STEPS.filter((step) => kills.get(step)?.component === 'gateway');
      const inChild = killed.filter((step) => step === 'child-think').length;
      for (const account of [agentAccount(lead.uid), policyAccount(policy.uid)])
        await assertCharged(connection, { account, answers, killed: killed.length });
      await assertCharged(connection, { account: agentAccount(child.uid), answers: ofChild, killed: inChild });
    },
    /** Gives a child a pod. */
    async run(child: string): Promise<TreeAgent> {
      const pod = await fixture.createPod('team-a', `${child}-1`);
      await fixture.bindPod('team-a', child, pod);
      const { body } = await fixture.plane.admin.call('GET', `${GROUP}/${child}`);
      const { uid } = body.metadata as { uid: string };
      const agent = { name: child, uid, token: await fixture.createPodToken('team-a', pod) };
      await known(agent);
      return agent;
    },
    children: async () => (await childrenOf()).map(({ metadata }) => metadata.name),
    /** The sessions of the agent with messages that have not ended. */
    waiting: async ({ uid }: TreeAgent): Promise<number> => (await inbox.unendedSessions(uid)).size,
    /** The replies of the session, as a user sees them. */
    async replies(session: string): Promise<string[]> {
      const path = `${AGENTS}/${lead.name}/sessions/${session}/events`;
      const { text } = await patiently('the events of the session', () => survivor.call('GET', path, { userToken }));
      const lines = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
      return lines.flatMap((line) => (line.kind === 'reply' ? [line.text] : []));
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

async function isReady({ healthPort }: GatewayReplica): Promise<void> {
  const status = async () => (await fetch(`http://127.0.0.1:${healthPort}/readyz`)).status;
  await pollValue('the readiness of the gateway', status, (value) => value === 200);
}
