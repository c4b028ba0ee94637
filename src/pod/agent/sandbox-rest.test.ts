import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { poll } from '../../../test/support/poll.ts';
import { systemClock } from '../../lib/clock.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import { aJob, anOp } from '../../sandbox/sandbox.testing.ts';
import { FramePeer } from '../../../test/support/frame-peer.ts';
import { prepareSocketFolder, socketPaths } from '../socket/socket-folder.ts';
import { SandboxConnection } from './sandbox-connection.ts';
import { SandboxRest } from './sandbox-rest.ts';

const noHost: HostCalls = { call: () => Promise.reject(new Error('unexpected host call')) };
const HELLO = { type: 'hello', version: 1, canRest: true };
const USAGE = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };
const NEVER_MS = 600_000;

/** A process of the sandbox container. */
const peerAt = (path: string, ...frames: object[]): FramePeer => new FramePeer(connect(path), ...frames);

interface LinkOptions {
  restAfterMs?: number;
  returnTimeoutMs?: number;
  mayRest?: () => boolean;
}

async function aLink({ restAfterMs = 1, returnTimeoutMs = NEVER_MS, mayRest = () => true }: LinkOptions = {}) {
  const folder = await mkdtempDisposable(`${tmpdir()}/temper-rest-`);
  await prepareSocketFolder(folder.path, process.getuid?.() ?? 0);
  const { socket: path } = socketPaths(folder.path);
  const changes: boolean[] = [];
  const onChange = (connected: boolean): void => void changes.push(connected);
  const link = await SandboxConnection.listen(path, {
    clock: systemClock,
    restAfterMs,
    returnTimeoutMs,
    mayRest,
    onChange,
  });
  return {
    link,
    path,
    changes,
    async [Symbol.asyncDispose]() {
      await link[Symbol.asyncDispose]();
      await folder.remove();
    },
  };
}

/** A connection whose sandbox rests. */
async function aRestingLink(options: LinkOptions = {}) {
  const opened = await aLink(options);
  const sandbox = peerAt(opened.path, HELLO);
  await sandbox.got('rest');
  sandbox.end();
  const launcher = peerAt(opened.path, { type: 'resting' });
  await poll('the rest', () => opened.link.isResting);
  return { ...opened, launcher };
}

