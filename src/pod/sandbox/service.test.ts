import assert from 'node:assert/strict';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { SessionSandbox } from '../../sandbox/session-port.ts';
import type { SandboxFrame } from '../socket/protocol.ts';
import { SandboxService } from './service.ts';

const sandbox: Sandbox & SessionSandbox = {
  run: () => Promise.reject(new Error('unexpected job')),
  openSession: () => Promise.reject(new Error('unexpected session')),
};

describe('the requests of an agent container', () => {
  it('a file read that is cancelled before its location is known ends', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'temper-service-'));
    await writeFile(join(folder.path, 'in.txt'), 'inside');
    const result = Promise.withResolvers<SandboxFrame>();
    const service = new SandboxService({ sandbox, workspace: folder.path, clock: systemClock }, (frame) => {
      if (frame.type === 'result') result.resolve(frame);
      return true;
    });
    assert.ok(service.handleFrame({ type: 'read', id: 1, path: 'in.txt' }));
    assert.ok(service.handleFrame({ type: 'cancel', id: 1 }));
    const frame = await result.promise;
    assert.ok(frame.type === 'result' && !frame.answer.ok);
    assert.match(frame.answer.message, /the request was cancelled/);
  });
});
