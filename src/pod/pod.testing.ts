/** A pod for tests: both roles as real processes with a temporary folder and their own gateway double. */
import { type ChildProcess, spawn } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadManifests } from '../api/manifests.ts';
import type { Agent } from '../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../api/v1alpha1/trustpolicy.ts';
import { systemClock } from '../lib/clock.ts';
import { createModels } from '../models/named-models.ts';
import type { ReplayScript } from '../models/replay/script/script.ts';
import { type ReplayServer, startReplay } from '../models/replay/server.ts';
import { PATTERN_RULES } from '../policy/patterns/pattern-rules.ts';
import { type TlsIdentity, issueTlsIdentity, writeGatewayConfig } from '../gateway-client/certificates.testing.ts';
import { GatewayDouble } from '../gateway-client/gateway.testing.ts';
import type { Assignment } from '../gateway-api/pod-api.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const QUICKSTART = join(ROOT, 'manifests/quickstart');
const GATEWAY_NAME = 'temper-gateway.temper-system.svc';

/** One role as a process, with its log. */
export class RoleProcess {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  /** Resolves at the exit of the process: with an error when no test ended it and its code is not 0, as after a failed start. */
  readonly failure: Promise<Error | undefined>;
  log = '';
  readonly #waiters = new Set<() => void>();

  /** `program` is a bundle of an image, or the source of the command line. */
  constructor(
    role: string,
    options: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    program = 'src/cli/main.ts',
  ) {
    this.child = spawn(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', program, 'serve', role, ...options],
      {
        cwd: ROOT,
        stdio: ['ignore', 'pipe', 'pipe'],
        env: { ...process.env, ...environment },
      },
    );
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.log += chunk.toString();
        for (const check of this.#waiters) check();
      });
    }
    this.exited = new Promise((resolve) => this.child.once('exit', (code) => resolve(code)));
    // 'close' follows the end of the output, so the log is complete.
    this.failure = new Promise((resolve) =>
      this.child.once('close', (code) => {
        const isFailed = code !== 0 && !this.child.killed;
        resolve(isFailed ? new Error(`the role "${role}" ended with ${code}:\n${this.log}`) : undefined);
      }),
    );
  }

  /** Resolves when the log contains the text `times` times; rejects when the process ends first. */
  async logged(text: string, times = 1): Promise<void> {
    const found = Promise.withResolvers<void>();
    const check = (): void => {
      if (this.log.split(text).length > times) found.resolve();
    };
    this.#waiters.add(check);
    check();
    const ended = this.exited.then((code) => {
      throw new Error(`the process ended with ${code} before it logged "${text}":\n${this.log}`);
    });
    await Promise.race([found.promise, ended]);
    ended.catch(() => undefined);
    this.#waiters.delete(check);
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.exited;
  }
}

/** The folder, gateway and processes of one test. Disposing ends all of them. */
export class PodFixture implements AsyncDisposable {
  readonly folder: string;
  readonly identity: TlsIdentity;
  readonly gateway: GatewayDouble;
  readonly replay: ReplayServer;
  readonly #roles: RoleProcess[] = [];

  private constructor(folder: string, identity: TlsIdentity, gateway: GatewayDouble, replay: ReplayServer) {
    this.folder = folder;
    this.identity = identity;
    this.gateway = gateway;
    this.replay = replay;
  }

  static async open(script: string | ReplayScript = join(QUICKSTART, 'replay.yaml')): Promise<PodFixture> {
    const folder = await mkdtemp(join(tmpdir(), 'temper-pod-'));
    await Promise.all(['run', 'endpoints', 'keys', 'workspace'].map((name) => mkdir(join(folder, name))));
    for (const name of ['data', 'samples']) {
      await cp(join(QUICKSTART, name), join(folder, 'workspace', name), { recursive: true });
    }
    const identity = await issueTlsIdentity(join(folder, 'keys'), 'first', GATEWAY_NAME);
    const replay = await startReplay({ script, clock: systemClock });
    const providers = [{ name: 'replay', type: 'openai', baseUrl: `${replay.url}/v1` }] as const;
    const model = createModels({ providers }, { clock: systemClock, random: Math.random, environment: {} });
    const gateway = await GatewayDouble.start(identity, model);
    const { authority } = identity;
    await writeGatewayConfig(join(folder, 'endpoints'), {
      url: gateway.url,
      name: GATEWAY_NAME,
      authority,
      token: 'token-1',
    });
    return new PodFixture(folder, identity, gateway, replay);
  }

  path(...parts: string[]): string {
    return join(this.folder, ...parts);
  }

  agent(...options: string[]): RoleProcess {
    return this.#start('agent', [
      '--endpoints',
      this.path('endpoints'),
      '--token',
      this.path('endpoints/token'),
      ...options,
    ]);
  }

  sandbox(...options: string[]): RoleProcess {
    return this.#start('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0), ...options]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#roles.map((role) => role.end('SIGKILL')));
    await this.gateway[Symbol.asyncDispose]();
    await this.replay[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true });
  }

  #start(role: string, options: readonly string[]): RoleProcess {
    const process = new RoleProcess(role, [
      '--run',
      this.path('run'),
      '--workspace',
      this.path('workspace'),
      ...options,
    ]);
    this.#roles.push(process);
    void process.failure.then((error) => (error === undefined ? undefined : this.gateway.inbox.fail(error)));
    return process;
  }
}

/** The quick start's agent as an assignment of the gateway. */
export async function quickstartAssignment(changes: Partial<Assignment> = {}): Promise<Assignment> {
  const files = ['agent.yaml', 'policy.yaml'].map((file) => join(QUICKSTART, file));
  const { objects } = await loadManifests(files, { patterns: PATTERN_RULES });
  const kinds = objects.map(({ object }) => object);
  const agent = kinds.find((object): object is Agent => object.kind === 'Agent');
  const policy = kinds.find((object): object is TrustPolicy => object.kind === 'TrustPolicy');
  if (agent === undefined || policy === undefined) throw new Error('the quick start has an agent and a policy');
  const model = (name: string) => ({ resolved: `replay/${name}`, contextTokens: 128_000 });
  return {
    version: '1',
    agent: { name: agent.metadata.name, namespace: 'team-a', uid: 'agent-uid', spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level: 'restricted',
    models: {
      'default/default': model('scripted'),
      'default/judge': model('judge'),
      'default/safety': model('safety'),
      'default/correctness': model('correctness'),
    },
    suspended: false,
    ...changes,
  };
}