describe('a sandbox that rests', { timeout: 120_000 }, () => {
  it('the agent asks an idle sandbox to rest, and the pod stays ready while its launcher waits', async () => {
    await using resting = await aRestingLink();
    assert.deepEqual(resting.changes, [true]);
    assert.equal(resting.link.connected, false);
  });

  it('a request ends the rest, waits for the sandbox, and gets its answer', async () => {
    await using resting = await aRestingLink();
    const running = resting.link.run(aJob('function execute() {}'), noHost, anOp());
    await resting.launcher.closed;
    const sandbox = peerAt(resting.path, HELLO);
    const { id } = await sandbox.got('run');
    sandbox.send({ type: 'outcome', id, outcome: { ok: true, output: 7, usage: USAGE } });
    const outcome = await running;
    assert.equal(outcome.ok && outcome.output, 7);
    assert.ok(!resting.changes.includes(false));
    await sandbox.got('rest');
  });

  it('a request that arrives before the launcher does ends the rest at once', async () => {
    await using opened = await aLink();
    const sandbox = peerAt(opened.path, HELLO);
    await sandbox.got('rest');
    const running = opened.link.run(aJob('function execute() {}'), noHost, anOp());
    sandbox.end();
    const launcher = peerAt(opened.path, { type: 'resting' });
    await launcher.closed;
    const again = peerAt(opened.path, HELLO);
    const { id } = await again.got('run');
    again.send({ type: 'outcome', id, outcome: { ok: true, output: 8, usage: USAGE } });
    const outcome = await running;
    assert.equal(outcome.ok && outcome.output, 8);
  });

  it('the agent takes the connection of the launcher while it has not seen the end of the last one', async () => {
    await using opened = await aLink();
    const sandbox = peerAt(opened.path, HELLO);
    await sandbox.got('rest');
    const launcher = peerAt(opened.path, { type: 'resting' });
    await poll('the rest', () => opened.link.isResting);
    await sandbox.closed;
    assert.deepEqual(launcher.frames, []);
    assert.deepEqual(opened.changes, [true]);
  });

  it('a request in work, an open session and a pod without an agent keep their sandbox', async () => {
    let isAssigned = false;
    await using opened = await aLink({ restAfterMs: 20, mayRest: () => isAssigned });
    const sandbox = peerAt(opened.path, HELLO);
    const keeps = async (): Promise<void> => {
      await systemClock.sleep(100, new AbortController().signal);
      assert.deepEqual(
        sandbox.frames.filter(({ type }) => type === 'rest'),
        [],
      );
    };
    await sandbox.got('welcome');
    await keeps();
    const running = opened.link.run(aJob('function execute() {}'), noHost, anOp());
    isAssigned = true;
    const { id } = await sandbox.got('run');
    await keeps();
    const opening = opened.link.openSession(
      {
        limits: {
          memoryBytes: 1_000_000,
          guestMilliseconds: 1_000,
          runMilliseconds: 1_000,
          outputBytes: 1_000,
          snapshotBytes: 1_000,
          logBytes: 1_000,
          calls: 1,
          callBytes: 1_000,
        },
        memory: {},
      },
      anOp(),
    );
    const open = await sandbox.got('open');
    sandbox.send({ type: 'result', id: open['id'], answer: { ok: true, value: null } });
    const session = await opening;
    sandbox.send({ type: 'outcome', id, outcome: { ok: true, output: 7, usage: USAGE } });
    await running;
    await keeps();
    await session.close();
    await sandbox.got('rest');
  });

  it('a sandbox that cannot rest is never asked to', async () => {
    await using opened = await aLink({ restAfterMs: 1 });
    const sandbox = peerAt(opened.path, { type: 'hello', version: 1 });
    await sandbox.got('welcome');
    await systemClock.sleep(100, new AbortController().signal);
    assert.deepEqual(
      sandbox.frames.map(({ type }) => type),
      ['welcome'],
    );
  });

  it('a sandbox that does not come back in time loses its connection, and the pod is not ready until it connects again', async () => {
    await using opened = await aLink({ returnTimeoutMs: 50 });
    const sandbox = peerAt(opened.path, HELLO);
    await poll('a pod that is not ready', () => opened.changes.at(-1) === false);
    await sandbox.closed;
    const again = peerAt(opened.path, HELLO);
    await poll('a pod that is ready again', () => opened.changes.length >= 3);
    assert.deepEqual(opened.changes.slice(0, 3), [true, false, true]);
    again.end();
  });

  it('the agent refuses a launcher that it did not ask for, and a second frame of it', async () => {
    await using opened = await aLink({ restAfterMs: NEVER_MS });
    const early = peerAt(opened.path, { type: 'resting' });
    await early.closed;
    assert.deepEqual(opened.changes, []);
    await using resting = await aRestingLink();
    resting.launcher.send({ type: 'resting' });
    await resting.launcher.closed;
    assert.equal(resting.link.isResting, false);
  });
});

describe('the times of a rest', () => {
  let calls: string[];
  let isIdle: boolean;
  let rest: SandboxRest;

  beforeEach(() => {
    mock.timers.enable({ apis: ['setTimeout'] });
    calls = [];
    isIdle = true;
    const record = (call: string) => () => void calls.push(call);
    rest = new SandboxRest({ isIdle: () => isIdle, onRest: record('rest'), onLost: record('lost') });
  });

  afterEach(() => mock.timers.reset());

  it('a sandbox rests a minute after its last request, and not while it is in use', () => {
    rest.ready(true);
    mock.timers.tick(59_999);
    rest.touch();
    mock.timers.tick(59_999);
    assert.deepEqual(calls, []);
    isIdle = false;
    mock.timers.tick(60_001);
    assert.deepEqual(calls, []);
    isIdle = true;
    mock.timers.tick(60_000);
    assert.deepEqual([calls, rest.isAway], [['rest'], true]);
  });

  it('a sandbox has thirty seconds to rest, and its launcher thirty seconds to start it again', () => {
    rest.ready(true);
    mock.timers.tick(60_000);
    mock.timers.tick(29_999);
    rest.arrived();
    mock.timers.tick(600_000);
    assert.deepEqual(calls, ['rest']);
    rest.awaitReturn();
    mock.timers.tick(15_000);
    rest.awaitReturn();
    mock.timers.tick(14_999);
    assert.deepEqual(calls, ['rest']);
    mock.timers.tick(1);
    assert.deepEqual([calls, rest.isAway], [['rest', 'lost'], false]);
  });

  it('a sandbox that is ready again in time is not lost, and one that cannot rest is not asked to', () => {
    rest.ready(true);
    mock.timers.tick(80_000);
    rest.ready(false);
    mock.timers.tick(600_000);
    assert.deepEqual(calls, ['rest']);
  });

  it('a connection that ends has no timers', () => {
    rest.ready(true);
    rest[Symbol.dispose]();
    mock.timers.tick(600_000);
    assert.deepEqual(calls, []);
  });
});
