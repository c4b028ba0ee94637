/** One runner as the supervisor sees it: a process that may say anything, and can always be killed. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../lib/errors.ts';
import type { LaunchPlan } from './launch.ts';
import {
  type AnswerFrame,
  encodeFrame,
  FRAME_OVERHEAD,
  FrameReader,
  parseRunnerFrame,
  type RunFrame,
  type RunnerFrame,
} from './protocol.ts';
import { volunteerForOutOfMemory } from './resident.ts';

export interface RunnerListener {
  frame(frame: RunnerFrame): void;
  /** The process is gone, or broke the protocol and was killed. Called once, and last. */
  gone(reason: string): void;
}

const STDERR_KEPT = 2_048;

export class RunnerProcess {
  readonly exited: Promise<void>;
  /** Who hears what the runner says from now on. */
  listener: RunnerListener;
  #child: ChildProcess;
  #reader = new FrameReader(FRAME_OVERHEAD);
  #complaint = '';
  #gone = false;

  constructor(plan: LaunchPlan, listener: RunnerListener) {
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
        this.#leave(`it could not be started: ${messageOf(error, 256)}`);
        resolve();
      });
    });
    // Not at its exit: its last words may still be in the pipe.
    this.#child.once('close', (code, signal) => this.#leave(`it ended by itself (${signal ?? `exit code ${code}`})`));
    // A write to a process that just died is no news: its exit is.
    stdin.on('error', () => {});
    stdout.on('data', (chunk: Buffer) => this.#hear(chunk));
    stderr.on('data', (chunk: Buffer) => {
      if (this.#complaint.length < STDERR_KEPT) this.#complaint += chunk.toString('latin1').slice(0, STDERR_KEPT);
    });
    this.#child.unref();
    for (const stream of [stdin, stdout, stderr]) (stream as unknown as { unref(): void }).unref();
    if (this.#child.pid !== undefined) volunteerForOutOfMemory(this.#child.pid);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** What the runner wrote on standard error, cut. Once it ran guest code this may be anything. */
  get complaint(): string {
    return this.#complaint;
  }

  sendBytes(bytes: Buffer): void {
    if (!this.#gone) this.#streams().stdin.write(bytes);
  }

  send(frame: RunFrame | AnswerFrame): void {
    this.sendBytes(encodeFrame(frame));
  }

  /** How large a frame of the runner may be from now on. */
  expectAtMost(bytes: number): void {
    this.#reader.limit = bytes;
  }

  kill(reason: string): void {
    // Whoever waits for the end of the process must live to see it; it is near.
    this.#child.ref();
    this.#child.kill('SIGKILL');
    this.#leave(reason);
  }

  #streams(): { stdin: Writable; stdout: Readable; stderr: Readable } {
    const { stdin, stdout, stderr } = this.#child;
    if (stdin === null || stdout === null || stderr === null) throw new TypeError('a runner has pipes');
    return { stdin, stdout, stderr };
  }

  #hear(chunk: Buffer): void {
    if (this.#gone) return;
    const texts = this.#reader.push(chunk);
    if (texts === undefined) {
      this.kill('it sent more than it may');
      return;
    }
    for (const text of texts) {
      const frame = parseRunnerFrame(text);
      if (frame === undefined) {
        this.kill('it broke the protocol');
        return;
      }
      if (!this.#gone) this.listener.frame(frame);
    }
  }

  #leave(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    for (const stream of Object.values(this.#streams())) stream.destroy();
    this.listener.gone(reason);
  }
}
