import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { bundle, bundleThreads, writeDispatcher } from '../../../../sandbox-image/bundle.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { startReplay } from '../../../../src/models/replay/server.ts';
import { RoleProcess } from '../../../../src/pod/pod.testing.ts';
import { freePorts } from '../../../cluster/process.ts';
import { pollValue } from '../../poll.ts';
import { parsePrometheusText } from '../../prometheus-text.ts';
import { GatewayFixture } from '../gateway-fixture.ts';
import { modelsOf, SCRIPT } from './models.ts';
import { Tenant } from './tenant.ts';
import { Victim } from './victim.ts';

const MIB = 1_048_576;
/** Most of a gateway's resident memory at any time. Its container has 512 MiB. */
export const MAX_RESIDENT_MIB = 400;
/**
 * As in the image and in the container of the chart: the settings of the image, and the heap that V8 allows itself in 512 MiB. With the
 * memory of a large machine V8 collects garbage so late that the peak says nothing.
 */
const CONTAINER_ENVIRONMENT = {
  NODE_OPTIONS: '--max-semi-space-size=2 --max-old-space-size=256',
  MALLOC_ARENA_MAX: '2',
};
/** Rounds of the victim, at least, and while an attack goes on. */
const MIN_ROUNDS = 3;
const VICTIM_ADDRESS = '127.0.0.2';
/** Users of all namespaces reach the gateway through the API server. */
const USERS_ADDRESS = '127.0.0.3';
/** Each attacker has its own address, so that no limit is used up by an earlier attack. */
const attackerAddress = (index: number): string => `127.0.1.${index}`;

const VICTIM_SPEC = { grants: { tools: ['file_read'] } };
const HOSTILE_POLICY = {
  level: { initial: 'restricted', ceiling: 'restricted' },
  forge: { limits: { minTestCases: 1 } },
  models: { judge: 'default/judge' },
};
const HOSTILE_SPEC = {
  trustPolicyRef: { name: 'hostile' },
  forge: { enabled: true, modes: ['Sandbox'] },
  grants: { memory: { read: ['*'], write: ['*'] } },
};

interface SurviveOptions {
  /** Members of the spec of the attacker. */
  spec?: object;
  /**
   * How the log of the gateway names the attacker: by a refused request of its agent, by its address without a valid token, or, where
   * the gateway may serve every request of it, by its requests or its address.
   */
  named?: 'refusal' | 'address' | 'request';
}

/** The provider of all models, at this URL until it is disposed of. */
export interface ModelServer extends AsyncDisposable {
  readonly url: string;
}

/** A line of the gateway's log. */
type LogLine = Record<string, unknown>;

/** The gateway of the image, as a process, a victim in namespace `team-b`, and for each attack a new attacker in namespace `team-a`. */
export class NoisyNeighbours implements AsyncDisposable {
  readonly fixture: GatewayFixture;
  readonly port: number;
  readonly #healthPort: number;
  readonly #gateway: RoleProcess;
  readonly #models: ModelServer;
  #victim: Victim | undefined;
  #attackers = 0;

  private constructor(
    fixture: GatewayFixture,
    gateway: RoleProcess,
    models: ModelServer,
    ports: { port: number; healthPort: number },
  ) {
    this.fixture = fixture;
    this.port = ports.port;
    this.#healthPort = ports.healthPort;
    this.#gateway = gateway;
    this.#models = models;
  }

  static async start(
    startModels: () => Promise<ModelServer> = () => startReplay({ script: SCRIPT, clock: systemClock }),
  ): Promise<NoisyNeighbours> {
    const [fixture, models] = await Promise.all([GatewayFixture.open(['team-a', 'team-b']), startModels()]);
    const ports = await freePorts('port', 'healthPort');
    const file = join(fixture.folder, 'gateway.yaml');
    const config = {
      ...fixture.replicaConfig(),
      listen: { host: '127.0.0.1', port: ports.port },
      health: { host: '127.0.0.1', port: ports.healthPort },
      models: modelsOf(models.url),
    };
    await writeFile(file, JSON.stringify(config));
    const program = await bundledGateway(fixture.folder);
    const gateway = new RoleProcess('gateway', ['--config', file], CONTAINER_ENVIRONMENT, program);
    const neighbours = new NoisyNeighbours(fixture, gateway, models, ports);
    try {
      await neighbours.#prepare();
    } catch (error) {
      await neighbours[Symbol.asyncDispose]();
      throw error;
    }
    return neighbours;
  }

