import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { guideOf } from '../agent/disclosure/tool-guide.ts';
import { sqlQueryDescriptor } from '../toolbox/sql/sql-query.ts';
import { WEB_SEARCH } from '../toolbox/web/search/web-search.ts';
import type { ToolDescriptor } from '../tools/contract.ts';
import { createSchemaCompiler } from '../tools/json-schema/compiler.ts';
import { builtInDescriptors } from './built-in.ts';

const DATABASES = (['PostgreSQL', 'SQLite'] as const).map((kind) => sqlQueryDescriptor([{ name: 'shop', kind }]));
const TOOLS: readonly ToolDescriptor[] = [...builtInDescriptors(), ...DATABASES, WEB_SEARCH];
/** Their schemas alone do not say what a call looks like. */
const NEED_EXAMPLES = [
  'agent_run',
  'code_run',
  'event_subscribe',
  'file_edit',
  'forge_tool',
  'git_commit',
  'git_push',
  'schedule_create',
  'shell_exec',
  'sql_query',
];

describe('the descriptors of built-in tools', () => {
  it('every example of a tool matches its schema, and load_tool shows it', () => {
    const schemas = createSchemaCompiler();
    for (const tool of TOOLS) {
      const { name, inputSchema, examples = [] } = tool;
      for (const example of examples) assert.deepEqual(schemas.check(inputSchema)(example), [], name);
      const decision = { effect: 'Allow', rule: 'x', reason: '', risk: 'low' } as const;
      assert.deepEqual(guideOf(tool, decision).examples, examples, `${name}: too many examples, or too long ones`);
    }
    const found = new Set(TOOLS.flatMap(({ name, examples = [] }) => (examples.length === 0 ? [] : [name])));
    assert.deepEqual(
      NEED_EXAMPLES.filter((name) => !found.has(name)),
      [],
    );
  });

  it('an example of sql_query has the placeholders of its kind of database', () => {
    const [postgres, sqlite] = DATABASES.map(({ examples }) => JSON.stringify(examples));
    assert.match(postgres ?? '', /> \$1 /);
    assert.match(sqlite ?? '', /> \? /);
  });

  it('the tools for files, programs, Git and databases name their own errors', () => {
    const codesOf = (name: string): string[] =>
      TOOLS.find((tool) => tool.name === name)?.failures?.map(({ code }) => code) ?? [];
    assert.ok(codesOf('file_read').includes('TEMPER_FILE_DENIED'));
    assert.ok(codesOf('shell_exec').includes('TEMPER_PROGRAM_NOT_FOUND'));
    assert.ok(codesOf('git_commit').includes('TEMPER_TOOL_FAILED'));
    assert.ok(codesOf('sql_query').includes('TEMPER_DATABASE_QUERY_FAILED'));
  });
});
