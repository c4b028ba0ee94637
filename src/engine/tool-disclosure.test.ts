import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startEmbeddingServer } from '../../test/support/embedding-server.ts';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { aDescriptor } from '../agent/disclosure/disclosure.testing.ts';
import { type EmbedTexts, UNOBSERVED } from '../discovery/vector/embed-texts.ts';
import { HybridSearch } from '../discovery/vector/hybrid-search.ts';
import { MemoryVectorIndex } from '../discovery/vector/memory-index.ts';
import { systemClock } from '../lib/clock.ts';
import { openModels } from '../models/named-models.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { parseNamedModels } from '../models/read-named-models.ts';
import type { Tool } from '../tools/contract.ts';
import { anEngine, anOp, type EngineChanges } from './engine.testing.ts';
import type { EnginePorts } from './ports.ts';

const USAGE = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
const EXPLORERS = ['discover_capabilities', 'list_tools', 'load_tool', 'load_tool_resource'];

describe('an engine that discloses its tools', () => {
  let workspace: string;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-disclosure-'));
    await writeFile(join(workspace, 'n.txt'), '21');
  });
  after(() => rm(workspace, { recursive: true, force: true }));

  /** An engine whose model makes these calls, one per turn, and then answers. */
  async function running(
    calls: [name: string, input: object][],
    agent: EngineChanges['agent'] = {},
    agents: EngineChanges['agents'] = {},
  ) {
    const requests: ModelRequest[] = [];
    const answer = (request: ModelRequest): ModelEvent[] => {
      requests.push(request);
      const [name, input] = calls[requests.length - 1] ?? [];
      const end = { type: 'end', usage: USAGE, model: 'x' } as const;
      if (name === undefined)
        return [
          { type: 'text', text: 'done' },
          { ...end, stopReason: 'stop' },
        ];
      const call = { id: 'call-1', name, arguments: JSON.stringify(input) };
      return [
        { type: 'tool-call', call },
        { ...end, stopReason: 'tool-calls' },
      ];
    };
    const spec = { grants: { tools: ['file_read', 'file_write', 'text_search'] }, forge: { enabled: false }, ...agent };
    const sandbox = {} as EnginePorts['sandbox'];
    const { engine } = await anEngine({ workspace, sandbox }, { agent: spec, answer, agents });
    const send = async (text: string) => engine.handle({ session: 's-1', text }, anOp());
    const offered = (): string[][] => requests.map(({ tools }) => tools.map(({ name }) => name));
    return { engine, requests, offered, send };
  }

  it('a loaded tool is in the next request and in those of later messages, and the prompt stays the same', async () => {
    const calls: [string, object][] = [
      ['load_tool', { name: 'file_read' }],
      ['file_read', { path: 'n.txt' }],
    ];
    const { engine, requests, offered, send } = await running(calls, { disclosure: { mode: 'Explore' } });
    await send('read n.txt');
    await send('and again');
    const loaded = [...EXPLORERS, 'file_read'];
    assert.deepEqual(offered(), [EXPLORERS, loaded, loaded, loaded]);
    assert.equal(new Set(requests.map(({ system }) => system)).size, 1);
    assert.match(requests[0]?.system ?? '', /You have \d+ further tools.*\n- file_system: .*file_read/s);
    const read = requests[2]?.messages.at(-1);
    assert.ok(read?.role === 'tool' && !read.isError && read.text.includes('21'), JSON.stringify(read));
    await engine.stop();
  });

  it('the first results of a search can be called in the same message, and with the next request the model has their definitions', async () => {
    const { engine, requests, offered, send } = await running(
      [
        ['discover_capabilities', { query: 'search for text' }],
        ['text_search', { text: '21' }],
      ],
      { disclosure: { mode: 'Explore' } },
    );
    await send('find 21');
    assert.ok(offered()[1]?.includes('text_search'), JSON.stringify(offered()));
    const found = requests[2]?.messages.at(-1);
    assert.ok(found?.role === 'tool' && found.name === 'text_search' && !found.isError, JSON.stringify(found));
    await engine.stop();
  });

  it('in mode Semantic the tools that fit the message are in its first request', async () => {
    const { engine, offered, send } = await running([], { disclosure: { mode: 'Semantic' } });
    await send('write a file');
    assert.ok(offered()[0]?.includes('file_write'), JSON.stringify(offered()));
    await engine.stop();
  });

  it('in mode Semantic the beginning of the requests stays the same over two messages, and no session stores the names', async () => {
    const { engine, requests, send } = await running([['load_tool', { name: 'file_read' }]], {
      disclosure: { mode: 'Semantic' },
      grants: { tools: ['file_read', 'file_write', 'file_list', 'file_edit', 'text_search'] },
    });
    await send('list, edit or write the files');
    await send('write, list or edit a file');
    const [first, second, third] = requests.map(({ system, messages }) => ({ system, messages }));
    assert.ok(first !== undefined && second !== undefined && third !== undefined && requests.length === 3);
    const textAt = ({ messages }: typeof first, at: number): string => {
      const message = messages.at(at);
      return message?.role === 'user' ? message.text : '';
    };
    assert.match(textAt(first, 0), /^list, edit or write the files\n\nTools that may fit the message.*\n\{"name":"/);
    assert.deepEqual(
      second.messages.slice(0, 1),
      first.messages,
      'in the turns of one message the names stay in place',
    );
    assert.equal(textAt(third, 0), 'list, edit or write the files');
    assert.deepEqual(third.messages.slice(1, 3), second.messages.slice(1));
    assert.match(textAt(third, -1), /^write, list or edit a file\n\nTools that may fit the message/);
    assert.equal(new Set(requests.map(({ system }) => system)).size, 1);
    assert.ok(!first.system.includes('Tools that may fit'));
    await engine.stop();
  });

  it('in mode Semantic with an embedder, tools fit by meaning too; a text is embedded once, and words alone count when it fails', async () => {
    await using server = await startEmbeddingServer();
    const models = openModels(
      parseNamedModels('providers.yaml', {
        providers: [{ name: 'tei', type: 'openai-compatible', baseUrl: server.url }],
        discovery: { embedder: 'tei/concepts' },
      }),
      { clock: systemClock, random: () => 0, environment: {}, retry: { maxAttempts: 1 } },
    );
    const embed: EmbedTexts = (texts, op) => models.pipeline.embed(texts, op);
    const search = new HybridSearch({
      index: new MemoryVectorIndex(),
      embedEntries: embed,
      clock: systemClock,
      redact: (text) => text,
      observer: UNOBSERVED,
      closing: NEVER_ABORTED,
      limits: { searchMs: 60_000, entriesMs: 60_000 },
    });
    const tools = ['bulletin', 'hidden_bulletin'].map((name): Tool => {
      return {
        descriptor: aDescriptor(name, { description: 'Whether rain is near.', category: 'file_system' }),
        call: async () => null,
      };
    });
    const { engine, offered, send } = await running(
      [],
      { disclosure: { mode: 'Semantic' }, grants: { tools: ['file_read', 'file_write', 'bulletin'] } },
      { externalTools: () => tools, hybridSearch: { search, embed } },
    );
    const asked = (text: string): number => server.requests.filter((texts) => texts.includes(text)).length;
    await send('do I need an umbrella');
    await send('do I need an umbrella');
    assert.equal(asked('do I need an umbrella'), 1);
    for (const names of offered())
      assert.ok(names.includes('bulletin') && !names.includes('hidden_bulletin'), String(names));
    assert.ok(
      !server.requests.flat().some((text) => text.includes('hidden')),
      'what the agent may not call is not embedded',
    );
    server.status = 500;
    await send('write a file about a forecast');
    assert.equal(asked('write a file about a forecast'), 1);
    assert.ok(offered()[2]?.includes('file_write') && !offered()[2]?.includes('bulletin'), String(offered()[2]));
    await engine.stop();
  });

  it('load_tool does not find a tool that the agent may not call', async () => {
    const { engine, requests, offered, send } = await running([['load_tool', { name: 'file_delete' }]], {
      disclosure: { mode: 'Explore' },
    });
    await send('delete it');
    const refused = requests[1]?.messages.at(-1);
    assert.ok(refused?.role === 'tool' && refused.text.includes('TEMPER_TOOL_NOT_FOUND'), JSON.stringify(refused));
    assert.deepEqual(offered()[1], EXPLORERS);
    await engine.stop();
  });

  it('an agent without disclosure has all tools in each request and none for exploring but the search', async () => {
    const { engine, offered, send } = await running([]);
    await send('hello');
    assert.deepEqual(offered(), [['discover_capabilities', 'file_read', 'file_write', 'text_search']]);
    await engine.stop();
  });
});