  async #prepare(): Promise<void> {
    const ready = () =>
      fetch(`http://127.0.0.1:${this.#healthPort}/readyz`).then(
        ({ status }) => status,
        () => 0,
      );
    await pollValue('the readiness of the gateway', ready, (status) => status === 200);
    await this.fixture.createPolicy('team-a', 'hostile', HOSTILE_POLICY);
    this.#victim = new Victim(await this.#tenant('team-b', 'victim', VICTIM_ADDRESS, VICTIM_SPEC), this.fixture);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#victim?.tenant[Symbol.dispose]();
    await this.#gateway.end('SIGKILL');
    await Promise.all([this.fixture[Symbol.asyncDispose](), this.#models[Symbol.asyncDispose]()]);
  }

  get victim(): Victim {
    if (this.#victim === undefined) throw new Error('the neighbours are not started');
    return this.#victim;
  }

  /** A further hostile agent, in `team-a`. */
  attacker(spec: object = {}): Promise<Tenant> {
    this.#attackers += 1;
    const address = attackerAddress(this.#attackers);
    return this.#tenant('team-a', `attacker-${this.#attackers}`, address, { ...HOSTILE_SPEC, ...spec });
  }

  #tenant(namespace: string, name: string, address: string, spec: object = {}): Promise<Tenant> {
    const { fixture, port } = this;
    return Tenant.create({ fixture, port, namespace, name, address, usersAddress: USERS_ADDRESS, spec });
  }

  /**
   * Runs the attack while the victim works, and asserts that the victim notices nothing: no call of it is refused, every message is
   * answered, its records are stored, it pays for its own calls alone; that the gateway stays below its memory, and that the log names the
   * attacker.
   */
  async survive(
    attack: (attacker: Tenant) => Promise<unknown>,
    { spec, named = 'refusal' }: SurviveOptions = {},
  ): Promise<void> {
    using attacker = await this.attacker(spec);
    await this.#forgetPeak();
    const from = this.#gateway.log.length;
    let isOver = false;
    const ending = attack(attacker).finally(() => (isOver = true));
    await Promise.all([ending, this.victim.work(MIN_ROUNDS, () => isOver)]);
    this.victim.assertOnlyBusy();
    await this.victim.assertRecords();
    const peak = await this.peakResidentMiB();
    assert.ok(peak <= MAX_RESIDENT_MIB, `the gateway had ${peak} MiB resident memory, of at most ${MAX_RESIDENT_MIB}`);
    await pollValue(
      `a line of the log that names ${attacker.name} by its ${named}`,
      () => this.#lines(from).filter((line) => isAbout(line, attacker)),
      (lines) => lines.some((line) => isNamed(line, named)),
    );
  }

  /** So that the peak after an attack is the peak of that attack. */
  async #forgetPeak(): Promise<void> {
    await writeFile(`/proc/${this.gatewayPid}/clear_refs`, '5');
  }

  /** The highest resident memory of the gateway's process since the last attack began. */
  async peakResidentMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.gatewayPid}/status`, 'utf8');
    const [, kibibytes = '0'] = /VmHWM:\s+(\d+) kB/.exec(status) ?? [];
    return Math.round((Number(kibibytes) * 1_024) / MIB);
  }

  get gatewayPid(): number {
    const { pid } = this.#gateway.child;
    if (pid === undefined) throw new Error('the gateway has not started');
    return pid;
  }

  /** The value of a metric, by its name and labels as the gateway writes them; 0 before its first sample. */
  async metric(sample: string): Promise<number> {
    return (await this.metrics()).get(sample) ?? 0;
  }

  async metrics(): Promise<Map<string, number>> {
    const page = await fetch(`http://127.0.0.1:${this.#healthPort}/metrics`);
    return parsePrometheusText(await page.text()).samples;
  }

  #lines(from: number): LogLine[] {
    return this.#gateway.log
      .slice(from)
      .split('\n')
      .flatMap((line) => (line.startsWith('{') && line.endsWith('}') ? [JSON.parse(line) as LogLine] : []));
  }
}

/** The program of the image: from its sources, a gateway holds almost 100 MiB more. */
async function bundledGateway(folder: string): Promise<string> {
  const app = join(folder, 'app');
  await bundle('gateway', app);
  await bundleThreads(app);
  await writeDispatcher(app, ['gateway']);
  return join(app, 'temper.mjs');
}

function isAbout({ namespace, agent, address }: LogLine, attacker: Tenant): boolean {
  return (namespace === attacker.namespace && agent === attacker.name) || address === attacker.pod.address;
}

function isNamed({ agent, address, status, refused, reason }: LogLine, named: SurviveOptions['named']): boolean {
  const isRefused = Number(status) >= 400 || refused !== undefined || reason !== undefined;
  if (named !== 'refusal' && address !== undefined && isRefused) return true;
  if (named === 'address') return false;
  return agent !== undefined && (named === 'request' || isRefused);
}
