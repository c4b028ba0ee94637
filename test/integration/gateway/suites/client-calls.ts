import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import type { Client } from '@modelcontextprotocol/client';
import type { SessionStreamLine } from '../../../../src/gateway-api/user-api.ts';
import { createNatsInbox } from '../../../../src/nats/inbox/inbox.ts';
import { createSessionStore } from '../../../../src/nats/sessions/session-store.ts';
import { createPendingCalls } from '../../../../src/nats/pending-calls.ts';
import type { PendingCalls } from '../../../../src/nats/pending-calls.ts';
import type { RoleProcess } from '../../../../src/pod/pod.testing.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { EmergentTools } from '../../../support/gateway/emergent-tools.ts';
import type { GatewayFixture, GatewayReplica } from '../../../support/gateway/gateway-fixture.ts';
import { connectMcpClient } from '../../../support/gateway/mcp-client.ts';
import { poll, pollValue } from '../../../support/poll.ts';

export interface ClientCallSetup {
  readonly fixture: GatewayFixture;
  readonly one: GatewayReplica;
  readonly other: GatewayReplica;
  readonly userToken: string;
  readonly agentUid: string;
  readonly sandbox: RoleProcess;
  start(): RoleProcess;
  /** Replaces rules of the policy of the agent. */
  setPolicy(change: object): Promise<void>;
  /** Approves every request of the agent that is pending; returns their number. */
  approvePending(calls: PendingCalls): Promise<number>;
}

const DOUBLE = { name: 'double_it', arguments: { value: 21 } };
const DOUBLED = { result: 42 };
const TIMEOUT = { timeout: 240_000 };

