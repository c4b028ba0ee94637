import { X509Certificate } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { isLetIn, reloadServer } from '../../nats/reload.ts';
import { lookAtServer } from '../../nats/served-server.ts';
import type { Logger } from '../../telemetry/log.ts';

/** What the server of this release shall run with: what stands in its Secrets. */
export interface WantedServer {
  /** PEM. */
  readonly certificate: string;
  /** PEM of the authorities that clients trust. */
  readonly authorities: string;
  readonly configuration: string;
  readonly operatorSeed: string;
  readonly systemSeed: string;
}

export interface ServerReloadDeps {
  readonly url: string;
  readonly clock: Clock;
  readonly log: Logger;
}

const MINUTE = 60_000;
const SOON = 10_000;
/** By then the kubelet has brought a changed Secret to the server's pod. */
const BROUGHT_WITHIN = 3 * MINUTE;
const RARELY = 5 * MINUTE;
const LOOK_TIMEOUT = 10_000;

/**
 * Nobody tells the server that its certificate or its configuration changed, and it does not watch its files. It is asked to read them
 * again until it shows the certificate it should and lets in who it should; the files come to its pod some time after the Secrets changed.
 */
export class ServerReload {
  readonly #deps: ServerReloadDeps;
  #wanted: WantedServer | undefined;
  /** Since when it was not as wanted. */
  #since: number | undefined;
  /** Reads of its configuration go on until then, since what it made of that cannot be seen. */
  #until = 0;
  #isConfirmed = false;
  #told = '';

  constructor(deps: ServerReloadDeps) {
    this.#deps = deps;
  }

  /** Milliseconds until the next one. */
  async round(wanted: WantedServer | undefined, signal: AbortSignal): Promise<number> {
    if (wanted === undefined) return SOON;
    this.#take(wanted);
    if (this.#isConfirmed) return MINUTE;
    try {
      const isAsWanted = await this.#attempt(wanted, signal);
      if (!isAsWanted) return this.#pause();
    } catch (error) {
      if (signal.aborted) return 0;
      this.#tell(messageOf(error, 400));
      return this.#pause();
    }
    this.#isConfirmed = true;
    this.#since = undefined;
    this.#told = '';
    this.#deps.log.debug({}, 'the bus has the certificate and the users it should');
    return MINUTE;
  }

  #take(wanted: WantedServer): void {
    const before = this.#wanted;
    this.#wanted = wanted;
    if (before !== undefined && same(before, wanted)) return;
    const now = this.#deps.clock.monotonic();
    this.#isConfirmed = false;
    this.#since = now;
    // A server that starts reads it; one that runs has to be told.
    if (before !== undefined && before.configuration !== wanted.configuration) this.#until = now + BROUGHT_WITHIN;
  }

  async #attempt(wanted: WantedServer, signal: AbortSignal): Promise<boolean> {
    const before = await this.#look(signal);
    const isBrought = this.#deps.clock.monotonic() >= this.#until;
    if (isBrought && (await this.#isAsWanted(wanted, before.certificate))) return true;
    const { url } = this.#deps;
    await reloadServer({ url, seed: wanted.systemSeed, authorities: wanted.authorities }, before.id);
    const after = await this.#look(signal);
    const isAsWanted = await this.#isAsWanted(wanted, after.certificate);
    if (isAsWanted) this.#deps.log.info({}, 'the bus has read its certificate and its configuration again');
    else this.#tell('it still has the files of before');
    return isAsWanted && isBrought;
  }

  async #isAsWanted(wanted: WantedServer, served: Buffer): Promise<boolean> {
    if (!new X509Certificate(wanted.certificate).raw.equals(served)) return false;
    const { url } = this.#deps;
    return isLetIn({ url, seed: wanted.operatorSeed, authorities: wanted.authorities }, 'operator');
  }

  #look(signal: AbortSignal) {
    return lookAtServer(this.#deps.url, AbortSignal.any([signal, AbortSignal.timeout(LOOK_TIMEOUT)]));
  }

  #pause(): number {
    const waited = this.#deps.clock.monotonic() - (this.#since ?? 0);
    return waited < BROUGHT_WITHIN ? SOON : RARELY;
  }

  /** A server that is not there yet is told of by the connection; one that stays as it was is worth a warning. */
  #tell(problem: string): void {
    const isLate = this.#deps.clock.monotonic() - (this.#since ?? 0) >= BROUGHT_WITHIN;
    const { log } = this.#deps;
    if (!isLate) log.debug({ problem }, 'the bus does not have its certificate and users yet');
    else if (problem !== this.#told) {
      this.#told = problem;
      log.warn({ problem }, 'the bus does not take up its certificate and users; restart the StatefulSet temper-nats');
    }
  }
}

function same(one: WantedServer, other: WantedServer): boolean {
  const { authorities: _one, ...before } = one;
  const { authorities: _other, ...after } = other;
  return JSON.stringify(before) === JSON.stringify(after);
}
