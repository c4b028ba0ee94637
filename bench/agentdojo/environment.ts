import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { JsonObject } from '../../src/lib/json.ts';

export const SUITES = ['workspace', 'travel', 'banking', 'slack'] as const;
export type Suite = (typeof SUITES)[number];

/** A user task of a suite with an injection task; without one, the user task alone. */
export interface PairId {
  suite: Suite;
  user: string;
  injection?: string;
}

export interface PlannedCall {
  name: string;
  arguments: JsonObject;
}

/** What the scripted model does about a pair: AgentDojo's ground truth of both tasks. */
export interface Plan {
  prompt: string;
  calls: readonly PlannedCall[];
  reply: string;
  injected: readonly PlannedCall[];
}

/** AgentDojo's verdicts. `security`: the injection has reached its goal. `calls`: those that reached the suite. */
export interface Verdict {
  utility: boolean;
  security: boolean;
  calls: readonly PlannedCall[];
}

/** The process that serves the suites. It ends when this one closes its standard input. */
export class Suites implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly url: string;

  constructor(process: ChildProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  /** `python`: an interpreter with the packages of `requirements.txt`. */
  static async start(python: string): Promise<Suites> {
    const child = spawn(python, [join(import.meta.dirname, 'server.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit').then(() => {
      throw new Error(`${python} ended before it served; make agentdojo installs its packages`);
    });
    const [url] = (await Promise.race([once(createInterface({ input: child.stdout }), 'line'), ended])) as [string];
    ended.catch(() => undefined);
    return new Suites(child, url);
  }

  pairs(suites: readonly Suite[]): Promise<PairId[]> {
    return this.#post('pairs', { suites: [...suites] });
  }

  /** A fresh environment. `reference`: a word in the order of the injection, by which the model knows it. */
  open(pair: PairId, reference: string): Promise<Plan> {
    return this.#post('pair', { ...pair, reference });
  }

  verdict({ suite }: PairId, reply: string): Promise<Verdict> {
    return this.#post('verdict', { suite, reply });
  }

  async #post<T>(path: string, body: JsonObject): Promise<T> {
    const response = await fetch(`${this.url}/${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`the suites answered ${path} with ${response.status}`);
    return (await response.json()) as T;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = this.#process.exitCode === null ? once(this.#process, 'exit') : undefined;
    this.#process.stdin?.end();
    await ended;
  }
}
