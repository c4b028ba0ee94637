import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { AGENT_FRAMES, Channel, SANDBOX_FRAMES } from './channel.ts';

describe('a channel between the containers of a pod', () => {
  it('a channel closes when a frame stays incomplete, and stays open without traffic', async (context) => {
    const { timers } = context.mock;
    timers.enable({ apis: ['setTimeout'] });
    const folder = await mkdtemp(join(tmpdir(), 'temper-channel-'));
    const path = join(folder, 's');
    const gone = Promise.withResolvers<string>();
    const frames: unknown[] = [];
    const server = createServer((socket) => {
      const channel: Channel = new Channel(
        socket,
        {
          onFrame(frame) {
            frames.push(frame);
            return channel.send({ echo: frame });
          },
          onClosed: gone.resolve,
        },
        { accepts: AGENT_FRAMES, sends: AGENT_FRAMES, frameTimeoutMs: 100 },
      );
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const socket = connect(path);
    socket.on('error', () => undefined);
    socket.write(Buffer.from([0, 0, 0, 2, 0x5b, 0x5d]));
    await new Promise((resolve) => socket.once('data', resolve));
    timers.tick(3_600_000);
    socket.write(Buffer.from([0, 0, 0, 2, 0x5b, 0x5d]));
    await new Promise((resolve) => socket.once('data', resolve));
    assert.deepEqual(frames, [[], []], 'the idle channel stays open');
    timers.reset();
    socket.write(Buffer.from([0, 0, 0, 9, 0x5b]));
    assert.match(await gone.promise, /did not finish/);
    server.close();
    await rm(folder, { recursive: true });
  });

  it('a channel does not send a frame above the size limit', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-channel-'));
    const server = createServer((socket) => socket.on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(join(folder, 's'), resolve));
    const listener = { onFrame: () => true, onClosed: () => undefined };
    const limits = { accepts: AGENT_FRAMES, sends: SANDBOX_FRAMES };
    const channel = new Channel(connect(join(folder, 's')), listener, limits);
    assert.equal(channel.send({ text: 'x'.repeat(SANDBOX_FRAMES.bytes) }), false);
    assert.equal(channel.send({ list: Array(SANDBOX_FRAMES.values).fill(0) }), false);
    assert.equal(channel.send({ list: Array(SANDBOX_FRAMES.values - 4).fill(0) }), true);
    assert.ok(channel.isOpen);
    channel.close('done');
    assert.equal(channel.isOpen, false);
    server.close();
    await rm(folder, { recursive: true });
  });

  it('a channel closes for a frame of many values before it parses one, and for a frame above the size limit', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-channel-'));
    const path = join(folder, 's');
    const reasons: string[] = [];
    const channels: Channel[] = [];
    const server = createServer((socket) => {
      const listener = { onFrame: () => true, onClosed: (reason: string) => void reasons.push(reason) };
      channels.push(new Channel(socket, listener, { accepts: SANDBOX_FRAMES, sends: AGENT_FRAMES }));
    });
    await new Promise<void>((resolve) => server.listen(path, resolve));
    const parse = context.mock.method(JSON, 'parse');
    const send = async (length: number, text: string): Promise<void> => {
      const socket = connect(path).on('error', () => undefined);
      const head = Buffer.alloc(4);
      head.writeUInt32BE(length);
      socket.write(head);
      socket.write(text);
      await new Promise((resolve) => socket.once('close', resolve).resume());
    };
    const full = `[${'[],'.repeat(1_000_000)}[]]`;
    await send(full.length, full);
    await send(SANDBOX_FRAMES.bytes + 1, '[');
    assert.equal(parse.mock.callCount(), 0);
    parse.mock.restore();
    assert.equal(channels.length, 2);
    assert.deepEqual(reasons, ['the peer sent an invalid frame', 'the peer sent a frame that is too large']);
    server.close();
    await rm(folder, { recursive: true });
  });
});
