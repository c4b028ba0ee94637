import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { startEmbeddingServer } from '../../../test/support/embedding-server.ts';
import { aDescriptor } from '../../agent/disclosure/disclosure.testing.ts';
import { definitionTokens } from '../../agent/disclosure/loaded-tools.ts';
import { SUGGESTED } from '../../agent/disclosure/suggestions.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { hostCapabilities } from '../connections/host-capabilities.ts';
import { aTerminal } from '../io.testing.ts';
import { manifestsOf } from './manifests.testing.ts';
import { discover, type DiscoverOptions, type Offered } from './discover.ts';

const MANIFESTS = `${manifestsOf(
  ['level: {initial: restricted, ceiling: standard}'],
  ['grants: {tools: [file_read, file_list]}'],
)}---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: csv-guide}
spec: {type: Skill, description: How to read a CSV file., requiredTools: [file_read]}
---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: csv-elsewhere, namespace: other}
spec: {type: Skill, description: How to read a CSV file.}
`;

describe('temper discover', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-discover-'));
    await writeFile(join(folder, 'agent.yaml'), MANIFESTS);
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function run(query: string, changes: Partial<DiscoverOptions> = {}, others: Partial<Offered> = {}) {
    const terminal = aTerminal();
    const options: DiscoverOptions = { paths: ['agent.yaml'], query, output: 'text', ...changes };
    const code = await discover(
      options,
      { tools: builtInDescriptors(), connections: new Set(['wiki']), toolsOf: () => [], ...others },
      { ...terminal, cwd: folder },
    );
    return { code, out: terminal.printed(), error: terminal.errors() };
  }

  it('discover prints what the agent may call and the Capabilities of its namespace', async () => {
    const { code, out } = await run('read a csv file');
    assert.equal(code, 0);
    const ids = out
      .split('\n')
      .slice(1)
      .map((line) => line.split(/ +/)[1]);
    assert.ok(ids.includes('tool:file_read') && ids.includes('skill:csv-guide'), out);
    assert.ok(!out.includes('file_write') && !out.includes('csv-elsewhere'), out);
  });

  it('a skill needs the connections of the user that it names', async () => {
    const skill = (name: string) =>
      `{apiVersion: temper.dev/v1alpha1, kind: Capability, metadata: {name: zebra-${name}}, spec: {type: Skill, description: How to draw a zebra., content: Draw., requiredSecrets: [${name}]}}`;
    await writeFile(join(folder, 'zebras.yaml'), ['wiki', 'mail'].map(skill).join('\n---\n'));
    const { out } = await run('draw a zebra', { paths: ['agent.yaml', 'zebras.yaml'] });
    assert.match(out, /skill:zebra-mail +How to draw a zebra\. \[not available: needs connection mail\]/);
    assert.match(out, /skill:zebra-wiki +How to draw a zebra\. *$/m);
  });

  it('discover --explain prints words, their spelling, links and tokens', async () => {
    const { out } = await run('read a csv flie', { explain: true });
    assert.match(out, /^3 capabilities are visible to agent analyst/m);
    assert.match(out, /^flie +file +\d+$/m);
    assert.match(out, /^skill:csv-guide +.*tool:file_read$/m);
    assert.match(out, /^time: ranking \d+\.\d ms, links \d+\.\d ms$/m);
    const tokens =
      /^tokens: all definitions (\d+), map \d+, this result \d+; in mode Semantic (\d+) for definitions and (\d+) for names$/m;
    const [, definitions, lent, names] = tokens.exec(out) ?? [];
    assert.deepEqual([lent, names], [definitions, '0'], 'the agent has two tools, and gets both');
  });

  it('the tokens of mode Semantic are those of the requests: within its budgets, and of all kinds and categories', async () => {
    const large = (name: string): ToolDescriptor =>
      aDescriptor(name, { description: `Reads rare sheets. ${'word '.repeat(3_000)}`, category: 'file_system' });
    const tools = [large('file_read'), large('file_list')];
    const tokensOf = async (changes: Partial<DiscoverOptions>, others: Partial<Offered>) => {
      const { out } = await run('read rare sheets', { explain: true, output: 'json', ...changes }, others);
      const { definitions, lines, lent } = (
        JSON.parse(out) as { tokens: Record<'definitions' | 'lines' | 'lent', number> }
      ).tokens;
      return { definitions, lines, lent };
    };
    const beyond = await tokensOf({}, { tools });
    assert.ok(beyond.definitions > 2 * SUGGESTED.definitionTokens, String(beyond.definitions));
    assert.equal(beyond.lent, 0, 'neither definition is within the budget');
    assert.ok(beyond.lines > 0 && beyond.lines <= SUGGESTED.lineTokens, String(beyond.lines));
    assert.deepEqual(await tokensOf({ kind: 'skill', category: 'web' }, { tools }), beyond);
  });

  it('a tool of a Capability that a run executes can be called, and counts in the tokens', async () => {
    const tool = `tool: {name: exchange_rate, category: web, inputSchema: {type: object}}`;
    const backend = 'backend: {http: {url: "https://rates.example.com/v1", method: GET}}';
    const rates = `{apiVersion: temper.dev/v1alpha1, kind: Capability, metadata: {name: exchange-rate}, spec: {type: Tool, description: The exchange rate of a day., ${tool}, ${backend}}}`;
    await writeFile(
      join(folder, 'rates.yaml'),
      `${manifestsOf(['level: {initial: standard}'], ['grants: {tools: [exchange_rate]}'])}---\n${rates}\n`,
    );
    const host = { connections: [], others: new Set<string>(), token: () => undefined };
    const toolsOf: Offered['toolsOf'] = (capabilities) => hostCapabilities(capabilities, host).descriptors;
    const { out } = await run('exchange rate', { paths: ['rates.yaml'], explain: true, output: 'json' }, { toolsOf });
    const found = JSON.parse(out) as {
      capabilities: { id: string; available: boolean }[];
      tokens: { definitions: number; lent: number };
    };
    assert.deepEqual(
      found.capabilities.map(({ id, available }) => [id, available]),
      [['tool:exchange_rate', true]],
    );
    assert.ok(found.tokens.lent > 0 && found.tokens.lent === found.tokens.definitions, JSON.stringify(found.tokens));
  });

  it('discover --providers searches by meaning, and --explain shows both parts or why there are no vectors', async () => {
    await using server = await startEmbeddingServer();
    const providers = `{providers: [{name: tei, type: openai-compatible, baseUrl: "${server.url}"}], discovery: {embedder: tei/m}}`;
    await writeFile(join(folder, 'providers.yaml'), providers);
    await writeFile(
      join(folder, 'weather.yaml'),
      `${MANIFESTS}---
apiVersion: temper.dev/v1alpha1
kind: Capability
metadata: {name: bulletin}
spec: {type: Skill, description: Whether rain is near.}
`,
    );
    const options = { paths: ['weather.yaml'], providers: 'providers.yaml', explain: true };
    const { code, out } = await run('do I need an umbrella', options);
    assert.equal(code, 0);
    assert.match(out, /^RESULT +BY WORDS +COSINE/m);
    assert.match(out, /^skill:bulletin +0\.00 +(?:0\.9\d|1\.00) *$/m);
    assert.match(out, /^vectors: 4 of 4 capabilities, by tei\/m, \d+ ms$/m);
    const near = aDescriptor('file_list', { description: 'Whether rain is near.', category: 'file_system' });
    const lentWith = async (file: Partial<DiscoverOptions>): Promise<number> => {
      const asked: Partial<DiscoverOptions> = {
        paths: ['agent.yaml'],
        explain: true,
        output: 'json',
        kind: 'skill',
        ...file,
      };
      const { out: json } = await run('an umbrella', asked, { tools: [near] });
      return (JSON.parse(json) as { tokens: { lent: number } }).tokens.lent;
    };
    assert.equal(await lentWith({}), 0);
    assert.equal(await lentWith({ providers: 'providers.yaml' }), definitionTokens(near));
    server.status = 400;
    const failed = await run('do I need a forecast', options);
    assert.match(failed.out, /^vectors: none, so this is a search by words alone\. TEMPER_MODEL_/m);
    await writeFile(join(folder, 'words.yaml'), providers.replace(/, discovery.*/, '}'));
    const without = await run('umbrella', { ...options, providers: 'words.yaml' });
    assert.equal(without.code, 2);
    assert.match(without.error, /discovery\.embedder/);
  });

  it('discover prints JSON with the fields of the tool', async () => {
    const { out } = await run('read a csv file', { output: 'json', explain: true, kind: 'Skill' });
    const found = JSON.parse(out) as {
      capabilities: { id: string }[];
      visible: number;
      matches: { words: string[] }[];
    };
    assert.deepEqual(
      found.capabilities.map(({ id }) => id),
      ['skill:csv-guide'],
    );
    assert.equal(found.visible, 1);
    assert.ok(found.matches[0]?.words.includes('csv'));
  });

  it('discover exits 2 for an unknown kind and an unknown agent, and says when an agent finds nothing', async () => {
    const kind = await run('csv', { kind: 'tools' });
    assert.equal(kind.code, 2);
    assert.match(kind.error, /use tool, skill/);
    assert.equal((await run('csv', { agent: 'unknown' })).code, 2);
    assert.match((await run('xyzzyq')).out, /^agent analyst finds nothing/);
  });
});
