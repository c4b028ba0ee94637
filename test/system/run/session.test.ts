import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pollAssertion } from '../../support/poll.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { plainEnvironment, ROOT } from '../command.ts';
import { openProject } from '../project.ts';

const AGENT = `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: reader}
spec:
  trustPolicyRef: {name: plain}
  model: {primary: default/default}
  prompt: {system: You read files.}
  grants: {tools: ["file_read"]}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: plain}
spec:
  level: {initial: restricted, ceiling: restricted}
`;

const SCRIPT = `
rules:
  - when: {lastUser: "read", turn: 1}
    answer: {toolCalls: [{id: a, name: file_read, arguments: {path: note.txt}}, {id: b, name: file_read, arguments: {path: none.txt}}]}
  - when: {lastUser: "wait", turn: 1}
    answer: {toolCalls: [{id: a, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "wait", turn: 2}
    answer: {text: "late", delayMilliseconds: 60000}
  - answer: {text: "Done."}
`;

async function aProject(policyRest = '') {
  const project = await openProject({ manifests: AGENT + policyRest, script: SCRIPT }, 'text');
  return { ...project, open: () => openRun(project.runArguments, project.path) };
}

/** Starts a run that reads messages from an open standard input. */
function openRun(args: readonly string[], cwd: string) {
  const child = spawn(join(ROOT, 'bin/temper'), args, { cwd, env: plainEnvironment() });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  child.stdin.on('error', () => {
    // The run may end before it has read all its input.
  });
  return { child, printed: () => output.stdout, errors: () => output.stderr };
}

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? '';

describe('the end of a run', () => {
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`${signal} stops the message, prints a true summary last and exits with ${exitCode}`, async () => {
      await using project = await aProject();
      const running = project.run('-m', 'wait');
      await pollAssertion('the tool result', () => assert.match(running.printed(), /✓ .*hello/));
      running.child.kill(signal);
      const { code, stdout, stderr } = await running.ended;
      assert.equal(code, exitCode, stderr);
      assert.match(lastLine(stdout), /^Used 1 turn, 1 tool call, [\d,]+ tokens \(replayed\)/);
      assert.ok(!stdout.includes('◂'), stdout);
      assert.equal(stderr, '');
    });
  }

  it('a run that reads standard input ends at a signal, also between two messages', async () => {
    await using project = await aProject();
    const running = project.open();
    running.child.stdin.write('hello\n');
    await pollAssertion('the answer', () => assert.match(running.printed(), /◂ reader: Done\./));
    running.child.kill('SIGTERM');
    const [code] = (await once(running.child, 'close')) as [number | null];
    assert.equal(code, 143);
    assert.match(lastLine(running.printed()), /^Used 1 turn, 0 tool calls/);
  });

  it('a reader that has gone ends the run quietly, and the state stays consistent', async () => {
    await using project = await aProject();
    const running = project.open();
    running.child.stdin.write('hello\n');
    await pollAssertion('the answer', () => assert.match(running.printed(), /◂ reader: Done\./));
    running.child.stdout.destroy();
    running.child.stdin.write('read\nread again\n');
    const [code] = (await once(running.child, 'close')) as [number | null];
    assert.equal(code, 141);
    assert.equal(running.errors(), '');
    const audit = await project.temper('audit');
    assert.match(audit.stdout, /chain intact/);
    const { code: next } = await project.run('-m', 'hello').ended;
    assert.equal(next, 0, 'the lock is free');
  });

  it('a failed message counts in the summary', async () => {
    await using project = await aProject();
    await writeFile(join(project.path, 'agent.yaml'), AGENT.replace('  grants:', '  limits: {turns: 1}\n  grants:'));
    const { code, stdout } = await project.run('-m', 'read').ended;
    assert.equal(code, 1, stdout);
    assert.match(lastLine(stdout), /^Used 2 turns, 2 tool calls, [1-9][\d,]* tokens/);
    assert.match(stdout, /✗ file_read \{"path":"none.txt"\}: "none.txt" does not exist/);
  });
});

