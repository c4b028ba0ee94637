import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonLines } from '../../support/json-lines.ts';
import { doublingAgent, doublingScript } from '../doubling-agent.ts';
import { openProject } from '../project.ts';

const SCRIPT = doublingScript(`  - when: {lastUser: "count", turn: 1}
    answer: {text: "There are seven."}
  - when: {lastUser: "has no result"}
    answer: {toolCalls: [{id: made, name: finish, arguments: {count: 7}}]}
  - when: {lastUser: "read", turn: 1}
    answer: {toolCalls: [{id: text, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "read", lastTool: {isError: true}}
    answer: {toolCalls: [{id: made, name: finish, arguments: {count: 0, reason: "{{lastTool.error.code}}"}}]}
`);

/** The members of the agent's spec. */
function project(spec: string) {
  const manifests = doublingAgent(['file_*']).replace('  forge: {', `${spec}\n  forge: {`);
  return openProject({ manifests, script: SCRIPT }, 'json');
}

const RETURNS = `  returns: '{"type": "object", "properties": {"count": {"type": "integer"}, "reason": {"type": "string"}}, "required": ["count"]}'`;
const HOOK = '  hooks: [{events: [ToolCall], tool: missing_guard}]';

describe('temper run with spec.returns and spec.hooks', () => {
  it('a run asks for the value that the agent returns, and prints it as JSON', async () => {
    await using run = await project(RETURNS);
    const { code, stdout, stderr } = await run.run('--session', 's-1', '-m', 'count them').ended;
    assert.equal(code, 0, stderr);
    const end = jsonLines<Record<string, unknown>>(stdout).at(-1);
    assert.deepEqual([end?.['reply'], end?.['format'], end?.['value']], ['{"count":7}', 'json', { count: 7 }]);
    const trace = await run.temper('trace', 's-1', '--output', 'json');
    assert.match(trace.stdout, /"format":"json"/);
  });

  it('a hook whose tool does not exist refuses every call, and the trace has its failure', async () => {
    await using run = await project(`${RETURNS}\n${HOOK}`);
    const { stdout, stderr } = await run.run('--session', 's-1', '-m', 'please read').ended;
    const end = jsonLines<Record<string, unknown>>(stdout).at(-1);
    assert.deepEqual(end?.['value'], { count: 0, reason: 'TEMPER_HOOK_DENIED' }, stderr);
    const trace = await run.temper('trace', 's-1', '--output', 'json');
    assert.match(
      trace.stdout,
      /"type":"hook","tool":"missing_guard","event":"tool-call","code":"TEMPER_TOOL_NOT_FOUND"/,
    );
  });

  it('validation names what is wrong with a schema or a hook', async () => {
    await using run = await project(`  returns: '[1]'\n  hooks: [{events: [ToolCall], tool: forge_tool, timeout: 2m}]`);
    const { code, stdout, stderr } = await run.temper('validate', '-f', 'agent.yaml');
    assert.equal(code, 1);
    for (const part of [/spec\.returns is not a JSON Schema/, /"forge_tool" cannot be a hook/, /from 10ms to 60s/]) {
      assert.match(`${stdout}${stderr}`, part);
    }
  });
});
