import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { digestOf } from '../lib/canonical.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import { memoryRecordStore, type RecordStore } from '../lib/record-store.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { SECRETS } from '../policy/detect/detect.testing.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import type { CallContext, Tool, ToolDescriptor } from '../tools/contract.ts';
import { anEngine as createTestEngine, anOp, type EngineChanges } from './engine.testing.ts';

const [SECRET = ''] = SECRETS;
const MARKER = '[redacted: an AWS access key]';
const HIDDEN = 'a\u200bb';
const ESCAPED = 'a\\u{200b}b';
const TEXT = `${SECRET} ${HIDDEN}`;
const USAGE = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

function aTool(
  name: string,
  call: (input: Json, context: CallContext) => Promise<Json>,
  rest: Partial<ToolDescriptor> = {},
): Tool {
  const descriptor: ToolDescriptor = {
    name,
    description: `Is ${name}.`,
    inputSchema: { type: 'object' },
    category: 'analytics',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
    ...rest,
  };
  return { descriptor, call };
}

/** A store in memory, and everything that was written to it. */
function aRecordedStore(): { records: RecordStore; stored: Json[] } {
  const [records, stored]: [RecordStore, Json[]] = [memoryRecordStore(), []];
  const writing: Pick<RecordStore, 'put' | 'append'> = {
    put(collection, name, value) {
      stored.push(structuredClone(value));
      return records.put(collection, name, value);
    },
    append(log, value, durability) {
      stored.push(structuredClone(value));
      return records.append(log, value, durability);
    },
  };
  return { records: { ...records, ...writing }, stored };
}

const TEXT_SCHEMA: JsonObject = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };

/** What the tools got themselves: from each other, and as the hook of the agent. */
interface Received {
  nested: Json[];
  hooked: Json[];
}

function theTools(received: Received): Tool[] {
  return [
    aTool('local', async () => ({ text: TEXT })),
    aTool('remote', async () => ({ text: TEXT }), { resultOrigin: 'Mcp' }),
    aTool('hidden', async () => ({ text: HIDDEN }), { resultOrigin: 'Mcp', outputSchema: TEXT_SCHEMA }),
    aTool('failing', () => Promise.reject(new TemperError('TEMPER_TOOL_FAILED', `no entry with ${TEXT}`)), {
      resultOrigin: 'Mcp',
    }),
    aTool('outer', async (_, { invoke, op }) => {
      const result = await invoke('remote', {}, op);
      const output = result.ok ? result.output : null;
      received.nested.push(output);
      return output;
    }),
    aTool('outermost', async (_, { invoke, op }) => {
      const result = await invoke('outer', {}, op);
      return result.ok ? result.output : null;
    }),
    aTool('reader', async (_, { invoke, op }) => {
      const result = await invoke('local', {}, op);
      return result.ok ? result.output : null;
    }),
    aTool('troubled', async (_, { invoke, op }) => {
      const result = await invoke('failing', {}, op);
      throw new TemperError('TEMPER_TOOL_FAILED', result.ok ? 'no failure' : result.error.message);
    }),
    aTool('watcher', async (event) => {
      received.hooked.push(event);
      return {};
    }),
  ];
}

const GRANTS = { tools: ['*'] };

/** Its output for 1 has a credential, which neither its source nor its tests have. */
const MINT: JsonObject = {
  name: 'mint',
  description: 'Joins two texts of a number.',
  inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'], additionalProperties: false },
  outputSchema: { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] },
  implementation: {
    mode: 'sandbox',
    code: `function execute({ n }) {
  return { key: n === 1 ? ${JSON.stringify(SECRET.slice(0, 3))} + ${JSON.stringify(SECRET.slice(3))} : 'none' };
}`,
    allowlist: [],
  },
  testCases: [{ input: { n: 0 }, expectedOutput: { key: 'none' } }],
};