describe('the sessions of a state folder', () => {
  it('a conversation is listed, readable, continued and counted', async () => {
    await using project = await aProject();
    await project.run('--session', 'first', '-m', 'read').ended;
    await project.run('-m', 'hello there').ended;
    const continued = await project.run('--continue', '-m', 'again').ended;
    assert.equal(continued.code, 0, continued.stderr);
    const listed = await project.temper('sessions', '-o', 'json');
    const [last, first] = jsonLines<{ session: string; messages: number; lastMessage: string; agent: string }>(
      listed.stdout,
    );
    assert.deepEqual([last?.messages, last?.lastMessage, last?.agent], [2, 'again', 'reader']);
    assert.equal(first?.session, 'first');
    for (const verb of ['sessions', 'usage']) {
      const unknown = await project.temper(verb, 'writer');
      assert.equal(unknown.code, 1, verb);
      assert.match(unknown.stderr, /TEMPER_NOT_FOUND: no agents named "writer"; there are: reader$/m);
    }
    const shown = await project.temper('trace', 'first');
    const parts = [
      /▸ You: read\n/,
      /calls +file_read/,
      /✓ file_read/,
      /✗ file_read/,
      /◂ reader: Done\.\n1 message: 2 turns/,
    ];
    for (const part of parts) assert.match(shown.stdout, part);
    const events = jsonLines<{ type: string; agent: string }>(
      (await project.temper('trace', 'first', '-o', 'json')).stdout,
    );
    assert.ok(events.some(({ type, agent }) => type === 'tool-call' && agent === 'reader'));
    const usage = await project.temper('usage', 'reader', '-o', 'json');
    const [account] = jsonLines<{ account: string; day: { inputTokens: number } }>(usage.stdout);
    assert.equal(account?.account, 'agent/default/reader');
    assert.ok((account?.day.inputTokens ?? 0) > 0);
    const unknown = await project.temper('trace', 'third');
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /TEMPER_NOT_FOUND.*there are: .*first/);
  });

  it('a request whose session has gone expires at the next run', async () => {
    await using project = await aProject(`  rules: {requireApproval: ["code:read"]}\n`);
    const { stdout } = await project.run('-m', 'wait').ended;
    const [request = ''] = /file-read-[0-9a-f]+/.exec(stdout) ?? [];
    await rm(join(project.path, '.temper/sessions'), { recursive: true });
    await project.run('-m', 'hello').ended;
    const approved = await project.temper('approve', request, '--reason', 'fine');
    assert.equal(approved.code, 1);
    assert.match(approved.stderr, /TEMPER_APPROVAL_TIMEOUT.*has ended/);
  });
});

describe('paths that a run cannot use', () => {
  it('a bad session, workspace or state folder is a usage error that names it', async () => {
    await using project = await aProject();
    for (const [args, message] of [
      [['--session', 'bad id'], /TEMPER_SESSION_INVALID: "bad id"/],
      [['--workspace', 'nosuch'], /TEMPER_USAGE: --workspace .*nosuch does not exist/],
      [['--state', '/dev/null/x'], /TEMPER_STATE_UNUSABLE: \/dev\/null\/x/],
      [['-f', 'nosuch.yaml'], /TEMPER_MANIFEST_UNREADABLE: .*nosuch\.yaml/],
    ] as const) {
      const { code, stderr } = await project.run(...args, '-m', 'hello').ended;
      assert.equal(code, 2, stderr);
      assert.match(stderr, message);
      assert.ok(!/\n {4}at /.test(stderr), stderr);
    }
    assert.ok(!(await readdir(project.path)).includes('.temper'));
  });

  it('a missing state folder is an error, not an empty state', async () => {
    await using project = await aProject();
    for (const verb of [
      ['audit'],
      ['get', 'tools'],
      ['describe', 'tool', 'x'],
      ['sessions'],
      ['usage'],
      ['trace', 's'],
      ['approve', 'x', '--reason', 'y'],
    ]) {
      const { code, stderr } = await project.temper(...verb);
      assert.equal(code, 2, verb.join(' '));
      assert.match(stderr, /TEMPER_STATE_NOT_FOUND: the state folder .*\.temper does not exist/);
    }
    const first = await project.run('--continue', '-m', 'hello').ended;
    assert.equal(first.code, 1);
    assert.match(first.stderr, /TEMPER_NOT_FOUND: --continue: agent "reader" has no session/);
  });
});
