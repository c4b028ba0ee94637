import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Client, ProtocolError } from '@modelcontextprotocol/client';
import { pollAssertion } from '../support/poll.ts';
import { startTemper } from './command.ts';
import { doublingAgent, doublingScript } from './doubling-agent.ts';
import { asMcpClient, SERVE } from './mcp-client.ts';
import { openProject, type Project } from './project.ts';

const SCRIPT = doublingScript(`  - when: {lastUser: "read", turn: 1}
    answer: {text: "I look.", toolCalls: [{id: text, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "read", turn: 2}
    answer: {text: "It says {{toolCall.text.text}}"}
`);

async function withProject(policy: string, work: (project: Project) => Promise<void>): Promise<void> {
  await using project = await openProject({ manifests: doublingAgent(['file_*'], policy), script: SCRIPT }, 'json');
  await work(project);
}

async function namesOf(client: Client): Promise<string[]> {
  return (await client.listTools()).tools.map(({ name }) => name);
}

describe('temper mcp serve', () => {
  it('a client of the revision of 2026 lists and calls the tools of the agent under its policy', async () => {
    await withProject('', async (project) => {
      const versionNegotiation = { mode: { pin: '2026-07-28' } };
      await asMcpClient(project, { versionNegotiation }, async (client) => {
        assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
        const { tools } = await client.listTools();
        const names = tools.map(({ name }) => name);
        assert.deepEqual(
          [names.includes('ask_agent'), names.includes('file_read'), names.includes('forge_tool')],
          [true, true, false],
        );
        const read = tools.find(({ name }) => name === 'file_read');
        assert.deepEqual(read?.annotations, {
          readOnlyHint: true,
          destructiveHint: false,
          idempotentHint: true,
          openWorldHint: false,
        });
        const result = await client.callTool({ name: 'file_read', arguments: { path: 'note.txt' } });
        assert.match(JSON.stringify(result.structuredContent), /"text":"hello"/);
        const denied = await client.callTool({ name: 'file_read', arguments: { path: '../x' } });
        assert.deepEqual([denied.isError, denied._meta?.['temper.dev/code']], [true, 'TEMPER_POLICY_DENIED']);
        const invalid = await client.callTool({ name: 'file_read', arguments: { path: 1 } });
        assert.deepEqual([invalid.isError, invalid._meta?.['temper.dev/code']], [true, 'TEMPER_TOOL_INPUT_INVALID']);
        for (const name of ['forge_tool', 'no_such_tool'])
          await assert.rejects(client.callTool({ name, arguments: {} }), ProtocolError, name);
      });
      const audit = await project.temper('audit', '--subject', 'file_read', '--output', 'json');
      assert.match(audit.stdout, /"origin":"Client"/);
    });
  });

  it('the agent answers a client, and a tool that it makes appears in the list of the client and works', async () => {
    await withProject('', async (project) => {
      let changes = 0;
      const listChanged = { tools: { onChanged: () => void (changes += 1) } };
      await asMcpClient(project, { listChanged }, async (client) => {
        assert.equal(client.getNegotiatedProtocolVersion(), '2025-11-25');
        assert.ok(!(await namesOf(client)).includes('doubler'));
        const progress: string[] = [];
        const forged = await client.callTool(
          { name: 'ask_agent', arguments: { text: 'please forge' } },
          { onprogress: ({ message }) => void progress.push(message ?? '') },
        );
        assert.deepEqual(forged.structuredContent, { reply: 'Done.', finishReason: 'complete' });
        assert.ok(progress.includes('made the tool doubler'), progress.join(', '));
        await pollAssertion('the notification', () => assert.ok(changes > 0));
        assert.ok((await namesOf(client)).includes('doubler'));
        const doubled = await client.callTool({ name: 'doubler', arguments: { n: 21 } });
        assert.deepEqual(doubled.structuredContent, { n: 42 });
        const { resources } = await client.listResources();
        const [conversation] = resources;
        assert.equal(conversation?.title, 'please forge');
        const { contents } = await client.readResource({ uri: conversation?.uri ?? '' });
        const [content] = contents;
        assert.match(content !== undefined && 'text' in content ? content.text : '', /please forge[\s\S]*doubler/);
        await assert.rejects(client.readResource({ uri: 'temper://sessions/../etc' }), /no resource is named/);
      });
    });
  });

  it('a call and a message that need an approval name the request, and run once after it', async () => {
    await withProject('  rules: {requireApproval: ["code:read"]}\n', async (project) => {
      const approve = async (request: unknown): Promise<void> => {
        const { code, stdout } = await project.temper('approve', String(request), '--reason', 'fine');
        assert.equal(code, 0);
        assert.match(stdout, /approve/i);
      };
      await asMcpClient(project, {}, async (client) => {
        const read = () => client.callTool({ name: 'file_read', arguments: { path: 'note.txt' } });
        const waiting = await read();
        assert.deepEqual([waiting.isError, waiting._meta?.['temper.dev/code']], [true, 'TEMPER_APPROVAL_PENDING']);
        assert.equal(
          (await read())._meta?.['temper.dev/approvalRequest'],
          waiting._meta?.['temper.dev/approvalRequest'],
        );
        await approve(waiting._meta?.['temper.dev/approvalRequest']);
        await pollAssertion('the call after its approval', async () =>
          assert.match(JSON.stringify((await read()).structuredContent), /hello/),
        );
        assert.equal((await read())._meta?.['temper.dev/code'], 'TEMPER_APPROVAL_PENDING');

        const asked = await client.callTool({ name: 'ask_agent', arguments: { text: 'please read' } });
        assert.equal(asked._meta?.['temper.dev/code'], 'TEMPER_APPROVAL_PENDING');
        const busy = await client.callTool({ name: 'ask_agent', arguments: { text: 'another' } });
        assert.equal(busy._meta?.['temper.dev/code'], 'TEMPER_SESSION_BUSY');
        await approve(asked._meta?.['temper.dev/approvalRequest']);
        await pollAssertion('the reply after the approval', async () => {
          const goOn = await client.callTool({ name: 'ask_agent', arguments: {} });
          assert.equal((goOn.structuredContent as { reply?: string } | undefined)?.reply, 'It says hello');
        });
      });
    });
  });

  it('a client that sends what is no message and many requests at once is answered, and the process ends with its input', async () => {
    await withProject('', async ({ path }) => {
      const request = (id: number, method: string, params: object = {}): string =>
        `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
      const initialize = request(0, 'initialize', {
        protocolVersion: '2025-11-25',
        capabilities: {},
        clientInfo: { name: 'test', version: '1' },
      });
      const pings = Array.from({ length: 500 }, (_, index) => request(index + 1, 'ping'));
      const input = `${initialize}no json\n[1]\n${'['.repeat(100)}\n${pings.join('')}`;
      const served = startTemper(SERVE, { cwd: path, keepOpen: true });
      const { child } = served;
      child.stdin?.write(input);
      const answers = () =>
        served
          .printed()
          .trim()
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => JSON.parse(line) as { id?: number; error?: { code: number } });
      await pollAssertion('all answers', () =>
        assert.equal(answers().filter(({ id }) => id !== undefined).length, 501),
      );
      assert.deepEqual(
        answers().flatMap(({ id, error }) => (id === undefined ? [error?.code] : [])),
        [-32700, -32600, -32600],
      );
      child.stdin?.end();
      const { code, stderr } = await served.ended;
      assert.deepEqual([code, stderr], [0, '']);
    });
  });
});
