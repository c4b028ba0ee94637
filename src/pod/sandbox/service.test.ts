import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import type { Json } from '../../lib/json.ts';
import type { Terminal, TerminalRequest } from '../../toolbox/terminal/port.ts';
import type { SandboxFrame } from '../socket/protocol.ts';
import { SandboxService } from './service.ts';

const terminal = { run: () => Promise.reject(new Error('unexpected program')) };

const sandbox: Sandbox & SessionSandbox = {
  run: () => Promise.reject(new Error('unexpected job')),
  openSession: () => Promise.reject(new Error('unexpected session')),
};

const options = {
  sandbox,
  terminal,
  workspace: '/',
  clock: systemClock,
  onRest: () => assert.fail('nothing asked for a rest'),
};

describe('the requests of an agent container', () => {
  it('a file read that is cancelled before its location is known ends', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'temper-service-'));
    await writeFile(join(folder.path, 'in.txt'), 'inside');
    const result = Promise.withResolvers<SandboxFrame>();
    const service = new SandboxService({ ...options, workspace: folder.path }, (frame) => {
      if (frame.type === 'result') result.resolve(frame);
      return true;
    });
    assert.ok(service.handleFrame({ type: 'read', id: 1, path: 'in.txt' }));
    assert.ok(service.handleFrame({ type: 'cancel', id: 1 }));
    const frame = await result.promise;
    assert.ok(frame.type === 'result' && !frame.answer.ok);
    assert.match(frame.answer.message, /the request was cancelled/);
  });

  it('a program runs as the agent container asks for it, and an invalid request runs none', async () => {
    const asked: TerminalRequest[] = [];
    const recording: Terminal = {
      run: (request) => {
        asked.push(request);
        return Promise.resolve({ exitCode: 0, stdout: 'done', stderr: '' });
      },
    };
    const frames: SandboxFrame[] = [];
    const received = new EventEmitter();
    const service = new SandboxService({ ...options, terminal: recording }, (frame) => {
      frames.push(frame);
      return received.emit('frame');
    });
    const request = {
      program: 'ls',
      args: ['-l'],
      folder: '.',
      programs: ['ls'],
      environment: [],
      milliseconds: 1_000,
    };
    const invalid: Json[] = [
      null,
      [],
      { ...request, args: 'x' },
      { ...request, programs: 'all' },
      { ...request, input: 1 },
    ];
    for (const [index, input] of [request, ...invalid].entries()) {
      const answered = once(received, 'frame');
      assert.ok(service.handleFrame({ type: 'tool', id: index + 1, name: 'terminal', input }));
      await answered;
    }
    assert.deepEqual(asked, [request]);
    const results = frames.map((frame) => frame.type === 'result' && (frame.answer.ok || frame.answer.code));
    assert.deepEqual(results, [true, ...invalid.map(() => 'TEMPER_TOOL_INPUT_INVALID')]);
  });
});
