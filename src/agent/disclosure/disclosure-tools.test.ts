import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Json, member, textAt } from '../../lib/json.ts';
import { jsonSize } from '../../models/charge/request-size.ts';
import type { CallContext, ToolDescriptor } from '../../tools/contract.ts';
import { aDescriptor } from './disclosure.testing.ts';
import { disclosureTools } from './disclosure-tools.ts';
import { ToolSearch } from './tool-search.ts';

const OUTPUT = { type: 'object', properties: { rows: { type: 'array' } } };
const CSV = aDescriptor('csv_rows', { outputSchema: OUTPUT, examples: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] });
const PAGE = aDescriptor('fetch_page', { category: 'web', locality: 'Brokered', sideEffects: true });

function someTools(visible: readonly ToolDescriptor[], settings: { indexTokens?: number; bodyTokens?: number } = {}) {
  const tools = disclosureTools({
    settings: { mode: 'Explore', indexTokens: 3_000, bodyTokens: 15_000, unloadShare: 0.8, ...settings },
    search: new ToolSearch(),
    visible: () => visible,
    decide: (_caller, request) => ({
      effect: request.kind === 'Tool' && request.name === 'fetch_page' ? 'Escalate' : 'Allow',
      rule: 'x',
      reason: '',
      risk: 'low',
    }),
  });
  return async (name: string, input: Json): Promise<Json> => {
    const tool = tools.find(({ descriptor }) => descriptor.name === name);
    if (tool === undefined) throw new Error(`no tool ${name}`);
    return tool.call(input, {} as CallContext);
  };
}

function names(listed: Json): string[] {
  const tools = member(listed, 'tools');
  return Array.isArray(tools) ? tools.map((tool) => textAt(tool, ['name'])) : [];
}

describe('the tools with which a model explores its tools', () => {
  it('list_tools lists names, descriptions, categories and costs, of one category or by a query', async () => {
    const call = someTools([CSV, PAGE, aDescriptor('load_tool')]);
    assert.deepEqual(await call('list_tools', { category: 'WEB' }), {
      tools: [{ name: 'fetch_page', description: 'Does fetch page.', category: 'web', cost: 'medium' }],
      more: 0,
    });
    assert.deepEqual(names(await call('list_tools', {})), ['csv_rows', 'fetch_page']);
    assert.deepEqual(names(await call('list_tools', { query: 'pages' })), ['fetch_page']);
  });

  it('list_tools stays within its budget for many tools, and its lists together contain each tool once', async () => {
    const many = Array.from({ length: 300 }, (_, at) => aDescriptor(`tool_${at}`, { description: 'word '.repeat(50) }));
    const call = someTools(many, { indexTokens: 500 });
    const seen: string[] = [];
    for (let round = 0; round < 300 && seen.length < 300; round += 1) {
      const listed = await call('list_tools', { offset: seen.length });
      assert.ok(jsonSize(member(listed, 'tools') ?? null).tokens <= 600);
      assert.ok(names(listed).length > 0);
      seen.push(...names(listed));
      assert.equal(member(listed, 'more'), 300 - seen.length);
    }
    assert.deepEqual(seen, many.map(({ name }) => name).toSorted());
  });

  it('load_tool returns the cost, examples, failures and resources of a tool', async () => {
    const call = someTools([CSV, PAGE]);
    const csv = await call('load_tool', { name: 'csv_rows' });
    assert.equal(member(csv, 'cost'), 'low');
    assert.deepEqual(member(csv, 'examples'), [{ text: 'a' }, { text: 'b' }]);
    assert.deepEqual(member(csv, 'resources'), ['output-schema', 'examples']);
    const failures = JSON.stringify(member(await call('load_tool', { name: 'fetch_page' }), 'failures'));
    assert.match(failures, /waits for an approval/);
    assert.match(failures, /after a timeout/);
  });

  it('load_tool returns the errors of the tool itself, and texts about its use apart from inputs of a call', async () => {
    const failures = [{ code: 'TEMPER_DATABASE_QUERY_FAILED', when: 'the database refuses the query' }] as const;
    const call = someTools([
      aDescriptor('sql_query', { failures }),
      aDescriptor('rates', { usage: ['What is a euro?'] }),
    ]);
    const sql = await call('load_tool', { name: 'sql_query' });
    const line = 'TEMPER_DATABASE_QUERY_FAILED: the database refuses the query';
    assert.ok(JSON.stringify(member(sql, 'failures')).includes(line));
    assert.equal(member(sql, 'usage'), undefined);
    const rates = await call('load_tool', { name: 'rates' });
    assert.deepEqual([member(rates, 'examples'), member(rates, 'usage')], [[], ['What is a euro?']]);
  });

  it('load_tool_resource returns a resource of the tool, and names its resources for another id', async () => {
    const call = someTools([CSV, PAGE]);
    const found = await call('load_tool_resource', { name: 'csv_rows', resource: 'output-schema' });
    assert.deepEqual(member(found, 'content'), OUTPUT);
    await assert.rejects(call('load_tool_resource', { name: 'csv_rows', resource: 'x' }), /output-schema, examples/);
    await assert.rejects(call('load_tool_resource', { name: 'fetch_page', resource: '__proto__' }), /has none/);
  });

  it('a tool that the policy hides has the error of one that does not exist', async () => {
    const call = someTools([PAGE]);
    const errorOf = async (name: string) =>
      call('load_tool', { name }).then(
        () => 'none',
        ({ code, message }: { code: string; message: string }) => `${code} ${message.replace(name, 'NAME')}`,
      );
    assert.match(await errorOf('csv_rows'), /^TEMPER_TOOL_NOT_FOUND/);
    assert.equal(await errorOf('csv_rows'), await errorOf('unknown'));
  });

  it('a definition above the budget is not loaded', async () => {
    const call = someTools([aDescriptor('large', { description: 'word '.repeat(2_000) })], { bodyTokens: 1_000 });
    await assert.rejects(call('load_tool', { name: 'large' }), /above spec\.disclosure\.bodyTokens 1000/);
  });
});