describe('the scan of results in an engine', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-output-scan-'));
    await writeFile(join(workspace, 'notes.txt'), TEXT);
    sandbox = await createSupervisor({ clock: systemClock, warm: 1 });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  /** An agent with the tools, and what they received. */
  async function anEngine({ agent, policy, ...changes }: EngineChanges = {}) {
    const received: Received = { nested: [], hooked: [] };
    const { records, stored } = aRecordedStore();
    const fixture = await createTestEngine(
      { workspace, sandbox },
      {
        ...changes,
        records,
        agent: { grants: GRANTS, ...agent },
        policy: { level: { initial: 'standard' }, ...policy },
        level: 'standard',
        agents: { externalTools: () => theTools(received) },
      },
    );
    const warnings = (): string[] =>
      fixture.events.flatMap((event) =>
        event.type === 'warning' && event.code === 'output-redacted' ? [event.message] : [],
      );
    return { ...fixture, received, stored, warnings };
  }

  /** The text of a call with these settings of the policy: of its output, or of its error. */
  async function textOf(tool: string, outputScan?: TrustPolicySpec['outputScan'], input: Json = {}): Promise<Json> {
    const { call, engine } = await anEngine(outputScan === undefined ? {} : { policy: { outputScan } });
    const result = await call(tool, input);
    await engine.stop();
    return result.ok ? ((result.output as JsonObject)['text'] ?? null) : result.error.message;
  }

  /** Every request of the model, as text, when the agent makes the call and then ends. */
  async function prompts(name: string, input: Json, changes: EngineChanges = {}) {
    const requests: ModelRequest[] = [];
    const answer = (request: ModelRequest): ModelEvent[] => {
      const isNested = request.system.startsWith('Reader.');
      requests.push(structuredClone(request));
      const [tool, argument] = isNested ? ['remote', {}] : [name, input];
      const hasResult = request.messages.some(({ role }) => role === 'tool');
      if (hasResult)
        return [
          { type: 'text', text: 'done' },
          { type: 'end', stopReason: 'stop', usage: USAGE, model: 'x' },
        ];
      return [
        { type: 'tool-call', call: { id: 'call-1', name: tool, arguments: JSON.stringify(argument) } },
        { type: 'end', stopReason: 'tool-calls', usage: USAGE, model: 'x' },
      ];
    };
    const fixture = await anEngine({ ...changes, answer });
    await fixture.engine.handle({ session: 's-1', text: 'go' }, anOp());
    await fixture.engine.stop();
    return { ...fixture, requests };
  }

  it('without a setting, credentials become markers in every result, and invisible characters escapes in those of hosts', async () => {
    assert.equal(await textOf('local'), `${MARKER} ${HIDDEN}`);
    assert.equal(await textOf('remote'), `${MARKER} ${ESCAPED}`);
  });

  it('a file of the workspace keeps its invisible characters, and its credential is redacted', async () => {
    const { call, engine } = await anEngine();
    const result = await call('file_read', { path: 'notes.txt' });
    await engine.stop();
    const text = JSON.stringify(result.ok && result.output);
    assert.ok(text.includes(`${MARKER} ${HIDDEN}`), text);
  });

  it('each setting keeps what it names, and the other one stays in force', async () => {
    assert.equal(await textOf('remote', { credentials: 'Keep' }), `${SECRET} ${ESCAPED}`);
    assert.equal(await textOf('remote', { invisibleCharacters: 'Keep' }), `${MARKER} ${HIDDEN}`);
    assert.equal(await textOf('remote', { credentials: 'Keep', invisibleCharacters: 'Keep' }), TEXT);
  });

  it('the error of a tool is scanned like an output', async () => {
    assert.equal(await textOf('failing'), `no entry with ${MARKER} ${ESCAPED}`);
    assert.equal(await textOf('failing', { credentials: 'Keep' }), `no entry with ${SECRET} ${ESCAPED}`);
  });

  it('an event names the tool and the number of redacted credentials, also for an error, and none comes without a redaction', async () => {
    const { call, warnings, engine } = await anEngine();
    await call('local', {});
    await call('failing', {});
    await call('file_read', { path: 'missing.txt' });
    await engine.stop();
    const redacted = (tool: string): string =>
      `a credential in the result of "${tool}" was redacted; see outputScan of the TrustPolicy`;
    assert.deepEqual(warnings(), [redacted('local'), redacted('failing')]);
    const kept = await anEngine({ policy: { outputScan: { credentials: 'Keep' } } });
    await kept.call('local', {});
    await kept.engine.stop();
    assert.deepEqual(kept.warnings(), []);
  });

  it('a tool gets the real result of another one, and what leaves both is scanned', async () => {
    const { call, received, warnings, events, engine } = await anEngine();
    const result = await call('outer', {});
    await engine.stop();
    assert.deepEqual(received.nested, [{ text: TEXT }]);
    assert.deepEqual(result.ok && result.output, { text: `${MARKER} ${ESCAPED}` }, 'outer carries content of a host');
    assert.equal(warnings().length, 1, 'only what left the tools counts');
    const summaries = events.flatMap((event) => (event.type === 'tool-result' ? [event.summary] : []));
    assert.deepEqual(summaries, [`{"text":"${MARKER} ${ESCAPED.replace('\\', '\\\\')}"}`]);
  });

  it('a tool that got a result of a host at any depth passes on escapes, and one that did not keeps the characters', async () => {
    assert.equal(await textOf('outermost'), `${MARKER} ${ESCAPED}`);
    assert.equal(await textOf('troubled'), `no entry with ${MARKER} ${ESCAPED}`);
    assert.equal(await textOf('reader'), `${MARKER} ${HIDDEN}`);
    assert.equal(await textOf('outermost', { invisibleCharacters: 'Keep' }), `${MARKER} ${HIDDEN}`);
  });

  it('a call that got a result of a host does not change the results of other calls', async () => {
    const { call, engine } = await anEngine();
    await Promise.all([call('outer', {}), call('reader', {})]);
    const result = await call('reader', {});
    await engine.stop();
    assert.deepEqual(result.ok && result.output, { text: `${MARKER} ${HIDDEN}` });
  });

  it('a hook gets scanned results, also of a call that a tool makes', async () => {
    const hooks = [{ events: ['ToolResult' as const], tool: 'watcher' }];
    const { call, received, engine } = await anEngine({ agent: { hooks } });
    await call('outer', {});
    await engine.stop();
    const seen = received.hooked.map((event) => JSON.stringify(event));
    assert.deepEqual(
      seen.map((event) => /"tool":"(\w+)"/.exec(event)?.[1]),
      ['remote', 'outer'],
    );
    for (const event of seen) assert.ok(event.includes(MARKER), event);
    assert.ok(!JSON.stringify(received.hooked).includes(SECRET));
  });

  it('neither a request of the model, nor an event, nor the stored session has the credential', async () => {
    const { requests, events, stored } = await prompts('remote', {});
    for (const [what, text] of Object.entries({ requests, events, stored })) {
      const shown = JSON.stringify(text);
      assert.ok(shown.includes(MARKER), `${what} has no marker: ${shown}`);
      assert.ok(!shown.includes(SECRET), `${what} has the credential`);
    }
  });

  it('the model of a nested agent gets scanned results like the model above it', async () => {
    const { requests, events, warnings } = await prompts('agent_run', { prompt: 'Reader.', message: 'Read it.' });
    const nested = requests.filter(({ system }) => system.startsWith('Reader.'));
    assert.ok(JSON.stringify(nested).includes(MARKER), JSON.stringify(nested));
    assert.ok(!JSON.stringify([requests, events]).includes(SECRET));
    assert.equal(warnings().length, 1);
  });

  it('a program of the model gets scanned results', async () => {
    const code = "return { text: (await ctx.manager.invoke('remote', {})).text.split('') };";
    const { requests } = await prompts('invoke', { code }, { agent: { invocation: 'Code' } });
    const result = requests.at(-1)?.messages.findLast((item) => item.role === 'tool');
    assert.equal(result?.text, JSON.stringify({ text: Array.from(`${MARKER} ${ESCAPED}`) }));
  });

  it('a program of the model gets escapes from a tool that calls a host', async () => {
    const code = "return { text: (await ctx.manager.invoke('outermost', {})).text.split('') };";
    const { requests } = await prompts('invoke', { code }, { agent: { invocation: 'Code' } });
    const result = requests.at(-1)?.messages.findLast((item) => item.role === 'tool');
    assert.equal(result?.text, JSON.stringify({ text: Array.from(`${MARKER} ${ESCAPED}`) }));
  });

  it('the tests of a forge compare real results, and calls of the composed tool give escapes', async () => {
    const { call, engine } = await anEngine({ policy: { tainted: { deny: ['network'] } } });
    const forged = await call('forge_tool', {
      name: 'show_hidden',
      description: 'Shows the hidden text.',
      inputSchema: { type: 'object', properties: { page: { type: 'string' } }, required: ['page'] },
      outputSchema: TEXT_SCHEMA,
      implementation: {
        mode: 'compose',
        steps: [{ name: 'read', tool: 'hidden', inputMapping: { page: '$input.page' } }],
      },
      testCases: [{ input: { page: 'first' }, expectedOutput: { text: HIDDEN } }],
    });
    assert.ok(forged.ok, JSON.stringify(forged));
    const made = await call('show_hidden', { page: 'second' });
    await engine.stop();
    assert.deepEqual(made.ok && made.output, { text: ESCAPED });
  });

  it('the evidence of a tool has the digest of its real output', async () => {
    const { call, engine, registry, stored } = await anEngine();
    const forged = await call('forge_tool', MINT);
    assert.ok(forged.ok, JSON.stringify(forged));
    const made = await call('mint', { n: 1 });
    assert.deepEqual(made.ok && made.output, { key: MARKER });
    await engine.settled();
    await engine.stop();
    const [tool] = registry.all();
    assert.equal((await registry.statistics(tool?.digest ?? assert.fail('no tool'), 'n')).totalUses, 1);
    const evidence = JSON.stringify(stored);
    assert.ok(evidence.includes(digestOf({ key: SECRET })), 'the digest of the real output is stored');
    assert.ok(!evidence.includes(digestOf({ key: MARKER })), 'the digest of the scanned output is not');
  });
});
