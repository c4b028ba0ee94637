import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { canAuthenticate, reloadServer } from '../../nats/server/reload.ts';
import { readServerInfo } from '../../nats/server/server-info.ts';
import type { Logger } from '../../telemetry/log.ts';

/** The desired certificate, users and configuration of the NATS server of this release, as stored in its Secrets. */
export interface DesiredNatsServer {
  /** PEM. */
  readonly certificate: string;
  /** The CA bundle for clients, PEM. */
  readonly caBundle: string;
  readonly configuration: string;
  readonly operatorSeed: string;
  readonly systemSeed: string;
}

export interface NatsReloadDeps {
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const MINUTE_MS = 60_000;
const RETRY_MS = 10_000;
/** Within this time the kubelet updates a changed Secret in the server's pod. */
const KUBELET_SYNC_MS = 3 * MINUTE_MS;
const SLOW_RETRY_MS = 5 * MINUTE_MS;
const INSPECT_TIMEOUT_MS = 10_000;

/**
 * Makes the NATS server load changed certificates and configuration: the server does not watch its files. The kubelet updates the files
 * some time after the Secrets changed, so the reload is repeated until the server presents the desired certificate and authenticates
 * the operator user.
 *
 *     Secrets changed ──▶ retry every RETRY_MS: reload, then check certificate and login
 *                           │ not as desired for KUBELET_SYNC_MS ──▶ retry every SLOW_RETRY_MS, log a warning
 *                           │ as desired, but configuration changed less than KUBELET_SYNC_MS ago ──▶ keep reloading,
 *                           │   because the effect of the configuration cannot be observed
 *                           └ as desired ──▶ confirmed; check for changes every MINUTE_MS
 */
export class NatsReload {
  readonly #deps: NatsReloadDeps;
  #desired: DesiredNatsServer | undefined;
  /** Monotonic time since which the server may differ from the desired state. */
  #since: number | undefined;
  /** Reload at least until this monotonic time, because the effect of a changed configuration cannot be observed. */
  #reloadUntil = 0;
  #isConfirmed = false;
  #lastError = '';

  constructor(deps: NatsReloadDeps) {
    this.#deps = deps;
  }

  /** Runs one attempt. Returns the milliseconds until the next one. */
  async round(desired: DesiredNatsServer | undefined, signal: AbortSignal): Promise<number> {
    if (desired === undefined) return RETRY_MS;
    this.#setDesired(desired);
    if (this.#isConfirmed) return MINUTE_MS;
    try {
      const isCurrent = await this.#attempt(desired, signal);
      if (!isCurrent) return this.#pause();
    } catch (error) {
      if (signal.aborted) return 0;
      this.#reportError(messageOf(error, 400));
      return this.#pause();
    }
    this.#isConfirmed = true;
    this.#since = undefined;
    this.#lastError = '';
    this.#deps.log.debug({}, 'the NATS server uses the current certificate and users');
    return MINUTE_MS;
  }

  #setDesired(desired: DesiredNatsServer): void {
    const before = this.#desired;
    this.#desired = desired;
    if (before !== undefined && same(before, desired)) return;
    const now = this.#deps.clock.monotonic();
    this.#isConfirmed = false;
    this.#since = now;
    // A starting server reads its files; a running server needs a reload.
    if (before !== undefined && before.configuration !== desired.configuration)
      this.#reloadUntil = now + KUBELET_SYNC_MS;
  }

  async #attempt(desired: DesiredNatsServer, signal: AbortSignal): Promise<boolean> {
    const before = await this.#inspect(signal);
    const isSynced = this.#deps.clock.monotonic() >= this.#reloadUntil;
    if (isSynced && (await this.#isCurrent(desired, before.certificate))) return true;
    const { url } = this.#deps;
    await reloadServer({ url, seed: desired.systemSeed, ca: desired.caBundle }, before.id);
    const after = await this.#inspect(signal);
    const isCurrent = await this.#isCurrent(desired, after.certificate);
    if (isCurrent) this.#deps.log.info({}, 'the NATS server reloaded its certificate and configuration');
    else this.#reportError('server has not reloaded');
    return isCurrent && isSynced;
  }

  async #isCurrent(desired: DesiredNatsServer, served: Buffer): Promise<boolean> {
    if (!new X509Certificate(desired.certificate).raw.equals(served)) return false;
    const { url } = this.#deps;
    return canAuthenticate({ url, seed: desired.operatorSeed, ca: desired.caBundle }, 'operator');
  }

  #inspect(signal: AbortSignal) {
    return readServerInfo(this.#deps.url, AbortSignal.any([signal, AbortSignal.timeout(INSPECT_TIMEOUT_MS)]));
  }

  #pause(): number {
    const waited = this.#deps.clock.monotonic() - (this.#since ?? 0);
    return waited < KUBELET_SYNC_MS ? RETRY_MS : SLOW_RETRY_MS;
  }

  /** Logs a warning only when the server did not reload in time. The connection reports an unreachable server. */
  #reportError(problem: string): void {
    const isLate = this.#deps.clock.monotonic() - (this.#since ?? 0) >= KUBELET_SYNC_MS;
    const { log } = this.#deps;
    if (!isLate) log.debug({ problem }, 'the NATS server does not use the current certificate and users yet');
    else if (problem !== this.#lastError) {
      this.#lastError = problem;
      log.warn(
        { problem },
        'the NATS server does not load its certificate and users; restart the StatefulSet temper-nats',
      );
    }
  }
}

function same(one: DesiredNatsServer, other: DesiredNatsServer): boolean {
  const { caBundle: _one, ...before } = one;
  const { caBundle: _other, ...after } = other;
  return JSON.stringify(before) === JSON.stringify(after);
}
