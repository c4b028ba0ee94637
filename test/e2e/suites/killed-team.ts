import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, it, type TestContext } from 'node:test';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { pollAssertion } from '../../support/poll.ts';
import { seededRandom } from '../../support/seeded-random.ts';
import { agentObject, NamespaceAgents, namespaceObject, policyObject, replies } from '../support/fixture.ts';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { killRunning, PROCESSES } from '../support/kills.ts';

const SEED = Number(process.env['SEED'] ?? Math.floor(Math.random() * 1e9));
const KILLS = 4;
/** A kill comes up to this time after the kill before it. */
const MAX_PAUSE_MS = 6_000;
/** Containers that were killed several times start again with a delay that doubles. */
const TIMEOUT_MS = 600_000;
const ANSWER_DELAY_MS = 400;
/** The outcome of a call whose container ended before the result was stored. */
const UNKNOWN_EFFECT = /^(TEMPER_APPROVAL_USED|TEMPER_TOOL_OUTCOME_UNKNOWN)$/;
/** What clerk hears, by sender. */
const HEARD = {
  reader: ['from reader'],
  writer: ['from writer'],
  coder: ['first of coder', 'second of coder'],
} as const;
type Sender = keyof typeof HEARD;
/** The reply of a sender to an answer of clerk that its killed program did not get. */
const LATE = 'an answer came late';
/** A killed sandbox container ends the program. The model learns which calls may have had their effects. */
const KILLED_PROGRAM = /TEMPER_SANDBOX_CRASHED/;
const NAMED_CALLS = /These calls (succeeded|did not end, and may have had their effects): agent_message/;

/** A program that sends each text to clerk, and returns what it knows about each call. */
function program(sender: Sender): string {
  return `const outcomes = [];
for (const text of ${JSON.stringify(HEARD[sender])}) {
  try {
    await ctx.manager.invoke('agent_message', { to: 'clerk', text });
    outcomes.push('sent');
  } catch (error) {
    outcomes.push(error.code);
  }
}
return outcomes;`;
}

const WORK = [
  {
    id: 'child',
    name: 'agent_spawn',
    arguments: { name: 'helper', prompt: 'You are helper.', tools: ['memory_list'] },
  },
  { id: 'now', name: 'agent_message', arguments: { to: 'reader', text: 'read' } },
  { id: 'later', name: 'agent_message', arguments: { to: 'writer', text: 'write', wait: 0 } },
  { id: 'coded', name: 'agent_message', arguments: { to: 'coder', text: 'code' } },
];

/** What the models of the team answer. */
export function teamRules(): object[] {
  const rule = (when: object, answer: object): object => ({
    when,
    answer: { ...answer, delayMilliseconds: ANSWER_DELAY_MS },
  });
  const calls = (...toolCalls: object[]): object => ({ toolCalls });
  const child = '{{toolCall.child.name}}';
  const lead = { system: 'You are lead' };
  const runs = (sender: Sender): object => calls({ id: 'code', name: 'invoke', arguments: { code: program(sender) } });
  return [
    rule({ ...lead, lastUser: 'Answer of agent' }, { text: 'late: {{user}}' }),
    rule({ lastUser: 'Answer of agent' }, { text: LATE }),
    rule({ ...lead, turn: 1 }, calls(...WORK)),
    rule({ ...lead, turn: 2 }, calls({ id: 'asked', name: 'agent_message', arguments: { to: child, text: 'help' } })),
    rule({ ...lead, turn: 3 }, calls({ id: 'ended', name: 'agent_kill', arguments: { agent: child } })),
    rule(
      { ...lead, turn: 4 },
      { text: '{{toolCall.now.answer}}, {{toolCall.coded.answer}}, {{toolCall.asked.answer}}.' },
    ),
    rule(
      { system: 'You are reader', turn: 1 },
      calls({ id: 'free', name: 'agent_message', arguments: { to: 'clerk', text: HEARD.reader[0] } }),
    ),
    rule({ system: 'You are reader' }, { text: 'read' }),
    rule({ system: 'You are writer', turn: 1 }, runs('writer')),
    rule({ system: 'You are writer' }, { text: 'wrote {{lastTool}}' }),
    rule({ system: 'You are coder', turn: 1 }, runs('coder')),
    rule({ system: 'You are coder' }, { text: 'coded {{lastTool}}' }),
    rule({ system: 'You are helper' }, { text: 'helped' }),
    rule({ system: 'You are clerk' }, { text: 'heard {{user}}' }),
  ];
}

