import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pollAssertion } from '../support/poll.ts';
import { jsonLines, ROOT, startTemper, temper, temporaryFolder } from './command.ts';

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
  const folder = await temporaryFolder();
  await writeFile(join(folder.path, 'agent.yaml'), AGENT + policyRest);
  await writeFile(join(folder.path, 'script.yaml'), SCRIPT);
  await writeFile(join(folder.path, 'note.txt'), 'hello');
  const common = ['run', '-f', 'agent.yaml', '--model-script', 'script.yaml', '-o', 'text'];
  return {
    path: folder.path,
    run: (...rest: string[]) => startTemper([...common, ...rest], { cwd: folder.path }),
    temper: (...args: string[]) => temper(args, { cwd: folder.path }),
    shell: (command: string) => shell(`"${join(ROOT, 'bin/temper')}" ${common.join(' ')} ${command}`, folder.path),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** Runs a pipeline; the exit code is that of its first command. */
async function shell(command: string, cwd: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn('bash', ['-o', 'pipefail', '-c', command], { cwd, env: { PATH, HOME, NO_COLOR: '1' } });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
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
    const running = spawn(
      'bash',
      ['-c', `exec "${join(ROOT, 'bin/temper')}" run -f agent.yaml --model-script script.yaml -o text`],
      {
        cwd: project.path,
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    let printed = '';
    running.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    running.stdin.write('hello\n');
    await pollAssertion('the answer', () => assert.match(printed, /◂ reader: Done\./));
    running.kill('SIGTERM');
    const [code] = (await once(running, 'close')) as [number | null];
    assert.equal(code, 143);
    assert.match(lastLine(printed), /^Used 1 turn, 0 tool calls/);
  });

  it('a reader that has gone ends the run quietly, and the state stays consistent', async () => {
    await using project = await aProject();
    const { code, stdout, stderr } = await project.shell('-m read -m "read again" | head -1');
    assert.equal(code, 141);
    assert.match(stdout, /^Agent reader · .*\n$/);
    assert.equal(stderr, '');
    const audit = await project.temper('audit');
    assert.match(audit.stdout, /chain intact/);
    const { code: again } = await project.run('-m', 'hello').ended;
    assert.equal(again, 0, 'the lock is free');
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
    assert.match((await project.temper('sessions', 'nobody')).stdout, /No sessions of agent "nobody"/);
    const shown = await project.temper('trace', 'first');
    assert.match(
      shown.stdout,
      /▸ You: read[^]*calls +file_read[^]*✓ file_read[^]*✗ file_read[^]*◂ reader: Done\.\n1 message: 2 turns/,
    );
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

  it('a decision about a call whose run has ended is refused', async () => {
    await using project = await aProject(`  rules: {requireApproval: ["code:read"]}\n`);
    const running = project.run('-m', 'wait');
    await pollAssertion('the request', () => assert.match(running.printed(), /waits for an approver/));
    const [request = ''] = /file-read-[0-9a-f]+/.exec(running.printed()) ?? [];
    running.child.kill('SIGKILL');
    await running.ended;
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
