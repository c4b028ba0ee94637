import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { canAuthenticate, reloadServer } from '../../nats/server/reload.ts';
import { type NatsServerInfo, readServerInfo } from '../../nats/server/server-info.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { OperatorMetrics } from '../../telemetry/temper-metrics.ts';
import type { NatsServerAddress } from './nats-layout.ts';

/** The desired certificate, users and configuration of the NATS servers of this release, as stored in its Secrets. */
export interface DesiredNatsServer {
  readonly servers: readonly NatsServerAddress[];
  /** PEM. */
  readonly certificate: string;
  /** The CA bundle for clients, PEM. */
  readonly caBundle: string;
  readonly configuration: string;
  readonly operatorSeed: string;
  readonly systemSeed: string;
}

export interface NatsReloadDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<OperatorMetrics, 'gauge'> | undefined;
}

const MINUTE_MS = 60_000;
const RETRY_MS = 10_000;
/** Within this time the kubelet updates a changed Secret in the server's pod. */
const KUBELET_SYNC_MS = 3 * MINUTE_MS;
const INSPECT_TIMEOUT_MS = 10_000;
const STORES_NOTHING =
  'JetStream is off, because the disk of the server is full or failed; read the log of its pod, enlarge its volume, then delete the pod';

/** Whether the server uses a desired state. Times are monotonic. */
type ReloadState =
  /** The operator has not read the Secrets yet. */
  | { readonly kind: 'unknown' }
  /**
   * The server may use older files since `since`. It is reloaded at least until `reloadUntil`, because the effect of a changed
   * configuration cannot be observed.
   */
  | {
      readonly kind: 'pending';
      readonly desired: DesiredNatsServer;
      readonly since: number;
      readonly reloadUntil: number;
      /** The last problem that was logged as a warning. */
      readonly reported: string;
    }
  | { readonly kind: 'confirmed'; readonly desired: DesiredNatsServer };

/** Keeps every NATS server of the release at the current certificates and configuration; a server that is down delays no other. */
export class NatsServerReloads {
  readonly #deps: NatsReloadDeps;
  readonly #byName = new Map<string, NatsReload>();

  constructor(deps: NatsReloadDeps) {
    this.#deps = deps;
  }

  /** Runs one attempt for each server. Returns the milliseconds until the next one. */
  async round(desired: DesiredNatsServer | undefined, signal: AbortSignal): Promise<number> {
    if (desired === undefined) return RETRY_MS;
    const rounds = desired.servers.map(async (server) => {
      const reload = this.#byName.get(server.name) ?? new NatsReload(server, this.#deps);
      this.#byName.set(server.name, reload);
      return reload.round(desired, signal);
    });
    return Math.min(...(await Promise.all(rounds)));
  }
}

/**
 * Makes one NATS server load changed certificates and configuration: the server does not watch its files. The kubelet updates the files
 * some time after the Secrets changed, so the reload is repeated until the server presents the desired certificate and authenticates
 * the operator user.
 *
 *     unknown ──first Secrets──▶ pending ──as desired, and not before `reloadUntil`──▶ confirmed
 *                                │  ▲ └─ else: retry every RETRY_MS; every MINUTE_MS, with a warning, after KUBELET_SYNC_MS
 *                                └──┴──────────────────Secrets changed──────────────────┘ (checked every MINUTE_MS)
 */
class NatsReload {
  readonly #server: NatsServerAddress;
  readonly #deps: NatsReloadDeps;
  #state: ReloadState = { kind: 'unknown' };
  #isUp = true;

  constructor(server: NatsServerAddress, deps: NatsReloadDeps) {
    this.#server = server;
    this.#deps = deps;
  }

