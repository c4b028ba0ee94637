import { finished, pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentProgram } from '../../acp/process/agent-command.ts';
import { ProgramHome, removeHome } from '../../sandbox/confined/program-home.ts';
import { AgentProcess } from '../../acp/process/agent-process.ts';
import { AGENT_PROGRAM_NUMBERS } from '../../api/cluster.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ProgramStream, StreamTaken, StreamText } from '../socket/program-fields.ts';
import type { SandboxFrame } from '../socket/protocol.ts';
import { RelayedStream } from '../socket/relayed-stream.ts';

/** The agent program of a pod. */
export interface PodProgram {
  program: AgentProgram;
  /** Absolute folder with a folder for the home of each process, named by its number. */
  homes: string;
}

interface RunningProgram {
  process: AgentProcess;
  streams: Readonly<Record<ProgramStream, RelayedStream>>;
}

/** Removes what the processes of an earlier container left in the volumes of the pod. */
export async function clearHomes({ homes }: PodProgram): Promise<void> {
  for (const number of AGENT_PROGRAM_NUMBERS) {
    const folder = join(homes, String(number));
    for (const name of await readdir(folder)) await removeHome(join(folder, name));
  }
}

/** The processes of the agent program for one connection to the agent container. They end with it. */
export class SandboxPrograms {
  readonly #program: PodProgram | undefined;
  readonly #send: (frame: SandboxFrame) => boolean;
  readonly #running = new Map<number, RunningProgram>();
  /** Processes that do not run yet; true for one that ends as soon as it does. */
  readonly #starting = new Map<number, boolean>();
  /** Numbers that no process has. A number is free when the home of its last process is gone. */
  readonly #free = new Set(AGENT_PROGRAM_NUMBERS);
  #isEnded = false;

  constructor(program: PodProgram | undefined, send: (frame: SandboxFrame) => boolean) {
    this.#program = program;
    this.#send = send;
  }

  /** Starts a process and returns its folder. Throws TEMPER_ACP_AGENT_NOT_FOUND and TEMPER_ACP_AGENT_FAILED. */
  async start(id: number): Promise<Json> {
    if (this.#program === undefined)
      throw new TemperError('TEMPER_ACP_AGENT_NOT_FOUND', 'the sandbox container has no agent program');
    const [number] = this.#free;
    if (number === undefined)
      throw new TemperError('TEMPER_ACP_AGENT_FAILED', `${AGENT_PROGRAM_NUMBERS.length} processes run already`, {
        retry: 'backoff',
      });
    this.#free.delete(number);
    this.#starting.set(id, false);
    try {
      const { program, homes } = this.#program;
      const process = await AgentProcess.start(program, await ProgramHome.create(join(homes, String(number))));
      void this.#serve(id, process, number);
      return { folder: process.folder };
    } catch (error) {
      this.#free.add(number);
      throw error;
    } finally {
      this.#starting.delete(id);
    }
  }

  /** False when the agent container sent more than it may. A process that has ended gets nothing. */
  input(id: number, { stream, text }: StreamText): boolean {
    return this.#running.get(id)?.streams[stream].receive(text) ?? true;
  }

  taken(id: number, { stream, characters }: StreamTaken): boolean {
    return this.#running.get(id)?.streams[stream].release(characters) ?? true;
  }

  stop(id: number): void {
    const running = this.#running.get(id);
    if (running === undefined) {
      if (this.#starting.has(id)) this.#starting.set(id, true);
      return;
    }
    running.process.kill('it was stopped');
    for (const stream of Object.values(running.streams)) stream.destroy();
  }

  endAll(): void {
    this.#isEnded = true;
    for (const id of this.#running.keys()) this.stop(id);
  }

  async #serve(id: number, process: AgentProcess, number: number): Promise<void> {
    const streams = { program: this.#stream(id, 'program'), requests: this.#stream(id, 'requests') };
    this.#running.set(id, { process, streams });
    if (this.#isEnded || this.#starting.get(id) === true) this.stop(id);
    const written = Promise.allSettled([
      pipeline(process.stdout, streams.program),
      pipeline(process.requests, afterWords, streams.requests),
    ]);
    // A process that ends without reading closes its side; only its exit is reported.
    const read = [pipeline(streams.program, process.stdin), pipeline(streams.requests, process.requests)];
    for (const reading of read) reading.catch(() => undefined);
    await process.exited;
    await written;
    const { ended = 'the process has ended', stderr } = process;
    const isHomeGone = await process[Symbol.asyncDispose]().then(
      () => true,
      () => false,
    );
    for (const stream of Object.values(streams)) stream.destroy();
    this.#running.delete(id);
    if (isHomeGone) this.#free.add(number);
    this.#send({ type: 'exited', id, reason: ended, stderr });
  }

  #stream(id: number, stream: ProgramStream): RelayedStream {
    const relayed = new RelayedStream({
      send: (text) => void this.#send({ type: 'output', id, stream, text }),
      taken: (characters) => void this.#send({ type: 'taken', id, stream, characters }),
    });
    // An end before its time is that of the process.
    void finished(relayed).catch(() => undefined);
    return relayed;
  }
}

/** Words and calls arrive through two pipes: what the process wrote before a request is sent before it. */
async function* afterWords(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    await setImmediate();
    await setImmediate();
    yield chunk;
  }
}
