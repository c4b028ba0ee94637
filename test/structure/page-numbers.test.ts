import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { systemPrompt } from '../../src/agent/loop/system-prompt.ts';
import { loopLimits } from '../../src/agent/loop/limits.ts';
import { DEFAULT_MAX_CONNECTIONS } from '../../src/net/connection-limits.ts';
import { sessionPath } from '../../src/tools/session-path.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const WORDS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine'];

function page(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

describe('the numbers of the pages', () => {
  const agentLoop = page('docs/reference/agent-loop.md');

  it('the page of the agent loop states the limits of an agent without its own', () => {
    const { turns, steps, outputCharacters, maxOutputTokens } = loopLimits({
      trustPolicyRef: { name: 'p' },
      model: { primary: 'a/b' },
      prompt: { system: 's' },
    });
    for (const [field, value] of [
      ['limits.turns', turns],
      ['limits.steps', steps],
      ['limits.outputCharacters', outputCharacters],
      ['model.maxOutputTokens', maxOutputTokens],
    ] as const) {
      assert.match(agentLoop, new RegExp(`^\\| \`spec\\.${field.replace('.', '\\.')}\` \\| ${grouped(value)} `, 'm'));
    }
  });

  it('the page of the agent loop states how many lines Temper appends to the system prompt', () => {
    const lines = systemPrompt('prompt')
      .split('\n')
      .filter((line) => line.startsWith('- '));
    assert.ok(agentLoop.includes(`${WORDS[lines.length]} lines on reliable work`));
  });

  it('the pages name the files of a session as the state folder does', () => {
    const path = sessionPath({ namespace: 'namespace', agent: 'agent', session: 'id' });
    for (const name of ['agent-loop', 'state', 'tempering']) {
      assert.ok(page(`docs/reference/${name}.md`).toLowerCase().includes(`\`${path}/`), name);
    }
  });

  it('the pages and the chart state how many connections a gateway accepts', () => {
    const stated = grouped(DEFAULT_MAX_CONNECTIONS);
    assert.match(page('docs/reference/gateway.md'), new RegExp(`^\\| \`maxConnections\` \\|.*\\| ${stated} \\|$`, 'm'));
    assert.match(page('docs/reference/egress.md'), new RegExp(`^\\| \`maxConnections\` \\|.*\\| ${stated} \\|$`, 'm'));
    const { gateway, egress } = parse(page('charts/temper/values.yaml'));
    assert.equal(gateway.maxConnections, DEFAULT_MAX_CONNECTIONS);
    assert.equal(egress.maxConnections, DEFAULT_MAX_CONNECTIONS);
  });
});
