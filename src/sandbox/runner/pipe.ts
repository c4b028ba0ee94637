/**
 * Frames on standard input and output, read and written without the event loop: a runner does one thing at a time,
 * and what it waits for is always the supervisor.
 */
import type { AnswerFrame, RunFrame, RunnerFrame } from '../protocol.ts';

// An import statement would load every part of the module, its promises and streams with it: 12 MB a runner has no use for.
const { readSync, writeSync } = process.getBuiltinModule('node:fs');

const STDIN = 0;
const STDOUT = 1;

/** Undefined when the supervisor is gone. Blocks. */
export function readFrame(): RunFrame | AnswerFrame | undefined {
  const header = Buffer.alloc(4);
  if (!fill(header)) return undefined;
  const body = Buffer.allocUnsafe(header.readUInt32BE(0));
  if (!fill(body)) return undefined;
  return JSON.parse(body.toString('utf8')) as RunFrame | AnswerFrame;
}

function fill(bytes: Buffer): boolean {
  for (let offset = 0; offset < bytes.length; ) {
    const count = readSync(STDIN, bytes, offset, bytes.length - offset, null);
    if (count === 0) return false;
    offset += count;
  }
  return true;
}

export function writeFrame(frame: RunnerFrame): void {
  const text = JSON.stringify(frame);
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(4 + length);
  bytes.writeUInt32BE(length, 0);
  bytes.write(text, 4);
  for (let offset = 0; offset < bytes.length; ) {
    offset += writeSync(STDOUT, bytes, offset, bytes.length - offset);
  }
}
