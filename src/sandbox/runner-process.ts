/** The supervisor's handle of one runner: an untrusted process that can always be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../lib/errors.ts';
import type { RunnerCommand } from './runner-command.ts';
import {
  encodeFrame,
  FRAME_OVERHEAD_BYTES,
  FrameReader,
  parseRunnerFrame,
  type RunnerFrame,
  type SupervisorFrame,
} from './protocol.ts';
import { raiseOomScore } from './memory-usage.ts';

export interface RunnerListener {
  frame(frame: RunnerFrame): void;
  /** The process has ended, or was killed after a protocol violation. Called once, as the last call. */
  ended(reason: string): void;
}

const MAX_STDERR = 2_048;

export class RunnerProcess {
  readonly exited: Promise<void>;
  /** Receives the frames of the runner from now on. */
  listener: RunnerListener;
  #child: ChildProcess;
  #reader = new FrameReader(FRAME_OVERHEAD_BYTES);
  #stderr = '';
  #ended = false;

  constructor(plan: RunnerCommand, listener: RunnerListener) {
    this.listener = listener;
    this.#child = spawn(plan.command, plan.args, {
      cwd: '/',
      env: {},
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
    });
    const { stdin, stdout, stderr } = this.#streams();
    this.exited = new Promise((resolve) => {
      this.#child.once('exit', () => resolve());
      this.#child.once('error', (error) => {
        this.#onEnd(`the runner could not be started: ${messageOf(error, 256)}`);
        resolve();
      });
    });
    // Not on 'exit': the last frames may still be in the pipe then.
    this.#child.once('close', (code, signal) => this.#onEnd(`the runner exited (${signal ?? `exit code ${code}`})`));
    // A write to a process that has just exited fails; only the exit is reported.
    stdin.on('error', () => {});
    stdout.on('data', (chunk: Buffer) => this.#onData(chunk));
    stderr.on('data', (chunk: Buffer) => {
      if (this.#stderr.length < MAX_STDERR) this.#stderr += chunk.toString('latin1').slice(0, MAX_STDERR);
    });
    this.#child.unref();
    for (const stream of [stdin, stdout, stderr]) (stream as unknown as { unref(): void }).unref();
    if (this.#child.pid !== undefined) raiseOomScore(this.#child.pid);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** The beginning of the runner's standard error. Untrusted once the runner has run guest code. */
  get stderr(): string {
    return this.#stderr;
  }

  sendBytes(bytes: Buffer): void {
    if (!this.#ended) this.#streams().stdin.write(bytes);
  }

  send(frame: SupervisorFrame): void {
    this.sendBytes(encodeFrame(frame));
  }

  /** Sets the largest size of later frames of the runner, in bytes. */
  setMaxFrameBytes(bytes: number): void {
    this.#reader.limit = bytes;
  }

  kill(reason: string): void {
    // Keeps this process alive until the runner has exited, for the callers that await `exited`.
    this.#child.ref();
    this.#child.kill('SIGKILL');
    this.#onEnd(reason);
  }

  #streams(): { stdin: Writable; stdout: Readable; stderr: Readable } {
    const { stdin, stdout, stderr } = this.#child;
    if (stdin === null || stdout === null || stderr === null) throw new TypeError('the runner has no pipes');
    return { stdin, stdout, stderr };
  }

  #onData(chunk: Buffer): void {
    if (this.#ended) return;
    const texts = this.#reader.push(chunk);
    if (texts === undefined) {
      this.kill('the runner sent a frame above the size limit');
      return;
    }
    for (const text of texts) {
      const frame = parseRunnerFrame(text);
      if (frame === undefined) {
        this.kill('the runner violated the protocol');
        return;
      }
      if (!this.#ended) this.listener.frame(frame);
    }
  }

  #onEnd(reason: string): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const stream of Object.values(this.#streams())) stream.destroy();
    this.listener.ended(reason);
  }
}
