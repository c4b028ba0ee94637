import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { aTerminal } from '../../../src/cli/io.testing.ts';
import { runCommandLine } from '../../../src/cli/command-line.ts';
import { isUnprintable } from '../../../src/lib/printable.ts';
import { temporaryFolder } from '../command.ts';

const ATTACK = 'x\u001b]52;c;eA==\u0007\u009b2J\u202e\r';
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
const json = JSON.stringify;

/** A value with the attack in every string and name, in the shapes that commands look for. */
function hostile(path: string): object {
  const digest = `sha256:${'ab'.repeat(32)}`;
  const artifact = {
    name: path,
    description: path,
    implementation: { source: path, steps: [{ name: path, tool: path }] },
  };
  return {
    apiVersion: path,
    kind: path,
    metadata: { name: path, namespace: path, creationTimestamp: path, labels: { [path]: path } },
    spec: {
      type: path,
      tool: path,
      summary: path,
      risk: path,
      agent: { name: path },
      digest,
      tier: path,
      contributors: [path],
      artifact,
    },
    status: {
      decision: path,
      conditions: [{ type: path, status: path, reason: path, message: path, lastTransitionTime: path }],
    },
    [path]: { [path]: [path, null, 1e300, { [path]: path }] },
    session: path,
    agent: path,
    namespace: path,
    openedAt: path,
    usedAt: path,
    name: path,
    message: path,
    class: path,
    gate: path,
  };
}

const COLLECTIONS = [
  'agents',
  'trustpolicies',
  'tools',
  'sessions',
  'approvalrequests',
  'approvals',
  'promotions',
  'evidence',
];

/** State folders that another user could hand over; each is a list of files. */
const FOLDERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'control sequences in every string': Object.fromEntries([
    ...COLLECTIONS.map((name) => [`${name}/a.json`, json(hostile(ATTACK))]),
    ['rejected/default/a/b.json', json(hostile(ATTACK))],
    ['audit/records.jsonl', `${json({ action: ATTACK, actor: ATTACK, subject: ATTACK, facts: { tool: ATTACK } })}\n`],
    ['ledger/journal.jsonl', `${json({ account: ATTACK, name: ATTACK })}\n`],
  ]),
  'paths that lead outside': Object.fromEntries(
    COLLECTIONS.map((name) => [`${name}/a.json`, json(hostile('../../x'))]),
  ),
  'names that are too long': Object.fromEntries(
    COLLECTIONS.map((name) => [`${name}/a.json`, json(hostile('x'.repeat(5_000)))]),
  ),
  'deeply nested documents': Object.fromEntries([
    ...COLLECTIONS.map((name) => [
      `${name}/a.json`,
      `{"spec": ${deep(20_000)}, "metadata": {"labels": ${deep(20_000)}}}`,
    ]),
    [
      'audit/records.jsonl',
      `{"seq": 1, "facts": {"x": ${deep(20_000)}}, "evidence": "observed", "action": "a", "actor": "a", "subject": "s", "time": "t", "previous": "p", "digest": "d"}\n`,
    ],
  ]),
  'a wrong type everywhere': Object.fromEntries([
    ...COLLECTIONS.map((name, index) => [
      `${name}/a.json`,
      ['null', '7', '"x"', '[]', '[[]]', '{"spec": 7}', 'true', '{"metadata": []}'][index] ?? '0',
    ]),
    ['audit/head.json', '{"seq": -1e308, "digest": "x", "signature": {"key": [], "hmac": {}}}'],
  ]),
  'documents that are no JSON': Object.fromEntries(COLLECTIONS.map((name) => [`${name}/a.json`, '\u0000\u001b[2J{'])),
  'prototype members': Object.fromEntries(
    COLLECTIONS.map((name) => [
      `${name}/a.json`,
      '{"__proto__": {"spec": 1}, "constructor": 1, "spec": {"__proto__": {"type": "ToolCall"}}}',
    ]),
  ),
};

const COMMANDS: readonly (readonly string[])[] = [
  ...['text', 'wide', 'name', 'json', 'yaml'].flatMap((form) => [
    ['get', 'all', '-o', form === 'text' ? 'wide' : form],
    ['get', 'capabilities', '-o', form === 'text' ? 'wide' : form],
    ['get', 'sessions,rejected', '-o', form === 'text' ? 'wide' : form],
  ]),
  ...['agent', 'trustpolicy', 'tool', 'session', 'approvalrequest', 'approval'].flatMap((kind) => [
    ['describe', kind, 'a'],
    ['describe', kind, ATTACK],
    ['describe', kind, 'a', '-o', 'yaml'],
  ]),
  ['sessions'],
  ['usage'],
  ['trace', 'a'],
  ['audit'],
  ['audit', '-o', 'json'],
  ['audit', '--adopt'],
  ['tool', 'export', 'a'],
  ['tool', 'export', ATTACK],
  ['approve', 'a', '--reason', ATTACK],
  ['demote', ATTACK, '--reason', ATTACK],
];

describe('a state folder that another program made', () => {
  let root: Awaited<ReturnType<typeof temporaryFolder>>;
  before(async () => {
    root = await temporaryFolder();
  });
  after(() => root[Symbol.asyncDispose]());

  for (const [index, [name, files]] of Object.entries(FOLDERS).entries()) {
    it(`${name} end no command with a defect, and no output controls the terminal`, async () => {
      const state = join(root.path, `state-${index}`);
      for (const words of COMMANDS) {
        await rm(state, { recursive: true, force: true });
        for (const [path, text] of Object.entries({ 'lock.json': '{}', ...files })) {
          await mkdir(dirname(join(state, path)), { recursive: true, mode: 0o700 });
          await writeFile(join(state, path), text, { mode: 0o600 });
        }
        const io = { ...aTerminal(), cwd: root.path, environment: { XDG_CONFIG_HOME: join(root.path, 'config') } };
        const code = await runCommandLine([...words, '--state', state], io);
        const output = `${io.printed()}${io.errors()}`;
        const label = `${words.join(' ')}: ${output.slice(0, 600)}`;
        assert.ok([0, 1, 2].includes(code), label);
        assert.doesNotMatch(output, /TEMPER_INTERNAL|\n {4}at /, label);
        const controls = Array.from(output).filter((c) => c !== '\n' && isUnprintable(c.codePointAt(0) ?? 0));
        assert.deepEqual(controls, [], label);
      }
    });
  }
});
