import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, closeSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { freePorts } from '../../../test/cluster/process.ts';
import { poll, StopPolling } from '../../../test/support/poll.ts';
import { Inspector } from './inspector.ts';
import { residentBytes } from './processes.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const SOURCES = join(ROOT, 'src/cli/main.ts');
const TIMEOUT_MS = 120_000;

export interface ServerLaunch {
  readonly folder: string;
  readonly role: 'operator' | 'gateway';
  /** The configuration without `health`. */
  readonly config: object;
  readonly env?: Readonly<Record<string, string>>;
  /** The path of the program; by default it runs from sources. */
  readonly program?: string | undefined;
}

/** One replica of a role as a separate process. */
export class ServerProcess {
  readonly pid: number;
  readonly #role: string;
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #errors: string;
  readonly #exited: Promise<unknown>;

  protected constructor(role: string, child: ChildProcess, port: number, errors: string) {
    this.#role = role;
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.#port = port;
    this.#errors = errors;
    this.#exited = new Promise((done) => child.once('exit', done));
  }

  /** Starts `temper serve ROLE`. Does not wait until its caches are synced. */
  static async start(
    { folder, role, config, env = {}, program = SOURCES }: ServerLaunch,
    name: string,
  ): Promise<ServerProcess> {
    const { health: port } = await freePorts('health');
    const file = join(folder, `${name}.yaml`);
    await writeFile(file, JSON.stringify({ ...config, health: { host: '127.0.0.1', port } }));
    const errors = join(folder, `${name}.err`);
    const [out, err] = [openSync(join(folder, `${name}.log`), 'a'), openSync(errors, 'a')];
    const environment = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: join(ROOT, 'node_modules/.cache/node'),
      ...env,
    };
    const options = ['--inspect=127.0.0.1:0', '--disable-warning=ExperimentalWarning'];
    const verb = [program, 'serve', role, '--config', file];
    const stdio = ['ignore', out, err] as const;
    const child = spawn(process.execPath, [...options, ...verb], {
      env: environment,
      cwd: folder,
      stdio: [...stdio],
    });
    await new Promise((done, failed) => child.once('spawn', done).once('error', failed));
    // Of a benchmark that is interrupted.
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    child.once('exit', () => process.off('exit', kill));
    closeSync(out);
    closeSync(err);
    return new this(role, child, port, errors);
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Sends the signal and resolves when the process has exited. */
  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    if (!this.hasEnded) this.#child.kill(signal);
    await this.#exited;
  }

  /** The sum of a metric's samples that have these labels. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    return sumOf(await this.metrics(), name, labels);
  }

  async metrics(): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${this.#port}/metrics`);
    return answer.text();
  }

  async isReady(): Promise<boolean> {
    return (await fetch(`http://127.0.0.1:${this.#port}/readyz`)).status === 200;
  }

  /** Polls until `check` returns true. Fails at once when the process has ended. */
  async waitUntil(what: string, check: () => Promise<boolean>, timeoutMs = TIMEOUT_MS): Promise<void> {
    const checkProcess = async () => {
      if (this.hasEnded)
        throw new StopPolling(`the ${this.#role} ended before it was ${what}: ${await this.logTail()}`);
      return check();
    };
    await poll(`the ${this.#role} to be ${what}`, checkProcess, { timeoutMs, intervalMs: 20 });
  }

  /** Bytes in use after a full collection: of the heap, and of the whole process. */
  async memory(): Promise<{ heap: number; resident: number }> {
    await using inspector = await this.inspector();
    const heap = await inspector.heapAfterCollection();
    return { heap, resident: residentBytes(this.pid) };
  }

  async inspector(): Promise<Inspector> {
    const match = /ws:\/\/\S+/.exec(await readFile(this.#errors, 'utf8'));
    if (match === null) throw new Error(`the ${this.#role} has not printed the address of its inspector`);
    return Inspector.open(match[0]);
  }

  async logTail(): Promise<string> {
    const log = this.#errors.replace(/\.err$/, '.log');
    return (await readFile(log, 'utf8')).slice(-2_000) + (await readFile(this.#errors, 'utf8')).slice(-1_000);
  }
}

/** The sum of a metric's samples that have these labels, from the text of a metrics page. */
export function sumOf(text: string, name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  let sum = 0;
  for (const line of text.split('\n')) {
    if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue;
    if (wanted.every((label) => line.includes(label))) sum += Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sum;
}