/** Programs of users that call tools as an agent, whose pod is a process. */
export function clientCallTests(open: () => ClientCallSetup): void {
  async function asClients(
    { one, other, userToken }: ClientCallSetup,
    work: (first: Client, second: Client) => Promise<void>,
  ): Promise<void> {
    const clients = await Promise.all(
      [one.port, other.port].map((port) => connectMcpClient(port, userToken, 'analyst')),
    );
    const [first, second] = clients;
    assert.ok(first !== undefined && second !== undefined);
    try {
      await work(first, second);
    } finally {
      await Promise.all(clients.map((client) => client.close()));
    }
  }

  /** Ends with the test, so that a failed one leaves no second pod to the next. */
  function startPod(t: TestContext, setup: ClientCallSetup): RoleProcess {
    const pod = setup.start();
    t.after(() => pod.end('SIGKILL'));
    return pod;
  }

  const namesOf = async (client: Client): Promise<string[]> =>
    (await client.listTools()).tools.map(({ name }) => name).filter((name) => /ask_agent|_it$/.test(name));

  const textOf = ({ content }: Awaited<ReturnType<Client['callTool']>>): string => JSON.stringify(content);

  const codeOf = ({ _meta: meta }: Awaited<ReturnType<Client['callTool']>>): unknown => meta?.['temper.dev/code'];

  /** The session and the ticket in the text of a call that waits. */
  function ticketIn(result: Awaited<ReturnType<Client['callTool']>>): { session: string; ticket: string } {
    const [, session = '', ticket = ''] = /(s-[0-9a-f]{24})[^m]*(msg-[0-9a-f]{32}[.\w]+)/.exec(textOf(result)) ?? [];
    assert.match(ticket, /\.call$/, textOf(result));
    return { session, ticket };
  }

  it('a client of the MCP SDK lists exactly the permitted tools, and a tool that it may not call looks like a missing one', async (t) => {
    const setup = open();
    await setup.setPolicy({ tools: { deny: ['hide_it'] } });
    const tools = new EmergentTools(setup.fixture, 'team-a');
    for (const name of ['double_it', 'hide_it']) await tools.create(anArtifact(name));
    const agent = startPod(t, setup);
    await asClients(setup, async (first, second) => {
      for (const client of [first, second])
        await pollValue(
          'the tools of the agent',
          () => namesOf(client),
          (names) => names.join(' ') === 'ask_agent double_it',
        );
      const listed = (await first.listTools()).tools.find(({ name }) => name === 'double_it');
      assert.deepEqual(listed?.inputSchema.required, ['value']);
      assert.equal(listed?.annotations?.readOnlyHint, true);
      const result = await first.callTool(DOUBLE, TIMEOUT);
      assert.deepEqual([result.structuredContent, result.isError], [DOUBLED, false]);
      const refused = await first.callTool({ ...DOUBLE, arguments: { value: 'many' } }, TIMEOUT);
      assert.deepEqual([refused.isError, codeOf(refused)], [true, 'TEMPER_TOOL_INPUT_INVALID']);
      const errorFor = async (name: string): Promise<string> =>
        first
          .callTool({ ...DOUBLE, name }, TIMEOUT)
          .then(textOf, (error: Error) => error.message.replaceAll(name, 'X'));
      assert.equal(await errorFor('hide_it'), await errorFor('no_such_it'));
      assert.match(await errorFor('hide_it'), /no tool "X"/);
    });
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });

  it('two clients at two replicas get their own results', async (t) => {
    const setup = open();
    const agent = startPod(t, setup);
    await asClients(setup, async (first, second) => {
      const seen: string[][] = [[], []];
      const call = (client: Client, index: number, value: number) =>
        client.callTool(
          { name: 'double_it', arguments: { value } },
          { ...TIMEOUT, onprogress: ({ message = '' }) => seen[index]?.push(message) },
        );
      const results = await Promise.all([call(first, 0, 1), call(second, 1, 2), call(first, 0, 3)]);
      assert.deepEqual(
        results.map(({ structuredContent }) => structuredContent),
        [{ result: 2 }, { result: 4 }, { result: 6 }],
      );
      const started = seen.map((messages) => messages.filter((text) => text === 'calls double_it').length);
      assert.deepEqual(started, [2, 1], 'a client sees the events of its own calls');
    });
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });

  it('a call whose pod is killed in the middle is answered once, and its session has one call', async (t) => {
    const setup = open();
    const { fixture, agentUid, sandbox } = setup;
    const bus = await fixture.nats.connect('gateway');
    const inbox = createNatsInbox(bus);
    const agent = startPod(t, setup);
    await asClients(setup, async (first, second) => {
      // Connects the sandbox.
      assert.deepEqual((await first.callTool(DOUBLE, TIMEOUT)).structuredContent, DOUBLED);
      // The sandbox does not answer, so that the pod ends while the tool runs.
      sandbox.child.kill('SIGSTOP');
      const reports: string[] = [];
      const calling = second.callTool(DOUBLE, { ...TIMEOUT, onprogress: ({ message = '' }) => reports.push(message) });
      try {
        await poll('the call in the pod', () => reports.includes('calls double_it'));
        assert.equal(await agent.end('SIGKILL'), null);
      } finally {
        sandbox.child.kill('SIGCONT');
      }
      assert.equal(await inbox.redeliver(agentUid), 1, 'the operator releases the message of a deleted pod');
      const again = startPod(t, setup);
      assert.deepEqual((await calling).structuredContent, DOUBLED);
      const lines = await linesOf(setup, await sessionOfLastCall(setup));
      assert.equal(lines.filter(({ kind }) => kind === 'reply').length, 1);
      const { items } = await createSessionStore(bus, agentUid).load(await sessionOfLastCall(setup));
      assert.deepEqual(
        items.map(({ role }) => role),
        ['user', 'assistant', 'tool'],
      );
      assert.equal(await again.end('SIGTERM'), 0, again.log);
    });
  });

  it('a call that needs an approval gives a ticket, survives its pod, and has its result after the decision', async (t) => {
    const setup = open();
    const { fixture, agentUid } = setup;
    const bus = await fixture.nats.connect('gateway');
    const calls = createPendingCalls(bus);
    await setup.setPolicy({ tools: { deny: ['hide_it'] }, rules: { requireApproval: ['code:read'] } });
    const agent = startPod(t, setup);
    await asClients(setup, async (first, second) => {
      // The replicas get the new policy a little later.
      const waiting = await pollValue(
        'a call that waits',
        () => first.callTool(DOUBLE, TIMEOUT),
        (result) => codeOf(result) === 'TEMPER_APPROVAL_PENDING',
      );
      assert.match(String(waiting._meta?.['temper.dev/approvalRequest']), /^call-double-it-/);
      assert.match(textOf(waiting), /kubectl temper approve call-double-it-/);
      const ticket = ticketIn(waiting);
      await poll('the parked call', async () => (await createNatsInbox(bus).parked(agentUid)).length === 1);
      assert.equal(await agent.end('SIGKILL'), null);
      const again = startPod(t, setup);
      const result = second.callTool({ name: 'ask_agent', arguments: ticket }, TIMEOUT);
      assert.equal(await setup.approvePending(calls), 1);
      const reply = { reply: JSON.stringify(DOUBLED), finishReason: 'complete', session: ticket.session };
      const after = await result;
      assert.deepEqual(after.structuredContent, reply, textOf(after));
      assert.equal(await again.end('SIGTERM'), 0, again.log);
    });
    await setup.setPolicy({});
  });

  async function sessionOfLastCall({ one, userToken }: ClientCallSetup): Promise<string> {
    const path = '/v1/users/namespaces/team-a/agents/analyst/sessions';
    const { text } = await one.call('GET', path, { userToken });
    const [newest] = JSON.parse(text) as { session: string }[];
    return newest?.session ?? '';
  }

  async function linesOf({ one, userToken }: ClientCallSetup, session: string): Promise<SessionStreamLine[]> {
    const path = `/v1/users/namespaces/team-a/agents/analyst/sessions/${session}/events`;
    const { text } = await one.call('GET', path, { userToken });
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
  }
}
