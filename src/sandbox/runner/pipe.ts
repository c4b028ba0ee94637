/**
 * Reads and writes frames on standard input and output synchronously: a runner does one thing at a time and waits only for
 * the supervisor.
 */
import type { RunnerFrame, SupervisorFrame } from '../protocol.ts';

// An import statement would also load the promises and streams of the module, 12 MB that a runner does not need.
const { readSync, writeSync } = process.getBuiltinModule('node:fs');

const STDIN = 0;
const STDOUT = 1;

/** Blocks until a frame arrives. Undefined when the supervisor closed the pipe. */
export function readFrame(): SupervisorFrame | undefined {
  const header = Buffer.alloc(4);
  if (!fill(header)) return undefined;
  const body = Buffer.allocUnsafe(header.readUInt32BE(0));
  if (!fill(body)) return undefined;
  return JSON.parse(body.toString('utf8')) as SupervisorFrame;
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
