import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { Channel, MAX_FRAME_BYTES } from './channel.ts';

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
        100,
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
    const channel = new Channel(connect(join(folder, 's')), { onFrame: () => true, onClosed: () => undefined });
    assert.equal(channel.send({ text: 'x'.repeat(MAX_FRAME_BYTES) }), false);
    assert.ok(channel.isOpen);
    channel.close('done');
    assert.equal(channel.isOpen, false);
    server.close();
    await rm(folder, { recursive: true });
  });
});