  /** Runs one attempt. Returns the milliseconds until the next one. */
  async round(desired: DesiredNatsServer, signal: AbortSignal): Promise<number> {
    const { clock, log, metrics } = this.#deps;
    const server = this.#server.name;
    const state = nextReloadState(this.#state, desired, clock.monotonic());
    this.#state = state;
    const info = await this.#inspect(signal).catch((error: unknown) => messageOf(error, 400));
    if (signal.aborted) return 0;
    this.#reportReachable(info, state);
    if (state.kind !== 'pending') return MINUTE_MS;
    const problem =
      typeof info === 'string'
        ? info
        : await this.#attempt(state, info, signal).catch((error: unknown) => messageOf(error, 400));
    if (signal.aborted) return 0;
    metrics?.gauge('temper_nats_server_current', { server }, problem === undefined ? 1 : 0);
    if (problem !== undefined) return this.#retry(state, problem);
    this.#state = { kind: 'confirmed', desired };
    log.debug({ server }, 'the NATS server uses the current certificate and users');
    return MINUTE_MS;
  }

  /** Returns undefined when the server uses the desired state, otherwise the problem; '' while nothing but time is missing. */
  async #attempt(
    { desired, reloadUntil }: PendingReload,
    before: NatsServerInfo,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const isSynced = this.#deps.clock.monotonic() >= reloadUntil;
    if (isSynced && (await this.#isCurrent(desired, before.certificate))) return undefined;
    const { url, name: server } = this.#server;
    await reloadServer({ url, seed: desired.systemSeed, ca: desired.caBundle }, before.id);
    const after = await this.#inspect(signal);
    if (!(await this.#isCurrent(desired, after.certificate))) return 'server has not reloaded';
    this.#deps.log.info({ server }, 'the NATS server reloaded its certificate and configuration');
    return isSynced ? undefined : '';
  }

  async #isCurrent(desired: DesiredNatsServer, served: Buffer): Promise<boolean> {
    if (!new X509Certificate(desired.certificate).raw.equals(served)) return false;
    const { url } = this.#server;
    return canAuthenticate({ url, seed: desired.operatorSeed, ca: desired.caBundle }, 'operator');
  }

  #inspect(signal: AbortSignal): Promise<NatsServerInfo> {
    return readServerInfo(this.#server.url, AbortSignal.any([signal, AbortSignal.timeout(INSPECT_TIMEOUT_MS)]));
  }

  /** A starting server is not up for a while; the log has only changes of a server that was confirmed. */
  #reportReachable(info: NatsServerInfo | string, state: ReloadState): void {
    const { log, metrics } = this.#deps;
    const server = this.#server.name;
    const problem = typeof info === 'string' ? info : info.jetstream ? undefined : STORES_NOTHING;
    const isUp = problem === undefined;
    metrics?.gauge('temper_nats_server_up', { server }, isUp ? 1 : 0);
    if (isUp !== this.#isUp && state.kind === 'confirmed') {
      if (isUp) log.info({ server }, 'the NATS server is reachable again and stores messages');
      else log.warn({ server, problem }, 'a NATS server is unreachable or stores nothing');
    }
    this.#isUp = isUp;
  }

  /** Logs a warning only when the server did not reload in time. */
  #retry(state: PendingReload, problem: string): number {
    const { clock, log } = this.#deps;
    const server = this.#server.name;
    const isLate = clock.monotonic() - state.since >= KUBELET_SYNC_MS;
    if (!isLate) {
      if (problem !== '')
        log.debug({ server, problem }, 'the NATS server does not use the current certificate and users yet');
      return RETRY_MS;
    }
    if (problem !== '' && problem !== state.reported) {
      this.#state = { ...state, reported: problem };
      log.warn(
        { server, problem },
        'the NATS server does not load its certificate and users; restart its pod when it is running',
      );
    }
    return MINUTE_MS;
  }
}

type PendingReload = Extract<ReloadState, { kind: 'pending' }>;

/** Pure: the state after the Secrets were read. */
export function nextReloadState(state: ReloadState, desired: DesiredNatsServer, now: number): ReloadState {
  // Keeps the newest CA bundle, which does not count as a change.
  if (state.kind !== 'unknown' && same(state.desired, desired)) return { ...state, desired };
  // A starting server reads its files; a running server needs a reload.
  const isChanged = state.kind !== 'unknown' && state.desired.configuration !== desired.configuration;
  const earlier = state.kind === 'pending' ? state.reloadUntil : 0;
  const reloadUntil = isChanged ? now + KUBELET_SYNC_MS : earlier;
  return { kind: 'pending', desired, since: now, reloadUntil, reported: '' };
}

function same(one: DesiredNatsServer, other: DesiredNatsServer): boolean {
  const { caBundle: _one, ...before } = one;
  const { caBundle: _other, ...after } = other;
  return JSON.stringify(before) === JSON.stringify(after);
}
