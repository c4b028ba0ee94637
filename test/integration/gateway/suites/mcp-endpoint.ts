import assert from 'node:assert/strict';
import { it } from 'node:test';
import { connectMcpClient } from '../../../support/gateway/mcp-client.ts';
import { assertError, deliveryOf, type MessageClient, NEXT, parsed } from '../../../support/gateway/message-client.ts';

const FILES = { tools: ['file_read'] };

/** An agent for clients of the Model Context Protocol over HTTP. */
export function mcpTests(open: () => MessageClient): void {
  it('a client of the MCP SDK asks an agent, and waits for the reply with its ticket at the other replica', async () => {
    const messages = open();
    const { one, other, userToken } = messages;
    const agent = await messages.createReadyAgent('asked-over-mcp');
    const first = await connectMcpClient(one.port, userToken, 'asked-over-mcp');
    try {
      assert.deepEqual(
        (await first.listTools()).tools.map(({ name }) => name),
        ['ask_agent', 'discover_capabilities'],
      );
      const input = { text: 'How many?', session: 'mcp-1' };
      const asking = first.callTool({ name: 'ask_agent', arguments: input }, { timeout: 60_000 });
      const { deliveryToken, message } = await messages.next(agent);
      assert.deepEqual([message.text, message.source, message.session], ['How many?', 'User', 'mcp-1']);
      const ack = { deliveryToken, action: 'ack', reply: 'Three.', finishReason: 'complete' };
      parsed(await messages.postDelivery(agent, ack), 204);
      const answer = { reply: 'Three.', finishReason: 'complete', session: 'mcp-1' };
      assert.deepEqual((await asking).structuredContent, answer);
      const second = await connectMcpClient(other.port, userToken, 'asked-over-mcp');
      const ticket = { session: 'mcp-1', ticket: `${message.id}.0.0` };
      assert.deepEqual((await second.callTool({ name: 'ask_agent', arguments: ticket })).structuredContent, answer);
      await second.close();
    } finally {
      await first.close();
    }
  });

  it('a pod gets a call only when it says that it makes calls, and a pod of an older release fails it with a code', async () => {
    const messages = open();
    const { fixture, one, userToken } = messages;
    await fixture.createPolicy('team-a', 'called', { tools: { allow: ['*'] } });
    const spec = { trustPolicyRef: { name: 'called' }, grants: FILES };
    const { token } = await messages.createReadyAgent('called-over-mcp', spec);
    const client = await connectMcpClient(one.port, userToken, 'called-over-mcp', '?session=mcp-2');
    const next = (headers: Record<string, string>, waitSeconds: number) =>
      one.call('POST', NEXT, { token, headers, body: { waitSeconds } });
    const call = () => client.callTool({ name: 'file_read', arguments: { path: 'a.txt' } }, { timeout: 60_000 });
    try {
      const refused = call();
      assert.equal((await next({}, 2)).status, 204);
      const { isError, _meta: meta } = await refused;
      assert.deepEqual([isError, meta?.['temper.dev/code']], [true, 'TEMPER_MESSAGE_INVALID']);

      const path = '/v1/users/namespaces/team-a/deadletters';
      const letters = parsed(await one.call('GET', path, { userToken })) as { id: string; excerpt: string }[];
      const letter = letters.find(({ excerpt }) => excerpt.includes('calls the tool "file_read"'));
      parsed(await one.call('POST', `${path}/${letter?.id}/retry`, { userToken, key: 'retry-call', body: {} }), 204);
      const retried = deliveryOf(await next({ 'temper-accept-messages': 'call' }, 20));
      assert.deepEqual(retried.message.call, { tool: 'file_read', input: { path: 'a.txt' } });
      const late = { deliveryToken: retried.deliveryToken, action: 'ack', reply: '', finishReason: 'complete' };
      parsed(await one.call('POST', '/v1/deliveries', { token, body: late }), 204);

      const calling = call();
      const { deliveryToken, message } = deliveryOf(await next({ 'temper-accept-messages': 'call' }, 20));
      assert.deepEqual(message.call, { tool: 'file_read', input: { path: 'a.txt' } });
      assert.deepEqual([message.source, message.session, message.root], ['User', 'mcp-2', message.id]);
      const reply = JSON.stringify({ ok: true, output: { text: 'the text' } });
      const ack = { deliveryToken, action: 'ack', reply, finishReason: 'complete' };
      parsed(await one.call('POST', '/v1/deliveries', { token, body: ack }), 204);
      assert.deepEqual((await calling).structuredContent, { text: 'the text' });
      const tasks = await one.call('GET', '/v1/users/namespaces/team-a/agents/called-over-mcp/trust', { userToken });
      assert.doesNotMatch(tasks.text, new RegExp(message.id), 'a call is no task');
    } finally {
      await client.close();
    }
  });

  it('the API of users lists the tools that a program may call, and sends a call once per key', async () => {
    const messages = open();
    const { fixture, one, other, userToken } = messages;
    await fixture.createPolicy('team-a', 'listed', { tools: { allow: ['*'], deny: ['file_list'] } });
    const grants = { tools: ['file_read', 'file_list', 'forge_tool'] };
    await messages.createReadyAgent('listed-tools', { trustPolicyRef: { name: 'listed' }, grants });
    const path = '/v1/users/namespaces/team-a/agents/listed-tools';
    const tools = parsed(await one.call('GET', `${path}/callable-tools`, { userToken })) as { name: string }[];
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['file_read', 'discover_capabilities'],
    );
    const send = (body: object, gateway = one) =>
      gateway.call('POST', `${path}/calls`, { userToken, key: 'call-1', body });
    const body = { tool: 'file_read', input: { path: 'a.txt' } };
    const first = parsed(await send(body)) as { id: string; session: string };
    const second = parsed(await send(body, other)) as { id: string; session: string; duplicate: boolean };
    assert.deepEqual([second.id, second.session, second.duplicate], [first.id, first.session, true]);
    const missing = await send({ ...body, tool: 'no_such_tool' });
    const denied = await send({ ...body, tool: 'file_list' });
    assertError(missing, 422, 'TEMPER_TOOL_NOT_FOUND');
    assert.equal(denied.text.replace('file_list', 'no_such_tool'), missing.text);
    assert.match((await send({ ...body, input: { path: 7 } })).text, /TEMPER_TOOL_INPUT_INVALID/);
  });
}
