import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import type { JobOutcome } from './port.ts';
import { runJobSession, type JobSessionOptions } from './job-session.ts';
import { createMemoryReader } from './memory-usage.ts';
import { RunnerProcess } from './runner-process.ts';
import { aJob, anOp, echoHost, type JobChanges } from './sandbox.testing.ts';

/** Runs a session on a compromised runner, which sends the frames of the script. */
async function underHostileRunner(
  script: string,
  changes: JobChanges = {},
): Promise<{ outcome: JobOutcome; reusable: boolean }> {
  const prelude = `const { writeSync } = require('fs');
    const raw = (bytes) => { for (let o = 0; o < bytes.length; ) o += writeSync(1, bytes, o); };
    const say = (frame) => { const body = Buffer.from(typeof frame === 'string' ? frame : JSON.stringify(frame));
      const head = Buffer.alloc(4); head.writeUInt32BE(body.length); raw(Buffer.concat([head, body])); };
    const usage = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };
    const stay = () => setInterval(() => {}, 1000);\n`;
  const plan = { command: process.execPath, args: ['--no-warnings', '--eval', prelude + script] };
  const runner = new RunnerProcess(plan, { frame: () => {}, ended: () => {} });
  const limits = { durationMilliseconds: 60_000, ...changes.limits };
  const parts: JobSessionOptions = {
    runner,
    clock: systemClock,
    readMemory: createMemoryReader(process.platform),
    job: aJob('function execute() {}', { ...changes, limits }),
    input: '{}',
    host: echoHost,
    op: anOp(),
    number: 1,
  };
  const result = await new Promise<{ outcome: JobOutcome; reusable: boolean }>((resolve) =>
    runJobSession(parts, resolve),
  );
  runner.kill('the test has ended');
  await runner.exited;
  return result;
}

describe('a job on a compromised runner', () => {
  for (const [what, script] of Object.entries({
    'bytes that are not a frame': 'raw(Buffer.from("GET / HTTP/1.1\\r\\n\\r\\n")); stay();',
    'a frame larger than allowed': 'raw(Buffer.from([0x7f, 0, 0, 0])); stay();',
    'an endless frame': 'raw(Buffer.from([0, 0x0f, 0, 0])); for (;;) raw(Buffer.alloc(65536, 65));',
    'text that is not JSON': 'say("{"); stay();',
    'JSON that is not a frame': 'say([1]); stay();',
    'an outcome of another job': 'say({ type: "done", job: 2, ok: true, output: "1", usage }); stay();',
    'a hello frame during a job': 'say({ type: "hello", runtime: "26.0.0", engine: "7.0.1" }); stay();',
    'a function that does not exist': 'say({ type: "call", job: 1, call: 1, api: "exec", input: "{}" }); stay();',
    'an exit of the runner': 'process.exit(0);',
    'a signal to itself': 'process.kill(process.pid, "SIGKILL");',
    'a failure code that only the supervisor may report':
      'say({ type: "done", job: 1, ok: false, code: "TEMPER_CANCELLED", message: "", usage }); stay();',
  })) {
    it(`the job ends on ${what}`, async () => {
      const { outcome, reusable } = await underHostileRunner(script);
      assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_CRASHED');
      assert.equal(reusable, false);
    });
  }

  for (const [what, script] of Object.entries({
    'a host call that was not declared': 'say({ type: "call", job: 1, call: 1, api: "fetch", input: "{}" }); stay();',
    'more calls than allowed':
      'for (let call = 1; ; call += 1) say({ type: "call", job: 1, call, api: "fs.readFile", input: "{}" });',
    'a call out of order': 'say({ type: "call", job: 1, call: 7, api: "fs.readFile", input: "{}" }); stay();',
    'calls with too many bytes':
      'for (let call = 1; ; call += 1) say({ type: "call", job: 1, call, api: "fs.readFile", input: JSON.stringify("x".repeat(2e5)) });',
  })) {
    it(`the job ends on ${what}`, async () => {
      const { outcome, reusable } = await underHostileRunner(script, { apis: ['fs.readFile'] });
      assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_CALL_BUDGET');
      assert.equal(reusable, false);
    });
  }

  it('the job ends at its deadline when the runner is silent', async () => {
    const { outcome } = await underHostileRunner('stay();', { limits: { durationMilliseconds: 300 } });
    assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_TIMEOUT');
  });

  it('the job ends when the process uses too much memory, even if the engine reports less', async () => {
    const grow = 'const held = []; setInterval(() => held.push(Buffer.alloc(16777216, 1)), 5);';
    const { outcome } = await underHostileRunner(grow, { limits: { memoryBytes: 8_388_608 } });
    assert.equal(outcome.ok ? 'ok' : outcome.code, 'TEMPER_SANDBOX_MEMORY');
  });

  it('an output that is too large, too deep or not JSON fails the job', async () => {
    const done = (output: string) => `say({ type: "done", job: 1, ok: true, output: ${output}, usage }); stay();`;
    const codes: string[] = [];
    for (const output of ['"x".repeat(300000)', '"[".repeat(100000) + "]".repeat(100000)', '"undefined"', '""']) {
      const { outcome } = await underHostileRunner(done(output));
      codes.push(outcome.ok ? 'ok' : outcome.code);
    }
    assert.deepEqual(codes, [
      'TEMPER_SANDBOX_OUTPUT_TOO_LARGE',
      'TEMPER_SANDBOX_OUTPUT_INVALID',
      'TEMPER_SANDBOX_OUTPUT_INVALID',
      'TEMPER_SANDBOX_OUTPUT_INVALID',
    ]);
  });

  it('the message of a failure is printable and bounded', async () => {
    const message = '"\\u001b[2J\\u202e" + "y".repeat(20000)';
    const script = `say({ type: "done", job: 1, ok: false, code: "TEMPER_SANDBOX_EXCEPTION", message: ${message}, usage }); stay();`;
    const { outcome } = await underHostileRunner(script);
    assert.ok(!outcome.ok && outcome.message.length < 4_200);
    assert.ok(!outcome.ok && outcome.message.startsWith('\\u{1b}[2J\\u{202e}'));
  });
});