/** A team with a child, a ticket, programs and an approval, while any component is killed at any moment. */
export function killedTeam(current: () => InstalledCluster, times: number): void {
  describe('a team whose components are killed', () => {
    for (let time = 0; time < times; time += 1) {
      it(`walk ${time + 1}: nothing is lost or answered twice, and calls are made once or are named as unknown (SEED=${SEED})`, async (context: TestContext) => {
        const team = new KilledTeam(current(), `team-${time}`);
        await team.start();
        const random = seededRandom(SEED + time);
        const ended = new AbortController();
        const killed = killAtRandom(current(), random, ended.signal);
        try {
          await team.work();
        } finally {
          ended.abort();
          context.diagnostic(`killed: ${(await killed).join(', ')}`);
        }
        await team.assertResult();
        await current().kubectl('delete', 'namespace', team.namespace, '--wait=false');
      });
    }
  });
}

/** Kills one process after the other at random moments. Returns their names. */
async function killAtRandom(
  cluster: InstalledCluster,
  random: (limit: number) => number,
  ended: AbortSignal,
): Promise<string[]> {
  const names = Object.keys(PROCESSES) as (keyof typeof PROCESSES)[];
  const killed: string[] = [];
  for (let kill = 0; kill < KILLS; kill += 1) {
    const [pause, name] = [random(MAX_PAUSE_MS), names[random(names.length)] ?? 'gateway'];
    await sleep(pause, undefined, { signal: ended }).catch(() => undefined);
    if (ended.aborted) break;
    await killRunning(cluster, PROCESSES[name]);
    killed.push(name);
  }
  return killed;
}

class KilledTeam {
  readonly #cluster: InstalledCluster;
  readonly #agents: NamespaceAgents;
  readonly namespace: string;
  #session = '';

  constructor(cluster: InstalledCluster, namespace: string) {
    this.#cluster = cluster;
    this.#agents = new NamespaceAgents(cluster, namespace);
    this.namespace = namespace;
  }

  async start(): Promise<void> {
    const { namespace } = this;
    const grants = (...messages: string[]): object => ({ grants: { tools: ['*'], messages } });
    const policy = (name: string, rules: object): object => ({
      ...policyObject(namespace, { level: { initial: 'standard' }, autonomy: 'Full', rules }),
      metadata: { name, namespace },
    });
    const careful = { trustPolicyRef: { name: 'careful' } };
    await this.#cluster.apply(namespaceObject(namespace));
    await this.#cluster.apply(
      policy('policy', { allow: ['org:hire'] }),
      policy('careful', { requireApproval: ['comms:internal'] }),
      agentObject(namespace, 'lead', { ...grants('reader', 'writer', 'coder'), children: { inherit: true } }),
      agentObject(namespace, 'reader', grants('clerk')),
      agentObject(namespace, 'writer', { ...grants('clerk'), ...careful, invocation: 'Code' }),
      agentObject(namespace, 'coder', { ...grants('clerk'), invocation: 'Code' }),
      agentObject(namespace, 'clerk'),
    );
    for (const name of ['lead', 'reader', 'writer', 'coder', 'clerk'])
      await this.#agents.waitForReason(name, 'Running', 'Ready', TIMEOUT_MS);
  }

  /** Sends one message, and approves until lead has its own reply and the one after the late answer. */
  async work(): Promise<void> {
    const { session } = await this.#agents.send('lead', 'go');
    this.#session = session;
    await pollAssertion(
      'the replies of lead',
      async () => {
        await this.#approve();
        const found = replies(await this.#agents.sessionLines('lead', session));
        assert.ok(found.length >= 2, found.join('\n'));
      },
      { timeoutMs: TIMEOUT_MS },
    );
  }

  async #approve(): Promise<void> {
    // The API server answers always; the admission of an approval asks the operator, which may be restarting.
    for (const { metadata, status } of await this.#requests()) {
      if (status?.decision !== undefined) continue;
      await this.#agents.temper('approve', metadata.name, '--reason', 'harmless');
    }
  }

  async #requests(): Promise<(KubeObject & ApprovalRequest)[]> {
    const listed = await this.#cluster.kubectl('get', 'approvalrequests', '-n', this.namespace, '-o', 'json');
    return (JSON.parse(listed) as { items: (KubeObject & ApprovalRequest)[] }).items;
  }

  async assertResult(): Promise<void> {
    // Whatever would come twice has come when the gateways, the agents and the operator work again.
    for (const name of ['lead', 'reader', 'writer', 'coder', 'clerk'])
      await this.#agents.waitForReason(name, 'Running', 'Ready', TIMEOUT_MS);
    await pollAssertion('the complete result', () => this.#assertReplies(), { timeoutMs: TIMEOUT_MS });
    await this.#assertChildEnded();
    const decisions = (await this.#requests()).map(({ status }) => status?.decision);
    assert.ok(decisions.length <= 1, JSON.stringify(decisions));
    if (decisions[0] === 'Expired') await this.#assertKilledBeforeApproval();
    else assert.ok(decisions[0] === undefined || decisions[0] === 'Approve', JSON.stringify(decisions));
  }

  /** A request whose program was killed before its approval expires, and its call is not made. */
  async #assertKilledBeforeApproval(): Promise<void> {
    const session = `lead.${this.#session}`;
    assert.match((await this.#repliesOf('writer', session)).join('\n'), KILLED_PROGRAM);
    assert.deepEqual(await this.#repliesOf('clerk', `writer.${session}`), []);
  }

  async #assertReplies(): Promise<void> {
    const session = `lead.${this.#session}`;
    const [all, ...late] = await this.#repliesOf('lead', this.#session);
    const [coded = '', ...codedLater] = await this.#repliesOf('coder', session);
    const [wrote = '', ...wroteLater] = await this.#repliesOf('writer', session);
    for (const later of [...codedLater, ...wroteLater]) assert.equal(later, LATE);
    assert.equal(all, `read, ${coded}, helped.`);
    assert.equal(late.length, 1, late.join('\n'));
    assert.ok(wrote !== '' && late[0]?.includes(wrote), `${late.join('\n')}\n${wrote}`);
    assert.deepEqual(await this.#repliesOf('reader', session), ['read']);
    await this.#assertHeard('reader', '["sent"]');
    await this.#assertHeard('coder', coded);
    await this.#assertHeard('writer', wrote);
  }

  /** Clerk heard a text exactly once that was sent, and at most once where the sender does not know. */
  async #assertHeard(sender: Sender, reply: string): Promise<void> {
    const heard = await this.#repliesOf('clerk', `${sender}.lead.${this.#session}`);
    const outcomes = outcomesIn(sender, reply);
    assert.equal(outcomes.length, HEARD[sender].length);
    if (KILLED_PROGRAM.test(reply) && heard.length > 0) assert.match(reply, NAMED_CALLS);
    for (const [index, text] of HEARD[sender].entries()) {
      const [outcome = '', times] = [outcomes[index], heard.filter((reply) => reply === `heard ${text}`).length];
      if (outcome === 'sent') assert.equal(times, 1, `${sender}: ${heard.join('\n')}`);
      else assert.ok(UNKNOWN_EFFECT.test(outcome) && times <= 1, `${sender}: ${outcome}, ${heard.join('\n')}`);
    }
  }

  async #repliesOf(agent: string, session: string): Promise<string[]> {
    const known = (await this.#agents.sessions(agent)).map((one) => one.session);
    return known.includes(session) ? replies(await this.#agents.sessionLines(agent, session)) : [];
  }

  async #assertChildEnded(): Promise<void> {
    await pollAssertion('the end of the child', async () => {
      const names = await this.#cluster.kubectl('get', 'agents', '-n', this.namespace, '-o', 'name');
      assert.equal(names.trim().split('\n').length, 5, names);
    });
  }
}

/** The outcomes in the reply of an agent that ran a program. */
function outcomesIn(sender: Sender, reply: string): string[] {
  if (!KILLED_PROGRAM.test(reply)) return JSON.parse(reply.slice(reply.indexOf('['))) as string[];
  return HEARD[sender].map(() => 'TEMPER_TOOL_OUTCOME_UNKNOWN');
}
